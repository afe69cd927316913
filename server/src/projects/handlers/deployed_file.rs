//! `GET /api/projects/<slug>/environments/<environment>/deployments/<deployment>/file`:
//! a file of a deployment that is kept, for its developer: where an error of last
//! week came up is told by the source maps of last week.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use platform_protocol::problem::ProblemCode;
use url::form_urlencoded;
use uuid::Uuid;

use crate::auth::caller::ApiCaller;
use crate::http::api::{EnvironmentName, PathParams, invalid};
use crate::http::api_error::ApiError;
use crate::projects::ProjectsState;

/// Answers the file. Its type says nothing of what it is: on the console's origin
/// nothing of a game may run or be shown.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/environments/{environment}/deployments/{deployment}/file",
    operation_id = "readDeployedFile",
    params(
        ("slug" = String, Path, description = "The project.", example = "my-game"),
        ("environment" = EnvironmentName, Path, description = "Which of its environments."),
        ("deployment" = String, Path, description = "One of the deployments that are kept."),
        ("path" = String, Query, description = "The file's path in the deployment, without a slash before it.", example = "index.html"),
    ),
    responses((status = 200, description = "The file, as it was deployed.", body = String, content_type = "application/octet-stream"))
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    caller: ApiCaller,
    names: PathParams,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let project = caller.project(&state.auth, names.slug()).await?;
    let environment = names.environment()?;
    let query = query.unwrap_or_default();
    let path = form_urlencoded::parse(query.as_bytes())
        .find_map(|(name, value)| (name == "path").then(|| value.into_owned()));
    let path =
        path.ok_or_else(|| invalid("Say which file: `path` is its path in the deployment."))?;
    let missing = || {
        ApiError::new(ProblemCode::NotFound)
            .with_detail("No deployment of this id that is kept has such a file.")
    };
    let deployment: Uuid = names.get("deployment").parse().map_err(|_| missing())?;
    let found = state
        .platform
        .store
        .find_file_of(&project.slug, environment, deployment, &path);
    let entry = found.await?.ok_or_else(missing)?;
    let body = state.hosting.contents.body(&entry, 0..entry.size).await;
    let mut response = body
        .map_err(|error| ApiError::internal(&error))?
        .into_response();
    for (name, value) in [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; sandbox",
        ),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}
