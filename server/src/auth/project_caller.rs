//! Extractors for callers of a project's endpoints, which check their rights.
//!
//! If a handler lists one of these extractors before its query or body, neither is read for a
//! caller who is not allowed.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts, Path};
use axum::http::request::Parts;
use platform_protocol::names::Environment;
use platform_protocol::people::Role;
use platform_protocol::problem::ProblemCode;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::auth::AuthState;
use crate::auth::caller::{Access, ApiCaller, check_not_deleted};
use crate::domain::audit::By;
use crate::domain::project::Project;
use crate::web::api::EnvironmentName;
use crate::web::api_error::ApiError;

/// A path that names a project.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct ProjectPath {
    /// The project.
    #[param(example = "my-game")]
    pub slug: String,
}

/// A path that names an environment of a project.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct EnvironmentPath {
    /// The project.
    #[param(example = "my-game")]
    pub slug: String,
    /// The environment of the project.
    #[param(value_type = EnvironmentName)]
    pub environment: Environment,
}

/// A caller who may see the project that the path names: everybody with a role in it, and
/// administrators.
#[derive(Clone, Debug)]
pub struct ProjectReader {
    /// The caller.
    pub caller: ApiCaller,
    /// The project.
    pub project: Project,
    /// The caller's right.
    pub access: Access,
}

/// A caller who may change the project that the path names, or act as its
/// developer: its developers and its owner, and administrators.
#[derive(Clone, Debug)]
pub struct ProjectEditor {
    /// The caller.
    pub caller: ApiCaller,
    /// The project, which is not deleted.
    pub project: Project,
    /// The caller's right.
    pub access: Access,
}

/// A caller who may decide about the project that the path names: whether its game is online, and
/// who else may do what. This is its owner, and administrators.
#[derive(Clone, Debug)]
pub struct ProjectManager {
    /// The caller.
    pub caller: ApiCaller,
    /// The project.
    pub project: Project,
    /// The caller's right.
    pub access: Access,
}

/// The owner of the project that the path names. Administrators are refused: what an owner gives
/// lasts for longer than an administrator's sign-in.
#[derive(Clone, Debug)]
pub struct ProjectOwner {
    /// The owner.
    pub caller: ApiCaller,
    /// The project, which is not deleted.
    pub project: Project,
}

/// A caller who may see the environment that the path names.
#[derive(Clone, Debug)]
pub struct EnvironmentReader {
    /// The caller.
    pub caller: ApiCaller,
    /// The project.
    pub project: Project,
    /// The environment.
    pub environment: Environment,
}

/// A caller who may change the environment that the path names.
#[derive(Clone, Debug)]
pub struct EnvironmentEditor {
    /// The caller.
    pub caller: ApiCaller,
    /// The project, which is not deleted.
    pub project: Project,
    /// The caller's right.
    pub access: Access,
    /// The environment.
    pub environment: Environment,
}

impl ProjectReader {
    /// Returns the actor that the audit log records for the caller.
    #[must_use]
    pub fn by(&self) -> By {
        self.caller.by(self.access)
    }
}

impl ProjectManager {
    /// Returns the actor that the audit log records for the caller.
    #[must_use]
    pub fn by(&self) -> By {
        self.caller.by(self.access)
    }
}

impl ProjectOwner {
    /// Returns the actor that the audit log records for the caller.
    #[must_use]
    pub fn by(&self) -> By {
        self.caller.by(Access::Role(Role::Owner))
    }
}

impl ProjectEditor {
    /// Returns the actor that the audit log records for the caller.
    #[must_use]
    pub fn by(&self) -> By {
        self.caller.by(self.access)
    }
}

impl EnvironmentEditor {
    /// Returns the actor that the audit log records for the caller.
    #[must_use]
    pub fn by(&self) -> By {
        self.caller.by(self.access)
    }
}

impl<S> FromRequestParts<S> for ProjectReader
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = ApiCaller::from_request_parts(parts, state).await?;
        let slug = slug(parts, state).await;
        let auth = Arc::from_ref(state);
        let (project, access) = caller.project(&auth, &slug, Role::Viewer).await?;
        Ok(Self {
            caller,
            project,
            access,
        })
    }
}

impl<S> FromRequestParts<S> for ProjectEditor
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = ApiCaller::from_request_parts(parts, state).await?;
        let slug = slug(parts, state).await;
        let auth = Arc::from_ref(state);
        let least = Role::Developer;
        let (project, access) = caller.project_to_change(&auth, &slug, least).await?;
        Ok(Self {
            caller,
            project,
            access,
        })
    }
}

impl<S> FromRequestParts<S> for ProjectManager
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = ApiCaller::from_request_parts(parts, state).await?;
        let slug = slug(parts, state).await;
        let auth = Arc::from_ref(state);
        let (project, access) = caller.project(&auth, &slug, Role::Owner).await?;
        Ok(Self {
            caller,
            project,
            access,
        })
    }
}

impl<S> FromRequestParts<S> for ProjectOwner
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let ProjectManager {
            caller,
            project,
            access,
        } = ProjectManager::from_request_parts(parts, state).await?;
        if access != Access::Role(Role::Owner) {
            return Err(ApiError::new(ProblemCode::NotAllowed).with_detail(
                "Only the owner of the project may do this, and no administrator: it lasts for \
                 longer than an administrator's sign-in.",
            ));
        }
        check_not_deleted(&Arc::<AuthState>::from_ref(state), &project.slug).await?;
        Ok(Self { caller, project })
    }
}

impl<S> FromRequestParts<S> for EnvironmentReader
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let reader = ProjectReader::from_request_parts(parts, state).await?;
        Ok(Self {
            caller: reader.caller,
            project: reader.project,
            environment: environment(parts, state).await?,
        })
    }
}

impl<S> FromRequestParts<S> for EnvironmentEditor
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let editor = ProjectEditor::from_request_parts(parts, state).await?;
        Ok(Self {
            caller: editor.caller,
            project: editor.project,
            access: editor.access,
            environment: environment(parts, state).await?,
        })
    }
}

/// Returns the slug in the path; a path that cannot be decoded names no project.
pub(super) async fn slug<S: Send + Sync>(parts: &mut Parts, state: &S) -> String {
    let path = Path::<ProjectPath>::from_request_parts(parts, state).await;
    path.map(|Path(path)| path.slug).unwrap_or_default()
}

/// Returns the environment in the path.
pub(super) async fn environment<S>(parts: &mut Parts, state: &S) -> Result<Environment, ApiError>
where
    S: Send + Sync,
{
    match Path::<EnvironmentPath>::from_request_parts(parts, state).await {
        Ok(Path(path)) => Ok(path.environment),
        Err(_) => Err(ApiError::new(ProblemCode::NotFound)
            .with_detail("The environment must be dev or prod.")),
    }
}
