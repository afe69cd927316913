//! A platform in memory: it records the program's requests, and the test sets its responses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// A request that the platform received.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) host: String,
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A response of the platform.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

#[derive(Default)]
struct Inner {
    seen: Vec<Seen>,
    /// By `METHOD host-label path`: responses in turn; the last one is repeated.
    said: HashMap<String, Vec<Said>>,
    /// The refresh token that works; it is increased at every use.
    refresh: u64,
    /// Whether a refresh token was used twice, which ends the family.
    ended: bool,
    /// The version of the command line that it hands out.
    hands_out: Option<&'static str>,
}

/// A platform on a port of its own.
#[derive(Clone)]
pub(crate) struct Platform {
    pub(crate) port: u16,
    inner: Arc<Mutex<Inner>>,
}

impl Platform {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let platform = Self {
            port: listener.local_addr().unwrap().port(),
            inner: Arc::default(),
        };
        let app = Router::new().fallback(named_answer);
        let app = app.with_state(platform.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        platform
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://platform.localhost:{}", self.port)
    }

    pub(crate) fn auth_url(&self) -> String {
        format!("http://auth.platform.localhost:{}", self.port)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Sets the responses of one call, in turn; the last one is repeated. A call is `METHOD
    /// host-label path`; the console's label is `-`.
    pub(crate) fn say(&self, call: &str, answers: &[(u16, Value)]) {
        let said = answers.iter().map(|(status, body)| Said {
            status: *status,
            content_type: if *status >= 400 && body.get("type").is_some() {
                "application/problem+json"
            } else {
                "application/json"
            },
            body: body.to_string(),
        });
        self.say_raw(call, said.collect());
    }

    pub(crate) fn say_raw(&self, call: &str, answers: Vec<Said>) {
        self.lock().said.insert(call.to_owned(), answers);
    }

    /// All requests to one path.
    pub(crate) fn seen(&self, path: &str) -> Vec<Seen> {
        let inner = self.lock();
        let at = |seen: &&Seen| seen.path.split('?').next() == Some(path);
        inner.seen.iter().filter(at).cloned().collect()
    }

    /// A console token of `username`.
    pub(crate) fn token(&self, username: &str, number: u64) -> String {
        let claims = json!({
            "iss": self.auth_url(), "sub": "0198c2d4-0000-7000-8000-000000000001",
            "username": username, "aud": "platform:console", "jti": number,
        });
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    pub(crate) fn problem(&self, slug: &str, status: u16, detail: &str) -> Value {
        json!({
            "type": format!("{}/problems/{slug}", self.auth_url()), "title": slug,
            "status": status, "detail": detail, "request_id": "req-1",
        })
    }

    /// Sets the last responses of the token endpoint in the device flow; without any it is agreed
    /// to at once.
    pub(crate) fn device_answers(&self, answers: &[&str]) {
        let said: Vec<(u16, Value)> = answers
            .iter()
            .map(|code| (400, json!({"error": code})))
            .collect();
        self.say("DEVICE", &said);
    }

    /// Adds this environment, without a deployment.
    pub(crate) fn has(&self, slug: &str, environment: &str) {
        let call = format!("GET - /api/projects/{slug}/environments/{environment}");
        let url = format!("http://{slug}.platform.localhost:{}", self.port);
        self.say(&call, &[(200, json!({"url": url, "deployments": []}))]);
    }

    /// Names this version of the command line in every answer.
    pub(crate) fn hands_out(&self, version: &'static str) {
        self.lock().hands_out = Some(version);
    }

    /// Whether a used refresh token was sent a second time.
    pub(crate) fn family_ended(&self) -> bool {
        self.lock().ended
    }

    fn next_said(&self, call: &str) -> Option<Said> {
        let mut inner = self.lock();
        let answers = inner.said.get_mut(call)?;
        if answers.len() > 1 {
            Some(answers.remove(0))
        } else {
            answers.first().cloned()
        }
    }

    fn tokens(&self) -> Response {
        let number = {
            let mut inner = self.lock();
            inner.refresh += 1;
            inner.refresh
        };
        let body = json!({
            "access_token": self.token("swift-otter-1", number), "token_type": "Bearer",
            "expires_in": 900, "refresh_token": format!("refresh-{number}"),
        });
        (StatusCode::OK, axum::Json(body)).into_response()
    }

    fn token_endpoint(&self, form: &HashMap<String, String>) -> Response {
        let refused = |code: &str| {
            (StatusCode::BAD_REQUEST, axum::Json(json!({"error": code}))).into_response()
        };
        assert_eq!(form["client_id"], "platform-cli");
        if form["grant_type"] == "refresh_token" {
            let mut inner = self.lock();
            let works =
                !inner.ended && form["refresh_token"] == format!("refresh-{}", inner.refresh);
            inner.ended |= !works;
            drop(inner);
            return if works {
                self.tokens()
            } else {
                refused("invalid_grant")
            };
        }
        assert_eq!(
            form["grant_type"],
            "urn:ietf:params:oauth:grant-type:device_code"
        );
        assert_eq!(form["device_code"], "device-secret");
        let mut inner = self.lock();
        let waiting = inner
            .said
            .get_mut("DEVICE")
            .filter(|answers| !answers.is_empty());
        let code = waiting.map(|answers| answers.remove(0));
        drop(inner);
        match code {
            Some(said) => (
                StatusCode::BAD_REQUEST,
                [(header::CONTENT_TYPE, "application/json")],
                said.body,
            )
                .into_response(),
            None => self.tokens(),
        }
    }

    fn built_in(&self, call: &str, body: &Bytes) -> Option<Response> {
        let auth = self.auth_url();
        let form = || url::form_urlencoded::parse(body).into_owned().collect();
        let value = match call {
            "GET auth /.well-known/oauth-authorization-server" => json!({
                "issuer": auth,
                "device_authorization_endpoint": format!("{auth}/device/authorization"),
                "token_endpoint": format!("{auth}/device/token"),
                "revocation_endpoint": format!("{auth}/device/revoke"),
            }),
            "POST auth /device/authorization" => json!({
                "device_code": "device-secret", "user_code": "BCDF-GHJK",
                "verification_uri": format!("{auth}/device"),
                "verification_uri_complete": format!("{auth}/device?user_code=BCDF-GHJK"),
                "expires_in": 900, "interval": 1,
            }),
            "POST auth /device/token" => return Some(self.token_endpoint(&form())),
            "POST auth /device/revoke" => json!({}),
            _ => return None,
        };
        Some(axum::Json(value).into_response())
    }
}

async fn named_answer(State(platform): State<Platform>, request: Request) -> Response {
    let version = platform.lock().hands_out;
    let mut response = answer(State(platform), request).await;
    if let Some(version) = version {
        let name = header::HeaderName::from_static("x-platform-cli");
        let headers = response.headers_mut();
        headers.insert(name, header::HeaderValue::from_static(version));
    }
    response
}

async fn answer(State(platform): State<Platform>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let host = head.headers[header::HOST].to_str().unwrap().to_owned();
    let path = head.uri.path_and_query().unwrap().as_str().to_owned();
    let body = axum::body::to_bytes(body, usize::MAX)
        .await
        .unwrap_or_default();
    let label = host
        .split_once(".platform.localhost")
        .map_or("-", |(label, _)| label);
    let call = format!("{} {label} {}", head.method, head.uri.path());
    platform.lock().seen.push(Seen {
        host: host.clone(),
        method: head.method.to_string(),
        path,
        headers: head.headers.clone(),
        body: body.clone(),
    });
    if let Some(said) = platform.next_said(&call) {
        if said.status == 0 {
            // A server that never responds.
            std::future::pending::<()>().await;
        }
        return (
            StatusCode::from_u16(said.status).unwrap(),
            [
                (header::CONTENT_TYPE, said.content_type),
                (header::HeaderName::from_static("x-request-id"), "req-head"),
            ],
            said.body,
        )
            .into_response();
    }
    platform.built_in(&call, &body).unwrap_or_else(|| {
        let problem = platform.problem("not-found", 404, "There is nothing at this address.");
        let headers = [(header::CONTENT_TYPE, "application/problem+json")];
        (StatusCode::NOT_FOUND, headers, problem.to_string()).into_response()
    })
}
