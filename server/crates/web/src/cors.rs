//! What answers carry for origins that may ask with the player's cookie (Fetch,
//! "HTTP-CORS protocol"). [`with_cookie`] is the layer of the routes that such
//! origins ask. Which origins these are is decided in `games/catalogue.rs`.
//!
//! The `Origin` header alone decides. A browser writes it and no page can forge
//! it, so what `Sec-Fetch-Site` or `Content-Type` say adds nothing: an allowed
//! origin is a game of this platform and same-site by construction.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use platform_protocol::problem::ProblemCode;

use super::api_error::ApiError;

/// An origin that may ask, and the audience of the tokens that it gets.
#[derive(Clone, Debug)]
pub struct AllowedOrigin {
    /// The origin, exactly as browsers write it.
    pub origin: HeaderValue,
    /// `game:<slug>`, `game:dev-<slug>` or `platform:console`.
    pub audience: Arc<str>,
    /// Whether it is a game that is not shown, whose pages get no tokens.
    pub taken_down: bool,
}

impl<S: Sync> FromRequestParts<S> for AllowedOrigin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts
            .extensions
            .get::<AllowedOrigin>()
            .cloned()
            .ok_or_else(|| ProblemCode::UnknownOrigin.into())
    }
}

/// Which origins may ask with the player's cookie.
pub trait Origins: Send + Sync + 'static {
    /// The origin of this spelling, if it may ask.
    fn find(&self, origin: &str) -> Option<AllowedOrigin>;
}

/// In the extensions of an answer that programs alone ask for: it is no page, however
/// it was asked for, and its `Vary` is complete.
#[derive(Clone, Copy, Debug)]
pub struct ForPrograms;

/// The layer of routes that ask with the player's cookie from a game's page. Whatever
/// answers there, an error too, the page may read.
pub async fn with_cookie<O: Origins>(
    State(origins): State<Arc<O>>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = single_origin(request.headers()).and_then(|origin| origins.find(origin));
    if let Some(caller) = &caller {
        request.extensions_mut().insert(caller.clone());
    }
    let mut response = next.run(request).await;
    apply(response.headers_mut(), caller.as_ref());
    response.extensions_mut().insert(ForPrograms);
    response
}

/// The one value of `Origin`, if there is exactly one and it is text.
#[must_use]
pub fn single_origin(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::ORIGIN).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Puts on an answer what an allowed caller's browser wants to see. Without a
/// caller only caches are told that the answer depends on the origin, and on
/// nothing else: these addresses have no pages.
fn apply(headers: &mut HeaderMap, caller: Option<&AllowedOrigin>) {
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    let Some(caller) = caller else { return };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, caller.origin.clone());
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
        HeaderValue::from_static("true"),
    );
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("X-Request-Id, Retry-After"),
    );
}

/// The further headers of an answer to a preflight. The runtime never causes
/// one; a page that sends a content type or a request id of its own does.
#[must_use]
pub fn preflight_headers() -> HeaderMap {
    HeaderMap::from_iter([
        (
            header::ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("POST"),
        ),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static("Content-Type, X-Request-Id"),
        ),
        (
            header::ACCESS_CONTROL_MAX_AGE,
            HeaderValue::from_static("600"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ])
}
