//! ES256 (RFC 7518 §3.4) behind a small trait, so that another implementation can replace `p256`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::SecretKey;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use p256::elliptic_curve::sec1::ToSec1Point as _;
use p256::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::entropy::Entropy;

/// Signs with one private key.
pub trait Signer: Send + Sync + std::fmt::Debug {
    /// Returns the ES256 signature of `message`: `r` and `s`, 32 bytes each (RFC 7515, appendix
    /// A.3), or `None` if the implementation failed.
    fn sign(&self, message: &[u8]) -> Option<[u8; 64]>;
}

/// The implementation of the `p256` crate. Its nonces are deterministic (RFC 6979), and of the two
/// forms of a signature it produces the one with the lower `s`, which verifiers may require.
#[derive(Debug)]
struct P256(SigningKey);

impl Signer for P256 {
    fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        let signature: Signature = self.0.try_sign(message).ok()?;
        Some(signature.normalize_s().to_bytes().into())
    }
}

/// A private key in memory.
pub(super) struct PrivateKey(SecretKey);

/// A public key as a JWK (RFC 7517 §4, RFC 7518 §6.2.1). The required members are in the order of
/// RFC 7638 §3.3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PublicJwk {
    crv: &'static str,
    kty: &'static str,
    x: String,
    y: String,
    #[serde(rename = "use")]
    usage: &'static str,
    alg: &'static str,
    kid: String,
}

impl PublicJwk {
    pub(super) fn kid(&self) -> &str {
        &self.kid
    }
}

impl PrivateKey {
    /// Generates a new key.
    pub(super) fn generate(entropy: &dyn Entropy) -> Self {
        loop {
            let bytes = Zeroizing::new(entropy.bytes::<32>());
            // Zero, and numbers not below the order of the curve, are invalid keys: one draw in 2³²
            // gives one.
            if let Ok(key) = SecretKey::from_slice(bytes.as_slice()) {
                return Self(key);
            }
        }
    }

    /// Parses a key in PKCS#8 DER (RFC 5958).
    pub(super) fn from_pkcs8(der: &[u8]) -> Option<Self> {
        SecretKey::from_pkcs8_der(der).ok().map(Self)
    }

    /// Returns the key in PKCS#8 DER.
    pub(super) fn to_pkcs8(&self) -> Option<Zeroizing<Vec<u8>>> {
        Some(Zeroizing::new(
            self.0.to_pkcs8_der().ok()?.as_bytes().to_vec(),
        ))
    }

    /// Returns the public key.
    pub(super) fn public(&self) -> PublicJwk {
        let point = self.0.public_key().to_sec1_point(false);
        // The uncompressed form: one byte 4, then x and y of 32 bytes each.
        let bytes = point.as_bytes();
        let x = URL_SAFE_NO_PAD.encode(&bytes[1..33]);
        let y = URL_SAFE_NO_PAD.encode(&bytes[33..65]);
        // RFC 7638 §3: only the required members, in order, without spaces. base64url needs no
        // escapes in JSON.
        let thumbprint = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let kid = URL_SAFE_NO_PAD.encode(Sha256::digest(thumbprint));
        PublicJwk {
            crv: "P-256",
            kty: "EC",
            x,
            y,
            usage: "sig",
            alg: "ES256",
            kid,
        }
    }

    /// Returns the signer with this key.
    pub(super) fn into_signer(self) -> Box<dyn Signer> {
        Box::new(P256(self.0.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    #[test]
    fn a_key_survives_its_own_encoding() {
        let key = PrivateKey::generate(&SystemEntropy);
        let again = PrivateKey::from_pkcs8(&key.to_pkcs8().unwrap()).unwrap();
        assert_eq!(key.public(), again.public());
        assert!(PrivateKey::from_pkcs8(b"no key").is_none());
    }

    #[test]
    fn signatures_are_deterministic() {
        let signer = PrivateKey::generate(&SystemEntropy).into_signer();
        assert_eq!(signer.sign(b"message"), signer.sign(b"message"));
        assert_ne!(signer.sign(b"message"), signer.sign(b"massage"));
    }

    /// RFC 6979, appendix A.2.5: P-256 with SHA-256, message "sample". The standard's `s` is the
    /// higher one; ours is the order minus it.
    #[test]
    fn the_signature_of_the_standards_example_is_as_given_there_with_the_lower_s() {
        let hex = |text: &str| -> Vec<u8> {
            (0..text.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
                .collect()
        };
        let private = hex("C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721");
        let signer = PrivateKey(SecretKey::from_slice(&private).unwrap()).into_signer();
        let expected = hex(concat!(
            "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
            "0834E36AD29A83BF2BC9385E491D6099C8FDF9D1ED67AA7EA5F51F93782857A9",
        ));
        assert_eq!(signer.sign(b"sample").unwrap().as_slice(), expected);
    }
}
