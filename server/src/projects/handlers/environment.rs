//! `GET /api/projects/<slug>/environments/<environment>`: one environment, and
//! what its backend has to know.

use std::sync::Arc;

use axum::extract::State;

use super::views::EnvironmentView;
use crate::auth::project_caller::{EnvironmentPath, EnvironmentReader};
use crate::projects::ProjectsState;
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// Returns one environment.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/environments/{environment}",
    operation_id = "showEnvironment",
    params(EnvironmentPath),
    responses((status = 200, description = "The environment.", body = EnvironmentView))
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    reader: EnvironmentReader,
) -> Result<ApiJson<EnvironmentView>, ApiError> {
    let (slug, environment) = (&reader.project.slug, reader.environment);
    let view = EnvironmentView::of(&state, slug, environment).await?;
    Ok(ApiJson(view))
}
