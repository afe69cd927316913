//! Signing in a device without a browser (RFC 8628): the command line.
//!
//! | module | answers |
//! |---|---|
//! | [`authorization`] | the device, with a code for its person |
//! | [`page`] | the person, who types the code and decides |
//! | [`token`] | the device: whether it was let in, and its next tokens |
//! | [`revoke`] | the device that signs out |
//!
//! `step` is what [`page`] shows.

pub mod authorization;
pub mod page;
pub mod revoke;
mod step;
pub mod token;

/// Where a device begins (RFC 8628 §3.1).
pub const AUTHORIZATION: &str = "/device/authorization";
/// Where it gets its tokens (RFC 8628 §3.4, RFC 6749 §6).
pub const TOKEN: &str = "/device/token";
/// Where it signs out (RFC 7009).
pub const REVOKE: &str = "/device/revoke";

/// The grant of a device code (RFC 8628 §3.4).
pub const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The grant of a refresh token (RFC 6749 §6).
pub const REFRESH_GRANT: &str = "refresh_token";
