//! A caller of the project API, and archives to deploy.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::write::GzEncoder;
use platform_protocol::claims::GameTokenClaims;
use platform_server::domain::administration::Granted;
use platform_server::domain::audit::Actor;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::browser::Browser;
use crate::support::{Answer, NOW, TestApp, send};

/// A caller with a console token.
#[derive(Clone)]
pub(crate) struct Caller<'a> {
    pub(crate) app: &'a TestApp,
    pub(crate) sub: Uuid,
    pub(crate) cookie: String,
    pub(crate) token: String,
}

impl<'a> Caller<'a> {
    /// Creates a guest.
    pub(crate) async fn guest(app: &'a TestApp) -> Self {
        Self::with_cookie(app, None).await
    }

    /// Returns the account with which somebody has signed in through a provider.
    pub(crate) async fn of(app: &'a TestApp, browser: &Browser<'a>) -> Self {
        let session = browser.cookie("platform-session").unwrap();
        Self::with_cookie(app, Some(&format!("platform-session={session}"))).await
    }

    /// Returns the same caller with a token of their device.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self {
            token: token.to_owned(),
            ..self.clone()
        }
    }

    /// Returns the same caller after another sign-in.
    pub(crate) async fn sign_in_again(&self) -> Self {
        let (now, sub) = (
            self.app.running.state.platform.clock.now(),
            self.sub.simple(),
        );
        self.app.sql(&format!(
            "UPDATE sessions SET authenticated_at = {now} WHERE player = X'{sub}'"
        ));
        Self::with_cookie(self.app, Some(&self.cookie)).await
    }

    /// Makes the caller an administrator.
    pub(crate) async fn grant(&self) {
        let store = &self.app.running.state.platform.store;
        let granted = store
            .grant_admin(self.sub, Actor::Operator.into(), NOW)
            .await;
        assert_eq!(granted.unwrap(), Granted::Done);
    }

    /// Creates a player with a linked identity.
    pub(crate) async fn account(app: &'a TestApp) -> Self {
        let console = app.running.state.platform.origin.to_string();
        let guest = app
            .request(Method::POST, "auth", "/token")
            .header("origin", console);
        let guest = send(guest).await;
        if app.running.state.platform.config.postgres.is_some() {
            let (subject, player) = (guest.claims().sub, guest.claims().sub.parse().unwrap());
            let cookie = app.sign_in(&subject, Some(player)).await;
            return Self::with_cookie(app, Some(&cookie)).await;
        }
        let sub = guest.claims().sub.replace('-', "");
        app.sql(&format!(
            "UPDATE players SET linked = 1 WHERE id = X'{sub}'"
        ));
        // As after a recent sign-in.
        let now = app.running.state.platform.clock.now();
        app.sql(&format!(
            "UPDATE sessions SET authenticated_at = {now} WHERE player = X'{sub}'"
        ));
        Self::with_cookie(app, guest.cookie()).await
    }

    pub(crate) async fn with_cookie(app: &'a TestApp, cookie: Option<&str>) -> Self {
        let console = app.running.state.platform.origin.to_string();
        let mut request = app
            .request(Method::POST, "auth", "/token")
            .header("origin", console);
        if let Some(cookie) = cookie {
            request = request.header("cookie", cookie);
        }
        let answer = send(request).await;
        let fresh = answer.cookie().or(cookie).map(str::to_owned);
        Self {
            app,
            sub: answer.claims().sub.parse().unwrap(),
            cookie: fresh.unwrap(),
            token: answer.token(),
        }
    }

    /// Creates an administrator.
    pub(crate) async fn admin(app: &'a TestApp) -> Self {
        let admin = Self::account(app).await;
        admin.grant().await;
        admin
    }

    /// Builds a request of this caller to the console.
    pub(crate) fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        self.app.request(method, "", path).bearer_auth(&self.token)
    }

    /// Returns the claims of the token, without verification.
    pub(crate) fn claims(&self) -> GameTokenClaims {
        let payload = self.token.split('.').nth(1).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        send(self.ask(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        send(self.ask(Method::POST, path).json(&body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        send(self.ask(Method::PUT, path).json(&body)).await
    }

    pub(crate) async fn create(&self, slug: &str) -> Answer {
        self.post("/api/projects", json!({ "slug": slug })).await
    }

    pub(crate) async fn deploy(&self, environment: &str, archive: Vec<u8>) -> Answer {
        let path = format!("/api/projects/game/environments/{environment}/deployment");
        let request = self
            .ask(Method::PUT, &path)
            .header("content-type", "application/gzip");
        send(request.body(archive)).await
    }
}

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, *content).unwrap();
    }
    gzip(&builder.into_inner().unwrap())
}
