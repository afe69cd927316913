//! `PUT /api/projects/<slug>/environments/<environment>/tracing`: sets whether the runtime puts a trace
//! into the requests of the game's pages.

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

/// Whether requests are traced.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Tracing {
    /// True if each call of `platform.fetch` begins a trace, for the game's backend: the request has
    /// `traceparent` (W3C Trace Context), unless the game has set it.
    pub trace_requests: bool,
}

/// Sets whether the runtime puts a trace into requests.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    put,
    path = "/api/projects/{slug}/environments/{environment}/tracing",
    operation_id = "setTracing",
    params(EnvironmentPath),
    request_body = Tracing,
    responses((status = 200, description = "The environment, as it is now.", body = EnvironmentView))
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    editor: EnvironmentEditor,
    ApiJson(wanted): ApiJson<Tracing>,
) -> Result<ApiJson<EnvironmentView>, ApiError> {
    let setting = EnvironmentSetting::Traced(wanted.trace_requests);
    let view = set_and_view(&state, &editor, setting).await?;
    Ok(ApiJson(view))
}
