//! Somebody with a project, who deploys to a server program as any client may:
//! over HTTP, with a token of the console.

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
    /// A token of the console.
    pub token: String,
}

impl Deployer {
    /// The project's slug.
    pub const SLUG: &str = "my-game";

    /// Somebody who is signed in on `server`, with a project.
    ///
    /// # Panics
    /// When the server refuses.
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

    /// A request to the console with the token.
    pub fn call(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.base))
            .header(HOST, &self.host)
            .bearer_auth(&self.token)
    }

    /// A deploy of `archive` to the production environment.
    pub fn deploy(&self, archive: Vec<u8>) -> RequestBuilder {
        self.call(Method::PUT, &format!("{}/deployment", Self::production()))
            .header(CONTENT_TYPE, "application/gzip")
            .body(archive)
    }

    /// The path of the production environment.
    #[must_use]
    pub fn production() -> String {
        format!("/api/projects/{}/environments/prod", Self::SLUG)
    }

    /// A file of the game in production: its status and content.
    ///
    /// # Panics
    /// When no whole answer arrives.
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

/// An archive of `files`, compressed as fast as possible.
///
/// # Panics
/// When a path is none.
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
