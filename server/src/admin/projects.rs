//! `GET /api/admin/projects`: every project, with its owner.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use platform_protocol::names::Environment;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::AdminCaller;
use super::names::names_of;
use super::views::PlayerNames;
use crate::admin::AdminState;
use crate::domain::date::rfc3339;
use crate::projects::handlers::views::StandingView;
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// The list of all projects.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OwnedProjects)]
pub struct OwnedProjectsView {
    /// Sorted by slug.
    pub projects: Vec<OwnedProjectView>,
    /// The current names of the owners, by their ids.
    pub names: PlayerNames,
}

/// A project in the list of all projects. `/api/projects/<slug>` has more.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OwnedProject)]
pub struct OwnedProjectView {
    /// Its slug: its name in addresses and audiences.
    pub slug: String,
    /// The player who owns it; null for projects of the platform itself.
    pub owner: Option<String>,
    /// When it was created (RFC 3339).
    pub created_at: String,
    /// Whether its game is online.
    pub standing: StandingView,
    /// The number of players in production now; null if it is not known.
    #[schema(required)]
    pub players: Option<u64>,
}

/// Lists all projects.
///
/// # Errors
/// `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/admin/projects",
    operation_id = "listAllProjects",
    responses((status = 200, description = "The projects.", body = OwnedProjectsView))
)]
pub async fn handle(
    State(state): State<Arc<AdminState>>,
    _admin: AdminCaller,
) -> Result<ApiJson<OwnedProjectsView>, ApiError> {
    let now = state.platform.clock.now();
    let all = state.platform.store.list_projects().await?;
    let names = names_of(&state, all.iter().filter_map(|project| project.owner)).await?;
    let standings = state.platform.store.list_standings().await?;
    let mut standings: HashMap<_, _> = standings.into_iter().collect();
    let audiences: Vec<String> = all
        .iter()
        .map(|project| Environment::Prod.audience(&project.slug))
        .collect();
    let audiences: Vec<&str> = audiences.iter().map(String::as_str).collect();
    let playing = state.games.presence.playing_each(&audiences, now).await;
    let mut projects = Vec::with_capacity(all.len());
    for (project, playing) in all.into_iter().zip(playing) {
        projects.push(OwnedProjectView {
            standing: standings.remove(&project.slug).unwrap_or_default().into(),
            players: playing.map(|playing| playing as u64),
            slug: project.slug,
            owner: project.owner.map(|owner| owner.to_string()),
            created_at: rfc3339(project.created_at),
        });
    }
    Ok(ApiJson(OwnedProjectsView { projects, names }))
}
