//! The platform: auth service, hosting, runtime, console.

pub mod clock;
pub mod entropy;
pub mod deploy;
pub mod domain;
pub mod files;
pub mod keys;
pub mod live;
pub mod store;
