//! Rewrites the headers of forwarded requests and responses: headers that only the platform may
//! set, and its cookies.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use platform_protocol::claims::ASSERTION_HEADER;
use platform_serving::forwarding::{drop_hop_by_hop, drop_spoofed, introduce};

use crate::games::catalogue::Game;
use crate::games::takedown::forgot_cookie_name;
use crate::web::cookies::{
    Embedding, game_cookie_name, is_nonce_name, left_cookie_name, pane_cookie_name,
    session_cookie_name, tried_cookie_name,
};
use crate::web::csrf::browser_cookie_name;
use crate::web::request_context::Context;
use crate::web::request_id::X_REQUEST_ID;

/// The header with the platform's signed statement.
const ASSERTION: HeaderName = HeaderName::from_static(ASSERTION_HEADER);

/// Headers with which a backend could make a proxy in front of the platform replace the response by
/// a local file, or by the response of another address.
const FOR_PROXIES: [HeaderName; 8] = [
    HeaderName::from_static("x-accel-redirect"),
    HeaderName::from_static("x-accel-expires"),
    HeaderName::from_static("x-sendfile"),
    HeaderName::from_static("x-sendfile2"),
    HeaderName::from_static("x-lighttpd-send-file"),
    HeaderName::from_static("x-litespeed-location"),
    HeaderName::from_static("x-reproxy-url"),
    HeaderName::from_static("x-reproxy-service"),
];

/// The platform's cookies, over https and http.
const COOKIES: [&str; 16] = [
    session_cookie_name(true),
    session_cookie_name(false),
    left_cookie_name(true),
    left_cookie_name(false),
    browser_cookie_name(true),
    browser_cookie_name(false),
    forgot_cookie_name(true),
    forgot_cookie_name(false),
    pane_cookie_name(true),
    pane_cookie_name(false),
    game_cookie_name(true, Embedding::Top),
    game_cookie_name(false, Embedding::Top),
    game_cookie_name(true, Embedding::Framed),
    game_cookie_name(false, Embedding::Framed),
    tried_cookie_name(true),
    tried_cookie_name(false),
];

/// Converts a visitor's headers to those for a backend, with the platform's own `assertion`.
pub(super) fn prepare(
    parts: &mut Parts,
    game: &Game,
    context: &Context,
    assertion: Option<HeaderValue>,
) {
    // First, so that `Connection` cannot name a header that the platform sets.
    drop_hop_by_hop(&mut parts.headers);
    drop_spoofed(&mut parts.headers);
    if let Some(assertion) = assertion {
        parts.headers.insert(ASSERTION, assertion);
    }
    // The client sets the backend's own host.
    parts.headers.remove(header::HOST);
    introduce(&mut parts.headers, &game.origin, context.client);
    hide_cookies(&mut parts.headers);
    // The backend can log with the same id.
    parts
        .headers
        .insert(X_REQUEST_ID, context.id.header().clone());
}

/// Returns `<host>[:<port>]` of a game.
pub(super) fn authority(game: &Game) -> &str {
    game.origin
        .split_once("://")
        .map_or("", |(_, authority)| authority)
}

/// Returns a cookie's name: the part before `=`, without surrounding white space.
fn name_of(cookie: &[u8]) -> &[u8] {
    let name = cookie.split(|byte| *byte == b'=').next();
    name.unwrap_or_default().trim_ascii()
}

fn is_ours(name: &[u8]) -> bool {
    COOKIES.iter().any(|ours| ours.as_bytes() == name) || is_nonce_name(name)
}

/// Removes the platform's cookies. They belong to the auth service and browsers send them nowhere
/// else; if one arrives here, no game gets it.
fn hide_cookies(headers: &mut HeaderMap) {
    let cookies = |headers: &HeaderMap| -> Vec<Vec<u8>> {
        headers
            .get_all(header::COOKIE)
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b';'))
            .map(|cookie| cookie.trim_ascii().to_vec())
            .collect()
    };
    let mut kept = cookies(headers);
    let before = kept.len();
    kept.retain(|cookie| !is_ours(name_of(cookie)));
    if kept.len() == before {
        return;
    }
    headers.remove(header::COOKIE);
    if !kept.is_empty()
        && let Ok(value) = HeaderValue::from_bytes(&kept.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, value);
    }
}

