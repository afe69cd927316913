//! Verifies game tokens in a game's backend.
//!
//! A backend receives three environment variables, `AUTH_ISSUER`,
//! `AUTH_AUDIENCE` and `AUTH_JWKS_URL`, and makes one [`Verifier`] of them:
//!
//! ```no_run
//! use std::sync::Arc;
//! use axum::{Router, routing::get};
//! use platform_verifier::{Player, Verifier, VerifierConfig};
//!
//! async fn greet(Player(player): Player) -> String {
//!     // Key a player's data on `sub`; `username` is only for display.
//!     format!("{} is {}", player.sub, player.username)
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let verifier = Arc::new(Verifier::new(VerifierConfig::from_env()?)?);
//! // A state of more than the verifier implements `FromRef` for it.
//! let app: Router = Router::new().route("/api/greet", get(greet)).with_state(verifier);
//! # let _ = app;
//! # Ok(())
//! # }
//! ```
//!
//! Without axum, call [`Verifier::verify`] with the token. To accept only requests that came
//! through the platform, also call [`Verifier::verify_assertion`] with the header
//! `Platform-Assertion`.
//!
//! | module | holds |
//! |---|---|
//! | [`config`] | the three settings and their errors |
//! | [`clock`] | the time, which tests replace |
//! | [`jws`] | the strict parser of a compact JWS and its header |
//! | [`claims`] | the rules for a token's claims |
//! | [`check`](mod@check) | the whole check of a token against given keys |
//! | [`key_set`] | the public keys in a key set document |
//! | `source` | fetching the key set, and when that is allowed |
//! | [`error`] | why a token was refused |
//! | [`verifier`] | the verifier itself |
//! | `assertion` | the platform's verified assertions |
//! | `player` | the axum extractors for players (feature `axum`) |
//! | `platform` | the axum extractor for requests that came through the platform |

mod assertion;
pub mod check;
pub mod claims;
pub mod clock;
pub mod config;
pub mod error;
mod fetch;
pub mod jws;
pub mod key_set;
#[cfg(feature = "axum")]
mod platform;
#[cfg(feature = "axum")]
mod player;
mod source;
pub mod verifier;

pub use check::check;
pub use claims::Expected;
pub use clock::{Clock, SystemClock};
pub use config::{ConfigError, VerifierConfig};
pub use error::{KeySetError, VerifyError};
pub use key_set::KeySet;
#[cfg(feature = "axum")]
pub use platform::{NotThroughPlatform, ThroughPlatform};
pub use platform_protocol::claims::{GameTokenClaims, PrincipalKind};
#[cfg(feature = "axum")]
pub use player::{BEARER_SUBPROTOCOL, Credentials, Player, PlayerRejection, SocketPlayer, bearer};
pub use verifier::Verifier;
