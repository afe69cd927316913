//! `X-Request-Id`: the id under which a request is logged, in every response.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::limits::REQUEST_ID_CHARS;

use platform_domain::entropy::Entropy;

/// The header's name.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Characters of 128 bits in base64url without padding.
const OWN_CHARS: usize = 22;

/// A request's id: 1 to 64 letters, digits, `_` or `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// Generates an id of 128 random bits.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut text = [0; OWN_CHARS];
        let written = URL_SAFE_NO_PAD
            .encode_slice(entropy.id_bytes::<16>(), &mut text)
            .unwrap_or(0);
        let text = text.get(..written).unwrap_or_default();
        HeaderValue::from_bytes(text).map_or(Self::unknown(), Self)
    }

    /// Returns the id that a trusted proxy gave, if it is well-formed.
    #[must_use]
    pub fn from_proxy(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(X_REQUEST_ID)?;
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let well_formed =
            (1..=REQUEST_ID_CHARS).contains(&value.len()) && value.as_bytes().iter().all(allowed);
        well_formed.then(|| Self(value.clone()))
    }

    /// Whether an id has the form of those that [`RequestId::generate`] makes. One of another form comes from
    /// a proxy.
    #[must_use]
    pub fn is_generated(id: &str) -> bool {
        id.len() == OWN_CHARS && URL_SAFE_NO_PAD.decode(id).is_ok()
    }

    /// A placeholder if no id is known.
    #[must_use]
    pub const fn unknown() -> Self {
        Self(HeaderValue::from_static("-"))
    }

    /// Returns the header's value.
    #[must_use]
    pub const fn header(&self) -> &HeaderValue {
        &self.0
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Both constructors allow only ASCII.
        self.0.to_str().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform_domain::entropy::SystemEntropy;

    #[test]
    fn own_ids_are_well_formed_and_differ() {
        let one = RequestId::generate(&SystemEntropy);
        let other = RequestId::generate(&SystemEntropy);
        assert_ne!(one, other);
        let headers = HeaderMap::from_iter([(X_REQUEST_ID, one.header().clone())]);
        assert_eq!(RequestId::from_proxy(&headers), Some(one));
    }

    #[test]
    fn a_malformed_id_is_not_kept() {
        for bad in ["", "a b", "a/b", "ä", "a.b", &"x".repeat(65)] {
            let headers =
                HeaderMap::from_iter([(X_REQUEST_ID, HeaderValue::from_str(bad).unwrap())]);
            assert_eq!(RequestId::from_proxy(&headers), None, "{bad}");
        }
        let headers = HeaderMap::from_iter([(
            X_REQUEST_ID,
            HeaderValue::from_str(&"x".repeat(64)).unwrap(),
        )]);
        assert!(RequestId::from_proxy(&headers).is_some());
    }
}
