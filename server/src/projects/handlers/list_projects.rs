//! `GET /api/projects`: the projects in which the caller has a role.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::views::ProjectView;
use crate::auth::caller::ApiCaller;
use crate::projects::ProjectsState;
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// A list of projects.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Projects)]
pub struct ProjectsView {
    /// Sorted by slug.
    pub projects: Vec<ProjectView>,
    /// Whether the caller is an administrator, who may also use `/api/admin/`.
    pub is_admin: bool,
}

/// Lists the projects in which the caller has a role.
///
/// # Errors
/// The caller's.
#[utoipa::path(
    get,
    path = "/api/projects",
    operation_id = "listProjects",
    responses((status = 200, description = "Your projects.", body = ProjectsView))
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    caller: ApiCaller,
) -> Result<ApiJson<ProjectsView>, ApiError> {
    let mut projects = Vec::new();
    for (project, role) in state
        .platform
        .store
        .list_projects_for(caller.player)
        .await?
    {
        projects.push(ProjectView::of(&state, project, Some(role)).await?);
    }
    Ok(ApiJson(ProjectsView {
        projects,
        is_admin: caller.is_admin,
    }))
}
