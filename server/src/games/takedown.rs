//! Responses on the address of a game that was taken down, and the headers that make browsers
//! delete what the game stored.
//!
//! A service worker outlives the game that installed it: it responds for the game without any
//! request to the server. The only exception is the browser's check for a newer version of its
//! script, which happens after every navigation and bypasses the worker. A request for a script
//! that no longer exists gets one that unregisters itself.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use platform_protocol::problem::ProblemCode;

use crate::clock::Millis;
use crate::domain::takedown::FORGETTING;
use crate::games::catalogue::Game;
use crate::web::api_error::ApiError;
use crate::web::cookies;
use crate::web::navigation::is_navigation;

/// The header with which a browser marks a request for the script of a service worker (Service
/// Workers, "Update").
const SERVICE_WORKER: HeaderName = HeaderName::from_static("service-worker");
/// The header that sets the paths for which a script's worker may be used (Service Workers,
/// "Update").
const SERVICE_WORKER_ALLOWED: HeaderName = HeaderName::from_static("service-worker-allowed");
/// The header that lists what a browser must delete (Clear Site Data).
const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

/// A worker that replaces the current one and unregisters itself.
const UNREGISTERING: &str = "\
// The service worker of this script is gone. This one takes its place and unregisters itself.
self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.registration.unregister()));
";

/// Returns the name of the cookie that records that a browser has deleted the data.
#[must_use]
pub const fn forgot_cookie_name(secure: bool) -> &'static str {
    if secure {
        "__Host-platform-forgot"
    } else {
        "platform-forgot"
    }
}

/// Whether a browser requests the script of a service worker.
#[must_use]
pub fn asks_for_worker(headers: &HeaderMap) -> bool {
    headers
        .get(SERVICE_WORKER)
        .is_some_and(|value| value.as_bytes() == b"script")
}

/// Returns a service worker that unregisters itself. The previous worker may have been allowed for
/// more paths than those below its script; the browser only accepts its successor if it is allowed
/// for them, too.
#[must_use]
pub fn unregistering_worker() -> Response {
    let mut response = Response::new(Body::from(UNREGISTERING));
    for (name, value) in [
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (SERVICE_WORKER_ALLOWED, "/"),
    ] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

/// Returns the response to every request to a game that is taken down.
#[must_use]
pub fn answer(headers: &HeaderMap) -> Response {
    if asks_for_worker(headers) {
        return unregistering_worker();
    }
    refusal().into_response()
}

/// Returns the error for a game that is taken down.
#[must_use]
pub fn refusal() -> ApiError {
    ApiError::new(ProblemCode::ProjectDisabled)
        .with_header(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))
}

/// Headers of the response to a navigation that make the browser delete what the game stored.
#[derive(Debug)]
pub struct Forgetting {
    cookie: Option<HeaderValue>,
}

impl Forgetting {
    /// Returns the headers if this response needs them: on navigations, while the game is taken
    /// down and for [`FORGETTING`] after it was taken down or transferred to another owner. A
    /// browser that has received them once gets a cookie, and does not receive them again while the
    /// game is shown, since its new players' progress may be stored there by then.
    #[must_use]
    pub fn wanted(game: &Game, headers: &HeaderMap, now: Millis, secure: bool) -> Option<Self> {
        let from = game.forget_from?;
        let over = now.saturating_sub(from) >= FORGETTING;
        if (over && !game.taken_down) || !is_navigation(headers) {
            return None;
        }
        let mark = from.to_string();
        let name = forgot_cookie_name(secure);
        if !game.taken_down && cookies::holds(headers, name, &mark) {
            return None;
        }
        let secure = if secure { "; Secure" } else { "" };
        let cookie = format!(
            "{name}={mark}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}{secure}",
            FORGETTING / 1_000
        );
        Some(Self {
            cookie: HeaderValue::try_from(cookie).ok(),
        })
    }

    /// Adds the headers.
    pub fn apply(self, headers: &mut HeaderMap) {
        headers.insert(
            CLEAR_SITE_DATA,
            HeaderValue::from_static("\"cache\", \"storage\""),
        );
        if let Some(cookie) = self.cookie {
            headers.append(header::SET_COOKIE, cookie);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use platform_protocol::names::Environment;

    use super::*;

    const NOW: Millis = 1_800_000_000_000;

    fn game(taken_down: bool, forget_from: Option<Millis>) -> Game {
        Game {
            slug: "game".into(),
            environment: Environment::Prod,
            preview: None,
            audience: Arc::from("game:game"),
            origin: "https://game.games.example".into(),
            is_apart: false,
            canonical: None,
            deployment: None,
            lasting: Arc::default(),
            isolated: false,
            traced: false,
            framing: None,
            listing: Arc::default(),
            backend: None,
            caller: None,
            taken_down,
            forget_from,
        }
    }

    fn navigation(cookie: &str) -> HeaderMap {
        [("accept", "text/html"), ("cookie", cookie)]
            .into_iter()
            .map(|(name, value)| {
                let name = HeaderName::from_static(name);
                (name, HeaderValue::try_from(value).unwrap())
            })
            .collect()
    }

    #[test]
    fn a_browser_forgets_once_while_the_game_is_shown_and_always_while_it_is_not() {
        let told = format!("a=b; __Host-platform-forgot={NOW}");
        let earlier = format!("__Host-platform-forgot={}", NOW - 1);
        let soon = NOW + FORGETTING - 1;
        for (taken_down, from, cookie, now, expected) in [
            (false, None, "", NOW, false),
            (false, Some(NOW), "", NOW, true),
            (false, Some(NOW), &*earlier, soon, true),
            (false, Some(NOW), &*told, NOW, false),
            (false, Some(NOW), "", NOW + FORGETTING, false),
            (true, Some(NOW), &*told, NOW, true),
            (true, Some(NOW), "", NOW + FORGETTING, true),
        ] {
            let game = game(taken_down, from);
            let wanted = Forgetting::wanted(&game, &navigation(cookie), now, true);
            assert_eq!(
                wanted.is_some(),
                expected,
                "{taken_down} {from:?} {cookie} {now}"
            );
        }
        let image = HeaderMap::new();
        assert!(Forgetting::wanted(&game(true, Some(NOW)), &image, NOW, true).is_none());
    }

    #[test]
    fn a_script_is_asked_for_by_the_one_value_of_the_header() {
        for (value, expected) in [("script", true), ("Script", false), ("", false)] {
            let value = HeaderValue::from_static(value);
            let headers = HeaderMap::from_iter([(SERVICE_WORKER, value)]);
            assert_eq!(asks_for_worker(&headers), expected);
        }
        assert!(!asks_for_worker(&HeaderMap::new()));
    }
}
