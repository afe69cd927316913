//! A game's backend that records every call and responds as the test sets it.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Call {
    /// Returns the token of the call.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.headers
            .get("authorization")?
            .to_str()
            .ok()?
            .strip_prefix("Bearer ")
    }
}

/// A response to send.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: &'static [(&'static str, &'static str)],
    /// The body.
    pub body: &'static str,
}

#[derive(Debug, Default)]
struct Shared {
    calls: Mutex<Vec<Call>>,
    answers: Mutex<HashMap<String, Vec<Answer>>>,
}

/// The backend. Unless a response is set, it responds with 200 and the length of the received body.
#[derive(Debug)]
pub struct Backend {
    /// The address on which it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    serving: tokio::task::JoinHandle<()>,
}

impl Backend {
    /// Starts a backend on a free port of the loopback address.
    pub async fn listen() -> Self {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port is free");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let shared = Arc::new(Shared::default());
        let router = axum::Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the backend serves");
        });
        Self {
            address,
            shared,
            serving,
        }
    }

    /// Returns its address as a URL without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the next responses to calls of `path`, one for each call, in this order.
    pub fn answer(&self, path: &str, answers: impl IntoIterator<Item = Answer>) {
        let mut waiting: Vec<Answer> = answers.into_iter().collect();
        waiting.reverse();
        locked(&self.shared.answers).insert(path.to_owned(), waiting);
    }

    /// Returns every call of `path` so far, with any query.
    #[must_use]
    pub fn calls(&self, path: &str) -> Vec<Call> {
        let of_path = |call: &&Call| call.path.split('?').next() == Some(path);
        locked(&self.shared.calls)
            .iter()
            .filter(of_path)
            .cloned()
            .collect()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let length = body.len();
    locked(&shared.calls).push(Call {
        method,
        path: uri.to_string(),
        headers,
        body,
    });
    let due = locked(&shared.answers)
        .get_mut(uri.path())
        .and_then(Vec::pop);
    match due {
        Some(answer) => {
            let status = StatusCode::from_u16(answer.status).expect("a test's status is valid");
            let mut response = (status, answer.body).into_response();
            response.headers_mut().clear();
            for (name, value) in answer.headers {
                let value = value.parse().expect("a test's header is valid");
                response.headers_mut().insert(*name, value);
            }
            response
        }
        None => axum::Json(json!({ "length": length })).into_response(),
    }
}

/// Locks a collection, even if another holder of the lock panicked.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
