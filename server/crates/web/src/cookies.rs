//! The session cookie (RFC 6265bis): the one thing that says who a player is.
//! And what every cookie of ours has in common.

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cookie::time::Duration;
use cookie::{Cookie, SameSite};

use platform_domain::left_guest::LeftSecret;
use platform_domain::session::{SESSION_MILLIS, SessionSecret};

/// Over https: the prefix makes browsers refuse it from a sub-domain.
const SECURE_NAME: &str = "__Host-platform-session";
/// Over http, which only an origin under `localhost` may use.
const PLAIN_NAME: &str = "platform-session";

/// The cookie beside it: what leads back to guests that were signed out.
const SECURE_LEFT_NAME: &str = "__Host-platform-guests";
const PLAIN_LEFT_NAME: &str = "platform-guests";

/// The name of the cookie that leads back to guests that were signed out.
#[must_use]
pub const fn left_cookie_name(secure: bool) -> &'static str {
    if secure {
        SECURE_LEFT_NAME
    } else {
        PLAIN_LEFT_NAME
    }
}

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
    /// Several of the name, and these may name a session: someone tossed one
    /// in, and the request does not say which (RFC 6265 §8.6).
    Several(Vec<SessionSecret>),
}

/// How many of one name are looked at.
const LOOKED_AT: usize = 4;

/// Reads the session cookie.
#[must_use]
pub fn read_session(headers: &HeaderMap, secure: bool) -> SessionCookie {
    match find(headers, session_cookie_name(secure)) {
        Named::Several => {
            let mut secrets: Vec<SessionSecret> = Vec::new();
            for value in values(headers, session_cookie_name(secure)) {
                let secret = decode(&value).map(SessionSecret::from_bytes);
                if let Some(secret) = secret.filter(|secret| !secrets.contains(secret)) {
                    secrets.push(secret);
                }
            }
            secrets.truncate(LOOKED_AT + 1);
            match <[SessionSecret; 1]>::try_from(secrets) {
                Ok([secret]) => SessionCookie::Present(secret),
                Err(secrets) => SessionCookie::Several(secrets),
            }
        }
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
    let mut values = values(headers, name);
    match (values.next(), values.next()) {
        (None, _) => Named::None,
        (Some(only), None) => Named::One(only),
        (Some(_), Some(_)) => Named::Several,
    }
}

/// The values of the cookies of one name.
fn values(headers: &HeaderMap, name: &str) -> impl Iterator<Item = String> {
    let lines = headers.get_all(header::COOKIE).iter();
    // By hand, and in bytes: a library that trims more than RFC 6265bis §5.6
    // does, such as the white space of Unicode, takes names for ours that a
    // browser did not, and so lets any sub-domain past `__Host-`.
    let pieces = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    pieces.filter_map(move |piece| {
        let mut halves = piece.splitn(2, |byte| *byte == b'=');
        if halves.next().map(trim) != Some(name.as_bytes()) {
            return None;
        }
        let value = trim(halves.next().unwrap_or_default());
        Some(String::from_utf8_lossy(value).into_owned())
    })
}

/// Whether the request has one cookie of this name, and of this value.
pub fn holds(headers: &HeaderMap, name: &str, value: &str) -> bool {
    matches!(find(headers, name), Named::One(found) if found == value)
}

/// Without the spaces and tabs around it, which are all that a browser trims.
fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
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

/// What leads back to the guests that were signed out in this browser. None
/// where there is no such cookie, or several, of which one was tossed in.
#[must_use]
pub fn read_left(headers: &HeaderMap, secure: bool) -> Option<LeftSecret> {
    match find(headers, left_cookie_name(secure)) {
        Named::One(value) => decode(&value).map(LeftSecret::from_bytes),
        Named::None | Named::Several => None,
    }
}

/// `Set-Cookie` that lets the browser come back to guests, for 400 days.
#[must_use]
pub fn set_left(secret: &LeftSecret, secure: bool) -> HeaderValue {
    let value = URL_SAFE_NO_PAD.encode(secret.expose());
    let life = Duration::milliseconds(SESSION_MILLIS);
    lasting(left_cookie_name(secure), value, secure, life)
}

/// The name of the cookie that says that foreign cookies were found and are on
/// their way out.
const fn healed_name(secure: bool) -> &'static str {
    if secure {
        "__Host-platform-healed"
    } else {
        "platform-healed"
    }
}

