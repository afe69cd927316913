//! Tests of valid and invalid ID tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::JsonWebKey as _;
use p256::SecretKey;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use p256::elliptic_curve::sec1::ToSec1Point as _;
use platform_domain::entropy::{Entropy, SystemEntropy};
use serde_json::{Value, json};

use super::*;

const ISSUER: &str = "https://id.example";
const CLIENT: &str = "platform";
const NONCE: &str = "n-0S6_WzA2Mj";
/// 2026-01-01, in seconds.
const NOW: i64 = 1_767_225_600;
/// How long ago the sign-in began, in seconds.
const AWAY: i64 = 120;

/// A provider's key.
struct ProviderKey(SigningKey);

impl ProviderKey {
    fn generate() -> Self {
        // All but a few of the numbers of 256 bits are private keys.
        Self(SigningKey::from_slice(&(&SystemEntropy as &dyn Entropy).bytes::<32>()).unwrap())
    }

    fn kid(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.verifying_key().to_sec1_point(true))
    }

    fn key_set(&self) -> String {
        let point = self.0.verifying_key().to_sec1_point(false);
        let [x, y] = [point.x(), point.y()].map(|side| URL_SAFE_NO_PAD.encode(side.unwrap()));
        json!({ "keys": [{ "kty": "EC", "crv": "P-256", "kid": self.kid(), "alg": "ES256", "x": x, "y": y }] })
            .to_string()
    }

    fn sign(&self, claims: &Value) -> String {
        let header = json!({ "alg": "ES256", "typ": "JWT", "kid": self.kid() });
        let header = URL_SAFE_NO_PAD.encode(header.to_string());
        let input = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature: Signature = self.0.sign(input.as_bytes());
        format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
    }
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "sub": "7", "aud": CLIENT, "nonce": NONCE, "iat": NOW, "exp": NOW + 300,
    })
}

