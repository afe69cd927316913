//! ID tokens that must be refused, and a few unusual ones that must be accepted (OpenID Connect
//! Core 1.0 §3.1.3.7, RFC 7515, RFC 8725).

use platform_tests::hostile_provider::{CLIENT_ID, HostileProvider};
use serde_json::{Value, json};

use crate::scene::{PROVIDER, Scene};

#[tokio::test]
async fn claims_that_are_not_for_us_sign_nobody_in() {
    let scene = Scene::set().await;
    let issuer = &scene.provider.issuer;
    let long = "x".repeat(256);
    let cases = [
        ("iss of another", json!({ "iss": "https://evil.example" })),
        ("iss with a slash", json!({ "iss": format!("{issuer}/") })),
        ("iss in capitals", json!({ "iss": issuer.to_uppercase() })),
        ("iss missing", json!({ "iss": null })),
        ("iss a list", json!({ "iss": [issuer] })),
        ("aud of another", json!({ "aud": "somebody-else" })),
        (
            "aud in capitals",
            json!({ "aud": CLIENT_ID.to_uppercase() }),
        ),
        ("aud a list of others", json!({ "aud": ["somebody-else"] })),
        (
            "aud a list with another",
            json!({ "aud": [CLIENT_ID, "somebody-else"] }),
        ),
        (
            "aud a list with another, azp us",
            json!({ "aud": [CLIENT_ID, "somebody-else"], "azp": CLIENT_ID }),
        ),
        ("aud empty", json!({ "aud": [] })),
        ("aud missing", json!({ "aud": null })),
        ("azp of another", json!({ "azp": "somebody-else" })),
        ("nonce of another", json!({ "nonce": "another" })),
        ("nonce empty", json!({ "nonce": "" })),
        ("nonce missing", json!({ "nonce": null })),
        ("sub missing", json!({ "sub": null })),
        ("sub empty", json!({ "sub": "" })),
        ("sub a number", json!({ "sub": 7 })),
        ("sub too long", json!({ "sub": long })),
        ("iat missing", json!({ "iat": null })),
        ("iat a word", json!({ "iat": "yesterday" })),
        ("exp missing", json!({ "exp": null })),
        ("exp a word", json!({ "exp": "never" })),
        ("exp negative", json!({ "exp": -1 })),
        ("exp huge", json!({ "exp": 1e300, "iat": 1e300 })),
    ];
    for (what, claims) in cases {
        let behaviour = json!({ "claims": claims });
        scene.refused(what, &behaviour, "failed").await;
    }
    let cases = [
        ("expired", json!({ "exp": -3_600 - 120 })),
        ("issued in the future", json!({ "iat": 120 })),
        ("issued before the sign-in", json!({ "iat": -120 })),
    ];
    for (what, shift) in cases {
        let behaviour = json!({ "shift": shift });
        scene.refused(what, &behaviour, "failed").await;
    }
}

#[tokio::test]
async fn odd_claims_that_are_for_us_sign_in() {
    let scene = Scene::set().await;
    let cases = [
        (
            "aud a list of us",
            json!({ "claims": { "aud": [CLIENT_ID] } }),
        ),
        ("azp us", json!({ "claims": { "azp": CLIENT_ID } })),
        (
            "a subject of 255",
            json!({ "claims": { "sub": "y".repeat(255) } }),
        ),
        ("unknown claims", json!({ "claims": { "x": { "y": [1] } } })),
        // A provider's clock may be slightly wrong.
        ("iat a little ahead", json!({ "shift": { "iat": 30 } })),
        ("exp just over", json!({ "shift": { "exp": -3_600 - 20 } })),
        ("no typ", json!({ "header": { "typ": null } })),
    ];
    for (what, behaviour) in cases {
        let (mut person, guest) = scene.guest().await;
        scene.provider.behave(&behaviour).await;
        let account = person.become_account(PROVIDER, what).await;
        assert_eq!(account.sub, guest.sub, "{what}");
    }
}

/// Signatures that are never valid, whatever the provider's key is.
const NO_SIGNATURE: &[&str] = &[
    "none",
    "None",
    "NONE",
    "nOnE",
    "hs256-pem",
    "hs256-der",
    "hs256-jwk",
    "hs256-stranger",
    "flipped",
    "stranger",
    "empty",
    "moved",
    "two-parts",
    "garbage",
];

async fn bad_signatures_sign_nobody_in(alg: &str, more: &[(&str, Value)]) {
    let scene = Scene::set_with(HostileProvider::start_signing(alg).await).await;
    for how in NO_SIGNATURE {
        let behaviour = json!({ "sign": how });
        scene.refused(how, &behaviour, "failed").await;
    }
    for (what, behaviour) in more {
        scene.refused(what, behaviour, "failed").await;
    }
}

#[tokio::test]
async fn bad_signatures_of_an_es256_provider_sign_nobody_in() {
    let jwk = json!({ "kty": "EC", "crv": "P-256", "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM" });
    let more = [
        ("signature in ASN.1", json!({ "sign": "der" })),
        (
            "another algorithm named",
            json!({ "header": { "alg": "RS256" } }),
        ),
        ("HS256 named", json!({ "header": { "alg": "HS256" } })),
        (
            "an unknown algorithm",
            json!({ "header": { "alg": "ES257" } }),
        ),
        (
            "no algorithm",
            json!({ "header": { "alg": null } , "sign": "none" }),
        ),
        (
            "own key in the header",
            json!({ "sign": "stranger", "header": { "jwk": jwk } }),
        ),
        (
            "own key's address",
            json!({ "sign": "stranger", "header": { "jku": "http://127.0.0.1:1/" } }),
        ),
        (
            "an unknown crit",
            json!({ "header": { "crit": ["x"], "x": true } }),
        ),
        (
            "payload not encoded",
            json!({ "header": { "crit": ["b64"], "b64": false } }),
        ),
    ];
    bad_signatures_sign_nobody_in("ES256", &more).await;
}

#[tokio::test]
async fn bad_signatures_of_an_rs256_provider_sign_nobody_in() {
    let more = [
        (
            "another algorithm named",
            json!({ "header": { "alg": "ES256" } }),
        ),
        (
            "another hash named",
            json!({ "header": { "alg": "RS512" } }),
        ),
    ];
    bad_signatures_sign_nobody_in("RS256", &more).await;
}

#[tokio::test]
async fn an_rs256_provider_signs_in() {
    let scene = Scene::set_with(HostileProvider::start_signing("RS256").await).await;
    let (mut person, guest) = scene.guest().await;
    let account = person.become_account(PROVIDER, "alice").await;
    assert_eq!(account.sub, guest.sub);
}
