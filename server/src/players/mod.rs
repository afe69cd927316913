//! Who plays: heartbeats, what is counted of them, the ranking.
//!
//! | module | holds |
//! |---|---|
//! | [`handlers`] | the endpoints, one a file |
//! | [`counting`] | what is counted, kept and ranked |
//! | [`charts`] | players over time as pictures |

pub mod charts;
pub mod counting;
pub mod handlers;
mod state;

pub use self::state::PlayersState;
