//! `PUT /api/projects/<slug>/environments/<environment>/tracing`: sets whether the runtime puts a trace
//! into the requests of the game's pages.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use super::views::EnvironmentView;
use crate::auth::project_caller::{EnvironmentEditor, EnvironmentPath};
use crate::projects::ProjectsState;
use crate::projects::settings_limits::Act;
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
    let (slug, environment) = (&editor.project.slug, editor.environment);
    let (traced, by) = (wanted.trace_requests, editor.by());
    state
        .count(Act::Setting, &editor.caller, &editor.project, editor.access)
        .await?;
    let changed = state
        .platform
        .store
        .set_traced(slug, environment, traced, by, state.platform.clock.now())
        .await?;
    if changed {
        state.hosting.refresh(slug).await?;
    }
    let view = EnvironmentView::of(&state, slug, environment).await?;
    Ok(ApiJson(view))
}
