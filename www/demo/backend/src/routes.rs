//! The table of paths, and their time and size limits.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef, Request};
use axum::http::{HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use platform_protocol::problem::ProblemCode;
use platform_verifier::{Clock, Verifier};

use crate::problem::{Problem, with_request_id};
use crate::store::ScoreStore;
use crate::{echo, me, score};

/// The maximum number of bytes of an echoed body.
pub(crate) const ECHO_BYTES: usize = 1024 * 1024;
/// The maximum number of bytes of any other body.
const BODY_BYTES: usize = 4 * 1024;
/// The timeout for one request, including its body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The state of the handlers.
#[derive(Clone, Debug)]
pub(crate) struct AppState {
    pub(crate) verifier: Arc<Verifier>,
    pub(crate) scores: Arc<ScoreStore>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl FromRef<AppState> for Arc<Verifier> {
    fn from_ref(state: &AppState) -> Self {
        Arc::clone(&state.verifier)
    }
}

/// Builds the router of the whole backend.
pub(crate) fn app(state: AppState) -> Router {
    Router::new()
        .route("/api/me", get(me::handler))
        .route("/api/score", get(score::show).post(score::submit))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .route(
            "/api/echo",
            post(echo::handler).layer(DefaultBodyLimit::max(ECHO_BYTES)),
        )
        .fallback(async || Problem::from(ProblemCode::NotFound))
        .method_not_allowed_fallback(async || Problem::from(ProblemCode::MethodNotAllowed))
        .layer(middleware::from_fn(within_time))
        .layer(middleware::from_fn(with_request_id))
        .layer(middleware::from_fn(private))
        .with_state(state)
}

/// Responses are about one player, so no cache may store them.
async fn private(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let no_store = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_store);
    response
}

async fn within_time(request: Request, next: Next) -> Response {
    tokio::time::timeout(REQUEST_TIMEOUT, next.run(request))
        .await
        .unwrap_or_else(|_| {
            Problem::new(
                ProblemCode::BackendTimeout,
                "The request took too long. Please try again.",
            )
            .into_response()
        })
}
