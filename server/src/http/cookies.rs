//! The session cookie (RFC 6265bis): the one thing that says who a player is.
//! And what every cookie of ours has in common.

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cookie::time::Duration;
use cookie::{Cookie, SameSite};

use crate::domain::session::{SESSION_MILLIS, SessionSecret};

/// Over https: the prefix makes browsers refuse it from a sub-domain.
const SECURE_NAME: &str = "__Host-platform-session";
/// Over http, which only an origin under `localhost` may use.
const PLAIN_NAME: &str = "platform-session";

/// The name of the session cookie.
#[must_use]
pub const fn session_cookie_name(secure: bool) -> &'static str {
    if secure { SECURE_NAME } else { PLAIN_NAME }
}

/// What the request says about the session.
#[derive(Debug, PartialEq, Eq)]
pub enum SessionCookie {
    /// No session cookie, or one that this platform cannot have issued.
    Absent,
    /// One that may name a session.
    Present(SessionSecret),
    /// Several of the name: someone tossed one in, and nobody can tell which.
    Ambiguous,
}

/// Reads the session cookie.
#[must_use]
pub fn read_session(headers: &HeaderMap, secure: bool) -> SessionCookie {
    match find(headers, session_cookie_name(secure)) {
        Named::Several => SessionCookie::Ambiguous,
        Named::None => SessionCookie::Absent,
        Named::One(value) => decode(&value).map_or(SessionCookie::Absent, |bytes| {
            SessionCookie::Present(SessionSecret::from_bytes(bytes))
        }),
    }
}

/// The cookies of one name in a request.
pub(super) enum Named {
    None,
    One(String),
    Several,
}

/// Looks for the cookies of one name.
pub(super) fn find(headers: &HeaderMap, name: &str) -> Named {
    let mut found = Named::None;
    for value in headers.get_all(header::COOKIE) {
        // Other people's cookies of this host may hold any bytes; ours are
        // ASCII, so what cannot be read is looked through piece by piece.
        for piece in value.as_bytes().split(|byte| *byte == b';') {
            let Ok(piece) = std::str::from_utf8(piece) else {
                continue;
            };
            let Ok(cookie) = Cookie::parse(piece) else {
                continue;
            };
            if cookie.name() != name {
                continue;
            }
            if !matches!(found, Named::None) {
                return Named::Several;
            }
            found = Named::One(cookie.value().to_owned());
        }
    }
    found
}

/// The 256 bits of a cookie's value.
pub(super) fn decode(value: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    match URL_SAFE_NO_PAD.decode_slice(value, &mut bytes) {
        Ok(32) => Some(bytes),
        _ => None,
    }
}

/// `Set-Cookie` that gives the browser this session for 400 days.
#[must_use]
pub fn set_session(secret: &SessionSecret, secure: bool) -> HeaderValue {
    let value = URL_SAFE_NO_PAD.encode(secret.expose());
    set_cookie(value, secure, Duration::milliseconds(SESSION_MILLIS))
}

/// `Set-Cookie` that takes the session from the browser.
#[must_use]
pub fn clear_session(secure: bool) -> HeaderValue {
    set_cookie(String::new(), secure, Duration::ZERO)
}

fn set_cookie(value: String, secure: bool, max_age: Duration) -> HeaderValue {
    let cookie = Cookie::build((session_cookie_name(secure), value))
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(secure)
        .path("/")
        .max_age(max_age)
        .build();
    header_value(&cookie)
}

/// A cookie of ours as a header that no log shows.
pub(super) fn header_value(cookie: &Cookie<'_>) -> HeaderValue {
    // Name, base64url and attributes are visible ASCII, so this cannot fail.
    let mut header =
        HeaderValue::from_str(&cookie.to_string()).unwrap_or(HeaderValue::from_static(""));
    header.set_sensitive(true);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(
                header::COOKIE,
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        headers
    }

    #[test]
    fn attributes_are_those_of_the_scheme() {
        let secret = SessionSecret::from_bytes([0; 32]);
        assert_snapshot!(set_session(&secret, false).to_str().unwrap(), @"platform-session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA; HttpOnly; SameSite=Lax; Path=/; Max-Age=34560000");
        assert_snapshot!(set_session(&secret, true).to_str().unwrap(), @"__Host-platform-session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=34560000");
        assert_snapshot!(clear_session(true).to_str().unwrap(), @"__Host-platform-session=; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=0");
    }

    #[test]
    fn what_cannot_be_ours_counts_as_absent() {
        let good = URL_SAFE_NO_PAD.encode([7; 32]);
        let present = SessionCookie::Present(SessionSecret::from_bytes([7; 32]));
        let huge = "x".repeat(8_192);
        let cases: &[(&[&str], &SessionCookie)] = &[
            (&[], &SessionCookie::Absent),
            (&["other=1"], &SessionCookie::Absent),
            (&[&format!("platform-session={good}")], &present),
            (&[&format!("a=1; platform-session={good}; b=2")], &present),
            (&[&format!("\u{e4}=1; platform-session={good}")], &present),
            (
                &[&format!("__Host-platform-session={good}")],
                &SessionCookie::Absent,
            ),
            (
                &[&format!("Platform-Session={good}")],
                &SessionCookie::Absent,
            ),
            (
                &[&format!("platform-session={good}=")],
                &SessionCookie::Absent,
            ),
            (
                &[&format!("platform-session={good}A")],
                &SessionCookie::Absent,
            ),
            (
                &[&format!("platform-session={huge}")],
                &SessionCookie::Absent,
            ),
            (&["platform-session="], &SessionCookie::Absent),
            (&["platform-session"], &SessionCookie::Absent),
            (
                &[&format!("platform-session={good}; platform-session={good}")],
                &SessionCookie::Ambiguous,
            ),
            (
                &[&format!("platform-session={good}"), "platform-session=x"],
                &SessionCookie::Ambiguous,
            ),
            (
                &[&format!("platform-session=; platform-session={good}")],
                &SessionCookie::Ambiguous,
            ),
        ];
        for (values, expected) in cases {
            assert_eq!(
                &read_session(&headers(values), false),
                *expected,
                "{values:?}"
            );
        }
    }

    #[test]
    fn over_https_only_the_prefixed_name_counts() {
        let good = URL_SAFE_NO_PAD.encode([7; 32]);
        let plain = headers(&[&format!("platform-session={good}")]);
        assert_eq!(read_session(&plain, true), SessionCookie::Absent);
        let prefixed = headers(&[&format!("__Host-platform-session={good}")]);
        assert!(matches!(
            read_session(&prefixed, true),
            SessionCookie::Present(_)
        ));
    }
}
