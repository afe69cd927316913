//! `POST {auth_url}/device/authorization`: a device starts to sign in (RFC 8628 §3.1).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;

use crate::auth::AuthState;
use crate::domain::device::{
    CLIENT_ID, CODE_MILLIS, DeviceSecret, INTERVAL_SECONDS, NewDeviceAuthorization, UserCode,
};
use crate::web::client_address::Network;
use crate::web::oauth::{self, OauthError, Parameters};
use crate::web::request_context::Context;
use crate::web::return_address::{DEVICE_PAGE, USER_CODE};

/// The number of codes to try: the first one is taken once in a million years.
const ATTEMPTS: usize = 4;

#[derive(Serialize)]
struct Answer<'a> {
    device_code: &'a str,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: String,
    expires_in: i64,
    interval: i64,
}

/// Returns the two codes.
///
/// # Errors
/// `invalid_request`, `invalid_client`, `slow_down` with status 429; errors of the store.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    context: Context,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OauthError> {
    Parameters::read(&headers, body, CLIENT_ID).await?;
    let network = Network::of(context.client);
    state
        .limits
        .devices
        .begin(&network)
        .await
        .map_err(OauthError::too_many_requests)?;
    let device_code = DeviceSecret::device_code(&*state.platform.entropy);
    let user_codes = (0..ATTEMPTS).map(|_| UserCode::generate(&*state.platform.entropy));
    let authorization = NewDeviceAuthorization {
        device_code: device_code.hash(),
        user_codes: user_codes.collect(),
        client: CLIENT_ID.to_owned(),
        network: network.to_string(),
        now: state.platform.clock.now(),
    };
    let user_code = state
        .platform
        .store
        .add_device_authorization(authorization)
        .await?;
    let verification_uri = format!("{}{DEVICE_PAGE}", state.platform.auth_url);
    Ok(oauth::answer(&Answer {
        device_code: device_code.expose(),
        verification_uri_complete: format!("{verification_uri}?{USER_CODE}={user_code}"),
        verification_uri,
        user_code: user_code.to_string(),
        expires_in: CODE_MILLIS / 1_000,
        interval: INTERVAL_SECONDS,
    })?)
}
