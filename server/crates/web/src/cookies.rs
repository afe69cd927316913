//! The session cookie (RFC 6265bis), the only thing that identifies a player, and code that is
//! common to all of our cookies.

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cookie::time::Duration;
use cookie::{Cookie, SameSite};

use platform_domain::game_session::GameSessionSecret;
use platform_domain::left_guest::LeftSecret;
use platform_domain::session::{COOKIE_AGE, SessionSecret};

/// The name over https: browsers do not accept this prefix from a sub-domain.
const SECURE_NAME: &str = "__Host-platform-session";
/// The name over http, which only an origin under `localhost` may use.
const PLAIN_NAME: &str = "platform-session";

/// The cookie with which signed-out guests can be restored.
const SECURE_LEFT_NAME: &str = "__Host-platform-guests";
const PLAIN_LEFT_NAME: &str = "platform-guests";

/// Returns the name of the cookie with which signed-out guests can be restored.
#[must_use]
pub const fn left_cookie_name(secure: bool) -> &'static str {
    if secure {
        SECURE_LEFT_NAME
    } else {
        PLAIN_LEFT_NAME
    }
}

/// Returns the name of the session cookie.
#[must_use]
pub const fn session_cookie_name(secure: bool) -> &'static str {
    if secure { SECURE_NAME } else { PLAIN_NAME }
}

/// The session cookie of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum SessionCookie {
    /// No session cookie, or one that this platform cannot have issued.
    Absent,
    /// One that may name a session.
    Present(SessionSecret),
    /// There are several cookies with the name, and these may name a session: another host has set
    /// one of them, and the request does not say which (RFC 6265 §8.6).
    Several(Vec<SessionSecret>),
}

/// The maximum number of cookies with one name that are read.
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

/// The cookies with one name in a request.
pub(super) enum Named {
    None,
    One(String),
    Several,
}

/// Finds the cookies with one name.
pub(super) fn find(headers: &HeaderMap, name: &str) -> Named {
    let mut values = values(headers, name);
    match (values.next(), values.next()) {
        (None, _) => Named::None,
        (Some(only), None) => Named::One(only),
        (Some(_), Some(_)) => Named::Several,
    }
}

/// Returns the values of the cookies with one name.
fn values(headers: &HeaderMap, name: &str) -> impl Iterator<Item = String> {
    let lines = headers.get_all(header::COOKIE).iter();
    // Parsed by hand, and as bytes: a library that trims more than RFC 6265bis §5.6 does, such as
    // Unicode white space, would accept names as ours that a browser did not, and so would let any
    // sub-domain bypass `__Host-`.
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

/// Whether the request has exactly one cookie with this name, and it has this value.
pub fn holds(headers: &HeaderMap, name: &str, value: &str) -> bool {
    matches!(find(headers, name), Named::One(found) if found == value)
}

/// Trims spaces and tabs, which are all that a browser trims.
fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// Decodes 256 bits of base64url, such as a cookie's value.
#[must_use]
pub fn decode(value: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    match URL_SAFE_NO_PAD.decode_slice(value, &mut bytes) {
        Ok(32) => Some(bytes),
        _ => None,
    }
}

/// Returns the `Set-Cookie` value that sets this session for 400 days.
#[must_use]
pub fn set_session(secret: &SessionSecret, secure: bool) -> HeaderValue {
    let value = URL_SAFE_NO_PAD.encode(secret.expose());
    set_cookie(value, secure, Duration::milliseconds(COOKIE_AGE))
}

/// Returns the `Set-Cookie` value that removes the session.
#[must_use]
pub fn clear_session(secure: bool) -> HeaderValue {
    set_cookie(String::new(), secure, Duration::ZERO)
}

/// Reads the secret with which signed-out guests of this browser can be restored. Returns `None` if
/// there is no such cookie, or several, one of which another host has set.
#[must_use]
pub fn read_left(headers: &HeaderMap, secure: bool) -> Option<LeftSecret> {
    match find(headers, left_cookie_name(secure)) {
        Named::One(value) => decode(&value).map(LeftSecret::from_bytes),
        Named::None | Named::Several => None,
    }
}

/// Returns the `Set-Cookie` value with which the browser can restore guests, for 400 days.
#[must_use]
pub fn set_left(secret: &LeftSecret, secure: bool) -> HeaderValue {
    let value = URL_SAFE_NO_PAD.encode(secret.expose());
    let life = Duration::milliseconds(COOKIE_AGE);
    lasting(left_cookie_name(secure), value, secure, life)
}

/// Returns the name of the cookie with the session of a pane of the Build page.
#[must_use]
pub const fn pane_cookie_name(secure: bool) -> &'static str {
    if secure {
        "__Host-platform-pane"
    } else {
        "platform-pane"
    }
}

