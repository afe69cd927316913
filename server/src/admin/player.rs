//! `GET /api/admin/players/<sub>`: everything about one player.

use std::sync::Arc;

use axum::extract::State;

use super::caller::AdminCaller;
use super::names::{mentioned, names_of};
use super::views::{
    DeletionView, DeviceView, EventView, IdentityView, MergedGuestView, PlayerDetailsView,
    SessionView,
};
use super::{NamedPlayer, PlayerPath};
use crate::admin::AdminState;
use crate::domain::audit::AuditQuery;
use crate::domain::identity::LinkedIdentity;
use crate::domain::player::{Player, PlayerState};
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// The maximum number of merged guests in a response.
const MERGED: usize = 100;
/// The maximum number of events in a response; the others are at `/api/admin/events`.
const EVENTS: usize = 50;

/// Returns one player.
///
/// # Errors
/// `not-allowed`, `not-found`.
#[utoipa::path(
    get,
    path = "/api/admin/players/{player}",
    operation_id = "showPlayer",
    params(PlayerPath),
    responses((status = 200, description = "The player.", body = PlayerDetailsView))
)]
pub async fn handle(
    State(state): State<Arc<AdminState>>,
    _admin: AdminCaller,
    NamedPlayer(player): NamedPlayer,
) -> Result<ApiJson<PlayerDetailsView>, ApiError> {
    Ok(ApiJson(details(&state, player).await?))
}

/// Returns everything about a player.
///
/// # Errors
/// Errors of the store.
pub(super) async fn details(
    state: &AdminState,
    player: Player,
) -> Result<PlayerDetailsView, ApiError> {
    let (store, now, sub) = (
        &*state.platform.store,
        state.platform.clock.now(),
        player.id,
    );
    let sessions = store.list_sessions(sub, now).await?;
    let devices = store.list_devices(sub, now).await?;
    let merged = store.list_merged_guests(sub, MERGED).await?;
    let projects = store.list_projects_of(sub).await?;
    let events = store.list_audit_events(AuditQuery::of(sub, EVENTS)).await?;
    let identities = store.list_identities(sub).await?.into_iter();
    let into = match player.state {
        PlayerState::Merged { into } => Some(into),
        _ => None,
    };
    let guests = merged.iter().map(|merged| merged.guest);
    let mentioned = events.iter().flat_map(mentioned).chain(into).chain(guests);
    let names = names_of(state, mentioned).await?;
    Ok(PlayerDetailsView {
        is_admin: state.platform.config.admins.contains(&sub) || store.is_admin(sub).await?,
        player: player.into(),
        deletion: store.find_deletion(sub).await?.map(DeletionView::from),
        sessions: sessions.into_iter().map(SessionView::from).collect(),
        devices: devices.into_iter().map(DeviceView::from).collect(),
        identities: identities.map(|one| identity(state, one)).collect(),
        merged_from: merged.into_iter().map(MergedGuestView::from).collect(),
        projects: projects.into_iter().map(|project| project.slug).collect(),
        events: events.into_iter().map(EventView::from).collect(),
        names,
    })
}

fn identity(state: &AdminState, identity: LinkedIdentity) -> IdentityView {
    let demo = state
        .auth
        .demo_provider
        .as_ref()
        .map(|demo| demo.registration());
    let mut providers = state.platform.config.identity_providers.iter().chain(&demo);
    let issuer = providers
        .find(|provider| provider.id == identity.provider)
        .map(|provider| provider.issuer.to_string());
    IdentityView::new(identity, issuer)
}