fn with(changes: &Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

fn keys(key: &ProviderKey) -> CoreJsonWebKeySet {
    serde_json::from_str(&key.key_set()).unwrap()
}

fn verify(token: &str, keys: &CoreJsonWebKeySet) -> Result<String, TokenError> {
    prove(token, keys, false).map(|proved| proved.subject)
}

fn prove(token: &str, keys: &CoreJsonWebKeySet, again: bool) -> Result<Proved, TokenError> {
    let token: CoreIdToken = serde_json::from_value(json!(token))
        .map_err(|error| TokenError::Bad(format!("unreadable: {error}")))?;
    super::verify(
        &token,
        keys,
        Expected {
            issuer: &IssuerUrl::new(ISSUER.to_owned()).unwrap(),
            client_id: &ClientId::new(CLIENT.to_owned()),
            nonce: &Nonce::new(NONCE.to_owned()),
            started_at: (NOW - AWAY) * 1_000,
            again,
            now: NOW * 1_000,
        },
    )
}

#[test]
fn a_good_token_names_its_subject() {
    let key = ProviderKey::generate();
    let longest = "\u{e9}".repeat(255);
    for (changes, subject) in [
        (json!({}), "7"),
        (json!({ "aud": [CLIENT] }), "7"),
        (json!({ "azp": CLIENT }), "7"),
        (
            json!({ "email": "a@example.org", "email_verified": "true" }),
            "7",
        ),
        (json!({ "sub": longest }), &longest),
        // The provider's clock is a minute ahead, or behind.
        (json!({ "iat": NOW + 60 }), "7"),
        (json!({ "iat": NOW - AWAY - 60 }), "7"),
        (json!({ "exp": NOW - 59 }), "7"),
    ] {
        let token = key.sign(&with(&changes));
        assert_eq!(
            verify(&token, &keys(&key)).as_deref(),
            Ok(subject),
            "{changes}"
        );
    }
}

#[test]
fn a_token_says_when_its_player_was_asked_and_that_is_held_against_what_was_wanted() {
    let key = ProviderKey::generate();
    for (auth_time, again, good) in [
        (Value::Null, false, true),
        (Value::Null, true, true),
        (json!(NOW), true, true),
        (json!(NOW - AWAY - 60), true, true),
        // The provider remembers the player, and did not ask.
        (json!(NOW - AWAY - 61), true, false),
        (json!(NOW - 86_400), false, true),
        (json!(NOW + 60), false, true),
        (json!(NOW + 61), false, false),
    ] {
        let token = key.sign(&with(&json!({ "auth_time": auth_time })));
        let proved = prove(&token, &keys(&key), again);
        assert_eq!(proved.is_ok(), good, "{auth_time} {again}");
        if let Ok(proved) = proved {
            let at = auth_time.as_i64().map(|seconds| seconds * 1_000);
            assert_eq!(proved.authenticated_at, at);
        }
    }
}

#[test]
fn a_token_that_is_not_for_this_sign_in_is_not_believed() {
    let key = ProviderKey::generate();
    for changes in [
        json!({ "iss": "https://id.example/" }),
        json!({ "iss": null }),
        json!({ "aud": "another" }),
        json!({ "aud": [CLIENT, "another"] }),
        json!({ "aud": [CLIENT, "another"], "azp": CLIENT }),
        json!({ "aud": [] }),
        json!({ "aud": null }),
        json!({ "azp": "another" }),
        json!({ "nonce": "another" }),
        json!({ "nonce": null }),
        json!({ "sub": "" }),
        json!({ "sub": null }),
        json!({ "sub": "x".repeat(256) }),
        json!({ "iat": null }),
        json!({ "iat": NOW + 61 }),
        json!({ "iat": NOW - AWAY - 61 }),
        json!({ "exp": null }),
        json!({ "exp": NOW - 60 }),
        json!({ "exp": "2027-01-01T00:00:00Z" }),
    ] {
        let token = key.sign(&with(&changes));
        let error = verify(&token, &keys(&key)).unwrap_err();
        assert!(matches!(error, TokenError::Bad(_)), "{changes}: {error:?}");
    }
}

#[test]
fn only_the_providers_own_signature_counts() {
    let key = ProviderKey::generate();
    let stranger = ProviderKey::generate();
    let good = key.sign(&claims());
    let parts: Vec<&str> = good.split('.').collect();
    let (payload, signature) = (parts[1], parts[2]);
    let kid = keys(&key).keys()[0].key_id().unwrap().to_string();
    let header = |header: &Value| URL_SAFE_NO_PAD.encode(header.to_string());

    for alg in [
        "none", "None", "HS256", "HS512", "RS256", "ES384", "ES257", "",
    ] {
        let header = header(&json!({ "alg": alg, "typ": "JWT", "kid": kid }));
        for signature in [signature, ""] {
            let token = format!("{header}.{payload}.{signature}");
            assert!(verify(&token, &keys(&key)).is_err(), "{alg}");
        }
    }
    for (what, header) in [
        (
            "another type",
            json!({ "alg": "ES256", "typ": "at+jwt", "kid": kid }),
        ),
        (
            "crit",
            json!({ "alg": "ES256", "kid": kid, "crit": ["x"], "x": 1 }),
        ),
    ] {
        let header = URL_SAFE_NO_PAD.encode(header.to_string());
        let token = format!("{header}.{payload}.{signature}");
        assert!(verify(&token, &keys(&key)).is_err(), "{what}");
    }
    let other_payload = key.sign(&with(&json!({ "sub": "8" })));
    let moved = format!(
        "{}.{}.{signature}",
        parts[0],
        other_payload.split('.').nth(1).unwrap()
    );
    let forged = stranger.sign(&claims());
    let forged = format!(
        "{}.{payload}.{}",
        parts[0],
        forged.rsplit('.').next().unwrap()
    );
    for token in [
        moved,
        forged,
        format!("{}.{payload}.", parts[0]),
        format!("{}.{payload}", parts[0]),
        format!("{good}.{signature}"),
        format!("{good}="),
        String::new(),
    ] {
        assert!(verify(&token, &keys(&key)).is_err(), "{token}");
    }
}

#[test]
fn a_key_that_is_not_in_the_set_is_told_apart() {
    let key = ProviderKey::generate();
    let other = ProviderKey::generate();
    let token = key.sign(&claims());
    assert_eq!(verify(&token, &keys(&other)), Err(TokenError::UnknownKey));
    let none = CoreJsonWebKeySet::new(Vec::new());
    assert_eq!(verify(&token, &none), Err(TokenError::UnknownKey));
}

/// Signs by hand with a key without an id, since our own keys always have one.
fn nameless(private: [u8; 32]) -> (Value, String) {
    let secret = SecretKey::from_slice(&private).unwrap();
    let point = secret.public_key().to_sec1_point(false);
    let x = URL_SAFE_NO_PAD.encode(&point.as_bytes()[1..33]);
    let y = URL_SAFE_NO_PAD.encode(&point.as_bytes()[33..65]);
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256"}"#);
    let payload = URL_SAFE_NO_PAD.encode(claims().to_string());
    let signed = format!("{header}.{payload}");
    let signature: Signature = SigningKey::from(secret).sign(signed.as_bytes());
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()));
    (
        json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y }),
        token,
    )
}

#[test]
fn without_a_kid_the_one_key_counts_and_of_several_none() {
    let (key, token) = nameless([7; 32]);
    let (other, _) = nameless([8; 32]);
    let one = json!({ "keys": [key] });
    let one: CoreJsonWebKeySet = serde_json::from_value(one).unwrap();
    assert_eq!(verify(&token, &one).as_deref(), Ok("7"));
    let several = json!({ "keys": [key, other] });
    let several: CoreJsonWebKeySet = serde_json::from_value(several).unwrap();
    assert!(matches!(verify(&token, &several), Err(TokenError::Bad(_))));
}

#[test]
fn what_is_told_of_a_bad_token_is_short_and_visible() {
    let key = ProviderKey::generate();
    let issuer = format!("https://id.example/\n{}", "x".repeat(10_000));
    let token = key.sign(&with(&json!({ "iss": issuer })));
    let Err(TokenError::Bad(told)) = verify(&token, &keys(&key)) else {
        panic!("it was believed");
    };
    assert!(told.len() < 1_000 && !told.contains('\n'), "{told}");
}
