//! CORS headers for origins that may send requests with the player's cookie (Fetch, "HTTP-CORS
//! protocol"). [`with_cookie`] is the layer of the routes for such requests. `games/catalogue.rs`
//! decides which origins these are.
//!
//! Only the `Origin` header decides. A browser sets it and no page can forge it, so
//! `Sec-Fetch-Site` and `Content-Type` add nothing: an allowed origin is a game of this platform
//! and same-site by construction. [`may_be_from`] is for other requests: those of a page to its own
//! address, where both headers are looked at.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;

use super::api_error::ApiError;

/// An allowed origin, and the audience of its tokens.
#[derive(Clone, Debug)]
pub struct AllowedOrigin {
    /// The origin, exactly as browsers write it.
    pub origin: HeaderValue,
    /// `game:<slug>`, `game:dev-<slug>` or `platform:console`.
    pub audience: Arc<str>,
    /// Whether the game is taken down; its pages then get no tokens.
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

/// The origins that may send requests with the player's cookie.
pub trait Origins: Send + Sync + 'static {
    /// Returns the origin with this exact text, if it is allowed.
    fn find(&self, origin: &str) -> Option<AllowedOrigin>;
}

/// A response extension for addresses that only programs request: the response is never a page,
/// however it was requested, and its `Vary` is complete.
#[derive(Clone, Copy, Debug)]
pub struct ForPrograms;

/// The layer of routes that games' pages request with the player's cookie. The page may read every
/// response, including errors.
pub async fn with_cookie<O: Origins>(
    State(origins): State<Arc<O>>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = single_origin(request.headers()).and_then(|origin| origins.find(origin));
    // A person may open the page at one of these addresses.
    let is_page = request.method() == Method::GET && request.uri().path() == paths::SIGN_OUT;
    if let Some(caller) = &caller {
        request.extensions_mut().insert(caller.clone());
    }
    let mut response = next.run(request).await;
    apply(response.headers_mut(), caller.as_ref());
    if !is_page {
        response.extensions_mut().insert(ForPrograms);
    }
    response
}

/// Lets the page that sent a request with these headers read its response, if the page may send such
/// requests, for a response that no route gave.
pub fn allow<O: Origins>(origins: &O, request: &HeaderMap, response: &mut HeaderMap) {
    if let Some(caller) = single_origin(request).and_then(|origin| origins.find(origin)) {
        apply(response, Some(&caller));
    }
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

/// Whether a request may come from a page of this origin itself, as far as the browser says: `Origin`
/// names it, and `Sec-Fetch-Site` is `same-origin`, each where it is sent. So a page of another
/// origin, such as another game, cannot make a browser send it with cookies.
#[must_use]
pub fn may_be_from(headers: &HeaderMap, origin: &str) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    let names_another =
        headers.contains_key(header::ORIGIN) && single_origin(headers) != Some(origin);
    sites.all(|site| site == "same-origin") && !names_another
}

/// Adds the CORS headers for an allowed caller to a response. Without a caller, only caches are
/// told that the response depends on the origin and on nothing else: these addresses have no pages.
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

/// Returns the additional headers of the response to a preflight. The runtime never causes one; a
/// page that sets its own content type or request id does.
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
