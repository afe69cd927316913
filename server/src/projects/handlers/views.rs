//! The responses of the project API.

use std::collections::BTreeMap;

use platform_protocol::names::Environment;
use platform_protocol::paths;
use platform_protocol::people::Role;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::frames::Ancestors;
use super::people::RoleName;
use crate::domain::date::rfc3339;
use crate::domain::project::{
    BackendSettings, Deployment, DeploymentSummary, DeploymentWarning, EnvironmentRecord, Frames,
    Project, short_id,
};
use crate::domain::takedown::{Authority, Standing};
use crate::hosting::backends::Trial;
use crate::projects::ProjectsState;
use crate::web::api_error::ApiError;

/// A game: a slug with a dev and a prod environment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Project)]
pub struct ProjectView {
    /// Its slug: its name in addresses and audiences.
    pub slug: String,
    /// The player who owns it; null for projects of the platform itself.
    #[schema(required, format = "uuid")]
    pub owner: Option<String>,
    /// The owner's username; null if there is no owner.
    #[schema(required)]
    pub owner_username: Option<String>,
    /// The caller's role in it: `owner`, `developer` or `viewer`; null for an administrator without
    /// a role.
    #[schema(required, value_type = Option<RoleName>)]
    pub role: Option<Role>,
    /// When it was created (RFC 3339).
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Whether its game is online.
    pub standing: StandingView,
    /// Both environments.
    pub environments: EnvironmentsView,
    /// The storage that its deployments use.
    pub files: FileRoomView,
    /// The storage that its frontend log records use.
    pub logs: LogRoomView,
}

/// Whether a project's game is online, and if not, why.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Standing)]
pub struct StandingView {
    /// `live`, `disabled`, `deleted`, or `owner-suspended`: the game is online again when its
    /// owner's suspension is lifted.
    #[schema(example = "live")]
    pub state: &'static str,
    /// Since when (RFC 3339); null if it is live.
    #[schema(required, format = DateTime)]
    pub since: Option<String>,
    /// Who took it down: `owner`, or `platform` for administrators and the operator, who alone can
    /// undo it then; null if it is live.
    #[schema(required)]
    pub by: Option<&'static str>,
    /// The reason that was given.
    #[schema(required)]
    pub reason: Option<String>,
    /// When a deleted project is removed for good (RFC 3339).
    #[schema(required, format = DateTime)]
    pub removed_at: Option<String>,
}

impl From<Standing> for StandingView {
    fn from(standing: Standing) -> Self {
        let removal = standing.removal();
        let down = (standing.deleted, standing.disabled);
        let (state, since, by, reason) = match (down, standing.owner_suspended_at) {
            ((Some(deleted), _), _) => ("deleted", Some(deleted.at), Some(deleted.by), None),
            ((None, Some(one)), _) => ("disabled", Some(one.at), Some(one.by), one.reason),
            ((None, None), Some(at)) => {
                ("owner-suspended", Some(at), Some(Authority::Platform), None)
            }
            ((None, None), None) => ("live", None, None, None),
        };
        Self {
            state,
            since: since.map(rfc3339),
            by: by.map(Authority::as_str),
            reason,
            removed_at: removal.map(rfc3339),
        }
    }
}

/// The storage that a project's deployments use, in both environments.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FileRoom)]
pub struct FileRoomView {
    /// The bytes in use: each distinct content once, in whole disk blocks, and the lists of files.
    #[schema(example = 12_582_912)]
    pub bytes: u64,
    /// The maximum in bytes. Beyond it, earlier deployments are removed first, then a deploy is
    /// rejected. Null if there is no maximum.
    #[schema(required, example = 2_147_483_648_u64)]
    pub quota_bytes: Option<u64>,
}

/// The storage that a project's frontend log records use, in both environments.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogRoom)]
pub struct LogRoomView {
    /// The bytes in use: the texts, and a fixed amount per record.
    #[schema(example = 1_048_576)]
    pub bytes: u64,
    /// The maximum in bytes. Beyond it, the oldest records are removed within seconds. Null if
    /// there is no maximum.
    #[schema(required, example = 209_715_200)]
    pub quota_bytes: Option<u64>,
}

/// Both environments of a project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Environments)]
pub struct EnvironmentsView {
    /// The environment for tests.
    pub dev: EnvironmentView,
    /// The environment for players.
    pub prod: EnvironmentView,
}

