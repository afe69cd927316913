//! `POST {auth_url}/device/token`: issues tokens to a device, for a code that a person has approved
//! (RFC 8628 §3.4) or for its refresh token (RFC 6749 §6).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use platform_protocol::claims::SCOPE_PROJECTS;
use platform_protocol::problem::ProblemCode;
use platform_protocol::token::BEARER;
use serde::Serialize;
use uuid::Uuid;

use super::{DEVICE_GRANT, REFRESH_GRANT, read_parameters};
use crate::auth::AuthState;
use crate::auth::handlers::token::mint_console;
use crate::domain::console_token::Hold;
use crate::domain::device::{DeviceSecret, FreshDevice, Redeemed, Refreshed, TokenHash};
use crate::domain::player::Player;
use crate::web::oauth::{self, Code, OauthError};
use crate::web::request_context::Context;

/// The sentence for a device that has to sign in again.
const ENDED: &str = "This sign-in has ended. Sign in again.";

#[derive(Serialize)]
struct Answer<'a> {
    access_token: String,
    token_type: &'static str,
    expires_in: u64,
    /// What the device may do (RFC 6749 §5.1): never administration.
    scope: &'static str,
    refresh_token: &'a str,
}

/// Returns the tokens.
///
/// # Errors
/// Those of RFC 6749 §5.2 and RFC 8628 §3.5; errors of the store. A suspended account is
/// `access_denied`.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    context: Context,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OauthError> {
    let parameters = read_parameters(&state, &context, &headers, body).await?;
    let now = state.platform.clock.now();
    let refresh_token = DeviceSecret::refresh_token(&*state.platform.entropy);
    let fresh = FreshDevice {
        device: state.platform.entropy.uuid_v4(),
        refresh_token: refresh_token.hash(),
        source: Some(context.source()),
        now,
    };
    let new_device = fresh.device;
    let (player, device) = match parameters.required("grant_type")? {
        DEVICE_GRANT => {
            let code = TokenHash::of(parameters.required("device_code")?);
            let player = redeemed(
                state
                    .platform
                    .store
                    .redeem_device_code(&code, fresh)
                    .await?,
            )?;
            (player, new_device)
        }
        REFRESH_GRANT => {
            let token = TokenHash::of(parameters.required(REFRESH_GRANT)?);
            refreshed(state.platform.store.refresh_device(&token, fresh).await?)?
        }
        _ => {
            return Err(OauthError::new(
                Code::UnsupportedGrantType,
                "This grant_type is not supported.",
            ));
        }
    };
    let (access_token, expires_in) = mint_console(&state, &player, Hold::Device(device), now)?;
    Ok(oauth::answer(&Answer {
        access_token,
        token_type: BEARER,
        expires_in,
        scope: SCOPE_PROJECTS,
        refresh_token: refresh_token.expose(),
    })?)
}

fn redeemed(redeemed: Redeemed) -> Result<Player, OauthError> {
    let (code, sentence) = match redeemed {
        Redeemed::Given(player) => return Ok(player),
        Redeemed::Suspended { reason } => return Err(suspended(reason)),
        Redeemed::Pending => (
            Code::AuthorizationPending,
            "The code has not been confirmed yet.",
        ),
        Redeemed::SlowDown => (
            Code::SlowDown,
            "The code has not been confirmed yet. Ask less often.",
        ),
        Redeemed::Denied => (Code::AccessDenied, "The sign-in was denied."),
        Redeemed::Expired => (Code::ExpiredToken, "The code has expired. Sign in again."),
        Redeemed::Unknown => (
            Code::InvalidGrant,
            "This device code does not exist, or was already used. Sign in again.",
        ),
    };
    Err(OauthError::new(code, sentence))
}

fn refreshed(refreshed: Refreshed) -> Result<(Player, Uuid), OauthError> {
    match refreshed {
        Refreshed::Given { player, device } => Ok((player, device)),
        Refreshed::Suspended { reason } => Err(suspended(reason)),
        // The holder of a copy need not know that it was detected.
        Refreshed::Unknown | Refreshed::Reused => Err(OauthError::new(Code::InvalidGrant, ENDED)),
    }
}

/// Not `invalid_grant`, since the token is valid again when the suspension is lifted.
fn suspended(reason: Option<String>) -> OauthError {
    let sentence =
        reason.unwrap_or_else(|| ProblemCode::AccountSuspended.default_detail().to_owned());
    OauthError::new(Code::AccessDenied, sentence)
}
