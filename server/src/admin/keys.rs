//! `/api/admin/keys`: the signing keys and their states.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use platform_protocol::problem::ProblemCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::caller::AdminCaller;
use crate::admin::AdminState;
use crate::auth::keys::{KeyError, KeyInfo};
use crate::domain::date::rfc3339;
use crate::domain::key::KeyPhase;
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;
use crate::web::limiter::too_many_requests;

/// The signing keys.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Keys)]
pub struct KeysView {
    /// Oldest first.
    pub keys: Vec<KeyView>,
}

/// A signing key, without its secret parts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Key)]
pub struct KeyView {
    /// Its id, as in the header of tokens and in the key set.
    pub kid: String,
    /// `published` (signs later), `signing`, `retiring` (verifies older tokens)
    /// or `gone`.
    pub state: &'static str,
    /// Whether it is encrypted in the store.
    pub sealed: bool,
    /// When it was created (RFC 3339).
    pub created_at: String,
    /// When it starts signing (RFC 3339).
    pub signs_from: String,
    /// When it stops signing (RFC 3339); null if no other key follows.
    pub stops_at: Option<String>,
}

/// A path that names a key.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct KeyPath {
    /// The key.
    kid: String,
}

/// Lists the keys.
///
/// # Errors
/// `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/admin/keys",
    operation_id = "listKeys",
    responses((status = 200, description = "The keys.", body = KeysView))
)]
pub async fn list(
    State(state): State<Arc<AdminState>>,
    _admin: AdminCaller,
) -> Result<ApiJson<KeysView>, ApiError> {
    Ok(ApiJson(view(&state)))
}

/// Publishes a new key, which starts signing 21 minutes later. While a key waits to sign, no other
/// key is added: that would only make the key set longer.
///
/// # Errors
/// `not-allowed`, `too-many-requests`.
#[utoipa::path(
    post,
    path = "/api/admin/keys/rotate",
    operation_id = "rotateKeys",
    responses((status = 200, description = "The keys, with the new one.", body = KeysView))
)]
pub async fn rotate(
    State(state): State<Arc<AdminState>>,
    admin: AdminCaller,
) -> Result<ApiJson<KeysView>, ApiError> {
    state.auth.keys.refresh().await.map_err(refused)?;
    let keys = state.auth.keys.list();
    let mut waiting = keys.iter().filter(|key| key.phase == KeyPhase::Published);
    if let Some(key) = waiting.next() {
        let wait = key.signs_from.saturating_sub(state.platform.clock.now());
        let wait = Duration::from_millis(u64::try_from(wait).unwrap_or(0));
        return Err(too_many_requests(wait)
            .with_detail("A new key is already published and does not sign yet."));
    }
    state.auth.keys.rotate(admin.by()).await.map_err(refused)?;
    Ok(ApiJson(view(&state)))
}

/// Revokes a key that others may know: it is removed from the key set at once, and if it was the
/// signing key, a new key signs. Tokens that it signed are rejected here from now on, and by games'
/// backends within ten minutes.
///
/// # Errors
/// `not-allowed`, `not-found`.
#[utoipa::path(
    post,
    path = "/api/admin/keys/{kid}/revoke",
    operation_id = "revokeKey",
    params(KeyPath),
    responses((status = 200, description = "The remaining keys, with the new one.", body = KeysView))
)]
pub async fn revoke(
    State(state): State<Arc<AdminState>>,
    admin: AdminCaller,
    path: Result<Path<KeyPath>, PathRejection>,
) -> Result<ApiJson<KeysView>, ApiError> {
    let Path(path) = path.map_err(|_| unknown())?;
    let revoked = state.auth.keys.revoke(&path.kid, admin.by()).await;
    revoked.map_err(refused)?;
    state.platform.nodes.settle().await;
    Ok(ApiJson(view(&state)))
}

fn unknown() -> ApiError {
    ApiError::new(ProblemCode::NotFound).with_detail("This key does not exist.")
}

fn refused(error: KeyError) -> ApiError {
    match error {
        KeyError::Unknown { .. } => unknown(),
        KeyError::Store(error) => error.into(),
        KeyError::Contended | KeyError::Clock => ApiError::unavailable(&error),
        error => ApiError::internal(&error),
    }
}

fn view(state: &AdminState) -> KeysView {
    KeysView {
        keys: state
            .auth
            .keys
            .list()
            .into_iter()
            .map(KeyView::from)
            .collect(),
    }
}

impl From<KeyInfo> for KeyView {
    fn from(key: KeyInfo) -> Self {
        Self {
            kid: key.kid,
            state: match key.phase {
                KeyPhase::Published => "published",
                KeyPhase::Signing => "signing",
                KeyPhase::Retiring => "retiring",
                KeyPhase::Gone => "gone",
            },
            sealed: key.sealed,
            created_at: rfc3339(key.created_at),
            signs_from: rfc3339(key.signs_from),
            stops_at: key.stops_at.map(rfc3339),
        }
    }
}