/// One environment of a project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Environment)]
pub struct EnvironmentView {
    /// The address of the game, without a slash at the end.
    #[schema(format = "uri", example = "https://dev-my-game.play.example")]
    pub url: String,
    /// The audience of its tokens.
    #[schema(example = "game:dev-my-game")]
    pub audience: String,
    /// The current deployment; null before the first deploy.
    #[schema(required)]
    pub deployment: Option<DeploymentView>,
    /// Faults in how its current page loads the runtime, and other advice.
    pub warnings: Vec<WarningView>,
    /// The stored deployments, newest first.
    pub deployments: Vec<DeploymentView>,
    /// The game's own backend; null if none is set.
    #[schema(required)]
    pub backend: Option<BackendView>,
    /// Whether a backend of the platform itself serves `/api/` while none is set, as for the demo
    /// game.
    pub built_in_backend: bool,
    /// Whether its pages are isolated from those of other origins, which
    /// engines with threads need.
    pub cross_origin_isolated: bool,
    /// Which sites may show its pages in a frame: `any`, `platform`, or a list of origins.
    pub frame_ancestors: Ancestors,
    /// Whether the runtime puts a trace into the requests of its pages.
    pub trace_requests: bool,
    /// The number of players now; null if it is not known.
    #[schema(required)]
    pub players: Option<u64>,
    /// The settings that its backend needs.
    pub variables: VariablesView,
}

/// One deployment.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Deployment)]
pub struct DeploymentView {
    /// Its id.
    #[schema(format = "uuid")]
    pub id: String,
    /// The first characters of its id, for display: eight, or more if another deployment of the
    /// environment begins with the same eight.
    #[schema(example = "3f2a9c1b")]
    pub short_id: String,
    /// When it was deployed (RFC 3339).
    #[schema(format = DateTime)]
    pub created_at: String,
    /// The number of its files.
    pub files: u64,
    /// The total size of its files, in bytes.
    pub bytes: u64,
    /// Whether it is the environment's current deployment.
    pub current: bool,
    /// The player who deployed it; null for the platform itself, or if unknown.
    #[schema(required)]
    pub deployed_by: Option<DeployerView>,
    /// The program that uploaded it, such as `platform-cli/0.1.0`.
    #[schema(required)]
    pub client: Option<String>,
    /// The network address (IPv4, or IPv6 /64) of its upload.
    #[schema(required)]
    pub network: Option<String>,
    /// The message that was given with it.
    #[schema(required)]
    pub message: Option<String>,
    /// The revision of its sources.
    #[schema(required)]
    pub revision: Option<String>,
    /// The name of the deploy token that it was uploaded with; null if it was uploaded by a person.
    #[schema(required)]
    pub deploy_token: Option<String>,
}

/// The player who made a deployment, or set something.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Deployer)]
pub struct DeployerView {
    /// The player's id.
    #[schema(format = "uuid")]
    pub sub: String,
    /// The player's current name; null if the player no longer exists.
    #[schema(required)]
    pub username: Option<String>,
}

/// Advice about a deployment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Warning)]
pub struct WarningView {
    /// `runtime-not-loaded`, `runtime-in-body`, `runtime-async`,
    /// `runtime-not-deferred`, `runtime-after-scripts`, `private-file` or
    /// `source-file`; more may follow.
    pub code: String,
    /// A sentence that says what to do.
    pub message: String,
}

/// The game's own backend.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Backend)]
pub struct BackendView {
    /// Its origin.
    pub url: String,
    /// Requests to paths that begin with one of these are sent to it.
    pub paths: Vec<String>,
}

/// An environment whose backend was changed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EnvironmentWithTrial)]
pub struct TriedEnvironmentView {
    /// The environment, as it is now.
    #[serde(flatten)]
    pub environment: EnvironmentView,
    /// The result of a request to the backend; null if it was removed.
    #[schema(required)]
    pub trial: Option<TrialView>,
}

/// The result of one request to a backend.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BackendTrial)]
pub struct TrialView {
    /// Whether it responded, with any status.
    pub reached: bool,
    /// The status of its response; null if there was none.
    #[schema(required)]
    pub status: Option<u16>,
    /// The duration of the request.
    pub milliseconds: u64,
    /// A sentence that describes the result.
    pub sentence: String,
}

impl From<Trial> for TrialView {
    fn from(trial: Trial) -> Self {
        Self {
            reached: trial.status.is_some(),
            status: trial.status,
            milliseconds: trial.milliseconds,
            sentence: trial.sentence,
        }
    }
}

/// The environment variables of a game's backend.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Variables)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub struct VariablesView {
    /// Expected `iss`.
    pub auth_issuer: String,
    /// Expected `aud`.
    pub auth_audience: String,
    /// Address of the key set.
    pub auth_jwks_url: String,
}

impl ProjectView {
    /// Creates the view of a project for a caller with this role in it.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn of(
        state: &ProjectsState,
        project: Project,
        role: Option<Role>,
    ) -> Result<Self, ApiError> {
        let environments = EnvironmentsView {
            dev: EnvironmentView::of(state, &project.slug, Environment::Dev).await?,
            prod: EnvironmentView::of(state, &project.slug, Environment::Prod).await?,
        };
        let logs = LogRoomView {
            bytes: state.platform.store.log_bytes(&project.slug).await?,
            quota_bytes: state.platform.config.log_quota(),
        };
        let owner_username = match project.owner {
            Some(owner) => state.platform.store.find_player(owner).await?,
            None => None,
        };
        let owner_username = owner_username.map(|owner| owner.username);
        let standing = state.platform.store.find_standing(&project.slug).await?;
        let files = FileRoomView {
            bytes: state.platform.store.find_room(&project.slug).await?,
            quota_bytes: state.platform.config.room_limits().project,
        };
        Ok(Self {
            files,
            logs,
            standing: standing.unwrap_or_default().into(),
            slug: project.slug,
            owner: project.owner.map(|owner| owner.to_string()),
            owner_username,
            role,
            created_at: rfc3339(project.created_at),
            environments,
        })
    }
}

