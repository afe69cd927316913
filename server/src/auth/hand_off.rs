//! Handing a player from the auth service to a game that is apart, whose pages the auth service's
//! cookie never reaches.
//!
//! A navigation to such a game without a session of the game is answered with a redirect to the auth
//! service, which redirects back with a code. Only the browser that was sent away can redeem it: the
//! game has set a cookie with a nonce, and the code is bound to its SHA-256. So a code that leaks is
//! worth nothing in another browser, and nobody but the game can make a browser play as somebody else
//! (RFC 9700 §4.7).
//!
//! The game itself can give a player away: its service worker sees the code in the address, and its
//! scripts can set cookies of its address. Then another browser plays this game as this player, until the
//! session at the auth service ends. In no other game is that worth anything.

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use platform_protocol::paths;
use sha2::{Digest as _, Sha256};
use url::form_urlencoded;

use crate::auth::AuthState;
use crate::auth::game_visits::Held;
use crate::domain::errors::chain;
use crate::games::catalogue::Game;
use crate::web::api_error::ApiError;
use crate::web::cookies::{self, Embedding};
use crate::web::hand_off_state::{HandOffState, TRIED, is_path};
use crate::web::redirects::redirect;

/// The parameter with the origin of the game that wants a player.
pub const TO: &str = "to";
/// The parameter with [`HandOffState`].
pub const STATE: &str = "state";
/// The parameter with the code.
pub const CODE: &str = "code";

/// Whether a browser opens an address in a tab of its own to show it (Fetch Metadata). Programs,
/// crawlers, prefetches, frames, workers and parts of pages do not.
#[must_use]
pub fn opens_tab(headers: &HeaderMap) -> bool {
    let is = |name: &str, expected: &str| {
        let mut values = headers.get_all(name).iter();
        values.next().is_some_and(|value| value == expected) && values.next().is_none()
    };
    let prefetches = ["sec-purpose", "purpose", "x-moz", "x-purpose"]
        .iter()
        .flat_map(|name| headers.get_all(*name))
        .any(|value| {
            let value = value.to_str().unwrap_or_default();
            value.contains("prefetch") || value.contains("prerender") || value.contains("preview")
        });
    is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document") && !prefetches
}

/// Whether an address may be a page: its last part has no extension, or that of a page.
fn may_be_page(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        None => true,
        Some((_, extension)) => {
            extension.eq_ignore_ascii_case("html") || extension.eq_ignore_ascii_case("htm")
        }
    }
}

/// Whether a request to a game may begin a hand-off, as far as its head says. Most do not.
#[must_use]
pub fn may_begin(game: &Game, parts: &Parts, secure: bool) -> bool {
    let query = parts.uri.query().unwrap_or_default();
    game.is_apart
        && game.deployment.is_some()
        && parts.method == Method::GET
        && opens_tab(&parts.headers)
        && may_be_page(parts.uri.path())
        && !cookies::was_tried(&parts.headers, secure)
        && !cookies::has_many_nonces(&parts.headers, secure)
        && !query.split('&').any(|pair| pair == TRIED)
}

/// Returns the redirect with which a hand-off begins, if the browser has no session of the game that
/// comes from the auth service, or an old one. If the store fails, the game is shown without.
pub async fn begin_if_needed(
    state: &AuthState,
    game: &Game,
    headers: &HeaderMap,
    path_and_query: &str,
) -> Option<Response> {
    if !is_path(path_and_query) {
        return None;
    }
    match Held::of(state, game, (headers, Embedding::Top)).await {
        Ok(held) if held.is_settled(state.platform.clock.now()) => None,
        Ok(_) => begin(state, game, path_and_query.to_owned(), false).ok(),
        Err(error) => {
            let error = chain(&error);
            tracing::warn!(error, "a game's session could not be looked up");
            None
        }
    }
}

/// Returns the redirect with which a hand-off begins, or its second pass.
///
/// # Errors
/// Returns an error if the address cannot be a header.
pub fn begin(
    state: &AuthState,
    game: &Game,
    path: String,
    is_again: bool,
) -> Result<Response, ApiError> {
    let nonce: [u8; 32] = state.platform.entropy.bytes();
    let wanted = HandOffState {
        nonce: Sha256::digest(nonce).into(),
        path,
        is_again,
    };
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair(TO, &game.origin)
        .append_pair(STATE, &wanted.text())
        .finish();
    let address = format!("{}{}?{query}", state.platform.auth_url, paths::CONTINUE);
    let mut response = redirect(StatusCode::FOUND, &address)?;
    let secure = state.platform.origin.is_secure();
    let cookie = wanted.set_nonce(&nonce, secure);
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(response)
}

/// Returns the address at which a game that is apart takes over a player, and then shows the page
/// with this path and query.
#[must_use]
pub fn arrival(game: &Game, path_and_query: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair(TO, path_and_query)
        .finish();
    format!("{}{}?{query}", game.origin, paths::GAME_CONTINUE)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_tab_that_shows_an_address_is_handed_off() {
        let opens = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_static(value));
            }
            opens_tab(&headers)
        };
        let mode = ("sec-fetch-mode", "navigate");
        let dest = ("sec-fetch-dest", "document");
        assert!(opens(&[mode, dest]));
        assert!(opens(&[mode, dest, ("sec-fetch-site", "cross-site")]));
        for other in [
            &[][..],
            &[mode],
            &[dest],
            &[mode, ("sec-fetch-dest", "iframe")],
            &[mode, ("sec-fetch-dest", "empty")],
            &[("sec-fetch-mode", "cors"), dest],
            &[mode, dest, dest],
            &[mode, dest, ("sec-purpose", "prefetch")],
            &[mode, dest, ("sec-purpose", "prefetch;prerender")],
            &[mode, dest, ("purpose", "prefetch")],
            &[mode, dest, ("x-purpose", "preview")],
        ] {
            assert!(!opens(other), "{other:?}");
        }
    }

    #[test]
    fn pages_have_no_other_extension() {
        for (path, expected) in [
            ("/", true),
            ("/level/2", true),
            ("/index.html", true),
            ("/a.b/c", true),
            ("/picture.png", false),
            ("/data.json", false),
        ] {
            assert_eq!(may_be_page(path), expected, "{path}");
        }
    }
}
