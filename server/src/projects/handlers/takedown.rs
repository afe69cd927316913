//! `POST /api/projects/<slug>/disable`, `enable` and `restore`, and `DELETE /api/projects/<slug>`:
//! takes a project down, and undoes this. Its owner and administrators may do this; an owner cannot
//! undo what an administrator or the operator did.

use std::sync::Arc;

use axum::extract::State;
use platform_protocol::problem::ProblemCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::views::ProjectView;
use crate::auth::project_caller::{ProjectManager, ProjectPath};
use crate::domain::player::{REASON_CHARS, parse_reason};
use crate::domain::takedown::{Change, Changed};
use crate::projects::ProjectsState;
use crate::projects::settings_limits::Act;
use crate::web::api::{ApiJson, invalid};
use crate::web::api_error::ApiError;

/// Why a project is disabled.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Disabling {
    /// The reason that the owner sees: one line of at most 500 characters, or null.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub reason: Option<String>,
}

/// Takes the game offline: all its addresses return `project-disabled`, and no tokens are issued
/// for it.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/disable",
    operation_id = "disableProject",
    params(ProjectPath),
    request_body = Disabling,
    responses((status = 200, description = "The project, which is disabled.", body = ProjectView))
)]
pub async fn disable(
    State(state): State<Arc<ProjectsState>>,
    manager: ProjectManager,
    ApiJson(wanted): ApiJson<Disabling>,
) -> Result<ApiJson<ProjectView>, ApiError> {
    let reason = wanted.reason.as_deref().map(|reason| {
        parse_reason(reason).ok_or_else(|| {
            invalid(format!(
                "A reason must be one line of at most {REASON_CHARS} characters. The owner can \
                 read it."
            ))
        })
    });
    let reason = reason.transpose()?.map(str::to_owned);
    change(&state, manager, Change::Disable { reason }).await
}

/// Puts a disabled game online again.
///
/// # Errors
/// `not-found`; `not-allowed`, also where those who run the platform disabled it.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/enable",
    operation_id = "enableProject",
    params(ProjectPath),
    responses((status = 200, description = "The project, which is not disabled.", body = ProjectView))
)]
pub async fn enable(
    State(state): State<Arc<ProjectsState>>,
    manager: ProjectManager,
) -> Result<ApiJson<ProjectView>, ApiError> {
    change(&state, manager, Change::Enable).await
}

/// Deletes a project. Its game is offline from now on. For seven days the project can be restored,
/// then it is removed for good. Its slug is never used again.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    delete,
    path = "/api/projects/{slug}",
    operation_id = "deleteProject",
    params(ProjectPath),
    responses((status = 200, description = "The project, which is deleted.", body = ProjectView))
)]
pub async fn delete(
    State(state): State<Arc<ProjectsState>>,
    manager: ProjectManager,
) -> Result<ApiJson<ProjectView>, ApiError> {
    change(&state, manager, Change::Delete).await
}

/// Restores a deleted project.
///
/// # Errors
/// `not-found`, also after seven days; `not-allowed`, also where those who run
/// the platform deleted it.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/restore",
    operation_id = "restoreProject",
    params(ProjectPath),
    responses((status = 200, description = "The project, which is not deleted.", body = ProjectView))
)]
pub async fn restore(
    State(state): State<Arc<ProjectsState>>,
    manager: ProjectManager,
) -> Result<ApiJson<ProjectView>, ApiError> {
    change(&state, manager, Change::Restore).await
}

async fn change(
    state: &ProjectsState,
    manager: ProjectManager,
    change: Change,
) -> Result<ApiJson<ProjectView>, ApiError> {
    // Taking a game down is never rate limited: it may be the response to an attack.
    if matches!(change, Change::Enable | Change::Restore) {
        let caller = &manager.caller;
        state
            .count(Act::Setting, caller, &manager.project, manager.access)
            .await?;
    }
    let (by, project) = (manager.by(), manager.project);
    let now = state.platform.clock.now();
    let changed = state
        .platform
        .store
        .change_standing(&project.slug, change, by, now)
        .await?;
    match changed {
        Changed::Done => state.hosting.refresh(&project.slug).await?,
        Changed::Already => {}
        Changed::NoProject => {
            return Err(ApiError::new(ProblemCode::NotFound)
                .with_detail("This project was deleted more than seven days ago."));
        }
        Changed::ByPlatform => {
            return Err(ApiError::new(ProblemCode::NotAllowed).with_detail(
                "The platform's operators took this project down, and only they can enable it \
                 again. Ask them.",
            ));
        }
    }
    let view = ProjectView::of(state, project, manager.access.role()).await?;
    Ok(ApiJson(view))
}
