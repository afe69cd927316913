//! What the tests share: an issuer with a key, a key set server on a port of
//! its own, and a clock that the test moves.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(unreachable_pub, reason = "a module of each test program")]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use platform_verifier::{Clock, Verifier, VerifierConfig};
use serde_json::{Value, json};

pub const ISSUER: &str = "http://auth.platform.localhost:8787";
pub const AUDIENCE: &str = "game:demo";
pub const SUB: &str = "0197a1c0-7e3b-7c3e-9f4a-1f2e3d4c5b6a";
/// 2026-01-01T00:00:00Z.
pub const NOW: u64 = 1_767_225_600;

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(NOW)))
    }

    pub fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    pub fn set(&self, seconds: u64) {
        self.0.store(seconds, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

/// A signing key with its `kid`.
pub struct Key {
    pub signing: SigningKey,
    pub kid: String,
}

impl Key {
    /// A key that is the same in every run.
    pub fn new(seed: u8, kid: &str) -> Self {
        Self {
            signing: SigningKey::from_slice(&[seed; 32]).unwrap(),
            kid: kid.to_owned(),
        }
    }

    /// The public key as an entry of a key set.
    pub fn jwk(&self) -> Value {
        let point = self.signing.verifying_key().to_sec1_point(false);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.kid,
            "x": encode(point.x().unwrap()), "y": encode(point.y().unwrap()),
        })
    }

    pub fn header(&self) -> Value {
        json!({ "alg": "ES256", "typ": "JWT", "kid": self.kid })
    }

    /// Signs a token with this header and these claims, whatever they are.
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        self.sign(&header.to_string(), &claims.to_string())
    }

    /// Signs a token with these texts as header and payload.
    pub fn sign(&self, header: &str, claims: &str) -> String {
        self.sign_encoded(&encode(header), &encode(claims))
    }

    /// Signs parts that are already encoded.
    pub fn sign_encoded(&self, header: &str, payload: &str) -> String {
        let input = format!("{header}.{payload}");
        let signature: Signature = self.signing.sign(input.as_bytes());
        format!("{input}.{}", encode(signature.normalize_s().to_bytes()))
    }

    /// A token as the platform mints it.
    pub fn good_token(&self) -> String {
        self.token(&self.header(), &claims())
    }
}

/// The claims of a good token.
pub fn claims() -> Value {
    json!({
        "sub": SUB, "username": "swift-otter-4821", "aud": AUDIENCE, "iss": ISSUER,
        "is_anon": true, "principal_kind": "human",
        "exp": NOW + 900, "iat": NOW, "jti": "0197a1c0-7e3b-7c3e-9f4a-000000000001",
    })
}

/// The good value with some members replaced; `null` removes one.
pub fn with(mut base: Value, changes: Value) -> Value {
    let members = base.as_object_mut().unwrap();
    let Value::Object(changes) = changes else {
        panic!("changes are an object")
    };
    for (name, value) in changes {
        if value.is_null() {
            members.remove(&name);
        } else {
            members.insert(name, value);
        }
    }
    base
}

pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A server of key sets that counts its requests.
pub struct KeySetServer {
    pub url: String,
    answer: Arc<Mutex<(StatusCode, String)>>,
    hits: Arc<AtomicUsize>,
    /// While it is held back, each response waits for a permit.
    gate: Arc<tokio::sync::Semaphore>,
}

impl KeySetServer {
    pub async fn start(keys: &[&Key]) -> Self {
        let answer = Arc::new(Mutex::new((StatusCode::OK, document(keys))));
        let hits = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(tokio::sync::Semaphore::new(1));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let handler = {
            let (answer, hits, gate) = (answer.clone(), hits.clone(), gate.clone());
            move || async move {
                hits.fetch_add(1, Ordering::SeqCst);
                let _permit = gate.acquire().await.unwrap();
                let (status, body) = answer.lock().unwrap().clone();
                let headers = [
                    (header::CONTENT_TYPE, "application/json"),
                    (header::LOCATION, "/other"),
                ];
                (status, headers, body).into_response()
            }
        };
        let other = document(keys);
        let app = Router::new()
            .route("/jwks.json", get(handler))
            .route("/other", get(async move || other));
        tokio::spawn(async move { axum::serve(listener, app).await });
        // A name that plain `getaddrinfo` need not know (RFC 6761 §6.3).
        Self {
            url: format!("http://auth.keys.localhost:{port}/jwks.json"),
            answer,
            hits,
            gate,
        }
    }

    pub fn publish(&self, keys: &[&Key]) {
        self.answer(StatusCode::OK, document(keys));
    }

    pub fn answer(&self, status: StatusCode, body: String) {
        *self.answer.lock().unwrap() = (status, body);
    }

    pub fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    /// Holds responses back until the returned guard is dropped.
    pub async fn hold(&self) -> tokio::sync::OwnedSemaphorePermit {
        self.gate.clone().acquire_owned().await.unwrap()
    }

    pub fn verifier(&self, clock: Arc<ManualClock>) -> Verifier {
        let config = VerifierConfig {
            issuer: ISSUER.into(),
            audience: AUDIENCE.into(),
            jwks_url: self.url.clone(),
        };
        Verifier::with_clock(config, clock).unwrap()
    }
}

pub fn document(keys: &[&Key]) -> String {
    json!({ "keys": keys.iter().map(|key| key.jwk()).collect::<Vec<_>>() }).to_string()
}
