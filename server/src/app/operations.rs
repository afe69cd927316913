//! The operator's listener: `/healthz` says that the process answers, `/readyz`
//! whether a balancer may send visitors to this node, `/metrics` what it does, `/certificate` whether a
//! name may have a certificate. It has a socket of its
//! own and answers under any host name. The platform's own socket has none of these paths.

mod exposition;
mod readiness;

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use platform_protocol::problem::ProblemCode;
use tower::ServiceExt as _;
use url::form_urlencoded;

use self::exposition::{Format, Slow};
pub use self::readiness::Readiness;
use crate::app::guard::{HANDLING, guard};
use crate::app::state::AppState;
use crate::games::GamesState;
use crate::games::certified::may_have_certificate;
use crate::web::api_error::ApiError;
use crate::web::request_id::{RequestId, X_REQUEST_ID};
use crate::web::serve::Application;

/// Answers on the operator's listener.
#[derive(Clone, Debug)]
pub struct Operations {
    state: AppState,
    router: Router,
}

impl Operations {
    /// Answers for the node that `readiness` looks at.
    #[must_use]
    pub fn new(state: AppState, readiness: Arc<Readiness>) -> Self {
        let router = Router::new()
            .route("/healthz", get(health))
            .route("/readyz", get(ready))
            .fallback(async || ApiError::from(ProblemCode::NotFound))
            .method_not_allowed_fallback(async || ApiError::from(ProblemCode::MethodNotAllowed))
            .with_state(Arc::clone(&readiness));
        let scraped = Arc::new(Scraped {
            state: state.clone(),
            readiness,
            slow: Slow::default(),
        });
        let metrics = Router::new().route("/metrics", get(metrics));
        let router = router.merge(metrics.with_state(scraped));
        let certificate = Router::new().route("/certificate", get(certificate));
        let router = router.merge(certificate.with_state(Arc::clone(&state.games)));
        Self { state, router }
    }
}

/// The process answers, whatever else it lacks: a restart would not help.
async fn health() -> &'static str {
    "ok\n"
}

async fn ready(State(readiness): State<Arc<Readiness>>) -> Response {
    let report = readiness.report().await;
    let status = if report.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    // A few names cannot fail to serialize.
    let json = serde_json::to_vec(&report).unwrap_or_default();
    let mut response = (status, json).into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// What `/metrics` looks at.
#[derive(Debug)]
struct Scraped {
    state: AppState,
    readiness: Arc<Readiness>,
    slow: Slow,
}

async fn metrics(State(scraped): State<Arc<Scraped>>, headers: HeaderMap) -> Response {
    let Scraped {
        state,
        readiness,
        slow,
    } = &*scraped;
    let format = Format::of(&headers);
    let Some(body) = exposition::expose(state, readiness, slow, format).await else {
        return ApiError::from(ProblemCode::NotFound).into_response();
    };
    let mut response = body.into_response();
    let kind = HeaderValue::from_static(format.media_type());
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Whether a proxy may get a certificate for the name `domain`: 200 or 404, and nothing else.
async fn certificate(
    State(games): State<Arc<GamesState>>,
    RawQuery(query): RawQuery,
) -> StatusCode {
    let query = query.unwrap_or_default();
    let name = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "domain");
    let name = name.map(|(_, name)| name.to_ascii_lowercase());
    match name {
        Some(name) if may_have_certificate(&name, &games.catalogue) => StatusCode::OK,
        _ => StatusCode::NOT_FOUND,
    }
}

impl Application for Operations {
    async fn answer(&self, _peer: SocketAddr, request: Request<Body>) -> Response {
        let platform = &self.state.platform;
        let id = RequestId::generate(&*platform.entropy);
        let answer = async {
            match self.router.clone().oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        };
        let mut response = guard(Some(HANDLING), pin!(answer)).await;
        if let Some(error) = response.extensions_mut().remove::<ApiError>() {
            *response.body_mut() = error.body(&platform.auth_url, &id);
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, id.header().clone());
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        response
    }

    fn explain_unread(&self, status: StatusCode) -> (RequestId, Vec<u8>) {
        let platform = &self.state.platform;
        let id = RequestId::generate(&*platform.entropy);
        let body = ApiError::unread(status).problem(&platform.auth_url, &id);
        (id, body)
    }

    fn trusts(&self, _address: IpAddr) -> bool {
        false
    }
}
