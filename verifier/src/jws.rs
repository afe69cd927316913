//! The strict parser of a compact JWS (RFC 7515) and of its header.
//!
//! Everything that two parsers could understand differently is refused: a second spelling of the
//! same bytes, a member that occurs twice, a member that brings its own key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::Signature;
use platform_protocol::claims::ALGORITHM;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::{Part, VerifyError};

/// Bytes of a token, at most. A game token has about 600.
pub const MAX_TOKEN_BYTES: usize = 8 * 1024;
/// Bytes of a `kid`, at most. A thumbprint (RFC 7638) has 43.
pub const MAX_KEY_ID_BYTES: usize = 128;

/// Header members that are refused wherever they occur.
const REFUSED_HEADER_MEMBERS: [&str; 8] = ["jwk", "jku", "x5c", "x5u", "crit", "b64", "zip", "enc"];

/// A well-formed token whose signature is not verified yet.
pub struct Jws<'token> {
    /// The signing key's id. Printable ASCII.
    pub key_id: String,
    /// The bytes that were signed: header, dot, payload (RFC 7515 §5.1).
    pub signing_input: &'token [u8],
    /// The decoded payload. Do not trust it before the signature is verified.
    pub payload: Vec<u8>,
    /// The signature, `r` in range and `s` in the lower half of its range.
    pub signature: Signature,
}

impl<'token> Jws<'token> {
    /// Parses a compact JWS and checks everything that needs no key.
    ///
    /// # Errors
    /// The first check that failed.
    pub fn parse(token: &'token str) -> Result<Self, VerifyError> {
        Self::parse_typed(token, "JWT")
    }

    /// Like [`Jws::parse`], for a token with this `typ` (RFC 8725 §3.11).
    ///
    /// # Errors
    /// The first check that failed.
    pub fn parse_typed(token: &'token str, typ: &str) -> Result<Self, VerifyError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(VerifyError::TooLong);
        }
        let mut parts = token.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(VerifyError::Parts);
        };
        let key_id = key_id_of_header(&decode(Part::Header, header)?, typ)?;
        let signing_input = &token.as_bytes()[..header.len() + 1 + payload.len()];
        let payload = decode(Part::Payload, payload)?;
        // RFC 7518 §3.4: exactly 64 bytes, `r` then `s`. The length check refuses DER; the
        // conversion refuses zero and values beyond the order.
        let signature = Signature::from_slice(&decode(Part::Signature, signature)?)
            .map_err(|_| VerifyError::SignatureForm)?;
        // If `s` verifies, so does the order minus `s`. Of the two spellings only the lower one is
        // accepted, which the platform makes (BIP 62, "Low S values in signatures").
        if signature.normalize_s() != signature {
            return Err(VerifyError::SignatureForm);
        }
        Ok(Self {
            key_id,
            signing_input,
            payload,
            signature,
        })
    }
}

/// Decodes base64url without padding. Non-zero trailing bits, padding and white space are refused,
/// so that a token has only one spelling.
fn decode(part: Part, text: &str) -> Result<Vec<u8>, VerifyError> {
    URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| VerifyError::Base64(part))
}

/// Checks the header and returns its `kid`.
fn key_id_of_header(header: &[u8], typ: &str) -> Result<String, VerifyError> {
    let members = object(Part::Header, header)?;
    // RFC 8725 §3.1: the verifier chooses the algorithm, not the token.
    if members.get("alg").and_then(Value::as_str) != Some(ALGORITHM) {
        return Err(VerifyError::Algorithm);
    }
    if members.get("typ").and_then(Value::as_str) != Some(typ) {
        return Err(VerifyError::Type);
    }
    for name in REFUSED_HEADER_MEMBERS {
        if members.contains_key(name) {
            return Err(VerifyError::HeaderMember(name));
        }
    }
    match members.get("kid") {
        Some(Value::String(kid)) if is_key_id(kid) => Ok(kid.clone()),
        _ => Err(VerifyError::KeyId),
    }
}

/// Whether a `kid` is well-formed.
pub(crate) fn is_key_id(kid: &str) -> bool {
    (1..=MAX_KEY_ID_BYTES).contains(&kid.len())
        && kid
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic())
        && !kid.trim().is_empty()
}

/// Parses one JSON object with nothing after it, and refuses member names that occur twice.
pub(crate) fn object(part: Part, json: &[u8]) -> Result<Map<String, Value>, VerifyError> {
    serde_json::from_slice::<UniqueMembers>(json)
        .map(|UniqueMembers(members)| members)
        .map_err(|_| VerifyError::Json(part))
}

/// A JSON object in which every member name occurs once (RFC 7515 §5.2, RFC 8259 §4): of two equal
/// names, one parser takes the first and another the last.
struct UniqueMembers(Map<String, Value>);

impl<'de> Deserialize<'de> for UniqueMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Map<String, Value>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object with unique member names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut members = Map::new();
                while let Some((name, value)) = access.next_entry::<String, Value>()? {
                    if members.insert(name, value).is_some() {
                        return Err(A::Error::custom("a member name occurs twice"));
                    }
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Members).map(UniqueMembers)
    }
}
