//! A server for one test, and a visitor who sends requests to it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::claims::GameTokenClaims;
use platform_protocol::problem::Problem;
use platform_server::clock::{Clock as _, ManualClock, SystemClock};
use platform_server::config::{Config, Period, Rate};
use platform_server::domain::identity::Identity;
use platform_server::domain::session::SessionSecret;
use platform_server::domain::sign_in::SignIn;
use platform_server::domain::username::generate_guest_names;
use platform_server::entropy::SystemEntropy;
use platform_server::platform::disk::{FreeSpace, SystemDisk};
use platform_server::{Running, start_on};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use uuid::Uuid;

/// 2026-01-01, in milliseconds.
pub(crate) const NOW: i64 = 1_767_225_600_000;

/// A server on its own port, in its own directory.
pub(crate) struct TestApp {
    pub(crate) running: Running,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) directory: tempfile::TempDir,
    client: reqwest::Client,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl TestApp {
    /// Starts one with the demo, and with limits for many guests.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts one with changed settings.
    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::in_directory(tempfile::tempdir().unwrap(), change).await
    }

    /// Starts one with the data of an earlier server.
    pub(crate) async fn in_directory(
        directory: tempfile::TempDir,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        Self::start_in(directory, Arc::new(SystemDisk), None, change).await
    }

    /// Starts one with the data of an earlier server, at this time.
    pub(crate) async fn at(directory: tempfile::TempDir, now: i64) -> Self {
        Self::start_in(directory, Arc::new(SystemDisk), Some(now), |_| {}).await
    }

    /// Starts one on a disk whose free space the test sets.
    pub(crate) async fn on_disk(
        disk: Arc<dyn FreeSpace>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), disk, None, change).await
    }

    /// Starts one with the data of an earlier server, on a disk whose free space the test sets, at this time, and
    /// with changed settings.
    pub(crate) async fn start_in(
        directory: tempfile::TempDir,
        disk: Arc<dyn FreeSpace>,
        now: Option<i64>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let many = 1_000_000.try_into().unwrap();
        let rate = Rate {
            count: many,
            period: Period::Second,
            burst: many,
        };
        let mut config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            data: directory.path().to_owned(),
            guest_rate: rate,
            log_rate: rate,
            log_rate_game: rate,
            log_bytes_rate: rate,
            log_bytes_rate_game: rate,
            guests_per_address: 0,
            ..Config::default()
        };
        change(&mut config);
        // A node's clock must be that of its database.
        let is_shared = config.postgres.is_some();
        let start = if is_shared { SystemClock.now() } else { NOW };
        let clock = Arc::new(ManualClock::new(now.unwrap_or(start)));
        let entropy = Arc::new(SystemEntropy);
        let running = start_on(config, clock.clone(), entropy, disk)
            .await
            .unwrap();
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            running,
            clock,
            directory,
            client,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.running.address.port()
    }

    /// `http://<label>.<platform>`
    pub(crate) fn origin(&self, label: &str) -> String {
        self.running.state.platform.origin.sub_domain(label)
    }

    /// Builds a request to the sub-domain `label`; `""` is the console.
    pub(crate) fn request(&self, method: Method, label: &str, path: &str) -> RequestBuilder {
        let origin = self.running.state.platform.origin.to_string();
        let platform = origin.strip_prefix("http://").unwrap().to_owned();
        let host = if label.is_empty() {
            platform
        } else {
            format!("{label}.{platform}")
        };
        self.request_host(method, &host, path)
    }

    /// Builds a request with this `Host`.
    pub(crate) fn request_host(&self, method: Method, host: &str, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("http://{}{path}", self.running.address))
            .header("host", HeaderValue::from_bytes(host.as_bytes()).unwrap())
    }

    pub(crate) fn get(&self, label: &str, path: &str) -> RequestBuilder {
        self.request(Method::GET, label, path)
    }

    /// `POST /token` from the production demo.
    pub(crate) fn post_token(&self) -> RequestBuilder {
        self.request(Method::POST, "auth", "/token")
            .header("origin", self.origin("demo"))
    }

    /// Returns the response with a token of a new guest at the address `label`, with a cookie that came
    /// back, so that the guest counts as a player, and the cookie.
    pub(crate) async fn new_player(&self, label: &str) -> (Answer, String) {
        let ask = || {
            self.request(Method::POST, "auth", "/token")
                .header("origin", self.origin(label))
        };
        let first = send(ask()).await;
        let cookie = first.cookie().unwrap().to_owned();
        let again = send(ask().header("cookie", &cookie)).await;
        assert_eq!(again.claims().sub, first.claims().sub);
        (again, cookie)
    }

    /// Returns the cookie of a browser that has just signed in `subject`; as `guest`, if it was one
    /// before.
    pub(crate) async fn sign_in(&self, subject: &str, guest: Option<Uuid>) -> String {
        let state = &self.running.state;
        let secret = SessionSecret::generate(&*state.platform.entropy);
        let now = state.platform.clock.now();
        let sign_in = SignIn {
            identity: Identity::new("google", "https://accounts.example", subject),
            guest,
            held: None,
            session: secret.hash(),
            new_player: state.platform.entropy.uuid_v7(now),
            usernames: generate_guest_names(&*state.platform.entropy),
            wished_username: None,
            source: None,
            authenticated_at: now,
            now,
        };
        let outcome = state
            .platform
            .store
            .complete_sign_in(sign_in)
            .await
            .unwrap();
        assert!(outcome.player().is_some(), "{outcome:?}");
        format!(
            "platform-session={}",
            URL_SAFE_NO_PAD.encode(secret.expose())
        )
    }

    /// Opens a page in one browser, with the session `session`.
    pub(crate) async fn open(&self, path: &str, session: Option<&str>) -> Opened {
        let mut request = self.get("auth", path);
        if let Some(session) = session {
            request = request.header("cookie", session);
        }
        let answer = send(request).await;
        let cookies = session
            .into_iter()
            .chain(answer.cookie())
            .collect::<Vec<_>>()
            .join("; ");
        Opened { answer, cookies }
    }

    /// Sends a form like a browser with `cookies`.
    pub(crate) fn post_form(
        &self,
        path: &str,
        cookies: &str,
        fields: &[(&str, &str)],
    ) -> RequestBuilder {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        self.request(Method::POST, "auth", path)
            .header("cookie", cookies)
            .header("origin", self.origin("auth"))
            .header("sec-fetch-site", "same-origin")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body)
    }

    /// Sends a request that was changed after it was built.
    pub(crate) async fn execute(&self, request: reqwest::Request) -> Answer {
        read(self.client.execute(request).await.unwrap()).await
    }

    /// Changes the store without telling the server, as an operator's command in another process
    /// does.
    pub(crate) fn sql(&self, statement: &str) {
        self.database().execute_batch(statement).unwrap();
    }

    /// Returns the first value that a query finds.
    pub(crate) fn sql_text(&self, query: &str) -> String {
        let read = |row: &rusqlite::Row<'_>| row.get(0);
        self.database().query_row(query, [], read).unwrap()
    }

    pub(crate) fn count_players(&self) -> i64 {
        self.database()
            .query_row("SELECT count(*) FROM players", [], |row| row.get(0))
            .unwrap()
    }

    pub(crate) fn count_sessions(&self) -> i64 {
        self.database()
            .query_row("SELECT count(*) FROM sessions", [], |row| row.get(0))
            .unwrap()
    }

    fn database(&self) -> rusqlite::Connection {
        let database =
            rusqlite::Connection::open(self.directory.path().join("platform.db")).unwrap();
        database
            .busy_timeout(std::time::Duration::from_secs(5))
            .unwrap();
        database
    }
}