/// Reads the sessions of a pane. Over http another host may have set one of several, so each must be
/// verified; over https browsers send only one.
#[must_use]
pub fn read_panes(headers: &HeaderMap, secure: bool) -> Vec<String> {
    let values = values(headers, pane_cookie_name(secure));
    values.take(if secure { 1 } else { LOOKED_AT }).collect()
}

/// Returns the `Set-Cookie` value that sets the session of a pane for `seconds`. It is only sent
/// with requests of the platform's own pages and games; if games are on a site of their own, only
/// in frames of the platform's pages.
#[must_use]
pub fn set_pane(session: String, secure: bool, embedding: Embedding, seconds: u64) -> HeaderValue {
    let life = Duration::seconds(i64::try_from(seconds).unwrap_or(0));
    let mut cookie = Cookie::build((pane_cookie_name(secure), session))
        .http_only(true)
        .same_site(SameSite::Strict)
        .secure(secure)
        .path("/")
        .max_age(life)
        .build();
    if embedding == Embedding::Framed {
        cookie.set_same_site(SameSite::None);
        cookie.set_secure(true);
        cookie.set_partitioned(true);
    }
    header_value(&cookie)
}

/// Where a page is that uses a cookie of a game's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Embedding {
    /// In a tab of its own, or in a frame of its own site.
    Top,
    /// In a frame of another site. Browsers send the cookie only if it is partitioned: each
    /// embedding site has its own (CHIPS, draft-cutler-httpbis-partitioned-cookies).
    Framed,
}

/// Returns the name of the cookie with the session of a game that is apart. In frames it has a name
/// of its own: a partitioned cookie that a sibling's frame got would be sent with a visit of a tab,
/// too, and browsers send both without saying which is which.
#[must_use]
pub const fn game_cookie_name(secure: bool, embedding: Embedding) -> &'static str {
    match (secure, embedding) {
        (true, Embedding::Top) => "__Host-platform-game",
        (false, Embedding::Top) => "platform-game",
        (true, Embedding::Framed) => "__Host-platform-game-framed",
        (false, Embedding::Framed) => "platform-game-framed",
    }
}

/// Reads the sessions of a game in a request. Over http another host may have set one of several;
/// over https browsers send only one.
#[must_use]
pub fn read_game(
    headers: &HeaderMap,
    secure: bool,
    embedding: Embedding,
) -> Vec<GameSessionSecret> {
    let values = values(headers, game_cookie_name(secure, embedding)).take(LOOKED_AT);
    let secrets = values.filter_map(|value| decode(&value).map(GameSessionSecret::from_bytes));
    secrets.take(if secure { 1 } else { LOOKED_AT }).collect()
}

/// Returns the `Set-Cookie` value that sets the session of a game for 400 days.
#[must_use]
pub fn set_game(secret: &GameSessionSecret, secure: bool, embedding: Embedding) -> HeaderValue {
    let value = URL_SAFE_NO_PAD.encode(secret.expose());
    game_cookie(value, secure, embedding, Duration::milliseconds(COOKIE_AGE))
}

/// Returns the `Set-Cookie` value that removes the session of a game.
#[must_use]
pub fn clear_game(secure: bool, embedding: Embedding) -> HeaderValue {
    game_cookie(String::new(), secure, embedding, Duration::ZERO)
}

fn game_cookie(value: String, secure: bool, embedding: Embedding, life: Duration) -> HeaderValue {
    let name = game_cookie_name(secure, embedding);
    if embedding == Embedding::Top {
        return lasting(name, value, secure, life);
    }
    let cookie = Cookie::build((name, value))
        .http_only(true)
        .same_site(SameSite::None)
        // Browsers believe `localhost` over http as if it were https.
        .secure(true)
        .partitioned(true)
        .path("/")
        .max_age(life)
        .build();
    header_value(&cookie)
}

