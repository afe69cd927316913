//! `DELETE /api/projects/<slug>/error-groups`, of all that a search finds or of one: removes errors
//! that nobody needs to see, such as those that a visitor made up.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use platform_protocol::names::Environment;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::error_act;
use super::error_group::{GroupPath, GroupQuery, id_of, missing};
use super::error_groups::{StateName, search_text};
use crate::auth::project_caller::{ProjectEditor, ProjectPath};
use crate::clock::Millis;
use crate::domain::audit::AuditKind;
use crate::domain::error_group::{ErrorGroupFilter, ErrorGroupQuery, ErrorState};
use crate::logs::LogsState;
use crate::web::api::{ApiJson, ApiQuery, EnvironmentName};
use crate::web::api_error::ApiError;

/// Which groups are removed: those that fit all of it.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RemovalQuery {
    /// The environment; default `prod`.
    #[param(value_type = Option<EnvironmentName>)]
    env: Option<Environment>,
    /// Only groups with this state.
    #[param(value_type = Option<StateName>)]
    state: Option<ErrorState>,
    /// Only groups with this text in type, message or place, case-insensitive.
    #[serde(deserialize_with = "search_text")]
    #[param(max_length = 200)]
    search: Option<String>,
}

/// What was removed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RemovedErrorGroups)]
pub struct Removed {
    /// The number of groups.
    removed: usize,
}

/// Removes all groups that a search finds. An error that happens again begins a new group.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`, `too-many-requests`.
#[utoipa::path(
    delete,
    path = "/api/projects/{slug}/error-groups",
    operation_id = "removeErrorGroups",
    params(ProjectPath, RemovalQuery),
    responses((status = 200, description = "How many were removed.", body = Removed))
)]
pub async fn found(
    State(state): State<Arc<LogsState>>,
    editor: ProjectEditor,
    ApiQuery(query): ApiQuery<RemovalQuery>,
) -> Result<ApiJson<Removed>, ApiError> {
    let filter = ErrorGroupFilter {
        slug: editor.project.slug.clone(),
        environment: query.env.unwrap_or(Environment::Prod),
        id: None,
        state: query.state,
        text: query.search.filter(|text| !text.is_empty()),
    };
    error_act::count(&state, &editor).await?;
    let store = &state.platform.store;
    let page = store.list_error_groups(first_of(&filter)).await?;
    if page.groups.is_empty() {
        return Ok(ApiJson(Removed { removed: 0 }));
    }
    let detail = described(&filter);
    error_act::record(&state, &editor, AuditKind::ErrorsDeleted, &detail).await?;
    let removed = store.remove_error_groups(filter).await?;
    Ok(ApiJson(Removed { removed }))
}

/// A search for one of the groups that are meant: if there is none, nothing happens.
fn first_of(filter: &ErrorGroupFilter) -> ErrorGroupQuery {
    ErrorGroupQuery {
        slug: filter.slug.clone(),
        environment: filter.environment,
        state: filter.state,
        text: filter.text.clone(),
        before: None,
        limit: 1,
        hours_from: Millis::MAX,
    }
}

/// Which groups are meant, for the audit log. It has no texts, so it does not say what was searched
/// for: errors may contain anything that players typed.
fn described(filter: &ErrorGroupFilter) -> String {
    let state = filter.state.map_or("all", ErrorState::as_str);
    let text = if filter.text.is_some() {
        ", found by a text"
    } else {
        ""
    };
    format!("{}: {state}{text}", filter.environment.as_str())
}

/// Removes one group. An error that happens again begins a new one.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`, `too-many-requests`.
#[utoipa::path(
    delete,
    path = "/api/projects/{slug}/error-groups/{group}",
    operation_id = "removeErrorGroup",
    params(ProjectPath, GroupPath, GroupQuery),
    responses((status = 200, description = "It was removed.", body = Removed))
)]
pub async fn one(
    State(state): State<Arc<LogsState>>,
    editor: ProjectEditor,
    path: Result<Path<GroupPath>, PathRejection>,
    ApiQuery(query): ApiQuery<GroupQuery>,
) -> Result<ApiJson<Removed>, ApiError> {
    let (id, environment) = (id_of(path)?, query.environment());
    let (store, slug) = (&state.platform.store, &editor.project.slug);
    let now = state.platform.clock.now();
    let found = store.find_error_group(slug, environment, id, now).await?;
    found.ok_or_else(missing)?;
    error_act::count(&state, &editor).await?;
    let detail = format!("{} {id}", environment.as_str());
    error_act::record(&state, &editor, AuditKind::ErrorsDeleted, &detail).await?;
    let filter = ErrorGroupFilter {
        slug: slug.clone(),
        environment,
        id: Some(id),
        state: None,
        text: None,
    };
    match store.remove_error_groups(filter).await? {
        0 => Err(missing()),
        removed => Ok(ApiJson(Removed { removed })),
    }
}
