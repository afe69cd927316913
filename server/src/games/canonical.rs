//! Redirects from the other addresses of an environment to its canonical one.

use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::games::catalogue::Game;

/// Returns the redirect to the game's canonical address, with the same path and query, if this is not
/// it. A request of a page that was opened before, such as that for a picture, is answered here: from
/// the other address it would be refused to the page.
#[must_use]
pub fn redirect(game: &Game, parts: &Parts) -> Option<Response> {
    let canonical = game.canonical.as_deref()?;
    let mode = parts.headers.get("sec-fetch-mode");
    if mode.is_some_and(|mode| mode != "navigate") {
        return None;
    }
    let target = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let target = Some(target).filter(|target| target.starts_with('/'))?;
    let location = HeaderValue::try_from(format!("{canonical}{target}")).ok()?;
    let headers = [
        (header::LOCATION, location),
        // Browsers would keep it for ever, and the domain may be somebody else's one day.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Some((StatusCode::PERMANENT_REDIRECT, headers).into_response())
}
