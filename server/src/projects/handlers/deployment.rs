//! `PUT /api/projects/<slug>/environments/<environment>/deployment`: an archive
//! becomes what the environment shows, all or nothing.
//!
//! Who may not deploy is told so before the archive is read. Once it has
//! arrived, the deploy goes on to its end whether its client waits or not: half
//! a deploy is what nobody wants.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use hyper::body::Body as _;
use platform_protocol::problem::ProblemCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::views::WarningView;
use crate::auth::caller::ApiCaller;
use crate::domain::project::{MESSAGE_CHARS, Made, parse_message, parse_revision, short_id};
use crate::http::api::{EnvironmentName, PathParams, answer, invalid};
use crate::http::api_error::ApiError;
use crate::http::body;
use crate::platform::disk;
use crate::projects::ProjectsState;
use crate::projects::archive::ArchiveError;
use crate::projects::deploy::{DeployError, Published, Target, linger};
use crate::projects::staging::StagingError;

/// Bytes of a program's name and version, at most.
const CLIENT_BYTES: usize = 60;
/// The media type of an archive (RFC 6713).
const GZIP: &str = "application/gzip";

/// A tar file of the built game, compressed with gzip.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, format = Binary)]
pub struct Archive(pub Vec<u8>);

/// What was deployed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Deployed)]
pub struct DeployedView {
    /// The deployment's id.
    #[schema(format = "uuid")]
    pub id: String,
    /// The first characters of its id, by which people know it.
    #[schema(example = "3f2a9c1b")]
    pub short_id: String,
    /// Where the game is.
    #[schema(format = "uri")]
    pub url: String,
    /// How many files it has.
    pub files: u64,
    /// Bytes of its files together.
    pub bytes: u64,
    /// How its page should load the runtime and does not.
    pub warnings: Vec<WarningView>,
}

/// Deploys an archive.
///
/// # Errors
/// `deployment-invalid`, `quota-exceeded`, `unavailable`, `payload-too-large`, `unsupported-media-type`,
/// `not-found`, `not-allowed`, 408.
#[utoipa::path(
    put,
    path = "/api/projects/{slug}/environments/{environment}/deployment",
    operation_id = "deploy",
    params(
        ("slug" = String, Path, description = "The project.", example = "my-game"),
        ("environment" = EnvironmentName, Path, description = "Which of its environments."),
        ("message" = Option<String>, Query, min_length = 1, max_length = 200, description = "What is deployed, in one line of at most 200 characters."),
        ("revision" = Option<String>, Query, description = "The revision of its sources, such as a commit of git: at most 64 letters, digits and `._/+-`.", pattern = "^[A-Za-z0-9._/+-]{1,64}$"),
    ),
    request_body(
        content = Archive,
        content_type = "application/gzip",
        description = "A tar file of the built game, compressed with gzip, with index.html at its top."
    ),
    responses(
        (status = 201, description = "The environment shows it.", body = DeployedView),
        (status = 409, description = "`quota-exceeded`; the environment shows what it showed."),
        (status = 422, description = "`deployment-invalid`; the environment shows what it showed."),
    )
)]
pub async fn handle(
    State(state): State<Arc<ProjectsState>>,
    caller: Result<ApiCaller, ApiError>,
    names: PathParams,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    mut body: Body,
) -> Result<Response, ApiError> {
    let length = body.size_hint().lower();
    let taken = async {
        let caller = caller?;
        let target = target(&state, &caller, &names).await?;
        refuse_other_forms(&headers)?;
        let target = Target {
            made: Made {
                by: Some(caller.player),
                client: client(&headers),
                network: Some(caller.source.network.clone()),
                ..said(query.as_deref().unwrap_or_default())?
            },
            ..target
        };
        let upload = state.deployments.admit(caller.player, length).await?;
        Ok((caller, target, upload))
    };
    let (mut caller, target, upload) = match taken.await {
        Ok(taken) => taken,
        Err(refusal) => {
            // Who waits to be told to go on has sent nothing (RFC 9110 §10.1.1).
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
    // An upload takes its time, and whoever sends it may have been signed out.
    caller.look_again(&state.auth).await?;
    let project = caller.project_to_change(&state.auth, &target.slug);
    project.await?;
    let published = state.deployments.deploy(upload, target).await?;
    answer(StatusCode::CREATED, &DeployedView::of(&state, published))
}

async fn target(
    state: &ProjectsState,
    caller: &ApiCaller,
    names: &PathParams,
) -> Result<Target, ApiError> {
    let project = caller.project_to_change(&state.auth, names.slug()).await?;
    Ok(Target {
        environment: names.environment()?,
        by: caller.by(&project),
        slug: project.slug,
        made: Made::default(),
    })
}

/// An archive is one gzip stream, and not packed once more for the way.
fn refuse_other_forms(headers: &HeaderMap) -> Result<(), ApiError> {
    if !body::is(headers, GZIP) {
        return Err(ApiError::new(ProblemCode::UnsupportedMediaType)
            .with_detail("A deploy is sent as application/gzip."));
    }
    // RFC 9110 §8.4: `identity` is the one that changes nothing.
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(ApiError::new(ProblemCode::UnsupportedMediaType)
            .with_detail("A deploy is sent without a Content-Encoding."));
    }
    Ok(())
}

/// What whoever deploys says of it.
fn said(query: &str) -> Result<Made, ApiError> {
    let mut made = Made::default();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "message" => {
                let message = parse_message(&value).ok_or_else(|| {
                    invalid(format!(
                        "A message is one line of at most {MESSAGE_CHARS} characters that are to \
                         be seen."
                    ))
                })?;
                made.message = Some(message.to_owned());
            }
            "revision" => {
                let revision = parse_revision(&value).ok_or_else(|| {
                    invalid("A revision is at most 64 letters, digits and ._/+-, without spaces.")
                })?;
                made.revision = Some(revision.to_owned());
            }
            _ => return Err(invalid("The query may have message and revision.")),
        }
    }
    Ok(made)
}

/// The program that deploys, as it calls itself (RFC 9110 §10.1.5): its name and
/// version, or that it is a browser.
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
        let label = deployment.environment.label(&deployment.slug);
        Self {
            id: deployment.id.to_string(),
            short_id: short_id(deployment.id, &[]),
            url: state.platform.origin.sub_domain(&label),
            files: deployment.files.len() as u64,
            bytes: deployment.files.values().map(|file| file.size).sum(),
            warnings: published
                .warnings
                .iter()
                .map(WarningView::from)
                .chain(of_removed(published.removed))
                .collect(),
        }
    }
}

/// That earlier deployments had to go.
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
            | DeployError::Staging(StagingError::Io(_))
            | DeployError::Files(_) => Self::internal(&error),
            DeployError::Store(error) => error.into(),
            DeployError::UnknownProject(_) => ProblemCode::NotFound.into(),
            DeployError::NoRoom(sentence) => {
                Self::new(ProblemCode::QuotaExceeded).with_detail(sentence)
            }
            DeployError::DiskFull => disk::full(),
            refused => Self::new(ProblemCode::DeploymentInvalid).with_detail(refused.to_string()),
        }
    }
}
