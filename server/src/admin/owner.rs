//! `PUT /api/admin/projects/<slug>/owner`: a project goes to another player.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use platform_protocol::problem::ProblemCode;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::caller::AdminCaller;
use crate::admin::AdminState;
use crate::domain::administration::Transferred;
use crate::http::api::{JsonBody, PathParams, answer, invalid};
use crate::http::api_error::ApiError;
use crate::projects::handlers::views::ProjectView;

/// The owner to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOwner {
    /// The id of a player who has signed in.
    #[schema(value_type = String, format = "uuid")]
    pub owner: Uuid,
}

/// Gives a project to another player.
///
/// # Errors
/// `not-allowed`, `not-found`, `invalid-request`.
#[utoipa::path(
    put,
    path = "/api/admin/projects/{slug}/owner",
    operation_id = "transferProject",
    params(("slug" = String, Path, description = "The project.")),
    request_body = NewOwner,
    responses((status = 200, description = "The project, as it is now.", body = ProjectView))
)]
pub async fn handle(
    State(state): State<Arc<AdminState>>,
    admin: AdminCaller,
    names: PathParams,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let new: NewOwner = body.read().await?;
    let nothing = || ApiError::new(ProblemCode::NotFound).with_detail("There is no such project.");
    let (slug, now) = (names.slug(), state.platform.clock.now());
    match state
        .platform
        .store
        .transfer_project(slug, new.owner, admin.by(), now)
        .await?
    {
        Transferred::Done | Transferred::Already => {}
        Transferred::NoProject => return Err(nothing()),
        Transferred::NoPlayer => return Err(invalid("There is no player of this id.")),
        Transferred::NotAnAccount => {
            return Err(invalid(
                "Guests own no projects: the player has to sign in first.",
            ));
        }
    }
    state.hosting.refresh(slug).await?;
    let project = state
        .platform
        .store
        .find_project(slug)
        .await?
        .ok_or_else(nothing)?;
    answer(
        StatusCode::OK,
        &ProjectView::of(&state.projects, project).await?,
    )
}
