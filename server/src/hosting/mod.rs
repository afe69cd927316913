//! Serves a game's own address: its files, its backend, the runtime.
//!
//! | module | contents |
//! |---|---|
//! | [`handlers`] | the endpoints, one per file |
//! | [`file_cache`] | reading, caching and compressing files |
//! | [`headers`] | the headers of files |
//! | [`earlier_deployments`] | which files of earlier deployments are still served |
//! | `preview_files` | which files of a preview a request can be about |
//! | [`backends`] | the reverse proxy to games' backends |
//! | [`request_body`] | monitoring of a body that is forwarded to a backend |
//! | [`runtime`] | `runtime.js` and its source map |

pub mod backends;
pub mod earlier_deployments;
pub mod file_cache;
pub mod handlers;
pub mod headers;
mod preview_files;
pub mod preview_use;
pub mod request_body;
pub mod runtime;
mod state;

pub use self::state::HostingState;