/// An opened page, and what its browser sends from then on.
pub(crate) struct Opened {
    pub(crate) answer: Answer,
    pub(crate) cookies: String,
}

impl Opened {
    /// Returns the token in the page's forms.
    pub(crate) fn token(&self) -> &str {
        self.hidden("csrf")
    }

    /// Returns the seal of the time at which the page's forms were shown.
    pub(crate) fn shown(&self) -> &str {
        self.hidden("shown")
    }

    /// Returns the value of the first hidden field with this name.
    pub(crate) fn hidden(&self, name: &str) -> &str {
        let html = self.answer.text();
        let (_, rest) = html
            .split_once(&format!("name=\"{name}\" value=\""))
            .unwrap_or_else(|| panic!("no form with {name}: {html}"));
        rest.split('"').next().unwrap()
    }
}

pub(crate) async fn send(request: RequestBuilder) -> Answer {
    read(request.send().await.unwrap()).await
}

pub(crate) async fn read(response: reqwest::Response) -> Answer {
    Answer {
        status: response.status(),
        headers: response.headers().clone(),
        body: response.bytes().await.unwrap().to_vec(),
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &'static str) -> Option<&str> {
        self.headers
            .get(HeaderName::from_static(name))
            .map(|value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the slug of a problem, after checking its body and headers.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        let problem: Problem = self.json();
        assert_eq!(problem.status, self.status.as_u16());
        assert_eq!(
            Some(problem.request_id.as_str()),
            self.header("x-request-id")
        );
        assert!(problem.detail.ends_with('.'), "{}", problem.detail);
        assert!(problem.type_uri.starts_with("http"), "{}", problem.type_uri);
        problem.type_uri.rsplit('/').next().unwrap().to_owned()
    }

    /// Returns the claims of the token, without verification.
    pub(crate) fn claims(&self) -> GameTokenClaims {
        let token = self.token();
        let payload = token.split('.').nth(1).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
    }

    pub(crate) fn token(&self) -> String {
        assert_eq!(self.status, 200, "{self:?}");
        self.json::<serde_json::Value>()["access_token"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Returns `<name>=<value>` of the cookie that the response sets.
    pub(crate) fn cookie(&self) -> Option<&str> {
        let cookie = self.header("set-cookie")?;
        cookie.split(';').next()
    }
}
