//! The rules for a token's claims, once its signature has been verified.

use platform_protocol::claims::{
    ASSERTION_AUDIENCE, ASSERTION_SECONDS, AssertionClaims, GameTokenClaims,
};
use platform_protocol::limits::{CLOCK_LEEWAY_SECONDS, LONGEST_TOKEN_SECONDS};
use serde_json::{Map, Value};

use crate::error::{Part, VerifyError};
use crate::jws::object;

/// The last second of the year 9999. No token of the platform lives that long, and beyond it
/// arithmetic and other libraries start to disagree.
const LAST_SECOND: u64 = 253_402_300_799;

/// What the claims of an accepted token must match.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The one `iss` that is accepted.
    pub issuer: &'a str,
    /// The one `aud` that is accepted.
    pub audience: &'a str,
    /// Now, in seconds since the Unix epoch.
    pub now: u64,
}

/// Reads the payload and checks it against what is expected.
///
/// # Errors
/// The first claim that is absent, malformed or not as expected.
pub fn check(payload: &[u8], expected: Expected<'_>) -> Result<GameTokenClaims, VerifyError> {
    let claims = object(Part::Payload, payload)?;
    // RFC 8725 §3.8 and §3.9: compared as they are, without normalising.
    if text(&claims, "iss")? != expected.issuer {
        return Err(VerifyError::Issuer);
    }
    if text(&claims, "aud")? != expected.audience {
        return Err(VerifyError::Audience);
    }
    check_times(&claims, expected.now)?;
    let claims = GameTokenClaims {
        sub: identifier(&claims, "sub")?,
        username: text(&claims, "username")?.to_owned(),
        aud: expected.audience.to_owned(),
        iss: expected.issuer.to_owned(),
        is_anon: claims
            .get("is_anon")
            .and_then(Value::as_bool)
            .ok_or(VerifyError::Claim("is_anon"))?,
        principal_kind: claims
            .get("principal_kind")
            .and_then(|kind| serde_json::from_value(kind.clone()).ok())
            .ok_or(VerifyError::Claim("principal_kind"))?,
        exp: seconds(&claims, "exp")?,
        iat: seconds(&claims, "iat")?,
        jti: identifier(&claims, "jti")?,
    };
    Ok(claims)
}

/// Reads the payload of an assertion and checks it against what is expected of
/// game tokens.
///
/// # Errors
/// The first claim that is absent, malformed or not as expected.
pub fn check_assertion(
    payload: &[u8],
    expected: Expected<'_>,
) -> Result<AssertionClaims, VerifyError> {
    let claims = object(Part::Payload, payload)?;
    if text(&claims, "iss")? != expected.issuer {
        return Err(VerifyError::Issuer);
    }
    let audience = text(&claims, "aud")?;
    if audience.strip_prefix(ASSERTION_AUDIENCE) != Some(expected.audience) {
        return Err(VerifyError::Audience);
    }
    check_times(&claims, expected.now)?;
    let claims = AssertionClaims {
        iss: expected.issuer.to_owned(),
        aud: audience.to_owned(),
        host: identifier(&claims, "host")?,
        exp: seconds(&claims, "exp")?,
        iat: seconds(&claims, "iat")?,
    };
    if claims.exp.saturating_sub(claims.iat) > ASSERTION_SECONDS {
        return Err(VerifyError::Lifetime);
    }
    Ok(claims)
}

/// Checks `exp`, `iat` and, if present, `nbf`. Clocks may differ by [`CLOCK_LEEWAY_SECONDS`] in
/// either direction. The time between `iat` and `exp` gets no leeway, since one clock made both.
fn check_times(claims: &Map<String, Value>, now: u64) -> Result<(), VerifyError> {
    // All of them are read before any is compared: a malformed one is refused whatever the others
    // are.
    let expires = seconds(claims, "exp")?;
    let issued = seconds(claims, "iat")?;
    let not_before = if claims.contains_key("nbf") {
        seconds(claims, "nbf")?
    } else {
        0
    };
    let latest = now.saturating_add(CLOCK_LEEWAY_SECONDS);
    // RFC 7519 §4.1.4: on or after `exp` the token must not be accepted.
    if now >= expires.saturating_add(CLOCK_LEEWAY_SECONDS) {
        Err(VerifyError::Expired)
    } else if issued > latest {
        Err(VerifyError::IssuedInFuture)
    } else if not_before > latest {
        Err(VerifyError::NotYetValid)
    } else if expires.saturating_sub(issued) > LONGEST_TOKEN_SECONDS {
        // An attacker who held a key for a moment must not keep its tokens for years.
        Err(VerifyError::Lifetime)
    } else {
        Ok(())
    }
}

/// A claim that must be a string.
fn text<'a>(claims: &'a Map<String, Value>, name: &'static str) -> Result<&'a str, VerifyError> {
    claims
        .get(name)
        .and_then(Value::as_str)
        .ok_or(VerifyError::Claim(name))
}

/// A claim that names something: a string that is not blank, of at most 255
/// bytes, without control characters.
fn identifier(claims: &Map<String, Value>, name: &'static str) -> Result<String, VerifyError> {
    let value = text(claims, name)?;
    let usable = !value.trim().is_empty()
        && value.len() <= 255
        && !value.contains(|character: char| character.is_control());
    if usable {
        Ok(value.to_owned())
    } else {
        Err(VerifyError::Claim(name))
    }
}

/// A claim that must be a whole number of seconds since the Unix epoch: not a string, a fraction or
/// a negative number.
fn seconds(claims: &Map<String, Value>, name: &'static str) -> Result<u64, VerifyError> {
    claims
        .get(name)
        .and_then(Value::as_u64)
        .filter(|seconds| *seconds <= LAST_SECOND)
        .ok_or(VerifyError::Claim(name))
}