/// The characters of the part of a nonce cookie's name that tells several of them apart.
pub const NONCE_ID_CHARS: usize = 8;

/// Returns the name of the cookie with the nonce of one hand-off. Two tabs may be under way at the
/// same time.
fn nonce_name(secure: bool, id: &str) -> String {
    let prefix = if secure { "__Host-" } else { "" };
    format!("{prefix}platform-continue-{id}")
}

/// Whether a cookie with this name is the nonce of a hand-off.
#[must_use]
pub fn is_nonce_name(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"__Host-").unwrap_or(name);
    name.starts_with(b"platform-continue-")
}

/// What tells the nonces of a request apart, of all of them. Over https, what has no `__Host-` is not ours: another game can
/// set it for all addresses below the games' origin.
fn nonce_ids(headers: &HeaderMap, secure: bool) -> impl Iterator<Item = &[u8]> {
    let prefix = nonce_name(secure, "");
    let lines = headers.get_all(header::COOKIE).iter();
    let pieces = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    let names = pieces.filter_map(|piece| trim(piece).split(|byte| *byte == b'=').next());
    names.filter_map(move |name| name.strip_prefix(prefix.as_bytes()))
}

/// Whether a request has so many nonces that no more should be set: none of them was taken back.
#[must_use]
pub fn has_many_nonces(headers: &HeaderMap, secure: bool) -> bool {
    const MANY: usize = 8;
    nonce_ids(headers, secure).count() > MANY
}

/// Returns the `Set-Cookie` values that remove the nonces of a request, if it has many.
#[must_use]
pub fn clear_many_nonces(headers: &HeaderMap, secure: bool) -> Vec<HeaderValue> {
    const AT_ONCE: usize = 64;
    if !has_many_nonces(headers, secure) {
        return Vec::new();
    }
    let is_id = |id: &&[u8]| {
        let base64url = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        id.len() == NONCE_ID_CHARS && id.iter().all(base64url)
    };
    nonce_ids(headers, secure)
        .filter(is_id)
        .filter_map(|id| std::str::from_utf8(id).ok())
        .take(AT_ONCE)
        .map(|id| clear_nonce(secure, id))
        .collect()
}

/// Whether a request has the nonce of another hand-off than the one with this id: another tab is
/// under way, or somebody left the page in between.
#[must_use]
pub fn has_other_nonce(headers: &HeaderMap, secure: bool, id: &str) -> bool {
    nonce_ids(headers, secure).any(|other| other != id.as_bytes())
}

/// Reads the nonce of the hand-off with this id: 256 bits.
#[must_use]
pub fn read_nonce(headers: &HeaderMap, secure: bool, id: &str) -> Option<[u8; 32]> {
    match find(headers, &nonce_name(secure, id)) {
        Named::One(value) => decode(&value),
        Named::None | Named::Several => None,
    }
}

/// Returns the `Set-Cookie` value that sets a nonce for some minutes: the visitor may have to wait
/// for a slow network.
#[must_use]
pub fn set_nonce(nonce: &[u8; 32], secure: bool, id: &str) -> HeaderValue {
    let value = URL_SAFE_NO_PAD.encode(nonce);
    lasting(&nonce_name(secure, id), value, secure, Duration::minutes(5))
}

/// Returns the `Set-Cookie` value that removes a nonce.
#[must_use]
pub fn clear_nonce(secure: bool, id: &str) -> HeaderValue {
    lasting(
        &nonce_name(secure, id),
        String::new(),
        secure,
        Duration::ZERO,
    )
}

/// Returns the name of the cookie that records that a hand-off failed.
#[must_use]
pub const fn tried_cookie_name(secure: bool) -> &'static str {
    if secure {
        "__Host-platform-tried"
    } else {
        "platform-tried"
    }
}

/// How long a browser is not sent to the auth service again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// A minute, because something failed that may soon work.
    Minute,
    /// An hour, because the auth service knows no player who may play, or another one than the game, which
    /// keeps its own.
    Hour,
    /// 30 days, because the auth service has forgotten the player whom the game knows.
    Month,
}

impl Pause {
    const fn life(self) -> Duration {
        match self {
            Self::Minute => Duration::minutes(1),
            Self::Hour => Duration::hours(1),
            Self::Month => Duration::days(30),
        }
    }
}

