//! Players: their sessions and tokens, signing in and out, and their profiles.

mod state;

pub use self::state::{AuthLimits, AuthState};
