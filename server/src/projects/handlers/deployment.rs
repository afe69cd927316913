//! `PUT /api/projects/<slug>/environments/<environment>/deployment`: deploys an archive to the
//! environment, completely or not at all.
//!
//! Callers without the right to deploy are rejected before the archive is read. Once it has
//! arrived, the deploy continues to its end whether the client waits or not, so that it is never
//! left unfinished.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use hyper::body::Body as _;
use platform_protocol::names::Environment;
use platform_protocol::problem::ProblemCode;
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::{IntoParams, ToSchema};

use super::views::WarningView;
use crate::auth::project_caller::EnvironmentPath;
use crate::auth::scoped_caller::{EnvironmentDeployer, ScopedCaller};
use crate::domain::project::{
    MESSAGE_CHARS, Made, Project, parse_message, parse_revision, short_id,
};
use crate::platform::disk;
use crate::projects::ProjectsState;
use crate::projects::deploy::{DeployError, Published, Target, linger};
use crate::web::api::{ApiJson, ApiQuery};
use crate::web::api_error::ApiError;
use crate::web::body;
use platform_archive::deploy::ArchiveError;
use platform_archive::staging::StagingError;

/// The maximum number of bytes of a program's name and version.
const CLIENT_BYTES: usize = 60;
/// The media type of an archive (RFC 6713).
const GZIP: &str = "application/gzip";

/// A tar file of the built game, compressed with gzip.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, format = Binary)]
pub struct Archive(pub Vec<u8>);

/// What whoever deploys says of it.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DeployQuery {
    /// A description of the deployment, in one line of at most 200 characters.
    #[serde(deserialize_with = "message")]
    #[param(min_length = 1, max_length = 200)]
    message: Option<String>,
    /// The revision of its sources, such as a commit of git: at most 64 letters, digits and `._/+-`.
    #[serde(deserialize_with = "revision")]
    #[param(pattern = "^[A-Za-z0-9._/+-]{1,64}$")]
    revision: Option<String>,
}

/// The new deployment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Deployed)]
pub struct DeployedView {
    /// The deployment's id.
    #[schema(format = "uuid")]
    pub id: String,
    /// The first characters of its id, for display.
    #[schema(example = "3f2a9c1b")]
    pub short_id: String,
    /// The address of the game, or of its preview.
    #[schema(format = "uri")]
    pub url: String,
    /// The name of the preview that shows it; null if it is the environment's current deployment.
    #[schema(required)]
    pub preview: Option<String>,
    /// The number of its files.
    pub files: u64,
    /// The total size of its files, in bytes.
    pub bytes: u64,
    /// Faults in how its page loads the runtime, and other advice.
    pub warnings: Vec<WarningView>,
}

/// Deploys an archive.
///
/// # Errors
/// `deployment-invalid`, `quota-exceeded`, `unavailable`, `payload-too-large`, `unsupported-media-type`,
/// `not-found`, `not-allowed`, `too-many-requests`, 408.
#[utoipa::path(
    put,
    path = "/api/projects/{slug}/environments/{environment}/deployment",
    operation_id = "deploy",
    params(EnvironmentPath, DeployQuery),
    request_body(
        content = Archive,
        content_type = "application/gzip",
        description = "A tar file of the built game, compressed with gzip, with index.html at the top level."
    ),
    responses(
        (status = 201, description = "It is the environment's current deployment.", body = DeployedView),
        (status = 409, description = "`quota-exceeded`; the environment is unchanged."),
        (status = 422, description = "`deployment-invalid`; the environment is unchanged."),
    )
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    deployer: Result<EnvironmentDeployer, ApiError>,
    query: Result<ApiQuery<DeployQuery>, ApiError>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, ApiJson<DeployedView>), ApiError> {
    let place = deployer.map(|deployer| Place {
        caller: deployer.caller,
        project: deployer.project,
        environment: deployer.environment,
        preview: None,
    });
    upload(&state, place, query, &headers, body).await
}

/// Where a caller deploys.
pub(super) struct Place {
    /// The caller, who may deploy there.
    pub(super) caller: ScopedCaller,
    /// The project.
    pub(super) project: Project,
    /// The environment.
    pub(super) environment: Environment,
    /// The name of a preview of the environment.
    pub(super) preview: Option<String>,
}

