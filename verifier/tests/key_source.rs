//! When the key set is fetched, and what happens when it cannot be.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::sync::Arc;

use axum::http::StatusCode;
use platform_verifier::{KeySetError, VerifyError};
use serde_json::json;
use support::{Key, KeySetServer, ManualClock, NOW, claims, with};

fn token_of(key: &Key) -> String {
    // Valid for long, for tests that move the clock.
    key.token(
        &key.header(),
        &with(claims(), json!({ "exp": NOW + 86_400 })),
    )
}

#[tokio::test]
async fn the_key_set_is_fetched_once_and_kept() {
    let key = Key::new(1, "one");
    let server = KeySetServer::start(&[&key]).await;
    let clock = ManualClock::new();
    let verifier = server.verifier(clock.clone());
    assert_eq!(
        server.hits(),
        0,
        "nothing is fetched before the first token"
    );
    for _ in 0..20 {
        verifier.verify(&token_of(&key)).await.unwrap();
        clock.advance(29);
    }
    assert_eq!(
        server.hits(),
        1,
        "known keys cause no fetch while the key set may be kept"
    );
}

#[tokio::test]
async fn a_revoked_key_is_forgotten_after_ten_minutes_whoever_asks() {
    let (revoked, new) = (Key::new(1, "revoked"), Key::new(2, "new"));
    let server = KeySetServer::start(&[&revoked]).await;
    let clock = ManualClock::new();
    let verifier = server.verifier(clock.clone());
    verifier.verify(&token_of(&revoked)).await.unwrap();
    server.publish(&[&new]);
    clock.advance(599);
    verifier.verify(&token_of(&revoked)).await.unwrap();
    assert_eq!(server.hits(), 1);
    clock.advance(1);
    // No token of the new key has arrived yet.
    assert_eq!(
        verifier.verify(&token_of(&revoked)).await,
        Err(VerifyError::UnknownKey)
    );
    assert_eq!(server.hits(), 2);
    verifier.verify(&token_of(&new)).await.unwrap();
    assert_eq!(server.hits(), 2);
}

#[tokio::test]
async fn an_auth_service_out_of_reach_holds_up_one_token_in_an_outage() {
    let key = Key::new(1, "one");
    let server = KeySetServer::start(&[&key]).await;
    let clock = ManualClock::new();
    let verifier = Arc::new(server.verifier(clock.clone()));
    verifier.verify(&token_of(&key)).await.unwrap();
    server.answer(StatusCode::INTERNAL_SERVER_ERROR, String::new());
    clock.advance(600);
    verifier.verify(&token_of(&key)).await.unwrap();
    assert_eq!(server.hits(), 2, "the set was to be fetched again");
    for _ in 0..10 {
        verifier.verify(&token_of(&key)).await.unwrap();
    }
    assert_eq!(server.hits(), 2, "not again within 30 seconds");
    // From now on there is no response at all, and no call waits for it.
    let held = server.hold().await;
    clock.advance(30);
    for _ in 0..10 {
        verifier.verify(&token_of(&key)).await.unwrap();
    }
    server.publish(&[&Key::new(2, "new")]);
    drop(held);
    let refused = async {
        while verifier.verify(&token_of(&key)).await != Err(VerifyError::UnknownKey) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), refused)
        .await
        .unwrap();
}

#[tokio::test]
async fn simultaneous_first_tokens_share_one_fetch() {
    let key = Key::new(1, "one");
    let server = KeySetServer::start(&[&key]).await;
    let verifier = Arc::new(server.verifier(ManualClock::new()));
    let held = server.hold().await;
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let (verifier, token) = (verifier.clone(), token_of(&key));
            tokio::spawn(async move { verifier.verify(&token).await })
        })
        .collect();
    drop(held);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(server.hits(), 1);
}

