//! A game token in an `Authorization` header: nothing is accepted that this key did not sign, since
//! the target never signs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use platform_verifier::{Expected, KeySet, check};

/// The public key of the example in RFC 7515, appendix A.3.1.
const KEYS: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","kid":"k","alg":"ES256","use":"sig",
"x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;

fuzz_target!(|text: &str| {
    let keys = KeySet::parse(KEYS.as_bytes()).expect("the key set is valid");
    let expected = Expected {
        issuer: "https://auth.example.com",
        audience: "game:demo",
        now: 1_700_000_000,
    };
    assert!(check(text, &keys, expected).is_err());
});
