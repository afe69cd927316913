//! A game token in an `Authorization` header, and an assertion. The first byte says what the rest is: a
//! token that nobody signed, which must be refused; or the header or claims of one that is signed here
//! with the key that is trusted, of which only those with the right claims are accepted.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use platform_fuzz::{HEADER, KEYS, sign};
use platform_protocol::claims::{ASSERTION_AUDIENCE, ASSERTION_SECONDS};
use platform_protocol::limits::{CLOCK_LEEWAY_SECONDS, LONGEST_TOKEN_SECONDS};
use platform_verifier::jws::{Jws, MAX_TOKEN_BYTES};
use platform_verifier::{Expected, GameTokenClaims, KeySet, VerifyError, check, claims};
use serde_json::Value;

const NOW: u64 = 1_700_000_000;
const EXPECTED: Expected<'_> = Expected {
    issuer: "https://auth.example.com",
    audience: "game:demo",
    now: NOW,
};
/// Claims that are accepted.
const CLAIMS: &str = r#"{"sub":"0190b3a4-1111-7222-8333-444455556666","username":"swift-otter-4821",
"aud":"game:demo","iss":"https://auth.example.com","is_anon":true,"principal_kind":"human",
"exp":1700000900,"iat":1700000000,"jti":"x"}"#;

/// What is signed here can be accepted at all.
static REACHED: LazyLock<()> = LazyLock::new(|| {
    let token = sign(HEADER.as_bytes(), CLAIMS.as_bytes());
    verify(&token).expect("right claims are accepted");
});

fuzz_target!(|bytes: &[u8]| {
    LazyLock::force(&REACHED);
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    match kind {
        b't' => {
            // A token of this key is not found by chance.
            let token = String::from_utf8_lossy(rest);
            assert!(verify(&token).is_err());
        }
        b'h' => check_header(rest),
        b'a' => check_assertion(rest),
        _ => check_claims(rest),
    }
});

fn verify(token: &str) -> Result<GameTokenClaims, VerifyError> {
    let keys = KeySet::parse(KEYS.as_bytes()).expect("the key set is valid");
    check(token, &keys, EXPECTED)
}

fn check_header(header: &[u8]) {
    let token = sign(header, CLAIMS.as_bytes());
    let accepted = verify(&token);
    for typ in ["JWT", "platform-request+jwt"] {
        let _ = Jws::parse_typed(&token, typ);
    }
    if accepted.is_ok() {
        let header: Value = serde_json::from_slice(header).expect("a header is JSON");
        for (name, value) in [("alg", "ES256"), ("typ", "JWT"), ("kid", "k")] {
            assert_eq!(header[name], value, "{name}");
        }
        for name in ["jwk", "jku", "x5c", "x5u", "crit", "b64", "zip", "enc"] {
            assert!(header.get(name).is_none(), "{name}");
        }
    }
}

fn check_claims(payload: &[u8]) {
    let wanted = claims::check(payload, EXPECTED);
    // Signing takes longer than all else.
    if wanted.is_err() && payload.len() % 16 != 0 {
        return;
    }
    let token = sign(HEADER.as_bytes(), payload);
    let accepted = verify(&token);
    if token.len() > MAX_TOKEN_BYTES {
        assert!(accepted.is_err());
        return;
    }
    assert_eq!(accepted.is_ok(), wanted.is_ok());
    let Ok(accepted) = accepted else {
        return;
    };
    // Members that nobody reads may have text that is no Unicode.
    let Ok(given) = serde_json::from_slice::<Value>(payload) else {
        return;
    };
    let written = serde_json::to_value(&accepted).expect("claims can be written");
    for (name, value) in written.as_object().expect("claims are an object") {
        assert_eq!(given.get(name), Some(value), "{name}");
    }
    assert_eq!(accepted.iss, EXPECTED.issuer);
    assert_eq!(accepted.aud, EXPECTED.audience);
    check_times(accepted.exp, accepted.iat, LONGEST_TOKEN_SECONDS);
    for id in [&accepted.sub, &accepted.jti] {
        assert!((1..=255).contains(&id.len()) && !id.contains(char::is_control));
    }
    let again = claims::check(written.to_string().as_bytes(), EXPECTED);
    assert_eq!(again.ok(), Some(accepted));
}

fn check_assertion(payload: &[u8]) {
    // Never both.
    if claims::check(payload, EXPECTED).is_ok() {
        assert!(claims::check_assertion(payload, EXPECTED).is_err());
    }
    let Ok(accepted) = claims::check_assertion(payload, EXPECTED) else {
        return;
    };
    assert_eq!(accepted.iss, EXPECTED.issuer);
    assert_eq!(
        accepted.aud,
        format!("{ASSERTION_AUDIENCE}{}", EXPECTED.audience)
    );
    check_times(accepted.exp, accepted.iat, ASSERTION_SECONDS);
}

fn check_times(expires: u64, issued: u64, longest: u64) {
    assert!(NOW < expires + CLOCK_LEEWAY_SECONDS, "it has expired");
    assert!(
        issued <= NOW + CLOCK_LEEWAY_SECONDS,
        "it comes from the future"
    );
    assert!(
        expires.saturating_sub(issued) <= longest,
        "it lives too long"
    );
}
