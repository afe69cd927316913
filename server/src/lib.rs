//! The platform: auth service, hosting, runtime, console.

pub mod clock;
pub mod entropy;
