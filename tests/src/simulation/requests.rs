//! The requests of a browser that plays, with the paths, headers and bodies of the runtime.

use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST,
    IF_NONE_MATCH, ORIGIN, REFERER, USER_AGENT,
};
use hyper::http::request::Builder;
use platform_protocol::paths;
use serde_json::{Value, json};

use super::client::Asked;

/// A browser's name for itself.
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
/// The name of the session's cookie over http.
pub(super) const COOKIE_NAME: &str = "platform-session";

/// Builds the requests of one platform.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    /// `platform.localhost:<port>`
    host: String,
}

impl Requests {
    /// For the platform with this origin.
    pub(super) fn new(origin: &str) -> Self {
        let host = origin.split_once("://").map_or(origin, |(_, host)| host);
        Self {
            host: host.to_owned(),
        }
    }

    fn start(&self, method: &str, label: &str, path: &str, site: &str) -> Builder {
        let host = match label {
            "" => self.host.clone(),
            label => format!("{label}.{}", self.host),
        };
        Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, host)
            .header(USER_AGENT, BROWSER)
            .header(ACCEPT_LANGUAGE, "en-US,en;q=0.5")
            .header(ACCEPT_ENCODING, "gzip, deflate, br")
            .header("sec-fetch-site", site)
    }

    fn game(&self, game: &str) -> String {
        format!("http://{game}.{}", self.host)
    }

    /// The page of a game.
    pub(super) fn page(&self, game: &str) -> Asked {
        let request = self.start("GET", game, "/", "none");
        ended(
            request.header(ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8"),
            "",
        )
    }

    /// The runtime; `etag` is that of the copy in the browser's cache.
    pub(super) fn runtime(&self, game: &str, etag: Option<&str>) -> Asked {
        let request = self
            .start("GET", game, paths::RUNTIME_JS, "same-origin")
            .header(ACCEPT, "*/*")
            .header(REFERER, format!("{}/", self.game(game)));
        let request = match etag {
            Some(etag) => request.header(IF_NONE_MATCH, etag),
            None => request,
        };
        ended(request, "")
    }

    /// A token for a game, with the browser's cookie if it has one.
    pub(super) fn token(&self, game: &str, cookie: Option<&str>) -> Asked {
        let request = self
            .start("POST", "auth", paths::TOKEN, "same-site")
            .header(ACCEPT, "*/*")
            .header(ORIGIN, self.game(game))
            .header(REFERER, format!("{}/", self.game(game)));
        let request = match cookie {
            Some(cookie) => request.header(COOKIE, format!("{COOKIE_NAME}={cookie}")),
            None => request,
        };
        ended(request, "")
    }

    /// The player of this page is playing.
    pub(super) fn heartbeat(&self, game: &str, token: &str, page: &str) -> Asked {
        self.report(
            game,
            paths::HEARTBEAT,
            Some(token),
            &json!({ "page": page }),
        )
    }

    /// The player leaves this page.
    pub(super) fn leave(&self, game: &str, token: Option<&str>, page: &str) -> Asked {
        let body = json!({ "page": page, "leaving": true });
        self.report(game, paths::HEARTBEAT, token, &body)
    }

    /// Log records of this page.
    pub(super) fn logs(&self, game: &str, token: &str, page: &str, texts: &[String]) -> Asked {
        let record = |text: &String| json!({ "time": 0, "level": "info", "source": "console", "message": text });
        let records: Vec<Value> = texts.iter().map(record).collect();
        let body = json!({ "page": page, "records": records });
        self.report(game, paths::LOGS, Some(token), &body)
    }

    fn report(&self, game: &str, path: &str, token: Option<&str>, body: &Value) -> Asked {
        let request = self
            .start("POST", game, path, "same-origin")
            .header(ACCEPT, "*/*")
            .header(CONTENT_TYPE, "application/json")
            .header(ORIGIN, self.game(game))
            .header(REFERER, format!("{}/", self.game(game)));
        let request = match token {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        };
        ended(request, body.to_string())
    }

    /// A deploy by the owner of a project.
    pub(super) fn deploy(&self, game: &str, token: &str, archive: Vec<u8>) -> Asked {
        let path = format!("/api/projects/{game}/environments/prod/deployment");
        let request = self
            .start("PUT", "", &path, "none")
            .header(CONTENT_TYPE, "application/gzip")
            .header(AUTHORIZATION, format!("Bearer {token}"));
        ended(request, archive)
    }
}

fn ended(request: Builder, body: impl Into<Bytes>) -> Asked {
    let request = request.body(Full::new(body.into()));
    request.expect("a request of valid parts")
}