#[tokio::test]
async fn an_unknown_key_id_brings_a_rotated_key() {
    let (old, new) = (Key::new(1, "old"), Key::new(2, "new"));
    let server = KeySetServer::start(&[&old]).await;
    let clock = ManualClock::new();
    let verifier = server.verifier(clock.clone());
    verifier.verify(&token_of(&old)).await.unwrap();
    server.publish(&[&old, &new]);
    clock.advance(30);
    verifier.verify(&token_of(&new)).await.unwrap();
    verifier.verify(&token_of(&old)).await.unwrap();
    assert_eq!(server.hits(), 2);
    // The next fetch forgets a key that left the set.
    server.publish(&[&new]);
    clock.advance(30);
    let unknown = token_of(&Key::new(3, "unknown"));
    assert_eq!(
        verifier.verify(&unknown).await,
        Err(VerifyError::UnknownKey)
    );
    assert_eq!(
        verifier.verify(&token_of(&old)).await,
        Err(VerifyError::UnknownKey)
    );
}

#[tokio::test]
async fn unknown_key_ids_cause_one_fetch_in_thirty_seconds_at_most() {
    let key = Key::new(1, "one");
    let server = KeySetServer::start(&[&key]).await;
    let clock = ManualClock::new();
    let verifier = server.verifier(clock.clone());
    verifier.verify(&token_of(&key)).await.unwrap();
    for number in 0..60 {
        let stranger = Key::new(9, &format!("made-up-{number}"));
        assert_eq!(
            verifier.verify(&token_of(&stranger)).await,
            Err(VerifyError::UnknownKey)
        );
        clock.advance(1);
    }
    // One fetch at the start, then one after 30 s. The last call is at 59 s, so there is no third.
    assert_eq!(server.hits(), 2);
}

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_stop_fetches() {
    let (old, new) = (Key::new(1, "old"), Key::new(2, "new"));
    let server = KeySetServer::start(&[&old]).await;
    let clock = ManualClock::new();
    clock.set(NOW + 7_200);
    let verifier = server.verifier(clock.clone());
    verifier.verify(&token_of(&old)).await.unwrap();
    server.publish(&[&old, &new]);
    clock.set(NOW);
    verifier.verify(&token_of(&new)).await.unwrap();
}

#[tokio::test]
async fn a_failed_fetch_keeps_the_old_keys() {
    let key = Key::new(1, "one");
    let server = KeySetServer::start(&[&key]).await;
    let clock = ManualClock::new();
    let verifier = server.verifier(clock.clone());
    verifier.verify(&token_of(&key)).await.unwrap();
    let bad = [
        (StatusCode::INTERNAL_SERVER_ERROR, String::new()),
        (StatusCode::OK, "<html>".to_owned()),
        (StatusCode::OK, json!({ "keys": [] }).to_string()),
        (StatusCode::OK, " ".repeat(65_537)),
        (StatusCode::FOUND, String::new()),
    ];
    for (number, (status, body)) in bad.into_iter().enumerate() {
        server.answer(status, body);
        clock.advance(30);
        let unknown = token_of(&Key::new(9, "unknown"));
        assert_eq!(
            verifier.verify(&unknown).await,
            Err(VerifyError::UnknownKey)
        );
        assert_eq!(server.hits(), number + 2, "a fetch was made");
        verifier.verify(&token_of(&key)).await.unwrap();
    }
}

#[tokio::test]
async fn without_any_key_set_the_token_is_neither_accepted_nor_refused() {
    let key = Key::new(1, "one");
    let server = KeySetServer::start(&[&key]).await;
    let clock = ManualClock::new();
    let verifier = server.verifier(clock.clone());
    let bad = [
        (
            StatusCode::NOT_FOUND,
            String::new(),
            KeySetError::Status(404),
        ),
        // The party that can redirect must not choose the keys: the good set behind the redirect is
        // not read.
        (StatusCode::FOUND, String::new(), KeySetError::Status(302)),
        (StatusCode::OK, "null".to_owned(), KeySetError::Malformed),
        (
            StatusCode::OK,
            json!({ "keys": [{ "kty": "oct" }] }).to_string(),
            KeySetError::Empty,
        ),
        (StatusCode::OK, " ".repeat(65_537), KeySetError::TooLarge),
    ];
    for (status, body, expected) in bad {
        server.answer(status, body);
        let hits = server.hits();
        for _ in 0..5 {
            let outcome = verifier.verify(&token_of(&key)).await;
            assert_eq!(outcome, Err(VerifyError::KeySet(expected.clone())));
            assert!(outcome.unwrap_err().is_unavailable());
        }
        assert_eq!(
            server.hits(),
            hits + 1,
            "the failure is shared for a second"
        );
        clock.advance(1);
    }
    server.publish(&[&key]);
    verifier.verify(&token_of(&key)).await.unwrap();
}

