//! Projects: making them, deploying to them, their settings and their standing.

mod state;

pub use self::state::ProjectsState;
