//! Administration, by the project API.

mod state;

pub use self::state::AdminState;