/// Whether a hand-off of this browser failed, and the pause after it has not ended.
#[must_use]
pub fn was_tried(headers: &HeaderMap, secure: bool) -> bool {
    !matches!(find(headers, tried_cookie_name(secure)), Named::None)
}

/// Returns the `Set-Cookie` value that records for this long that a hand-off failed.
#[must_use]
pub fn set_tried(secure: bool, pause: Pause) -> HeaderValue {
    lasting(
        tried_cookie_name(secure),
        "1".to_owned(),
        secure,
        pause.life(),
    )
}

/// Returns the `Set-Cookie` value that ends the pause after a hand-off that failed.
#[must_use]
pub fn clear_tried(secure: bool) -> HeaderValue {
    lasting(
        tried_cookie_name(secure),
        String::new(),
        secure,
        Duration::ZERO,
    )
}

/// Returns the name of the cookie that records that foreign cookies were found and are being
/// expired.
const fn healed_name(secure: bool) -> &'static str {
    if secure {
        "__Host-platform-healed"
    } else {
        "platform-healed"
    }
}

/// Whether this browser was informed within the last minutes that its session was evicted.
#[must_use]
pub fn was_healed(headers: &HeaderMap, secure: bool) -> bool {
    !matches!(find(headers, healed_name(secure)), Named::None)
}

/// Returns the `Set-Cookie` value that records for ten minutes that this browser was informed.
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

/// Returns a cookie of ours as a header that is never logged.
pub(super) fn header_value(cookie: &Cookie<'_>) -> HeaderValue {
    // Chromium evicts cookies of this priority last (Cookie Priority, draft-west-cookie-priority);
    // other browsers ignore it. Name, base64url and attributes are visible ASCII, so this cannot
    // fail.
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
        assert_snapshot!(set_pane("a.b.c".to_owned(), true, Embedding::Top, 1_800).to_str().unwrap(), @"__Host-platform-pane=a.b.c; HttpOnly; SameSite=Strict; Secure; Path=/; Max-Age=1800; Priority=High");
        let game = GameSessionSecret::from_bytes([0; 32]);
        assert_snapshot!(set_game(&game, true, Embedding::Top).to_str().unwrap(), @"__Host-platform-game=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=34560000; Priority=High");
        assert_snapshot!(set_game(&game, true, Embedding::Framed).to_str().unwrap(), @"__Host-platform-game-framed=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA; HttpOnly; SameSite=None; Partitioned; Secure; Path=/; Max-Age=34560000; Priority=High");
        assert_snapshot!(set_nonce(&[0; 32], true, "AbC-_123").to_str().unwrap(), @"__Host-platform-continue-AbC-_123=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=300; Priority=High");
        assert_snapshot!(clear_session(true).to_str().unwrap(), @"__Host-platform-session=; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=0; Priority=High");
    }

    #[test]
    fn over_https_no_other_game_can_set_a_nonce() {
        let with = |name: &str| {
            let names = (0..9).map(|number| format!("{name}{number}=x"));
            let line = names.collect::<Vec<_>>().join("; ");
            let value = HeaderValue::try_from(line).unwrap();
            HeaderMap::from_iter([(header::COOKIE, value)])
        };
        let (own, plain) = (
            with("__Host-platform-continue-"),
            with("platform-continue-"),
        );
        assert!(has_many_nonces(&own, true) && has_other_nonce(&own, true, "0"));
        assert!(!has_many_nonces(&plain, true) && !has_other_nonce(&plain, true, "0"));
        assert!(has_many_nonces(&plain, false) && has_other_nonce(&plain, false, "0"));
    }

    #[test]
    fn many_nonces_are_removed_and_few_stay() {
        let with = |count: usize| {
            let names = (0..count).map(|id| format!("__Host-platform-continue-AbC-_00{id}=x"));
            let names = names.chain(["__Host-platform-continue-?=x".to_owned()]);
            let line = names.collect::<Vec<_>>().join("; ");
            let value = HeaderValue::try_from(line).unwrap();
            HeaderMap::from_iter([(header::COOKIE, value)])
        };
        assert!(clear_many_nonces(&with(3), true).is_empty());
        let cleared = clear_many_nonces(&with(9), true);
        assert_eq!(cleared.len(), 9);
        assert_eq!(cleared[8], clear_nonce(true, "AbC-_008"));
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
