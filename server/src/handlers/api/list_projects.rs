//! `GET /api/projects`: the caller's projects.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::ApiCaller;
use super::views::ProjectView;
use crate::http::api::answer;
use crate::http::refusal::Refusal;
use crate::state::AppState;

/// Some projects.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Projects)]
pub struct ProjectsView {
    /// By slug.
    pub projects: Vec<ProjectView>,
    /// Whether you are an administrator, who may use `/api/admin/` as well.
    pub is_admin: bool,
}

/// Lists the projects that the caller owns.
///
/// # Errors
/// The caller's.
#[utoipa::path(
    get,
    path = "/api/projects",
    operation_id = "listProjects",
    responses((status = 200, description = "Your projects.", body = ProjectsView))
)]
pub async fn handle(State(state): State<AppState>, caller: ApiCaller) -> Result<Response, Refusal> {
    let mut projects = Vec::new();
    for project in state.store.list_projects_of(caller.player).await? {
        projects.push(ProjectView::of(&state, project).await?);
    }
    answer(
        StatusCode::OK,
        &ProjectsView {
            projects,
            is_admin: caller.is_admin,
        },
    )
}
