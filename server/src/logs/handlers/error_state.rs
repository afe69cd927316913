//! `PUT /api/projects/<slug>/error-groups/<id>`: resolves, ignores or reopens the errors of one
//! cause.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::Deserialize;
use utoipa::ToSchema;

use super::error_act;
use super::error_group::{GroupDetailView, GroupPath, GroupQuery, id_of, missing, view};
use super::error_groups::StateName;
use crate::auth::project_caller::{ProjectEditor, ProjectPath};
use crate::domain::audit::AuditKind;
use crate::domain::error_group::ErrorState;
use crate::logs::LogsState;
use crate::web::api::{ApiJson, ApiQuery};
use crate::web::api_error::ApiError;

/// A decision about a group.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewErrorState)]
pub struct Wanted {
    /// The new state. A resolved group becomes open again when a later deployment has its error.
    #[schema(value_type = StateName)]
    pub state: ErrorState,
}

/// Sets the state of a group.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`, `too-many-requests`.
#[utoipa::path(
    put,
    path = "/api/projects/{slug}/error-groups/{group}",
    operation_id = "setErrorState",
    params(ProjectPath, GroupPath, GroupQuery),
    request_body = Wanted,
    responses((status = 200, description = "The group, as it is now.", body = GroupDetailView))
)]
pub async fn handle(
    State(state): State<Arc<LogsState>>,
    editor: ProjectEditor,
    path: Result<Path<GroupPath>, PathRejection>,
    ApiQuery(query): ApiQuery<GroupQuery>,
    ApiJson(wanted): ApiJson<Wanted>,
) -> Result<ApiJson<GroupDetailView>, ApiError> {
    let (slug, environment) = (&editor.project.slug, query.environment());
    let id = id_of(path)?;
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    let found = store.find_error_group(slug, environment, id, now).await?;
    let group = found.ok_or_else(missing)?.group;
    error_act::count(&state, &editor).await?;
    let deployments = store.list_deployments(slug, environment).await?;
    let current = deployments.iter().find(|deployment| deployment.current);
    let deployed_at = current.map(|deployment| deployment.created_at);
    if group.would_change(wanted.state, deployed_at) {
        let detail = format!("{} {id}: {}", environment.as_str(), wanted.state.as_str());
        error_act::record(&state, &editor, AuditKind::ErrorDecided, &detail).await?;
        let decision = (wanted.state, deployed_at, now);
        let decided = store
            .decide_error_group(slug, environment, id, decision)
            .await?;
        if !decided {
            return Err(missing());
        }
    }
    Ok(ApiJson(view(&state, slug, environment, id).await?))
}