impl EnvironmentView {
    /// Creates the view of one environment of an existing project.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn of(
        state: &ProjectsState,
        slug: &str,
        environment: Environment,
    ) -> Result<Self, ApiError> {
        let record = state
            .platform
            .store
            .find_environment(slug, environment)
            .await?;
        let none = (None, false, Frames::Any, false);
        let (backend, isolated, frames, traced) = record.map_or(none, settings);
        let deployments = state
            .platform
            .store
            .list_deployments(slug, environment)
            .await?;
        let label = environment.label(slug);
        let warnings = match deployments.iter().find(|one| one.current) {
            Some(current) => warnings(state, &label, current.id).await?,
            None => Vec::new(),
        };
        let deployments = DeploymentView::all(state, deployments).await?;
        let audience = environment.audience(slug);
        let players = state
            .games
            .presence
            .playing(&audience, state.platform.clock.now())
            .await;
        Ok(Self {
            url: state.platform.games_origin.sub_domain(&label),
            deployment: deployments.iter().find(|one| one.current).cloned(),
            warnings,
            deployments,
            backend: backend.map(BackendView::from),
            built_in_backend: state.hosting.backends.is_built_in(slug, environment),
            cross_origin_isolated: isolated,
            frame_ancestors: frames.into(),
            trace_requests: traced,
            players: players.map(|players| players as u64),
            variables: VariablesView {
                auth_issuer: state.platform.auth_url.clone(),
                auth_audience: audience.clone(),
                auth_jwks_url: format!("{}{}", state.platform.auth_url, paths::JWKS),
            },
            audience,
        })
    }
}

/// Returns the warnings of the deployment `id`, which is shown at the host `label`.
async fn warnings(
    state: &ProjectsState,
    label: &str,
    id: Uuid,
) -> Result<Vec<WarningView>, ApiError> {
    let shown = state.games.catalogue.find(label).and_then(|game| {
        let deployment = game.deployment.clone();
        deployment.filter(|deployment| deployment.id == id)
    });
    if let Some(shown) = shown {
        return Ok(WarningView::all(&shown));
    }
    // Another node may have created it a moment ago.
    let found = state.platform.store.find_deployment(id).await?;
    Ok(found.as_ref().map(WarningView::all).unwrap_or_default())
}

fn settings(record: EnvironmentRecord) -> (Option<BackendSettings>, bool, Frames, bool) {
    (
        record.backend,
        record.isolated,
        record.frames,
        record.traced,
    )
}

impl WarningView {
    /// Returns the warnings of a deployment.
    pub(super) fn all(deployment: &Deployment) -> Vec<Self> {
        let found = deployment.inspection.iter();
        let warnings = found.flat_map(|found| found.warnings.iter().cloned());
        warnings
            .map(|DeploymentWarning { code, message }| Self { code, message })
            .collect()
    }
}

impl DeploymentView {
    /// Creates the views of the deployments that an environment keeps, or that previews show.
    pub(super) async fn all(
        state: &ProjectsState,
        deployments: Vec<DeploymentSummary>,
    ) -> Result<Vec<Self>, ApiError> {
        let ids: Vec<Uuid> = deployments.iter().map(|one| one.id).collect();
        let makers = deployments.iter().filter_map(|one| one.made.by).collect();
        let names = state.platform.store.list_usernames(makers).await?;
        let view = |one| Self::of(one, &ids, &names);
        Ok(deployments.into_iter().map(view).collect())
    }

    fn of(summary: DeploymentSummary, ids: &[Uuid], names: &BTreeMap<Uuid, String>) -> Self {
        let made = summary.made;
        Self {
            id: summary.id.to_string(),
            short_id: short_id(summary.id, ids),
            deployed_by: made.by.map(|by| DeployerView {
                sub: by.to_string(),
                username: names.get(&by).cloned(),
            }),
            client: made.client,
            network: made.network,
            message: made.message,
            revision: made.revision,
            deploy_token: made.deploy_token,
            created_at: rfc3339(summary.created_at),
            files: summary.files,
            bytes: summary.bytes,
            current: summary.current,
        }
    }
}

impl From<BackendSettings> for BackendView {
    fn from(settings: BackendSettings) -> Self {
        Self {
            url: settings.url,
            paths: settings.paths,
        }
    }
}