/// The allowed values of `Clear-Site-Data`, which only affect one origin. Browsers clear
/// `"cookies"` for the whole platform, including all other games and the player's session (W3C
/// Clear Site Data §3.1), and `"*"` includes that.
const CLEARED: [&str; 3] = ["\"cache\"", "\"storage\"", "\"executioncontexts\""];

/// Prevents a game's backend from changing data of other games and of the platform: their cookies.
pub(super) fn protect_others(headers: &mut HeaderMap, game: &Game) {
    for name in &FOR_PROXIES {
        headers.remove(name);
    }
    refuse_cookies(headers, game);
    let name = HeaderName::from_static("clear-site-data");
    let asked: Vec<HeaderValue> = headers.get_all(&name).iter().cloned().collect();
    if asked.is_empty() {
        return;
    }
    headers.remove(&name);
    let parts = asked.iter().filter_map(|value| value.to_str().ok());
    let kept: Vec<&str> = parts
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|part| CLEARED.contains(&&*part.to_ascii_lowercase()))
        .collect();
    if let Ok(value) = HeaderValue::from_str(&kept.join(", "))
        && !kept.is_empty()
    {
        headers.insert(name, value);
    }
}

/// Removes cookies that a game's backend sets for other hosts than its own game: one with a name of
/// the platform would lock the player out, and one with the platform's `Domain` would be sent to
/// every other game.
fn refuse_cookies(headers: &mut HeaderMap, game: &Game) {
    if !headers.contains_key(header::SET_COOKIE) {
        return;
    }
    let host = authority(game).split(':').next().unwrap_or_default();
    let kept: Vec<HeaderValue> = headers
        .get_all(header::SET_COOKIE)
        .iter()
        .filter(|value| may_be_set(value.as_bytes(), host))
        .cloned()
        .collect();
    headers.remove(header::SET_COOKIE);
    for value in kept {
        headers.append(header::SET_COOKIE, value);
    }
}

