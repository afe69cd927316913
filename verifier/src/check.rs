//! The whole check of a token against given keys. It fetches nothing and reads no clock:
//! [`Verifier`](crate::Verifier) adds both.

use p256::ecdsa::VerifyingKey;
use p256::ecdsa::signature::Verifier as _;
use platform_protocol::claims::GameTokenClaims;

use crate::claims::{self, Expected};
use crate::error::VerifyError;
use crate::jws::Jws;
use crate::key_set::KeySet;

/// Verifies a compact game token with the keys of `keys` and returns its claims.
///
/// # Errors
/// The first check that failed; [`VerifyError::UnknownKey`] if `keys` lacks the key that the token
/// names.
pub fn check(
    token: &str,
    keys: &KeySet,
    expected: Expected<'_>,
) -> Result<GameTokenClaims, VerifyError> {
    let jws = Jws::parse(token)?;
    let key = keys.find(&jws.key_id).ok_or(VerifyError::UnknownKey)?;
    check_with(&jws, &key, expected)
}

/// Verifies the signature, and only then looks at the claims.
pub(crate) fn check_with(
    jws: &Jws<'_>,
    key: &VerifyingKey,
    expected: Expected<'_>,
) -> Result<GameTokenClaims, VerifyError> {
    check_signature(jws, key)?;
    claims::check(&jws.payload, expected)
}

/// Verifies the signature alone.
pub(crate) fn check_signature(jws: &Jws<'_>, key: &VerifyingKey) -> Result<(), VerifyError> {
    key.verify(jws.signing_input, &jws.signature)
        .map_err(|_| VerifyError::Signature)
}
