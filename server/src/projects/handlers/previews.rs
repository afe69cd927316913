//! `GET /api/projects/<slug>/previews`, `PUT` and `DELETE …/previews/<name>`, and
//! `GET …/previews/<name>/qr`: the previews of a project's dev environment.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use platform_protocol::names::Environment;
use platform_protocol::preview::{PER_PROJECT, check_name, label};
use platform_protocol::problem::ProblemCode;
use qrcode::{Color, EcLevel, QrCode};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::deployment::{Archive, DeployQuery, DeployedView, Place, upload};
use super::views::DeploymentView;
use crate::auth::project_caller::ProjectPath;
use crate::auth::scoped_caller::{PreviewDeployer, PreviewReader};
use crate::domain::date::{Date, rfc3339};
use crate::domain::preview::{Preview, expiry};
use crate::projects::ProjectsState;
use crate::projects::deploy::DeployError;
use crate::web::api::{ApiJson, ApiQuery, invalid};
use crate::web::api_error::ApiError;

/// The number of modules that a QR code needs free on each side (ISO/IEC 18004 §9.1).
const QUIET: usize = 4;

/// A path that names a preview.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct PreviewPath {
    /// The name of a preview: lower-case letters, digits and single hyphens.
    #[param(
        example = "new-rings",
        pattern = "^[a-z0-9]+(-[a-z0-9]+)*$",
        max_length = 58
    )]
    name: String,
}

/// A preview: a further deployment of the dev environment, at an address of its own.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Preview)]
pub struct PreviewView {
    /// Its name.
    #[schema(example = "new-rings")]
    pub name: String,
    /// Its address.
    #[schema(format = "uri")]
    pub url: String,
    /// What it shows.
    pub deployment: DeploymentView,
    /// When it was first deployed (RFC 3339).
    #[schema(format = DateTime)]
    pub created_at: String,
    /// The day on which it was last deployed, or opened in a browser (UTC).
    #[schema(format = Date, example = "2026-01-31")]
    pub used_on: String,
    /// When it is removed if nobody uses it (RFC 3339).
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// The previews of a project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Previews)]
pub struct PreviewsView {
    /// The previews, the most recently deployed first.
    pub previews: Vec<PreviewView>,
    /// How many previews the project may have.
    #[schema(example = 20)]
    pub most: usize,
}

/// A QR code, as an SVG path.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QrCode)]
pub struct QrView {
    /// What it contains: the address of the preview.
    #[schema(format = "uri")]
    pub url: String,
    /// Its width and height in modules, with the free margin: the `viewBox` is `0 0 size size`.
    #[schema(example = 41)]
    pub size: usize,
    /// The dark modules: the attribute `d` of a `path`, to be filled with black on white.
    pub path: String,
}

impl PreviewsView {
    async fn of(state: &ProjectsState, slug: &str) -> Result<Self, ApiError> {
        let previews = state.platform.store.list_previews(slug).await?;
        let summaries = previews.iter().map(|one| one.deployment.clone()).collect();
        let deployments = DeploymentView::all(state, summaries).await?;
        let previews = previews.into_iter().zip(deployments);
        let view = |(preview, deployment): (Preview, DeploymentView)| PreviewView {
            url: address(state, slug, &preview.name),
            deployment,
            created_at: rfc3339(preview.created_at),
            used_on: Date::of(preview.used_at).machine,
            expires_at: rfc3339(expiry(preview.used_at)),
            name: preview.name,
        };
        Ok(Self {
            previews: previews.map(view).collect(),
            most: PER_PROJECT,
        })
    }

    /// Returns the preview of this name.
    fn find(self, name: &str) -> Result<PreviewView, ApiError> {
        let found = self.previews.into_iter().find(|one| one.name == name);
        found.ok_or_else(missing)
    }
}

fn address(state: &ProjectsState, slug: &str, name: &str) -> String {
    state.platform.games_origin.sub_domain(&label(name, slug))
}

fn missing() -> ApiError {
    ApiError::new(ProblemCode::NotFound).with_detail(
        "This project has no preview of this name. It may have been removed because nobody used it.",
    )
}

/// Lists the previews.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/previews",
    operation_id = "listPreviews",
    params(ProjectPath),
    responses((status = 200, description = "The previews, the most recently deployed first.", body = PreviewsView))
)]
pub async fn list(
    State(state): State<Arc<ProjectsState>>,
    reader: PreviewReader,
) -> Result<ApiJson<PreviewsView>, ApiError> {
    let view = PreviewsView::of(&state, &reader.project.slug).await?;
    Ok(ApiJson(view))
}

