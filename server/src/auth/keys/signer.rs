//! ES256 (RFC 7518 §3.4) behind a small trait with two implementations. `p256` has the keys, and
//! signs if `ring`, which is faster, cannot.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::SecretKey;
use p256::ecdsa::signature::{Signer as _, Verifier as _};
use p256::ecdsa::{Signature, SigningKey};
use p256::elliptic_curve::sec1::ToSec1Point as _;
use p256::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
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

/// The implementation of the `ring` crate. Its nonces are random, mixed with the key and the message.
#[derive(Debug)]
struct Ring {
    key: EcdsaKeyPair,
    random: SystemRandom,
}

impl Ring {
    /// Returns the signer with this key, if it makes a signature that `p256` verifies.
    fn of(key: &SigningKey) -> Option<Self> {
        let random = SystemRandom::new();
        let private = Zeroizing::new(<[u8; 32]>::from(key.to_bytes()));
        let public = key.verifying_key().to_sec1_point(false);
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let made = EcdsaKeyPair::from_private_key_and_public_key(
            algorithm,
            private.as_slice(),
            public.as_bytes(),
            &random,
        );
        let ring = Self {
            key: made.ok()?,
            random,
        };
        let message = b"a signature to be verified before the first token";
        let signature = Signature::from_slice(&ring.sign(message)?).ok()?;
        key.verifying_key().verify(message, &signature).ok()?;
        Some(ring)
    }
}

impl Signer for Ring {
    fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        let signature = self.key.sign(&self.random, message).ok()?;
        let signature = Signature::from_slice(signature.as_ref()).ok()?;
        // Either form may come; verifiers may require the lower one.
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

    /// Returns the signer with this key: the faster one, if it can be verified here.
    pub(super) fn into_signer(self) -> Box<dyn Signer> {
        let key = SigningKey::from(self.0);
        if let Some(ring) = Ring::of(&key) {
            return Box::new(ring);
        }
        tracing::warn!("`ring` makes no valid signatures on this machine, so `p256` signs");
        Box::new(P256(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    #[test]
    fn a_key_survives_its_own_encoding() {
        let key = PrivateKey::generate(&SystemEntropy);
        let again = PrivateKey::from_pkcs8(&key.to_pkcs8().unwrap()).unwrap();
        assert_eq!(key.public(), again.public());
        assert!(PrivateKey::from_pkcs8(b"no key").is_none());
    }

    #[test]
    fn signatures_of_p256_are_deterministic() {
        let signer = P256(PrivateKey::generate(&SystemEntropy).0.into());
        assert_eq!(signer.sign(b"message"), signer.sign(b"message"));
        assert_ne!(signer.sign(b"message"), signer.sign(b"massage"));
    }

    /// Both verify what both sign, as many verifiers do that require the lower `s`.
    #[test]
    fn each_implementation_verifies_the_signatures_of_the_other() {
        for round in 0..50_u8 {
            let key = SigningKey::from(PrivateKey::generate(&SystemEntropy).0);
            let public = key.verifying_key().to_sec1_point(false);
            let of_ring = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public.as_bytes());
            let ring = Ring::of(&key).unwrap();
            let p256 = P256(key.clone());
            let message = vec![round; usize::from(round) * 37];
            for signer in [&ring as &dyn Signer, &p256] {
                let bytes = signer.sign(&message).unwrap();
                let signature = Signature::from_slice(&bytes).unwrap();
                assert_eq!(signature.normalize_s(), signature);
                key.verifying_key().verify(&message, &signature).unwrap();
                of_ring.verify(&message, &bytes).unwrap();
                let mut other = message.clone();
                other.push(round);
                assert!(key.verifying_key().verify(&other, &signature).is_err());
                assert!(of_ring.verify(&other, &bytes).is_err());
            }
        }
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
        let signer = P256(SecretKey::from_slice(&private).unwrap().into());
        let expected = hex(concat!(
            "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
            "0834E36AD29A83BF2BC9385E491D6099C8FDF9D1ED67AA7EA5F51F93782857A9",
        ));
        assert_eq!(signer.sign(b"sample").unwrap().as_slice(), expected);
    }
}
