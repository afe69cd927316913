//! A game developer's own server on this machine: the game's files, the four paths that local
//! development needs, and a backend. It records every request.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use platform_protocol::paths;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The page at `/__platform/login`, which contains only the runtime's tag.
const LOGIN: &str = "<script defer src=\"/__platform/runtime.js\"></script>";

/// The game's page.
const GAME: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Game</title>\
    <link rel=\"icon\" href=\"data:,\">\
    <script>window.natives = [console.log, console.error, fetch];</script>\
    <script defer src=\"/__platform/runtime.js\"></script></head>\
    <body><button id=\"play\" onclick=\"window.clicks = (window.clicks ?? 0) + 1\" \
    style=\"position:fixed;inset:0;width:100%;height:100%\">Play</button></body></html>";

#[derive(Debug)]
struct Shared {
    runtime: String,
    log: Mutex<Vec<String>>,
    refusals: Mutex<HashMap<String, (u16, &'static str, &'static str)>>,
    minted: Mutex<u32>,
}

/// The server.
#[derive(Debug)]
pub struct DevServer {
    /// Its port, on `127.0.0.1` and on `::1`.
    pub port: u16,
    shared: Arc<Shared>,
    serving: [JoinHandle<()>; 2],
}

impl DevServer {
    /// Serves a page, and `runtime` at the runtime's path.
    pub async fn listen(runtime: String) -> Self {
        let (four, six) = listeners().await;
        let port = four.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared {
            runtime,
            log: Mutex::default(),
            refusals: Mutex::default(),
            minted: Mutex::default(),
        });
        let serving = [four, six].map(|listener| {
            let router = axum::Router::new()
                .fallback(answer)
                .with_state(Arc::clone(&shared));
            tokio::spawn(async move {
                axum::serve(listener, router).await.expect("it serves");
            })
        });
        Self {
            port,
            shared,
            serving,
        }
    }

    /// Returns the URL of `path` on `host`.
    #[must_use]
    pub fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    /// Sets the response to every request of `path`.
    pub fn refuse(&self, path: &str, status: u16, kind: &'static str, body: &'static str) {
        locked(&self.shared.refusals).insert(path.to_owned(), (status, kind, body));
    }

    /// Restores the normal responses.
    pub fn mend(&self) {
        locked(&self.shared.refusals).clear();
    }

    /// Returns the access log: method and path of every request so far, except for icons, which
    /// browsers request on their own.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        locked(&self.shared.log).clone()
    }
}

impl Drop for DevServer {
    fn drop(&mut self) {
        self.serving.iter().for_each(JoinHandle::abort);
    }
}

/// Listens on one port of both loopback addresses, since `localhost` can mean either.
async fn listeners() -> (TcpListener, TcpListener) {
    for _ in 0..20 {
        let four = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port is free");
        let port = four.local_addr().expect("it is bound").port();
        if let Ok(six) = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
            return (four, six);
        }
    }
    panic!("no port is free on both loopback addresses");
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let path = uri.path();
    if path == "/favicon.ico" {
        return StatusCode::NOT_FOUND.into_response();
    }
    locked(&shared.log).push(format!("{method} {path}"));
    if let Some((status, kind, body)) = locked(&shared.refusals).get(path) {
        let status = StatusCode::from_u16(*status).expect("a test's status is valid");
        return (status, [("content-type", *kind)], *body).into_response();
    }
    let player = path
        .strip_prefix(paths::LOCAL_TOKEN_USER)
        .map(|number| ("user", number))
        .or(path
            .strip_prefix(paths::LOCAL_TOKEN_GUEST)
            .map(|number| ("guest", number)));
    match (method, player) {
        (Method::POST, Some((kind, number))) => token(&shared, kind, number),
        (Method::GET, _) if path == "/" || path == "/level" => Html(GAME).into_response(),
        (Method::GET, _) if path == paths::LOCAL_LOGIN => Html(LOGIN).into_response(),
        (Method::GET, _) if path == paths::RUNTIME_JS => (
            [("content-type", "text/javascript; charset=utf-8")],
            shared.runtime.clone(),
        )
            .into_response(),
        (Method::GET, _) if path == "/api/me" => backend(&headers),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns what `platform test-token <n> --json` prints. Every token is different.
fn token(shared: &Shared, kind: &str, number: &str) -> Response {
    if !(1..=10).any(|n| n.to_string() == number) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let mut minted = locked(&shared.minted);
    *minted += 1;
    axum::Json(json!({
        "access_token": format!("test-{kind}-{number}.{minted}"),
        "token_type": "Bearer",
        "expires_in": 1800,
        "sub": format!("of-{kind}-{number}"),
        "username": format!("test-{kind}-{number}"),
    }))
    .into_response()
}

/// A backend that responds with the player of the token.
fn backend(headers: &HeaderMap) -> Response {
    let token = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    match token.and_then(|token| token.split('.').next()) {
        Some(name) => axum::Json(json!({ "username": name })).into_response(),
        None => StatusCode::UNAUTHORIZED.into_response(),
    }
}

/// Locks a collection, even if another holder of the lock panicked.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
