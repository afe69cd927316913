//! `PUT /api/admin/projects/<slug>/owner`: transfers a project to another player.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use platform_protocol::problem::ProblemCode;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::caller::AdminCaller;
use crate::admin::AdminState;
use crate::auth::project_caller::ProjectPath;
use crate::domain::administration::Transferred;
use crate::projects::handlers::views::ProjectView;
use crate::web::api::{ApiJson, invalid};
use crate::web::api_error::ApiError;

/// The new owner.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOwner {
    /// The id of a player with an account.
    #[schema(value_type = String, format = "uuid")]
    pub owner: Uuid,
}

/// Transfers a project to another player.
///
/// # Errors
/// `not-allowed`, `not-found`, `invalid-request`.
#[utoipa::path(
    put,
    path = "/api/admin/projects/{slug}/owner",
    operation_id = "transferProject",
    params(ProjectPath),
    request_body = NewOwner,
    responses((status = 200, description = "The project, as it is now.", body = ProjectView))
)]
pub async fn handle(
    State(state): State<Arc<AdminState>>,
    admin: AdminCaller,
    path: Result<Path<ProjectPath>, PathRejection>,
    ApiJson(new): ApiJson<NewOwner>,
) -> Result<ApiJson<ProjectView>, ApiError> {
    let nothing =
        || ApiError::new(ProblemCode::NotFound).with_detail("This project does not exist.");
    let Path(ProjectPath { slug }) = path.map_err(|_| nothing())?;
    let now = state.platform.clock.now();
    match state
        .platform
        .store
        .transfer_project(&slug, new.owner, admin.by(), now)
        .await?
    {
        Transferred::Done | Transferred::Already => {}
        Transferred::NoProject => return Err(nothing()),
        Transferred::NoPlayer => return Err(invalid("No player has this id.")),
        Transferred::NotAnAccount => {
            return Err(invalid(
                "A guest cannot own a project: the player must sign in first.",
            ));
        }
    }
    state.hosting.refresh(&slug).await?;
    let (project, role) = state
        .platform
        .store
        .find_project_for(&slug, admin.player)
        .await?
        .ok_or_else(nothing)?;
    let view = ProjectView::of(&state.projects, project, role).await?;
    Ok(ApiJson(view))
}