#[tokio::test]
async fn nobody_listening_is_a_transport_failure_without_the_address() {
    // A socket that does not listen refuses connections, and nobody else gets its port.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = closed.local_addr().unwrap().port();
    let mut server = KeySetServer::start(&[]).await;
    server.url = format!("http://127.0.0.1:{port}/jwks.json");
    let verifier = server.verifier(ManualClock::new());
    match verifier.verify(&Key::new(1, "one").good_token()).await {
        Err(VerifyError::KeySet(KeySetError::Transport(cause))) => {
            assert!(!cause.contains("jwks.json"), "{cause}");
        }
        other => panic!("{other:?}"),
    }
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn an_https_address_is_never_asked_in_the_clear() {
    let key = Key::new(1, "one");
    let mut server = KeySetServer::start(&[&key]).await;
    server.url = server.url.replace("http:", "https:");
    let verifier = server.verifier(ManualClock::new());
    let outcome = verifier.verify(&token_of(&key)).await;
    assert!(
        matches!(outcome, Err(VerifyError::KeySet(KeySetError::Transport(_)))),
        "a server without TLS cannot answer: {outcome:?}"
    );
    assert_eq!(server.hits(), 0);
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_cancel_the_fetch_of_the_others() {
    let key = Key::new(1, "one");
    let server = KeySetServer::start(&[&key]).await;
    let verifier = Arc::new(server.verifier(ManualClock::new()));
    let held = server.hold().await;
    let first = tokio::spawn({
        let (verifier, token) = (verifier.clone(), token_of(&key));
        async move { verifier.verify(&token).await }
    });
    let asked = async {
        while server.hits() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), asked)
        .await
        .unwrap();
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    drop(held);
    verifier.verify(&token_of(&key)).await.unwrap();
    assert_eq!(server.hits(), 1);
}

#[tokio::test]
async fn keys_of_other_kinds_are_left_out_and_ambiguous_ones_refused() {
    use platform_verifier::key_set::KeySet;
    let key = Key::new(1, "one");
    let parse =
        |keys: serde_json::Value| KeySet::parse(json!({ "keys": keys }).to_string().as_bytes());
    let others = [
        with(key.jwk(), json!({ "kid": "enc", "use": "enc" })),
        with(key.jwk(), json!({ "kid": "alg", "alg": "ES384" })),
        with(key.jwk(), json!({ "kid": "crv", "crv": "P-384" })),
        with(key.jwk(), json!({ "kid": "ops", "key_ops": ["sign"] })),
        with(key.jwk(), json!({ "kid": null })),
        with(key.jwk(), json!({ "kid": "" })),
        with(key.jwk(), json!({ "kid": "short", "x": "AA" })),
        with(
            key.jwk(),
            json!({ "kid": "off the curve", "y": key.jwk()["x"] }),
        ),
        with(key.jwk(), json!({ "kid": "number", "x": 5 })),
        json!({ "kty": "RSA", "kid": "rsa", "n": "AQAB", "e": "AQAB" }),
        json!("not a key"),
    ];
    for other in &others {
        assert_eq!(
            parse(json!([other])).unwrap_err(),
            KeySetError::Empty,
            "{other}"
        );
        let both = parse(json!([other, key.jwk()])).unwrap();
        assert_eq!(both.len(), 1, "{other}");
    }
    let verify_only = with(
        key.jwk(),
        json!({ "key_ops": ["verify"], "use": null, "alg": null }),
    );
    assert!(parse(json!([verify_only])).unwrap().find("one").is_some());
    let twice = parse(json!([key.jwk(), Key::new(2, "one").jwk()]));
    assert_eq!(twice.unwrap_err(), KeySetError::Malformed);
}
