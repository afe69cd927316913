//! What answers on a game's own address: its files, its backend, the runtime.
//!
//! | module | holds |
//! |---|---|
//! | [`handlers`] | the endpoints, one a file |
//! | [`contents`] | what is read of a file, kept in memory and compressed |
//! | [`headers`] | what is said of a file |
//! | [`range`] | which part of it was asked for |
//! | [`earlier`] | which files of deployments before are still answered |
//! | [`backends`] | the way to a game's backend |
//! | [`upload`] | a body on its way to a backend, watched |
//! | [`runtime`] | `runtime.js` and its source map |

pub mod backends;
pub mod contents;
pub mod earlier;
pub mod handlers;
pub mod headers;
pub mod range;
pub mod runtime;
mod state;
pub mod upload;

pub use self::state::HostingState;
