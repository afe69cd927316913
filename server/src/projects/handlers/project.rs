//! `GET /api/projects/<slug>`: one project.

use std::sync::Arc;

use axum::extract::State;

use super::views::ProjectView;
use crate::auth::project_caller::{ProjectPath, ProjectReader};
use crate::projects::ProjectsState;
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// Returns one project.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}",
    operation_id = "showProject",
    params(ProjectPath),
    responses((status = 200, description = "The project.", body = ProjectView))
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    reader: ProjectReader,
) -> Result<ApiJson<ProjectView>, ApiError> {
    let view = ProjectView::of(&state, reader.project, reader.access.role()).await?;
    Ok(ApiJson(view))
}
