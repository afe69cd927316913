//! `GET /api/projects/<slug>/environments/<environment>/deployments/<deployment>/file`: a file of a
//! kept deployment, for its developer: the position of an error in an earlier deployment needs that
//! deployment's source maps.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderName, header};
use platform_protocol::problem::ProblemCode;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::auth::project_caller::EnvironmentPath;
use crate::auth::scoped_caller::SourceReader;
use crate::projects::ProjectsState;
use crate::web::api::{ApiQuery, invalid};
use crate::web::api_error::ApiError;

/// A path that names a deployment.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct DeploymentPath {
    /// A stored deployment.
    #[param(value_type = String)]
    deployment: Uuid,
}

/// Which file is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FileQuery {
    /// The file's path in the deployment, without a slash before it.
    #[param(required = true, example = "index.html")]
    path: Option<String>,
}

/// Returns a file of a deployment. Its media type is generic: on the console's origin, no content
/// of a game may run or be displayed.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/environments/{environment}/deployments/{deployment}/file",
    operation_id = "readDeployedFile",
    params(EnvironmentPath, DeploymentPath, FileQuery),
    responses((status = 200, description = "The file, as it was deployed.", body = String, content_type = "application/octet-stream"))
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    reader: SourceReader,
    ApiQuery(query): ApiQuery<FileQuery>,
    deployment: Result<Path<DeploymentPath>, PathRejection>,
) -> Result<([(HeaderName, &'static str); 4], Body), ApiError> {
    let path = query.path.ok_or_else(|| {
        invalid("The parameter `path` is missing: the file's path in the deployment.")
    })?;
    let missing = || {
        ApiError::new(ProblemCode::NotFound)
            .with_detail("No stored deployment with this id has this file.")
    };
    let Path(DeploymentPath { deployment }) = deployment.map_err(|_| missing())?;
    let (slug, environment) = (&reader.project.slug, reader.environment);
    let found = state
        .platform
        .store
        .find_file_of(slug, environment, deployment, &path);
    let entry = found.await?.ok_or_else(missing)?;
    let contents = &state.hosting.contents;
    let body = contents.body(slug, &entry, 0..entry.size).await;
    let body = body.map_err(|error| {
        error.refusal("so this one cannot be downloaded; please try again in a moment")
    })?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; sandbox",
        ),
    ];
    Ok((headers, body))
}