fn may_be_set(cookie: &[u8], host: &str) -> bool {
    let mut parts = cookie.split(|byte| *byte == b';');
    // A cookie without a name, `=n=v`, is sent back as `n=v` (RFC 6265bis §5.8.3), like the cookie
    // `n`.
    let mut pair = parts.next().unwrap_or_default().trim_ascii();
    while let Some(rest) = pair.strip_prefix(b"=") {
        pair = rest.trim_ascii();
    }
    let of_others = |attribute: &[u8]| {
        let mut halves = attribute.splitn(2, |byte| *byte == b'=');
        let name = halves.next().unwrap_or_default().trim_ascii();
        // RFC 6265 §5.2.3: a leading dot is ignored.
        let domain = halves.next().unwrap_or_default().trim_ascii();
        let domain = domain.strip_prefix(b".").unwrap_or(domain);
        name.eq_ignore_ascii_case(b"domain")
            && !domain.is_empty()
            && !domain.eq_ignore_ascii_case(host.as_bytes())
    };
    !is_ours(name_of(pair)) && !parts.any(of_others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform_protocol::names::Environment;

    #[test]
    fn a_backend_clears_its_own_origin_alone() {
        let game = Game {
            slug: "game".into(),
            environment: Environment::Prod,
            preview: None,
            audience: "game:game".into(),
            origin: "http://game.platform.localhost".into(),
            is_apart: false,
            canonical: None,
            deployment: None,
            lasting: std::sync::Arc::default(),
            isolated: false,
            traced: false,
            taken_down: false,
            forget_from: None,
            framing: None,
            listing: std::sync::Arc::default(),
            backend: None,
            caller: None,
        };
        for (asked, kept) in [
            (&["\"cookies\""][..], None),
            (&["\"*\""], None),
            (&["\"Cookies\", \"cache\""], Some("\"cache\"")),
            (&["\"storage\"", "\"cookies\""], Some("\"storage\"")),
            (
                &["\"executionContexts\",\"clientHints\""],
                Some("\"executionContexts\""),
            ),
            (&["cookies"], None),
            (&[], None),
        ] {
            let name = HeaderName::from_static("clear-site-data");
            let mut headers = HeaderMap::new();
            for value in asked {
                headers.append(&name, HeaderValue::from_static(value));
            }
            protect_others(&mut headers, &game);
            let left: Vec<_> = headers.get_all(&name).iter().collect();
            let expected: Vec<_> = kept.map(HeaderValue::from_static).into_iter().collect();
            assert_eq!(left, expected.iter().collect::<Vec<_>>(), "{asked:?}");
        }
    }

    #[test]
    fn a_backend_tells_a_proxy_in_front_nothing() {
        let game = Game {
            slug: "game".into(),
            environment: Environment::Prod,
            preview: None,
            audience: "game:game".into(),
            origin: "http://game.platform.localhost".into(),
            is_apart: false,
            canonical: None,
            deployment: None,
            isolated: false,
            traced: false,
            lasting: std::sync::Arc::default(),
            framing: None,
            listing: std::sync::Arc::default(),
            backend: None,
            caller: None,
            taken_down: false,
            forget_from: None,
        };
        let mut headers = HeaderMap::new();
        for name in ["x-accel-redirect", "x-sendfile", "x-reproxy-url", "x-kept"] {
            headers.insert(name, HeaderValue::from_static("/etc/passwd"));
        }
        protect_others(&mut headers, &game);
        let left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["x-kept"]);
    }

    #[test]
    fn no_game_gets_the_platforms_cookies() {
        let cases: &[(&[&str], Option<&str>)] = &[
            (&["a=1"], Some("a=1")),
            (&["platform-session=x"], None),
            (&["__Host-platform-session=x; platform-form=y"], None),
            (&["__Host-platform-guests=x; platform-guests=y"], None),
            (&["a=1; platform-session=x;b=2"], Some("a=1; b=2")),
            (&["platform-session=x", "b=2"], Some("b=2")),
            (
                &[" platform-session =x; c=platform-session"],
                Some("c=platform-session"),
            ),
            (&["platform-session2=x"], Some("platform-session2=x")),
        ];
        for (values, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in *values {
                headers.append(header::COOKIE, HeaderValue::from_static(value));
            }
            hide_cookies(&mut headers);
            let found = headers
                .get(header::COOKIE)
                .map(|value| value.to_str().unwrap());
            assert_eq!(found, *expected, "{values:?}");
        }
    }

    #[test]
    fn a_backend_sets_cookies_for_its_own_game_alone() {
        let host = "demo.platform.localhost";
        for good in [
            "a=1; Path=/",
            "b=platform-session",
            "c=1; Domain=",
            "d=1; Domain=demo.platform.localhost",
            "e=1; domain = .DEMO.platform.localhost ; Secure",
            "platform=1",
        ] {
            assert!(may_be_set(good.as_bytes(), host), "{good}");
        }
        for bad in [
            "platform-session=x",
            " platform-session =x",
            "=platform-session=x",
            " = platform-session=x",
            "==platform-session=x",
            "platform-session",
            "__Host-platform-session=x; Secure; Path=/",
            "platform-form=x",
            "platform-guests=x",
            "a=1; Domain=platform.localhost",
            "a=1; Domain=.platform.localhost",
            "a=1; DOMAIN=localhost; Domain=demo.platform.localhost",
            "a=1; Domain=demo.platform.localhost; Domain=localhost",
            "a=1; Domain=other.platform.localhost",
            "a=1;domain=demo.platform.localhost.",
        ] {
            assert!(!may_be_set(bad.as_bytes(), host), "{bad}");
        }
    }
}
