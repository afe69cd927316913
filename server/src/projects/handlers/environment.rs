//! `GET /api/projects/<slug>/environments/<environment>`: one environment, and
//! what its backend has to know.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::views::EnvironmentView;
use crate::auth::caller::ApiCaller;
use crate::http::api::{EnvironmentName, PathParams, answer};
use crate::http::api_error::ApiError;
use crate::projects::ProjectsState;

/// Answers one environment.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/environments/{environment}",
    operation_id = "showEnvironment",
    params(
        ("slug" = String, Path, description = "The project.", example = "my-game"),
        ("environment" = EnvironmentName, Path, description = "Which of its environments."),
    ),
    responses((status = 200, description = "The environment.", body = EnvironmentView))
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    caller: ApiCaller,
    names: PathParams,
) -> Result<Response, ApiError> {
    let project = caller.project(&state.auth, names.slug()).await?;
    let environment = names.environment()?;
    let view = EnvironmentView::of(&state, &project.slug, environment).await?;
    answer(StatusCode::OK, &view)
}
