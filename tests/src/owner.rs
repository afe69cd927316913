//! An owner of projects: signed in with the demo provider over plain HTTP, with a console token.

use flate2::Compression;
use flate2::write::GzEncoder;
use platform_protocol::paths;
use platform_protocol::token::TokenAnswer;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::person::Person;
use crate::platform::Site;
use crate::terminal;
use crate::visitor::Visitor;

/// The owner, and the address of the platform.
#[derive(Debug)]
pub struct Owner {
    client: Client,
    site: Site,
    /// The console token.
    pub token: String,
}

impl Owner {
    /// Signs in with the name `name` at the demo provider.
    ///
    /// # Panics
    /// Panics if that does not lead to a console token.
    pub async fn sign_in(site: &Site, name: &str) -> Self {
        let mut person = Person::new(site);
        terminal::sign_in(&mut person, name, &site.origin).await;
        Self::of(&mut person, site).await
    }

    /// Returns a person who has signed in as an owner.
    ///
    /// # Panics
    /// Panics if there is no console token.
    pub async fn of(person: &mut Person, site: &Site) -> Self {
        let answer = person
            .ask(Method::POST, paths::TOKEN, &[(ORIGIN, &site.origin)], None)
            .await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let token: TokenAnswer = serde_json::from_str(&answer.body).expect("a token answer");
        let client = Client::builder()
            .no_proxy()
            .timeout(crate::poll::BOUND)
            .build()
            .expect("a client can be made");
        Self {
            client,
            site: site.clone(),
            token: token.access_token,
        }
    }

    /// Calls the project API and returns status and response.
    ///
    /// # Panics
    /// Panics if there is no JSON response.
    pub async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let (_, host) = self.site.origin.split_once("://").expect("an origin");
        let mut request = self
            .client
            .request(method, format!("http://{}{path}", self.site.address))
            .header(HOST, host)
            .header(AUTHORIZATION, format!("Bearer {}", self.token));
        if let Some(body) = body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        let answer = request.send().await.expect("the platform answers");
        let status = answer.status().as_u16();
        let text = answer.text().await.expect("a whole answer");
        let body = serde_json::from_str(&text);
        (
            status,
            body.unwrap_or_else(|_| panic!("{path} answered {text}")),
        )
    }

    /// Returns the same owner, whose requests go to another address of the same platform, such as
    /// another node.
    #[must_use]
    pub fn through(&self, site: &Site) -> Self {
        Self {
            client: self.client.clone(),
            site: site.clone(),
            token: self.token.clone(),
        }
    }

    /// Returns a visitor of the same address.
    #[must_use]
    pub fn visitor(&self) -> Visitor {
        let port = self.site.origin.rsplit(':').next();
        let port = port.and_then(|port| port.parse().ok());
        let address = self.site.address;
        Visitor::new(address, port.unwrap_or(address.port()))
    }

    /// Creates the project `slug`.
    ///
    /// # Panics
    /// Panics if the slug is taken.
    pub async fn create(&self, slug: &str) {
        let wanted = json!({ "slug": slug });
        let (status, body) = self.ask(Method::POST, "/api/projects", Some(wanted)).await;
        assert_eq!(status, 201, "{body}");
    }

    /// Deploys `files` to an environment of `slug`, as an archive, and returns the response.
    ///
    /// # Panics
    /// Panics if the archive is refused.
    pub async fn deploy(&self, slug: &str, environment: &str, files: &[(&str, &str)]) -> Value {
        let (status, text) = self.try_to_deploy(slug, environment, files).await;
        assert_eq!(status, 201, "{text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Deploys like [`Owner::deploy`], and returns status and response.
    ///
    /// # Panics
    /// Panics if there is no response.
    pub async fn try_to_deploy(
        &self,
        slug: &str,
        environment: &str,
        files: &[(&str, &str)],
    ) -> (u16, String) {
        let path = format!("/api/projects/{slug}/environments/{environment}/deployment");
        self.upload(&path, files).await
    }

    /// Sends `files` as an archive, and returns status and response.
    async fn upload(&self, path: &str, files: &[(&str, &str)]) -> (u16, String) {
        let (_, host) = self.site.origin.split_once("://").expect("an origin");
        let request = self
            .client
            .put(format!("http://{}{path}", self.site.address))
            .header(HOST, host)
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .header(CONTENT_TYPE, "application/gzip")
            .body(archive(files));
        let answer = request.send().await.expect("the platform answers");
        let status = answer.status().as_u16();
        (status, answer.text().await.expect("a whole answer"))
    }

    /// Deploys `files` as the preview `name` of `slug`, and returns the response.
    ///
    /// # Panics
    /// Panics if it is refused.
    pub async fn preview(&self, slug: &str, name: &str, files: &[(&str, &str)]) -> Value {
        let path = format!("/api/projects/{slug}/previews/{name}");
        let (status, text) = self.upload(&path, files).await;
        assert_eq!(status, 201, "{text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Issues a token for a test player of `slug`, as `platform test-token --json` prints it.
    /// `kind` is `user` or `guest`.
    ///
    /// # Panics
    /// Panics if it is refused.
    pub async fn test_token(&self, slug: &str, kind: &str, number: u8) -> Value {
        let path = format!("/api/projects/{slug}/test-tokens");
        let wanted = json!({ "number": number, "guest": kind == "guest" });
        let (status, body) = self.ask(Method::POST, &path, Some(wanted)).await;
        assert_eq!(status, 200, "{body}");
        body
    }
}

/// Builds a gzipped tar archive of `files`.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let gzip = GzEncoder::new(Vec::new(), Compression::fast());
    let mut archive = tar::Builder::new(gzip);
    for (path, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        let added = archive.append_data(&mut header, path, content.as_bytes());
        added.expect("a vector takes every byte");
    }
    let gzip = archive.into_inner().expect("a vector takes every byte");
    gzip.finish().expect("a vector takes every byte")
}
