//! The public keys in a key set document (RFC 7517 §5).

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::Sec1Point;
use p256::ecdsa::VerifyingKey;
use platform_protocol::claims::ALGORITHM;
use serde::Deserialize;
use serde_json::Value;

use crate::error::KeySetError;
use crate::jws::is_key_id;

/// Bytes of a key set document, at most.
pub const MAX_KEY_SET_BYTES: usize = 64 * 1024;

/// The ES256 keys of a key set, by their `kid`.
#[derive(Clone, Debug, Default)]
pub struct KeySet(HashMap<String, VerifyingKey>);

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

/// The members of a JWK that matter here (RFC 7517 §4, RFC 7518 §6.2.1).
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    crv: String,
    kid: String,
    x: String,
    y: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
}

impl KeySet {
    /// Parses a key set document. Keys of other kinds are left out, as RFC 7517 §5 asks.
    ///
    /// # Errors
    /// [`KeySetError::TooLarge`], [`KeySetError::Malformed`] or
    /// [`KeySetError::Empty`].
    pub fn parse(document: &[u8]) -> Result<Self, KeySetError> {
        if document.len() > MAX_KEY_SET_BYTES {
            return Err(KeySetError::TooLarge);
        }
        let document: Document =
            serde_json::from_slice(document).map_err(|_| KeySetError::Malformed)?;
        let mut keys = HashMap::new();
        for (kid, key) in document.keys.into_iter().filter_map(usable_key) {
            // Which of two keys a `kid` names must not depend on their order.
            match keys.entry(kid) {
                Entry::Vacant(entry) => entry.insert(key),
                Entry::Occupied(_) => return Err(KeySetError::Malformed),
            };
        }
        if keys.is_empty() {
            Err(KeySetError::Empty)
        } else {
            Ok(Self(keys))
        }
    }

    /// The key with this `kid`.
    #[must_use]
    pub fn find(&self, kid: &str) -> Option<VerifyingKey> {
        self.0.get(kid).copied()
    }

    /// True before the first set has arrived.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Returns the key if it is a public P-256 key that may verify ES256 signatures.
fn usable_key(jwk: Value) -> Option<(String, VerifyingKey)> {
    let jwk: Jwk = serde_json::from_value(jwk).ok()?;
    let meant_for_us = jwk.kty == "EC"
        && jwk.crv == "P-256"
        && jwk.usage.is_none_or(|usage| usage == "sig")
        && jwk
            .key_ops
            .is_none_or(|operations| operations.iter().any(|name| name == "verify"))
        && jwk.alg.is_none_or(|alg| alg == ALGORITHM);
    if !meant_for_us || !is_key_id(&jwk.kid) {
        return None;
    }
    // RFC 7518 §6.2.1.2: the full 32 bytes each, leading zeros included. The conversion refuses a
    // point that is not on the curve.
    let coordinate =
        |text: &str| -> Option<[u8; 32]> { URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok() };
    let point = Sec1Point::from_affine_coordinates(
        &coordinate(&jwk.x)?.into(),
        &coordinate(&jwk.y)?.into(),
        false,
    );
    let key = VerifyingKey::from_sec1_point(&point).ok()?;
    Some((jwk.kid, key))
}
