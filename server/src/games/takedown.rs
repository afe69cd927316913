//! What is answered on the address of a game that was taken down, and how browsers
//! are made to forget what a game left in them.
//!
//! A service worker outlives the game that installed it: it answers for the
//! game without asking anybody. The one moment at which it must ask is when the
//! browser looks for a newer version of its script, which it does after every
//! navigation and past the worker itself. Whoever asks for a script that is
//! gone gets one that unregisters itself.

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

/// How a browser marks a request for the script of a service worker (Service
/// Workers, "Update").
const SERVICE_WORKER: HeaderName = HeaderName::from_static("service-worker");
/// How a script says for which paths its worker may be (Service Workers, "Update").
const SERVICE_WORKER_ALLOWED: HeaderName = HeaderName::from_static("service-worker-allowed");
/// What a browser is to forget (Clear Site Data).
const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

/// Takes the place of the worker that is there, and goes.
const UNREGISTERING: &str = "\
// The service worker of this script is gone. This one takes its place and unregisters itself.
self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.registration.unregister()));
";

/// The name of the cookie by which a browser knows that it has forgotten.
#[must_use]
pub const fn forgot_cookie_name(secure: bool) -> &'static str {
    if secure {
        "__Host-platform-forgot"
    } else {
        "platform-forgot"
    }
}

/// Whether a browser asks for the script of a service worker.
#[must_use]
pub fn asks_for_worker(headers: &HeaderMap) -> bool {
    headers
        .get(SERVICE_WORKER)
        .is_some_and(|value| value.as_bytes() == b"script")
}

/// A service worker that unregisters itself. A worker may be for more paths
/// than those below its script if it was told so when it was registered; the
/// browser takes its successor only if it is told so again.
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

/// The answer to whatever is asked of a game that is not shown.
#[must_use]
pub fn answer(headers: &HeaderMap) -> Response {
    if asks_for_worker(headers) {
        return unregistering_worker();
    }
    refusal().into_response()
}

/// That a game is not shown.
#[must_use]
pub fn refusal() -> ApiError {
    ApiError::new(ProblemCode::ProjectDisabled)
        .with_header(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))
}

/// What a navigation's answer says beside its content, so that the browser
/// forgets what the game stored.
#[derive(Debug)]
pub struct Forgetting {
    cookie: Option<HeaderValue>,
}

impl Forgetting {
    /// Whether the answer to this request is to say so: on navigations, while
    /// the game is not shown and for [`FORGETTING`] after it was taken down or
    /// given to another owner. A browser that was told once keeps a cookie, and
    /// is not told again while the game is shown, for its new players' progress
    /// may lie there by then.
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

    /// Says so.
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
            audience: Arc::from("game:game"),
            origin: "https://game.games.example".into(),
            deployment: None,
            lasting: Arc::default(),
            isolated: false,
            framing: None,
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