/// Deploys a preview: creates it, or replaces what it shows.
///
/// # Errors
/// As a deploy, and `invalid-request` if the name is not possible.
#[utoipa::path(
    put,
    path = "/api/projects/{slug}/previews/{name}",
    operation_id = "deployPreview",
    params(ProjectPath, PreviewPath, DeployQuery),
    request_body(
        content = Archive,
        content_type = "application/gzip",
        description = "A tar file of the built game, compressed with gzip, with index.html at the top level."
    ),
    responses(
        (status = 201, description = "The preview shows it.", body = DeployedView),
        (status = 409, description = "`quota-exceeded`: the project has as many previews as it may, or no storage left."),
        (status = 422, description = "`deployment-invalid`; the preview is unchanged."),
    )
)]
pub async fn deploy(
    State(state): State<Arc<ProjectsState>>,
    deployer: Result<PreviewDeployer, ApiError>,
    name: Result<Path<PreviewPath>, PathRejection>,
    query: Result<ApiQuery<DeployQuery>, ApiError>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, ApiJson<DeployedView>), ApiError> {
    let place = async {
        let PreviewDeployer { caller, project } = deployer?;
        let Path(PreviewPath { name }) = name.map_err(|_| missing())?;
        check_name(&name, &project.slug).map_err(|error| invalid(error.to_string()))?;
        refuse_many(&state, &project.slug, &name).await?;
        refuse_taken(&state, &project.slug, &name)?;
        Ok(Place {
            caller,
            project,
            environment: Environment::Dev,
            preview: Some(name),
        })
    };
    let place = place.await;
    upload(&state, place, query, &headers, body).await
}

/// Refuses one preview too many before its archive is received. The store decides again.
async fn refuse_many(state: &ProjectsState, slug: &str, name: &str) -> Result<(), ApiError> {
    let previews = state.platform.store.list_previews(slug).await?;
    if previews.len() < PER_PROJECT || previews.iter().any(|one| one.name == name) {
        return Ok(());
    }
    let oldest = previews
        .into_iter()
        .min_by_key(|one| (one.used_at, one.created_at));
    match oldest {
        Some(Preview { name, used_at, .. }) => Err(DeployError::TooManyPreviews {
            oldest: name,
            used_at,
        }
        .into()),
        None => Ok(()),
    }
}

/// Refuses a preview whose address is that of a project that existed before there were previews.
fn refuse_taken(state: &ProjectsState, slug: &str, name: &str) -> Result<(), ApiError> {
    let game = state.games.catalogue.find(&label(name, slug));
    if game.is_some_and(|game| game.preview.is_none()) {
        return Err(invalid(
            "Another project has the address of this preview. Please choose another name.",
        ));
    }
    Ok(())
}

/// Removes a preview.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    delete,
    path = "/api/projects/{slug}/previews/{name}",
    operation_id = "removePreview",
    params(ProjectPath, PreviewPath),
    responses((status = 200, description = "The preview, which is removed.", body = PreviewView))
)]
pub async fn remove(
    State(state): State<Arc<ProjectsState>>,
    deployer: PreviewDeployer,
    name: Result<Path<PreviewPath>, PathRejection>,
) -> Result<ApiJson<PreviewView>, ApiError> {
    let Path(PreviewPath { name }) = name.map_err(|_| missing())?;
    let (store, slug) = (&state.platform.store, &deployer.project.slug);
    let view = PreviewsView::of(&state, slug).await?.find(&name)?;
    let by = deployer.caller.by();
    let now = state.platform.clock.now();
    if !store.remove_preview(slug, &name, by, now).await? {
        return Err(missing());
    }
    store.count_room(slug).await?;
    state.deployments.wake_sweep();
    state.hosting.refresh(slug).await?;
    Ok(ApiJson(view))
}

/// Returns a QR code of a preview's address, with which a phone opens it.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/previews/{name}/qr",
    operation_id = "drawPreviewCode",
    params(ProjectPath, PreviewPath),
    responses((status = 200, description = "The code as an SVG path.", body = QrView))
)]
pub async fn qr(
    State(state): State<Arc<ProjectsState>>,
    reader: PreviewReader,
    name: Result<Path<PreviewPath>, PathRejection>,
) -> Result<ApiJson<QrView>, ApiError> {
    let Path(PreviewPath { name }) = name.map_err(|_| missing())?;
    let slug = &reader.project.slug;
    let previews = state.platform.store.list_previews(slug).await?;
    if !previews.iter().any(|one| one.name == name) {
        return Err(missing());
    }
    QrView::of(address(&state, slug, &name)).map(ApiJson)
}

impl QrView {
    fn of(url: String) -> Result<Self, ApiError> {
        let code = QrCode::with_error_correction_level(&url, EcLevel::M);
        let code = code.map_err(|error| ApiError::internal(&error))?;
        let width = code.width();
        let mut path = String::new();
        for (y, row) in code.to_colors().chunks(width).enumerate() {
            let mut x = 0;
            // One rectangle for each run of dark modules in a row.
            for run in row.chunk_by(|one, other| one == other) {
                if run.first() == Some(&Color::Dark) {
                    let (left, top, wide) = (x + QUIET, y + QUIET, run.len());
                    path.push_str(&format!("M{left} {top}h{wide}v1h-{wide}z"));
                }
                x += run.len();
            }
        }
        Ok(Self {
            url,
            size: width + 2 * QUIET,
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The finder pattern of a corner (ISO/IEC 18004 §6.3.3) as rectangles.
    #[test]
    fn a_code_has_a_margin_and_its_three_corners() {
        let view = QrView::of("https://new-rings--my-game.play.example".into()).unwrap();
        assert_eq!((view.size - 2 * QUIET - 17) % 4, 0);
        let far = view.size - QUIET - 7;
        for (left, top) in [(QUIET, QUIET), (far, QUIET), (QUIET, far)] {
            let line = format!("M{left} {top}h7v1h-7z");
            assert!(view.path.contains(&line), "{line} in {}", view.path);
        }
        assert!(
            view.path
                .bytes()
                .all(|byte| b"Mhvz- 0123456789".contains(&byte))
        );
    }
}
