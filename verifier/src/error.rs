//! Why a token was refused.
//!
//! `Display` is for the backend's log: it names the check that failed, but never shows any part of
//! the token. [`VerifyError::client_detail`] is for the client and does not tell the checks apart.

/// A part of a compact JWS (RFC 7515 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The protected header.
    Header,
    /// The payload with the claims.
    Payload,
    /// The signature.
    Signature,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Part::Header => "header",
            Part::Payload => "payload",
            Part::Signature => "signature",
        })
    }
}

/// Why a token was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The token is longer than [`crate::jws::MAX_TOKEN_BYTES`].
    #[error("the token is too long")]
    TooLong,
    /// The token does not have exactly three parts (RFC 7515 §7.1).
    #[error("the token does not have exactly three parts")]
    Parts,
    /// A part is not canonical base64url without padding (RFC 7515 §2).
    #[error("the {0} is not canonical base64url")]
    Base64(Part),
    /// A part is not a JSON object, or a member name occurs twice
    /// (RFC 7515 §4, RFC 7519 §4).
    #[error("the {0} is not a JSON object with unique member names")]
    Json(Part),
    /// `alg` is not exactly `ES256` (RFC 8725 §3.1).
    #[error("the algorithm is not ES256")]
    Algorithm,
    /// `typ` is not exactly `JWT`, or that of an assertion (RFC 8725 §3.11).
    #[error("the type is another one")]
    Type,
    /// The header has a member that would bring its own key, name an address to fetch one from, or
    /// change how the token is read: `jwk`, `jku`, `x5c`, `x5u`, `crit`, `b64`, `zip` or `enc` (RFC
    /// 8725 §3.10, RFC 7515 §4.1.11).
    #[error("the header member {0} is not allowed")]
    HeaderMember(&'static str),
    /// `kid` is absent, not a string, empty, or longer than
    /// [`crate::jws::MAX_KEY_ID_BYTES`] printable ASCII characters.
    #[error("the key id is absent or malformed")]
    KeyId,
    /// The key set has no key with this `kid`.
    #[error("no key of the key set has this key id")]
    UnknownKey,
    /// The signature is not `r` and `s` of 32 bytes each, within the group's order and not zero
    /// (RFC 7518 §3.4), or `s` is in the upper half of its range, which is a second spelling of the
    /// same signature.
    #[error("the signature is not an ES256 signature")]
    SignatureForm,
    /// The signature over this header and payload was not made with the key.
    #[error("the signature does not match")]
    Signature,
    /// A claim is absent, of the wrong type, or out of bounds.
    #[error("the claim {0} is absent or malformed")]
    Claim(&'static str),
    /// `iss` is not the expected issuer (RFC 8725 §3.8).
    #[error("the issuer is another one")]
    Issuer,
    /// `aud` is not the expected audience (RFC 8725 §3.9).
    #[error("the audience is another one")]
    Audience,
    /// `exp` has passed, leeway included (RFC 7519 §4.1.4).
    #[error("the token has expired")]
    Expired,
    /// `nbf` has not come yet, leeway included (RFC 7519 §4.1.5).
    #[error("the token is not valid yet")]
    NotYetValid,
    /// `iat` lies in the future, leeway included.
    #[error("the token was issued in the future")]
    IssuedInFuture,
    /// `exp` is more than [`platform_protocol::limits::LONGEST_TOKEN_SECONDS`] after `iat`: no
    /// token of the platform lives that long.
    #[error("the token's life is longer than any of the platform's")]
    Lifetime,
    /// There is no key set, so the token cannot be checked.
    #[error("there is no key set to verify with: {0}")]
    KeySet(KeySetError),
}

impl VerifyError {
    /// True if the token may be good, but cannot be verified now.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, VerifyError::KeySet(_))
    }

    /// The sentence for the client; it can be shown to a player. It is the same for every refused
    /// token, so that it does not help an attacker to forge one.
    #[must_use]
    pub const fn client_detail(&self) -> &'static str {
        if self.is_unavailable() {
            "Players cannot be recognised right now. Please try again in a moment."
        } else {
            "The game did not recognise you. Please reload the page."
        }
    }
}

/// Why there is no key set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// No response arrived in time.
    #[error("the key set could not be fetched: {0}")]
    Transport(String),
    /// The response's status was not 200. Redirects are not followed.
    #[error("the address of the key set answered with status {0}")]
    Status(u16),
    /// The response was longer than [`crate::key_set::MAX_KEY_SET_BYTES`].
    #[error("the key set is too large")]
    TooLarge,
    /// The response is not a key set (RFC 7517 §5), or two of its usable keys have the same `kid`.
    #[error("the answer is not a key set")]
    Malformed,
    /// The set has no ES256 key.
    #[error("the key set has no usable key")]
    Empty,
}
