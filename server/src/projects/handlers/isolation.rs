//! `PUT /api/projects/<slug>/environments/<environment>/isolation`: sets whether the game's pages
//! are cross-origin isolated.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use super::set_environment::set_and_view;
use super::views::EnvironmentView;
use crate::auth::project_caller::{EnvironmentEditor, EnvironmentPath};
use crate::domain::environment_setting::EnvironmentSetting;
use crate::projects::ProjectsState;
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// Whether pages are isolated.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Isolation {
    /// True for engines with threads: browsers then give the page `SharedArrayBuffer`, and it can
    /// only show content of other origins that allow it.
    pub cross_origin_isolated: bool,
}

/// Sets whether pages are isolated.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    put,
    path = "/api/projects/{slug}/environments/{environment}/isolation",
    operation_id = "setIsolation",
    params(EnvironmentPath),
    request_body = Isolation,
    responses((status = 200, description = "The environment, as it is now.", body = EnvironmentView))
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    editor: EnvironmentEditor,
    ApiJson(wanted): ApiJson<Isolation>,
) -> Result<ApiJson<EnvironmentView>, ApiError> {
    let setting = EnvironmentSetting::Isolated(wanted.cross_origin_isolated);
    let view = set_and_view(&state, &editor, setting).await?;
    Ok(ApiJson(view))
}
