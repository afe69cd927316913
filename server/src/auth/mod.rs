//! Players: their sessions and tokens, signing in and out, and their profiles.
//!
//! | module | contents |
//! |---|---|
//! | [`handlers`] | the endpoints, one per file |
//! | [`caller`] | the caller of the project API, and their rights |
//! | [`keys`], [`tokens`] | the signing keys; verification of tokens |
//! | [`oidc`] | signing in with OpenID providers |
//! | [`demo_provider`] | a provider for a platform on a developer's machine |
//! | [`redirect`] | return addresses of the auth service's pages |
//! | [`suspensions`], [`endings`] | suspensions and ended sessions, while their tokens live |
//! | [`sessions`] | sweeping sessions |
//! | [`guests`], [`devices`] | rate limits on creating guests, and on devices |
//! | [`refusals`] | recording refusals, within limits |

pub mod caller;
pub mod demo_provider;
pub mod devices;
pub mod endings;
pub mod guests;
pub mod handlers;
pub mod keys;
pub mod oidc;
pub mod project_caller;
pub mod redirect;
pub mod refusals;
pub mod sessions;
mod state;
pub mod suspensions;
pub mod tokens;

pub use self::state::{AuthLimits, AuthState};
