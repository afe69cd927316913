//! Signing in a device without a browser (RFC 8628): the command line.
//!
//! | module | endpoint for |
//! |---|---|
//! | [`authorization`] | the device, which gets a code for the user |
//! | [`page`] | the user, who types the code and decides |
//! | [`token`] | the device, which polls for approval and refreshes its tokens |
//! | [`revoke`] | the device, which signs out |
//!
//! `step` renders the states of [`page`].

pub mod authorization;
pub mod page;
pub mod revoke;
mod step;
pub mod token;

use axum::body::Body;
use axum::http::HeaderMap;

use crate::auth::AuthState;
use crate::domain::device::CLIENT_ID;
use crate::web::client_address::Network;
use crate::web::oauth::{OauthError, Parameters};
use crate::web::request_context::Context;

/// The path where a device starts to sign in (RFC 8628 §3.1).
pub const AUTHORIZATION: &str = "/device/authorization";
/// The path where it gets its tokens (RFC 8628 §3.4, RFC 6749 §6).
pub const TOKEN: &str = "/device/token";
/// The path where it signs out (RFC 7009).
pub const REVOKE: &str = "/device/revoke";

/// The grant type of a device code (RFC 8628 §3.4).
pub const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The grant type of a refresh token (RFC 6749 §6).
pub const REFRESH_GRANT: &str = "refresh_token";

/// Parses the parameters of a request of the command line, and counts it against its network's
/// limit.
///
/// # Errors
/// `invalid_request`, `invalid_client`, `slow_down` with status 429.
async fn read_parameters(
    state: &AuthState,
    context: &Context,
    headers: &HeaderMap,
    body: Body,
) -> Result<Parameters, OauthError> {
    let parameters = Parameters::read(headers, body, CLIENT_ID).await?;
    let network = Network::of(context.client);
    let counted = state.limits.devices.ask(&network).await;
    counted.map_err(OauthError::too_many_requests)?;
    Ok(parameters)
}
