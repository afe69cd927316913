//! What answers on a game's own address: its files, its backend, the runtime.
//!
//! | module | holds |
//! |---|---|
//! | [`handlers`] | the endpoints, one a file |
//! | [`file_cache`] | what is read of a file, kept in memory and compressed |
//! | [`headers`] | what is said of a file |
//! | [`range`] | which part of it was asked for |
//! | [`earlier_deployments`] | which files of deployments before are still answered |
//! | [`backends`] | the way to a game's backend |
//! | [`request_body`] | a body on its way to a backend, watched |
//! | [`runtime`] | `runtime.js` and its source map |

pub mod backends;
pub mod earlier_deployments;
pub mod file_cache;
pub mod handlers;
pub mod headers;
pub mod range;
pub mod request_body;
pub mod runtime;
mod state;

pub use self::state::HostingState;
