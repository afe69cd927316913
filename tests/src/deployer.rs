//! A player with a project who deploys to a server program over HTTP, with a console token.

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::header::{CONTENT_TYPE, HOST};
use reqwest::{Client, Method, RequestBuilder};

use crate::owner::Owner;
use crate::platform::Site;
use crate::server::Server;

/// A player with an account and the project [`Deployer::SLUG`].
#[derive(Clone, Debug)]
pub struct Deployer {
    client: Client,
    /// `http://<ip:port>`
    base: String,
    /// `platform.localhost:<port>`
    pub host: String,
    /// A console token.
    pub token: String,
}

impl Deployer {
    /// The project's slug.
    pub const SLUG: &str = "my-game";

    /// Signs a player in on `server` and creates a project.
    ///
    /// # Panics
    /// Panics if the server refuses.
    pub async fn new(server: &Server) -> Self {
        let owner = Owner::sign_in(&Site::from(server), "deployer").await;
        owner.create(Self::SLUG).await;
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client can be made");
        Self {
            client,
            base: format!("http://{}", server.address),
            host: format!("platform.localhost:{}", server.address.port()),
            token: owner.token,
        }
    }

    /// Builds a request to the console with the token.
    pub fn call(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.base))
            .header(HOST, &self.host)
            .bearer_auth(&self.token)
    }

    /// Builds a deploy of `archive` to the production environment.
    pub fn deploy(&self, archive: Vec<u8>) -> RequestBuilder {
        self.call(Method::PUT, &format!("{}/deployment", Self::production()))
            .header(CONTENT_TYPE, "application/gzip")
            .body(archive)
    }

    /// Returns the path of the production environment.
    #[must_use]
    pub fn production() -> String {
        format!("/api/projects/{}/environments/prod", Self::SLUG)
    }

    /// Builds a request of a page of the game in production that sends log records.
    pub fn log(&self, body: String) -> RequestBuilder {
        self.client
            .post(format!("{}/__platform/logs", self.base))
            .header(HOST, format!("{}.{}", Self::SLUG, self.host))
            .header(CONTENT_TYPE, "application/json")
            .body(body)
    }

    /// Requests a file of the game in production and returns its status and content.
    ///
    /// # Panics
    /// Panics if no complete response arrives.
    pub async fn file(&self, path: &str) -> (u16, Vec<u8>) {
        let request = self
            .client
            .get(format!("{}/{path}", self.base))
            .header(HOST, format!("{}.{}", Self::SLUG, self.host));
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.bytes().await.expect("a whole file").to_vec())
    }
}

/// Builds an archive of `files`, with the fastest compression.
///
/// # Panics
/// Panics if a path is invalid.
#[must_use]
pub fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        let added = builder.append_data(&mut header, path, content.as_slice());
        added.expect("a file of an archive");
    }
    let zipped = builder.into_inner().expect("an archive");
    zipped.finish().expect("an archive")
}
