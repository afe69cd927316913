//! What an identity provider sends: its metadata, its key set, the response of its token endpoint with
//! an ID token. The first byte says which of them the rest is, or that it is the header or the claims of
//! a token that is signed here with the provider's key. Endpoints are safe, weak keys are left out, and
//! only a token for this sign-in names a subject.

#![no_main]

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use libfuzzer_sys::fuzz_target;
use platform_fuzz::{HEADER, KEYS, PUBLIC_X, sign};
use platform_openid::Answer;
use platform_openid::documents::Documents;
use serde_json::{Value, json};

const ISSUER: &str = "https://id.example";
const CLIENT: &str = "platform";
const NONCE: &str = "n-0S6_WzA2Mj";
/// 2026-01-01, in seconds, and how long ago the sign-in began.
const NOW: i64 = 1_767_225_600;
const AWAY: i64 = 120;
const LEEWAY: i64 = 60;
const METADATA: &str = r#"{"issuer":"https://id.example","authorization_endpoint":"https://id.example/auth",
"token_endpoint":"https://id.example/token","jwks_uri":"https://id.example/keys",
"response_types_supported":["code"],"subject_types_supported":["public"],
"id_token_signing_alg_values_supported":["ES256"]}"#;
/// Claims that are accepted.
const CLAIMS: &str = r#"{"iss":"https://id.example","sub":"7","aud":"platform","nonce":"n-0S6_WzA2Mj",
"iat":1767225600,"exp":1767225900}"#;

/// What is signed here can be accepted at all.
static REACHED: LazyLock<()> = LazyLock::new(|| {
    let token = sign(HEADER.as_bytes(), CLAIMS.as_bytes());
    subject(&good(), &response(&token), true).expect("right claims are accepted");
});

fuzz_target!(|bytes: &[u8]| {
    LazyLock::force(&REACHED);
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    match kind {
        b'm' => check_metadata(rest),
        b'k' => check_key_set(rest),
        // Nobody finds a signature by chance.
        b'r' => assert_eq!(subject(&good(), rest, false), None),
        b'h' => check_header(rest),
        _ => check_claims(rest),
    }
});

fn good() -> Documents {
    read(METADATA.as_bytes(), KEYS.as_bytes()).expect("the documents are valid")
}

fn read(metadata: &[u8], keys: &[u8]) -> Option<Documents> {
    Documents::read(ISSUER, CLIENT, metadata, keys)
}

fn subject(documents: &Documents, response: &[u8], again: bool) -> Option<(String, Option<i64>)> {
    let answer = Answer {
        code: "c",
        issuer: None,
        nonce: NONCE,
        pkce_verifier: "v",
        started_at: (NOW - AWAY) * 1_000,
        again,
    };
    documents.subject(response, answer, NOW * 1_000)
}

fn response(token: &str) -> Vec<u8> {
    let response = json!({ "access_token": "a", "token_type": "Bearer", "id_token": token });
    response.to_string().into_bytes()
}

fn check_metadata(metadata: &[u8]) {
    let Some(documents) = read(metadata, KEYS.as_bytes()) else {
        return;
    };
    let endpoints = documents.endpoints();
    assert_eq!(endpoints.len(), 2);
    for endpoint in endpoints {
        let host = endpoint.host_str().unwrap_or_default();
        let is_here = host == "localhost"
            || host.ends_with(".localhost")
            || host.starts_with("127.")
            || host == "[::1]";
        let scheme = endpoint.scheme();
        assert!(
            scheme == "https" || (scheme == "http" && is_here),
            "{endpoint}"
        );
    }
    let given = plain(metadata);
    assert!(given.is_none_or(|given| given["issuer"] == ISSUER));
}

fn check_key_set(keys: &[u8]) {
    let Some(documents) = read(METADATA.as_bytes(), keys) else {
        return;
    };
    let kept = documents.key_set();
    let again = read(METADATA.as_bytes(), kept.as_bytes()).expect("a key set is read again");
    assert_eq!(again.key_set(), kept);
    let parsed: Value = serde_json::from_str(&kept).expect("a key set is JSON");
    for key in parsed["keys"].as_array().expect("it has keys") {
        let Some(modulus) = key.get("n").and_then(Value::as_str) else {
            continue;
        };
        let modulus = URL_SAFE_NO_PAD
            .decode(modulus)
            .expect("a modulus is base64url");
        let digits = modulus.iter().skip_while(|byte| **byte == 0).count();
        assert!(digits >= 256, "{digits}");
    }
    let token = sign(HEADER.as_bytes(), CLAIMS.as_bytes());
    if subject(&documents, &response(&token), false).is_some() {
        assert!(kept.contains(PUBLIC_X), "another key has signed");
    }
}

/// Reads JSON whose texts are all Unicode. Members that nobody reads need not be.
fn plain(json: &[u8]) -> Option<Value> {
    serde_json::from_slice(json).ok()
}

fn check_header(header: &[u8]) {
    let token = sign(header, CLAIMS.as_bytes());
    if subject(&good(), &response(&token), false).is_some() {
        let header: Option<Value> = plain(header);
        assert!(header.is_none_or(|header| header["alg"] == "ES256"));
    }
}

fn check_claims(claims: &[u8]) {
    let token = sign(HEADER.as_bytes(), claims);
    let documents = good();
    let accepted = subject(&documents, &response(&token), false);
    let again = subject(&documents, &response(&token), true);
    let Some((subject, authenticated_at)) = accepted else {
        assert_eq!(again, None, "a sign-in that asked again accepts less");
        return;
    };
    let Some(given) = plain(claims) else {
        return;
    };
    assert_eq!(given["iss"], ISSUER);
    assert_eq!(given["nonce"], NONCE);
    assert_eq!(given["sub"], *subject);
    assert!((1..=255).contains(&subject.chars().count()));
    match &given["aud"] {
        Value::Array(audiences) => {
            assert!(audiences.iter().any(|audience| audience == CLIENT));
            assert!(audiences.len() == 1 || given["azp"] == CLIENT);
        }
        audience => assert_eq!(audience, CLIENT),
    }
    assert!(
        given
            .get("azp")
            .is_none_or(|party| party.is_null() || party == CLIENT)
    );
    let seconds = |name: &str| given[name].as_f64().expect("a time is a number");
    let at = |seconds: i64| seconds as f64;
    assert!(seconds("exp") > at(NOW - LEEWAY) - 1.0, "it has expired");
    assert!(
        seconds("iat") < at(NOW + LEEWAY) + 1.0,
        "it comes from the future"
    );
    assert!(
        seconds("iat") > at(NOW - AWAY - LEEWAY) - 1.0,
        "it is of another sign-in"
    );
    if let Some(time) = authenticated_at {
        assert!(time <= (NOW + LEEWAY) * 1_000);
        let is_new = time >= (NOW - AWAY - LEEWAY) * 1_000;
        assert_eq!(again.is_some(), is_new, "the provider was to ask again");
    }
}
