//! `POST /api/projects/<slug>/environments/<environment>/rollback`: makes an earlier deployment
//! current again.

use std::sync::Arc;

use axum::extract::State;
use platform_protocol::problem::ProblemCode;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::views::EnvironmentView;
use crate::auth::project_caller::{EnvironmentEditor, EnvironmentPath};
use crate::projects::ProjectsState;
use crate::projects::settings_limits::Act;
use crate::store::StoreError;
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// The deployment to roll back to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    /// The id of a stored deployment.
    #[schema(value_type = String, format = "uuid")]
    pub deployment: Uuid,
}

/// Rolls back to an earlier deployment.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`, `too-many-requests`.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/environments/{environment}/rollback",
    operation_id = "rollback",
    params(EnvironmentPath),
    request_body = Rollback,
    responses((status = 200, description = "The environment, as it is now.", body = EnvironmentView))
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    editor: EnvironmentEditor,
    ApiJson(wanted): ApiJson<Rollback>,
) -> Result<ApiJson<EnvironmentView>, ApiError> {
    let (slug, environment) = (&editor.project.slug, editor.environment);
    state
        .count(
            Act::RollBack,
            &editor.caller,
            &editor.project,
            editor.access,
        )
        .await?;
    let set = state.platform.store.set_current_deployment(
        slug,
        environment,
        wanted.deployment,
        editor.by(),
        state.platform.clock.now(),
    );
    let changed = match set.await {
        Err(StoreError::Missing { .. }) => {
            return Err(ApiError::new(ProblemCode::NotFound)
                .with_detail("This deployment is not stored for this environment."));
        }
        set => set?,
    };
    if changed {
        state.hosting.refresh(slug).await?;
    }
    let view = EnvironmentView::of(&state, slug, environment).await?;
    Ok(ApiJson(view))
}
