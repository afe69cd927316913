//! Players: their sessions and tokens, signing in and out, and their profiles.
//!
//! | module | holds |
//! |---|---|
//! | [`handlers`] | the endpoints, one a file |
//! | [`caller`] | who calls the project API, and what they may do |
//! | [`keys`], [`tokens`] | the signing keys; verifying what was signed with them |
//! | [`oidc`] | signing in with OpenID providers |
//! | [`demo_provider`] | a provider for a platform on one's own machine |
//! | [`redirect`] | where a player goes back to |
//! | [`suspensions`], [`endings`] | who is suspended, and whose sessions ended, while their tokens live |
//! | [`sessions`] | sweeping sessions |
//! | [`guests`], [`devices`] | how fast guests are made, and how often devices may ask |
//! | [`refusals`] | keeping what was refused, within bounds |

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
