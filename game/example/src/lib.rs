//! Spark Catcher: three sparks are a round, and the backend keeps the best one of each player.
//!
//! | module | holds |
//! |---|---|
//! | [`round`] | the rules |
//! | [`account`] | who plays, and the best round |
//! | `page` | in the browser, keys and canvas |

pub mod account;
#[cfg(target_arch = "wasm32")]
pub mod page;
pub mod round;
