//! Verification of ID tokens (OpenID Connect Core 1.0 §3.1.3.7).

use chrono::{DateTime, TimeDelta, Utc};
use openidconnect::core::{
    CoreIdToken, CoreIdTokenClaims, CoreJsonWebKeySet, CoreJwsSigningAlgorithm,
};
use openidconnect::{
    ClaimsVerificationError, ClientId, IdTokenVerifier, IssuerUrl, Nonce,
    SignatureVerificationError,
};

use crate::shown;
use platform_domain::clock::Millis;

/// The allowed difference between the provider's clock and ours, in both directions.
const LEEWAY: TimeDelta = TimeDelta::seconds(60);
/// The maximum number of characters of a subject (OpenID Connect Core 1.0 §2, `sub`).
const MAX_SUBJECT_CHARS: usize = 255;

/// Algorithms whose signatures only the provider can create. `none` is no signature. With HS256 and
/// similar ones the client secret is the key, so anyone who knows it could sign in as any player;
/// and a verifier that accepts both kinds may be tricked into using a public key as a secret (RFC
/// 8725 §2.1).
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// The expected values of a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a IssuerUrl,
    pub(super) client_id: &'a ClientId,
    pub(super) nonce: &'a Nonce,
    /// When the sign-in began; its tokens are not older.
    pub(super) started_at: Millis,
    /// Whether the provider had to ask the player again.
    pub(super) again: bool,
    pub(super) now: Millis,
}

/// The values of a valid token.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Proved {
    pub(super) subject: String,
    /// When the player authenticated: the claim `auth_time`, if it exists.
    pub(super) authenticated_at: Option<Millis>,
    /// How the person likes to be called (OpenID Connect Core 1.0 §5.1), which need not be unique.
    pub(super) preferred_username: Option<String>,
}

/// Why a token is rejected. The text is for the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TokenError {
    /// The token names a key that is not in the key set.
    UnknownKey,
    /// Any other reason.
    Bad(String),
}

/// Verifies a token with `keys` and returns its values.
///
/// # Errors
/// [`TokenError`]
pub(super) fn verify(
    token: &CoreIdToken,
    keys: &CoreJsonWebKeySet,
    expected: Expected<'_>,
) -> Result<Proved, TokenError> {
    let now = time(expected.now)?;
    let earliest = time(expected.started_at)? - LEEWAY;
    // A verifier without the client secret cannot verify signatures made with it, whatever the list
    // above contains.
    let verifier = IdTokenVerifier::new_public_client(
        expected.client_id.clone(),
        expected.issuer.clone(),
        keys.clone(),
    )
    .set_allowed_algs(ALGORITHMS)
    // The library only compares this with `exp`.
    .set_time_fn(move || now - LEEWAY)
    .set_issue_time_verifier_fn(move |issued| {
        if issued > now + LEEWAY {
            Err("it was issued in the future; compare the clocks".to_owned())
        } else if issued < earliest {
            Err("it was issued before the sign-in began; compare the clocks".to_owned())
        } else {
            Ok(())
        }
    });
    let claims = token
        .claims(&verifier, expected.nonce)
        .map_err(|error| match error {
            ClaimsVerificationError::SignatureVerification(
                SignatureVerificationError::NoMatchingKey,
            ) => TokenError::UnknownKey,
            ClaimsVerificationError::SignatureVerification(error) => TokenError::Bad(format!(
                "the ID token's signature: {}",
                shown(&error.to_string())
            )),
            error => TokenError::Bad(format!("the ID token: {}", shown(&error.to_string()))),
        })?;
    check_party(claims, expected.client_id)?;
    let subject = claims.subject().as_str();
    if subject.is_empty() || subject.chars().count() > MAX_SUBJECT_CHARS {
        return Err(TokenError::Bad(
            "the ID token's sub is empty or too long".to_owned(),
        ));
    }
    Ok(Proved {
        subject: subject.to_owned(),
        authenticated_at: check_authentication(claims, now, earliest, expected.again)?,
        preferred_username: claims
            .preferred_username()
            .map(|name| name.as_str().to_owned()),
    })
}

/// Returns when the player authenticated. If the provider had to ask again, but `auth_time` is
/// before the sign-in, the token is rejected (OpenID Connect Core 1.0 §3.1.3.7, 13). A provider
/// without `auth_time` is trusted to have asked.
fn check_authentication(
    claims: &CoreIdTokenClaims,
    now: DateTime<Utc>,
    earliest: DateTime<Utc>,
    again: bool,
) -> Result<Option<Millis>, TokenError> {
    let Some(at) = claims.auth_time() else {
        return Ok(None);
    };
    if at > now + LEEWAY {
        return Err(TokenError::Bad(
            "the ID token's auth_time is in the future; compare the clocks".to_owned(),
        ));
    }
    if again && at < earliest {
        return Err(TokenError::Bad(
            "the ID token's auth_time is before this sign-in: the provider did not ask the player \
             to sign in again, although this was requested"
                .to_owned(),
        ));
    }
    Ok(Some(at.timestamp_millis()))
}

/// `azp` must name us if it exists. With several audiences it must exist, but the verifier trusts
/// no audience except us anyway.
fn check_party(claims: &CoreIdTokenClaims, client_id: &ClientId) -> Result<(), TokenError> {
    match claims.authorized_party() {
        Some(party) if party != client_id => Err(TokenError::Bad(
            "the ID token's azp is another client".to_owned(),
        )),
        None if claims.audiences().len() > 1 => Err(TokenError::Bad(
            "the ID token has several audiences and no azp".to_owned(),
        )),
        _ => Ok(()),
    }
}

fn time(millis: Millis) -> Result<DateTime<Utc>, TokenError> {
    DateTime::from_timestamp_millis(millis)
        .ok_or_else(|| TokenError::Bad("the machine's clock is out of range".to_owned()))
}

#[cfg(test)]
mod tests;
