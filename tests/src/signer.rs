//! Tokens of every kind, signed by a key that is the same in every run, and a
//! server of the key set that goes with them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A signing key with its `kid`.
#[derive(Debug)]
pub struct Signer {
    key: SigningKey,
    kid: String,
}

impl Signer {
    /// The key number `seed`, from 1, known as `kid`.
    #[must_use]
    pub fn new(seed: u8, kid: &str) -> Self {
        Self {
            key: SigningKey::from_slice(&[seed; 32]).expect("it is in the curve's order"),
            kid: kid.to_owned(),
        }
    }

    /// The public key, as an entry of a key set (RFC 7517 §4).
    #[must_use]
    pub fn public_jwk(&self) -> Value {
        let point = self.key.verifying_key().to_sec1_point(false);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.kid,
            "x": encode(point.x().expect("it is no point at infinity")),
            "y": encode(point.y().expect("it is not compressed")),
        })
    }

    /// The whole key, for another program to sign with.
    #[must_use]
    pub fn private_jwk(&self) -> Value {
        let mut jwk = self.public_jwk();
        jwk["d"] = json!(encode(self.key.to_bytes()));
        jwk
    }

    /// The header of a game token.
    #[must_use]
    pub fn header(&self) -> Value {
        json!({ "alg": "ES256", "typ": "JWT", "kid": self.kid })
    }

    /// A token with this header and these claims, whatever they are.
    #[must_use]
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        let input = signing_input(header, claims);
        let signature = self.sign(&input);
        format!("{input}.{}", encode(signature.to_bytes()))
    }

    /// The same, with the signature in DER, as other systems want it.
    #[must_use]
    pub fn token_in_der(&self, header: &Value, claims: &Value) -> String {
        let input = signing_input(header, claims);
        let signature = self.sign(&input);
        format!("{input}.{}", encode(signature.to_der().as_bytes()))
    }

    /// With the lower `s`, as the platform signs.
    fn sign(&self, input: &str) -> Signature {
        let signature: Signature = self.key.sign(input.as_bytes());
        signature.normalize_s()
    }
}

/// The same token with the lower of the two spellings of its signature.
///
/// # Panics
/// When it is no token of ES256.
#[must_use]
pub fn with_lower_s(token: &str) -> String {
    let (input, signature) = token.rsplit_once('.').expect("a token");
    let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
    let signature = Signature::from_slice(&signature).expect("r and s");
    format!("{input}.{}", encode(signature.normalize_s().to_bytes()))
}

/// Header and payload, as they are signed (RFC 7515 §5.1).
#[must_use]
pub fn signing_input(header: &Value, claims: &Value) -> String {
    format!(
        "{}.{}",
        encode(header.to_string()),
        encode(claims.to_string())
    )
}

/// In base64url without padding.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A copy of an object with some members replaced; `null` takes one out.
///
/// # Panics
/// When either is no object.
#[must_use]
pub fn with(base: &Value, changes: &Value) -> Value {
    let mut changed = base.as_object().expect("an object").clone();
    for (name, value) in changes.as_object().expect("an object") {
        if value.is_null() {
            changed.remove(name);
        } else {
            changed.insert(name.clone(), value.clone());
        }
    }
    Value::Object(changed)
}

/// A server of key sets that counts how often it is asked.
#[derive(Debug)]
pub struct KeySetServer {
    /// The key set's address.
    pub url: String,
    answer: Arc<Mutex<(StatusCode, String)>>,
    hits: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl KeySetServer {
    /// Answers with status 500, until keys are published.
    pub async fn listen() -> Self {
        let failure = (StatusCode::INTERNAL_SERVER_ERROR, String::new());
        let answer = Arc::new(Mutex::new(failure));
        let hits: Arc<AtomicUsize> = Arc::default();
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (answers, asked) = (Arc::clone(&answer), Arc::clone(&hits));
        // As the platform does, it answers under its name alone, which no plain
        // `getaddrinfo` knows.
        let host = format!("auth.platform.localhost:{}", address.port());
        let url = format!("http://{host}/.well-known/jwks.json");
        let app = axum::Router::new().fallback(async move |headers: HeaderMap| {
            if headers
                .get("host")
                .is_none_or(|named| named != host.as_str())
            {
                return (
                    StatusCode::NOT_FOUND,
                    [("content-type", "text/plain")],
                    String::new(),
                );
            }
            asked.fetch_add(1, Ordering::SeqCst);
            let (status, body) = answers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            (status, [("content-type", "application/json")], body)
        });
        Self {
            url,
            answer,
            hits,
            serving: tokio::spawn(async move {
                axum::serve(listener, app).await.expect("it serves");
            }),
        }
    }

    /// Answers with these keys from now on.
    pub fn publish(&self, keys: &[&Signer]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.public_jwk()).collect();
        self.set(StatusCode::OK, json!({ "keys": keys }).to_string());
    }

    /// Answers with status 500 from now on.
    pub fn fail(&self) {
        self.set(StatusCode::INTERNAL_SERVER_ERROR, String::new());
    }

    /// How often it was asked.
    #[must_use]
    pub fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    fn set(&self, status: StatusCode, body: String) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = (status, body);
    }
}

impl Drop for KeySetServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