/// Receives an archive and deploys it.
pub(super) async fn upload(
    state: &ProjectsState,
    place: Result<Place, ApiError>,
    query: Result<ApiQuery<DeployQuery>, ApiError>,
    headers: &HeaderMap,
    mut body: Body,
) -> Result<(StatusCode, ApiJson<DeployedView>), ApiError> {
    let length = body.size_hint().lower();
    let taken = async {
        let Place {
            caller,
            project,
            environment,
            preview,
        } = place?;
        refuse_other_forms(headers)?;
        let ApiQuery(DeployQuery { message, revision }) = query?;
        let target = Target {
            by: caller.by(),
            slug: project.slug,
            environment,
            preview,
            made: Made {
                by: caller.maker(),
                client: client(headers),
                network: Some(caller.source().network.clone()),
                message,
                revision,
                deploy_token: caller.deploy_token(),
            },
            limited: true,
        };
        let upload = state
            .deployments
            .admit(caller.counted_with(), length)
            .await?;
        // Whatever becomes of it: unpacking and storing cost as much as the event.
        if let Err(refusal) = state.count_deploy(&caller, &target.slug).await {
            upload.remove().await;
            return Err(refusal);
        }
        Ok((caller, target, upload))
    };
    let (mut caller, target, upload) = match taken.await {
        Ok(taken) => taken,
        Err(refusal) => {
            // A client that waits for `100 Continue` has not sent anything (RFC 9110 §10.1.1).
            if !headers.contains_key(header::EXPECT) {
                linger(body);
            }
            return Err(refusal);
        }
    };
    let upload = match state.deployments.receive(upload, &mut body).await {
        Ok(upload) => upload,
        Err(refusal) => {
            linger(body);
            return Err(refusal);
        }
    };
    // An upload takes time, and its sender may have been signed out meanwhile.
    let may = caller.may_still_change(&state.auth, &target.slug);
    may.await?;
    // So do unpacking and storing, and the turn for it.
    let (auth, slug) = (Arc::clone(&state.auth), target.slug.clone());
    let still_may = async move {
        caller.may_still_change(&auth, &slug).await?;
        Ok(caller.by())
    };
    let deployed = state.deployments.deploy(upload, target, still_may);
    let published = deployed.await?;
    let view = DeployedView::of(state, published);
    Ok((StatusCode::CREATED, ApiJson(view)))
}

/// Rejects anything except a single gzip stream without another content coding.
fn refuse_other_forms(headers: &HeaderMap) -> Result<(), ApiError> {
    if !body::is(headers, GZIP) {
        return Err(ApiError::new(ProblemCode::UnsupportedMediaType)
            .with_detail("A deploy must be sent as application/gzip."));
    }
    // RFC 9110 §8.4: `identity` is the coding that changes nothing.
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(ApiError::new(ProblemCode::UnsupportedMediaType)
            .with_detail("A deploy must be sent without a Content-Encoding."));
    }
    Ok(())
}

fn message<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    let message = parse_message(&text).ok_or_else(|| {
        de::Error::custom(format_args!(
            "A message must be one line of at most {MESSAGE_CHARS} visible characters."
        ))
    })?;
    Ok(Some(message.to_owned()))
}

fn revision<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    let sentence = "A revision must have at most 64 letters, digits and ._/+-, without spaces.";
    let revision = parse_revision(&text).ok_or_else(|| de::Error::custom(sentence))?;
    Ok(Some(revision.to_owned()))
}

/// Returns the deploying program's own name and version (RFC 9110 §10.1.5), or that it is a
/// browser.
fn client(headers: &HeaderMap) -> Option<String> {
    let agent = headers.get(header::USER_AGENT)?.to_str().ok()?;
    let product = agent.split(' ').next()?;
    if product.starts_with("Mozilla/") {
        return Some("a browser".to_owned());
    }
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+-".contains(&byte);
    let sound = (1..=CLIENT_BYTES).contains(&product.len()) && product.bytes().all(known);
    sound.then(|| product.to_owned())
}

impl DeployedView {
    fn of(state: &ProjectsState, published: Published) -> Self {
        let deployment = published.deployment;
        Self {
            id: deployment.id.to_string(),
            short_id: short_id(deployment.id, &[]),
            url: state.platform.games_origin.sub_domain(&published.label),
            preview: published.preview,
            files: deployment.files.len() as u64,
            bytes: deployment.files.values().map(|file| file.size).sum(),
            warnings: WarningView::all(&deployment)
                .into_iter()
                .chain(of_removed(published.removed))
                .collect(),
        }
    }
}

/// Returns the warning that earlier deployments were removed.
fn of_removed(removed: usize) -> Option<WarningView> {
    let message = match removed {
        0 => return None,
        1 => "An earlier deployment was removed to make room for this one.".to_owned(),
        _ => format!("{removed} earlier deployments were removed to make room for this one."),
    };
    let code = "deployments-removed".to_owned();
    Some(WarningView { code, message })
}

impl From<DeployError> for ApiError {
    fn from(error: DeployError) -> Self {
        match error {
            DeployError::Archive(ArchiveError::Io(_))
            | DeployError::Staging(StagingError::Io(_)) => disk::failed(&error),
            DeployError::Files(error) => {
                error.refusal("so nothing was deployed, and the environment is unchanged; please deploy again later")
            }
            DeployError::Store(error) => error.into(),
            DeployError::Refused(refusal) => *refusal,
            DeployError::UnknownProject(_) => ProblemCode::NotFound.into(),
            full @ DeployError::TooManyPreviews { .. } => {
                Self::new(ProblemCode::QuotaExceeded).with_detail(full.to_string())
            }
            DeployError::NoRoom(sentence) => {
                Self::new(ProblemCode::QuotaExceeded).with_detail(sentence)
            }
            DeployError::DiskFull => disk::full(),
            refused => Self::new(ProblemCode::DeploymentInvalid).with_detail(refused.to_string()),
        }
    }
}
