//! Tokens of every kind, signed with a key that is the same in every run, and a server of the
//! corresponding key set.

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
    /// Creates the key number `seed`, from 1, with the id `kid`.
    #[must_use]
    pub fn new(seed: u8, kid: &str) -> Self {
        Self {
            key: SigningKey::from_slice(&[seed; 32]).expect("it is in the curve's order"),
            kid: kid.to_owned(),
        }
    }

    /// Returns the public key as an entry of a key set (RFC 7517 §4).
    #[must_use]
    pub fn public_jwk(&self) -> Value {
        let point = self.key.verifying_key().to_sec1_point(false);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.kid,
            "x": encode(point.x().expect("it is no point at infinity")),
            "y": encode(point.y().expect("it is not compressed")),
        })
    }

    /// Returns the whole key, for signing in another program.
    #[must_use]
    pub fn private_jwk(&self) -> Value {
        let mut jwk = self.public_jwk();
        jwk["d"] = json!(encode(self.key.to_bytes()));
        jwk
    }

    /// Returns the header of a game token.
    #[must_use]
    pub fn header(&self) -> Value {
        json!({ "alg": "ES256", "typ": "JWT", "kid": self.kid })
    }

    /// Returns a token with any header and claims.
    #[must_use]
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        let input = signing_input(header, claims);
        let signature = self.sign(&input);
        format!("{input}.{}", encode(signature.to_bytes()))
    }

    /// Returns the same token with the signature in DER, as other systems use it.
    #[must_use]
    pub fn token_in_der(&self, header: &Value, claims: &Value) -> String {
        let input = signing_input(header, claims);
        let signature = self.sign(&input);
        format!("{input}.{}", encode(signature.to_der().as_bytes()))
    }

    /// Signs with the lower `s`, as the platform does.
    fn sign(&self, input: &str) -> Signature {
        let signature: Signature = self.key.sign(input.as_bytes());
        signature.normalize_s()
    }
}

/// Returns the same token with the lower of the two forms of its signature.
///
/// # Panics
/// Panics if it is not an ES256 token.
#[must_use]
pub fn with_lower_s(token: &str) -> String {
    let (input, signature) = token.rsplit_once('.').expect("a token");
    let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
    let signature = Signature::from_slice(&signature).expect("r and s");
    format!("{input}.{}", encode(signature.normalize_s().to_bytes()))
}

/// Returns header and payload as they are signed (RFC 7515 §5.1).
#[must_use]
pub fn signing_input(header: &Value, claims: &Value) -> String {
    format!(
        "{}.{}",
        encode(header.to_string()),
        encode(claims.to_string())
    )
}

/// Encodes in base64url without padding.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns a copy of an object with some members replaced; `null` removes a member.
///
/// # Panics
/// Panics if either is not an object.
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

/// What a server of key sets responds: a status, where a redirect leads, and a body.
type KeySetAnswer = (StatusCode, String, String);

/// A server of key sets that counts its requests.
#[derive(Debug)]
pub struct KeySetServer {
    /// The key set's address.
    pub url: String,
    answer: Arc<Mutex<KeySetAnswer>>,
    hits: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl KeySetServer {
    /// Starts a server that responds with status 500 until keys are published.
    pub async fn listen() -> Self {
        let failure = (
            StatusCode::INTERNAL_SERVER_ERROR,
            String::new(),
            String::new(),
        );
        let answer = Arc::new(Mutex::new(failure));
        let hits: Arc<AtomicUsize> = Arc::default();
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (answers, asked) = (Arc::clone(&answer), Arc::clone(&hits));
        // Like the platform, it responds only to its own name, which a plain `getaddrinfo` does not
        // resolve.
        let host = format!("auth.platform.localhost:{}", address.port());
        let url = format!("http://{host}/.well-known/jwks.json");
        let app = axum::Router::new().fallback(async move |headers: HeaderMap| {
            if headers
                .get("host")
                .is_none_or(|named| named != host.as_str())
            {
                return (
                    StatusCode::NOT_FOUND,
                    [("content-type", ""), ("location", "")].map(header),
                    String::new(),
                );
            }
            asked.fetch_add(1, Ordering::SeqCst);
            let (status, location, body) = answers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let headers = [
                ("content-type", "application/json"),
                ("location", &*location),
            ];
            (status, headers.map(header), body)
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

    /// Responds with these keys from now on.
    pub fn publish(&self, keys: &[&Signer]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.public_jwk()).collect();
        self.set(StatusCode::OK, "", json!({ "keys": keys }).to_string());
    }

    /// Responds with status 500 from now on.
    pub fn fail(&self) {
        self.set(StatusCode::INTERNAL_SERVER_ERROR, "", String::new());
    }

    /// Redirects to another address from now on.
    pub fn redirect(&self, to: &str) {
        self.set(StatusCode::FOUND, to, String::new());
    }

    /// Responds with these keys, and with so much more that it is longer than any key set.
    pub fn publish_too_much(&self, keys: &[&Signer]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.public_jwk()).collect();
        let more = "x".repeat(256 * 1024);
        let body = json!({ "keys": keys, "more": more }).to_string();
        self.set(StatusCode::OK, "", body);
    }

    /// Responds with this text from now on.
    pub fn publish_text(&self, text: &str) {
        self.set(StatusCode::OK, "", text.to_owned());
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    fn set(&self, status: StatusCode, location: &str, body: String) {
        let answer = (status, location.to_owned(), body);
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }
}

fn header((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

impl Drop for KeySetServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
