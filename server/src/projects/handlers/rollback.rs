//! `POST /api/projects/<slug>/environments/<environment>/rollback`: back to an
//! earlier deployment.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use platform_protocol::problem::ProblemCode;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::views::EnvironmentView;
use crate::auth::caller::ApiCaller;
use crate::http::api::{EnvironmentName, JsonBody, PathParams, answer};
use crate::http::api_error::ApiError;
use crate::projects::ProjectsState;
use crate::store::StoreError;

/// Where to go back to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    /// The id of a deployment that is kept.
    #[schema(value_type = String, format = "uuid")]
    pub deployment: Uuid,
}

/// Shows an earlier deployment again.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`, `too-many-requests`.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/environments/{environment}/rollback",
    operation_id = "rollback",
    params(
        ("slug" = String, Path, description = "The project.", example = "my-game"),
        ("environment" = EnvironmentName, Path, description = "Which of its environments."),
    ),
    request_body = Rollback,
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
    let wanted: Rollback = body.read().await?;
    state.count_rollback(&caller, &project)?;
    let set = state.platform.store.set_current_deployment(
        &project.slug,
        environment,
        wanted.deployment,
        caller.by(&project),
        state.platform.clock.now(),
    );
    let changed = match set.await {
        Err(StoreError::Missing { .. }) => {
            return Err(ApiError::new(ProblemCode::NotFound)
                .with_detail("This environment keeps no such deployment."));
        }
        set => set?,
    };
    if changed {
        state.hosting.refresh(&project.slug).await?;
    }
    let view = EnvironmentView::of(&state, &project.slug, environment).await?;
    answer(StatusCode::OK, &view)
}
