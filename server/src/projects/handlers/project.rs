//! `GET /api/projects/<slug>`: one project.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::views::ProjectView;
use crate::auth::caller::ApiCaller;
use crate::http::api::{PathParams, answer};
use crate::http::api_error::ApiError;
use crate::projects::ProjectsState;

/// Answers one project.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}",
    operation_id = "showProject",
    params(("slug" = String, Path, description = "The project.", example = "my-game")),
    responses((status = 200, description = "The project.", body = ProjectView))
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    caller: ApiCaller,
    names: PathParams,
) -> Result<Response, ApiError> {
    let project = caller.project(&state.auth, names.slug()).await?;
    answer(StatusCode::OK, &ProjectView::of(&state, project).await?)
}
