//! `PUT /api/projects/<slug>/environments/<environment>/isolation`: whether the
//! game's pages are isolated from those of other origins.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

use super::views::EnvironmentView;
use crate::auth::caller::ApiCaller;
use crate::http::api::{EnvironmentName, JsonBody, PathParams, answer};
use crate::http::api_error::ApiError;
use crate::projects::ProjectsState;

/// Whether pages are isolated.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Isolation {
    /// True for engines with threads: browsers then give the page
    /// `SharedArrayBuffer`, and it can show nothing of other origins that does
    /// not allow it.
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
    params(
        ("slug" = String, Path, description = "The project.", example = "my-game"),
        ("environment" = EnvironmentName, Path, description = "Which of its environments."),
    ),
    request_body = Isolation,
    responses((status = 200, description = "The environment, as it is now.", body = EnvironmentView))
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    caller: ApiCaller,
    names: PathParams,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let project = caller.project_to_change(&state.auth, names.slug()).await?;
    let environment = names.environment()?;
    let wanted: Isolation = body.read().await?;
    let (isolated, by) = (wanted.cross_origin_isolated, caller.by(&project));
    state.count_setting(&caller, &project)?;
    let changed = state
        .platform
        .store
        .set_isolated(
            &project.slug,
            environment,
            isolated,
            by,
            state.platform.clock.now(),
        )
        .await?;
    if changed {
        state.hosting.refresh(&project.slug).await?;
    }
    let view = EnvironmentView::of(&state, &project.slug, environment).await?;
    answer(StatusCode::OK, &view)
}
