//! `POST /api/projects`: creates a project, owned by the caller.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use platform_protocol::names::check_slug;
use platform_protocol::people::Role;
use platform_protocol::problem::ProblemCode;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::views::ProjectView;
use crate::auth::caller::{Access, AccountCaller};
use crate::domain::project::Project;
use crate::projects::ProjectsState;
use crate::store::StoreError;
use crate::web::api::{ApiJson, invalid};
use crate::web::api_error::ApiError;

/// The project to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    /// 3 to 40 lower-case letters, digits or hyphens; it starts and ends with a
    /// letter or digit, and not with `dev-`.
    #[schema(
        min_length = 3,
        max_length = 40,
        pattern = "^[a-z0-9][a-z0-9-]{1,38}[a-z0-9]$",
        example = "my-game"
    )]
    pub slug: String,
}

/// The created project, and its path.
type Created = (StatusCode, [(HeaderName, String); 1], ApiJson<ProjectView>);

/// Creates a project.
///
/// # Errors
/// `not-allowed` for guests and for whom has many, `slug-taken`, `invalid-request`.
#[utoipa::path(
    post,
    path = "/api/projects",
    operation_id = "createProject",
    request_body = NewProject,
    responses(
        (status = 201, description = "The project is created, and the caller owns it.", body = ProjectView,
            headers(("Location" = String, description = "The path of the project in the API."))),
        (status = 409, description = "`slug-taken`."),
    )
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    AccountCaller(caller): AccountCaller,
    ApiJson(new): ApiJson<NewProject>,
) -> Result<Created, ApiError> {
    check_slug(&new.slug).map_err(|error| invalid(error.sentence()))?;
    let project = Project {
        slug: new.slug,
        owner: Some(caller.player),
        created_at: state.platform.clock.now(),
    };
    let most = match state.platform.config.projects_per_account {
        0 => u32::MAX,
        _ if caller.administers() => u32::MAX,
        most => most,
    };
    let by = caller.by(Access::Role(Role::Owner));
    let added = state
        .platform
        .store
        .add_project_within(project.clone(), most, by);
    match added.await {
        Err(StoreError::ProjectCap) => {
            return Err(ApiError::new(ProblemCode::NotAllowed).with_detail(format!(
                "You have {most} projects, the limit for one account. Use one of them, or ask the \
                 platform's operator."
            )));
        }
        Err(StoreError::Conflict { .. }) => {
            return Err(taken(&state, &project.slug, caller.player).await?);
        }
        // The player existed when the token was minted.
        Err(StoreError::Missing { .. }) => return Err(ProblemCode::NotAllowed.into()),
        added => added?,
    }
    state.hosting.refresh(&project.slug).await?;
    let location = [(header::LOCATION, format!("/api/projects/{}", project.slug))];
    let view = ProjectView::of(&state, project, Some(Role::Owner)).await?;
    Ok((StatusCode::CREATED, location, ApiJson(view)))
}

/// Returns the error for a slug that is taken, possibly by an earlier project of the caller.
async fn taken(state: &ProjectsState, slug: &str, caller: Uuid) -> Result<ApiError, ApiError> {
    let taken = ApiError::new(ProblemCode::SlugTaken);
    Ok(match state.platform.store.find_project(slug).await? {
        Some(Project { owner, .. }) if owner == Some(caller) => {
            taken.with_detail("You already have a project with this name.")
        }
        _ => taken,
    })
}
