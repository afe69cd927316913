//! Players: their sessions and tokens, signing in and out, and their profiles.
//!
//! | module | contents |
//! |---|---|
//! | [`handlers`] | the endpoints, one per file |
//! | [`caller`] | the caller of the project API, and their rights |
//! | [`project_caller`], [`scoped_caller`], [`deploy_token_caller`] | callers of a project's endpoints, also with a deploy token |
//! | [`keys`], [`game_tokens`] | the signing keys; verification of tokens |
//! | [`demo_provider`] | a provider for a platform on a developer's machine |
//! | [`hand_off`], [`game_visits`] | games on sites of their own: how they get their players, and their own sessions |
//! | [`redirect`] | return addresses of the auth service's pages |
//! | [`suspensions`], [`ended_sessions`] | suspensions and ended sessions, while their tokens live |
//! | [`sessions`] | sweeping sessions |
//! | [`exports`], [`deletions`], [`retention`] | the file with everything about a player; removing players who asked for it; old events and addresses |
//! | [`panes`] | sessions of the Build page's panes, and the conditions in them |
//! | [`guest_limits`], [`devices`], [`unknown_tokens`] | rate limits on creating guests, on devices, and on deploy tokens that are not valid |
//! | [`refusal_log`] | recording refusals, within limits |

pub mod caller;
pub mod deletions;
pub mod demo_provider;
pub mod deploy_token_caller;
pub mod devices;
pub mod ended_sessions;
pub mod exports;
pub mod game_tokens;
pub mod game_visits;
pub mod guest_limits;
pub mod hand_off;
pub mod handlers;
pub mod keys;
pub mod panes;
pub mod project_caller;
pub mod redirect;
pub mod refusal_log;
pub mod retention;
pub mod scoped_caller;
pub mod sessions;
mod state;
pub mod suspensions;
pub mod unknown_tokens;

pub use self::state::{AuthLimits, AuthState};