/// Whether this browser was told within the last minutes that its session was
/// pushed out.
#[must_use]
pub fn was_healed(headers: &HeaderMap, secure: bool) -> bool {
    !matches!(find(headers, healed_name(secure)), Named::None)
}

/// `Set-Cookie` that keeps for ten minutes that this browser was told.
#[must_use]
pub fn set_healed(secure: bool) -> HeaderValue {
    lasting(
        healed_name(secure),
        "1".to_owned(),
        secure,
        Duration::minutes(10),
    )
}

fn set_cookie(value: String, secure: bool, max_age: Duration) -> HeaderValue {
    lasting(session_cookie_name(secure), value, secure, max_age)
}

fn lasting(name: &str, value: String, secure: bool, max_age: Duration) -> HeaderValue {
    let cookie = Cookie::build((name, value))
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
    // Chromium keeps cookies of this priority when it makes room (Cookie
    // Priority, draft-west-cookie-priority); others do not look at it. Name,
    // base64url and attributes are visible ASCII, so this cannot fail.
    let mut header = HeaderValue::from_str(&format!("{cookie}; Priority=High"))
        .unwrap_or(HeaderValue::from_static(""));
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
        assert_snapshot!(set_session(&secret, false).to_str().unwrap(), @"platform-session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA; HttpOnly; SameSite=Lax; Path=/; Max-Age=34560000; Priority=High");
        assert_snapshot!(set_session(&secret, true).to_str().unwrap(), @"__Host-platform-session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=34560000; Priority=High");
        assert_snapshot!(clear_session(true).to_str().unwrap(), @"__Host-platform-session=; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=0; Priority=High");
    }

    #[test]
    fn what_cannot_be_ours_counts_as_absent() {
        let good = URL_SAFE_NO_PAD.encode([7; 32]);
        let present = SessionCookie::Present(SessionSecret::from_bytes([7; 32]));
        let other = URL_SAFE_NO_PAD.encode([8; 32]);
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
                &present,
            ),
            (
                &[&format!("platform-session={good}"), "platform-session=x"],
                &present,
            ),
            (
                &[&format!("platform-session=; platform-session={good}")],
                &present,
            ),
            (
                &[&format!(
                    "platform-session={good}; platform-session={other}"
                )],
                &SessionCookie::Several(vec![
                    SessionSecret::from_bytes([7; 32]),
                    SessionSecret::from_bytes([8; 32]),
                ]),
            ),
            (
                &["platform-session=; platform-session=x"],
                &SessionCookie::Several(Vec::new()),
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
    fn a_name_that_only_looks_like_ours_is_not_ours() {
        let good = URL_SAFE_NO_PAD.encode([7; 32]);
        let present = SessionCookie::Present(SessionSecret::from_bytes([7; 32]));
        let names = [SECURE_NAME, crate::csrf::browser_cookie_name(true)];
        for space in ["\u{2000}", "\u{a0}", "\u{85}", "\u{3000}", "\u{feff}", "\""] {
            for name in names {
                for tossed in [
                    format!("{space}{name}={good}"),
                    format!("{name}{space}={good}"),
                ] {
                    let alone = headers(&[&tossed]);
                    assert!(matches!(find(&alone, name), Named::None), "{tossed:?}");
                    let beside = headers(&[&format!("{tossed}; {name}={good}")]);
                    assert!(matches!(find(&beside, name), Named::One(_)), "{tossed:?}");
                }
            }
        }
        // What a browser itself trims.
        let spaced = headers(&[&format!("a=1;\t {SECURE_NAME} = {good} ")]);
        assert_eq!(read_session(&spaced, true), present);
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
