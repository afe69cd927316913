//! A web server whose only handler signs one game token with p256, or with `ring` if that is its
//! argument: the maximum that this machine can do. `cargo xtask bench` compares `POST /token` with
//! both.

#![expect(
    clippy::print_stdout,
    reason = "the ready line, as the server prints it"
)]

use std::error::Error;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{Signature, SigningKey};
use platform_protocol::claims::{GameTokenClaims, PrincipalKind};
use platform_protocol::limits::TOKEN_SECONDS;
use platform_server::clock::{Clock, SystemClock};
use platform_server::entropy::{Entropy, SystemEntropy};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use tokio::net::TcpListener;

/// A key of one of the two crates.
enum Key {
    P256(SigningKey),
    Ring(EcdsaKeyPair, SystemRandom),
}

impl Key {
    fn generate(with_ring: bool) -> Result<Self, Box<dyn Error>> {
        let entropy: &dyn Entropy = &SystemEntropy;
        let key = SigningKey::from_slice(&entropy.bytes::<32>())?;
        if !with_ring {
            return Ok(Self::P256(key));
        }
        let (public, random) = (
            key.verifying_key().to_sec1_point(false),
            SystemRandom::new(),
        );
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_private_key_and_public_key(
            algorithm,
            &key.to_bytes(),
            public.as_bytes(),
            &random,
        );
        Ok(Self::Ring(pair.map_err(|error| error.to_string())?, random))
    }

    fn sign(&self, message: &[u8]) -> Result<[u8; 64], StatusCode> {
        match self {
            Self::P256(key) => {
                let signature: Signature = key.sign(message);
                Ok(signature.to_bytes().into())
            }
            Self::Ring(key, random) => {
                let signature = key.sign(random, message).ok();
                let bytes = signature.and_then(|signature| signature.as_ref().try_into().ok());
                bytes.ok_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }
}

/// The parts that every request needs, created once.
struct Bare {
    key: Key,
    header: String,
    clock: SystemClock,
    entropy: SystemEntropy,
}

/// Signs one token with new claims.
async fn token(State(bare): State<Arc<Bare>>) -> Result<Json<serde_json::Value>, StatusCode> {
    let now = bare.clock.now();
    let entropy: &dyn Entropy = &bare.entropy;
    let iat = now.unsigned_abs() / 1_000;
    let claims = GameTokenClaims {
        sub: entropy.uuid_v7(now).to_string(),
        username: "swift-otter-4821".into(),
        aud: "game:demo".into(),
        iss: "http://auth.platform.localhost:8787".into(),
        is_anon: true,
        principal_kind: PrincipalKind::Human,
        exp: iat + TOKEN_SECONDS,
        iat,
        jti: entropy.uuid_v4().to_string(),
    };
    let claims = serde_json::to_vec(&claims).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    let mut token = format!("{}.{}", bare.header, URL_SAFE_NO_PAD.encode(claims));
    let signature = bare.key.sign(token.as_bytes())?;
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    Ok(Json(serde_json::json!({
        "access_token": token, "token_type": "Bearer", "expires_in": TOKEN_SECONDS,
    })))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let with_ring = std::env::args()
        .nth(1)
        .is_some_and(|engine| engine == "ring");
    let bare = Bare {
        key: Key::generate(with_ring)?,
        header: URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","typ":"JWT","kid":"bare"}"#),
        clock: SystemClock,
        entropy: SystemEntropy,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!("bare_sign ready on http://{address} (listening on {address})");
    let app = Router::new()
        .route("/token", post(token))
        .with_state(Arc::new(bare));
    let listener = listener.tap_io(|stream| {
        // Otherwise small responses may be delayed, and the comparison would be unfair.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, app).await?;
    Ok(())
}
