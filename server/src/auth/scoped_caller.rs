//! Extractors for the calls that deploy tokens may make as well, each with the scope that it needs.
//! Accounts may make them as `project_caller` says.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use platform_protocol::deploy_token::Scope;
use platform_protocol::names::Environment;
use platform_protocol::people::Role;
use uuid::Uuid;

use crate::auth::AuthState;
use crate::auth::caller::{Access, ApiCaller, check_not_deleted};
use crate::auth::deploy_token_caller::{DeployTokenCaller, has_token};
use crate::auth::project_caller::{
    EnvironmentEditor, EnvironmentReader, ProjectEditor, ProjectReader, environment, slug,
};
use crate::clock::Millis;
use crate::domain::audit::{By, Source};
use crate::domain::project::Project;
use crate::web::api_error::ApiError;
use crate::web::request_context::Context;

/// An account, or a program with a deploy token.
#[derive(Clone, Debug)]
pub enum ScopedCaller {
    /// An account, and by what right it acts on the project.
    Account(ApiCaller, Access),
    /// A program.
    Token(DeployTokenCaller),
}

impl ScopedCaller {
    /// With whom its requests are counted: the account, the one that created the token, or a token of the
    /// operator itself.
    #[must_use]
    pub fn counted_with(&self) -> Uuid {
        match self {
            Self::Account(caller, _) => caller.player,
            Self::Token(caller) => caller.token.creator().unwrap_or(caller.token.id),
        }
    }

    /// The player who is named as the maker of what the caller deploys; `None` for a token of the operator.
    #[must_use]
    pub fn maker(&self) -> Option<Uuid> {
        match self {
            Self::Account(caller, _) => Some(caller.player),
            Self::Token(caller) => caller.token.creator(),
        }
    }

    /// The name of the deploy token.
    #[must_use]
    pub fn deploy_token(&self) -> Option<String> {
        match self {
            Self::Account(..) => None,
            Self::Token(caller) => Some(caller.token.name.clone()),
        }
    }

    /// The origin of the request.
    #[must_use]
    pub const fn source(&self) -> &Source {
        match self {
            Self::Account(caller, _) => &caller.source,
            Self::Token(caller) => &caller.source,
        }
    }

    /// When the caller's token expires.
    #[must_use]
    pub const fn expires_at(&self) -> Millis {
        match self {
            Self::Account(caller, _) => caller.expires_at,
            Self::Token(caller) => caller.token.expires_at,
        }
    }

    /// Returns the actor that the audit log records for the caller's act on the project.
    #[must_use]
    pub fn by(&self) -> By {
        match self {
            Self::Account(caller, access) => caller.by(*access),
            Self::Token(caller) => caller.by(),
        }
    }

    /// Checks again whether the caller may see the project, so that a long request does not outlive
    /// the caller's rights.
    ///
    /// # Errors
    /// As at the beginning of the request.
    pub async fn may_still_read(&mut self, state: &AuthState, slug: &str) -> Result<(), ApiError> {
        match self {
            Self::Account(caller, access) => {
                caller.look_again(state).await?;
                (_, *access) = caller.project(state, slug, Role::Viewer).await?;
                Ok(())
            }
            Self::Token(caller) => caller.look_again(state).await,
        }
    }

    /// Checks the same for a change of the project.
    ///
    /// # Errors
    /// As at the beginning of the request.
    pub async fn may_still_change(
        &mut self,
        state: &AuthState,
        slug: &str,
    ) -> Result<(), ApiError> {
        match self {
            Self::Account(caller, access) => {
                caller.look_again(state).await?;
                let found = caller.project_to_change(state, slug, Role::Developer);
                (_, *access) = found.await?;
                Ok(())
            }
            Self::Token(caller) => {
                caller.look_again(state).await?;
                check_not_deleted(state, slug).await
            }
        }
    }
}

/// A caller who may deploy to the environment that the path names.
#[derive(Clone, Debug)]
pub struct EnvironmentDeployer {
    /// The caller.
    pub caller: ScopedCaller,
    /// The project, which is not deleted.
    pub project: Project,
    /// The environment.
    pub environment: Environment,
}

/// A caller who may deploy and remove previews of the project that the path names.
#[derive(Clone, Debug)]
pub struct PreviewDeployer {
    /// The caller.
    pub caller: ScopedCaller,
    /// The project, which is not deleted.
    pub project: Project,
}

/// A caller who may see the previews of the project that the path names.
#[derive(Clone, Debug)]
pub struct PreviewReader {
    /// The project.
    pub project: Project,
}

/// A caller who may read the logs of the project that the path names.
#[derive(Clone, Debug)]
pub struct LogReader {
    /// The caller.
    pub caller: ScopedCaller,
    /// The project.
    pub project: Project,
}

/// A caller who may read the files of the environment that the path names, to which positions in
/// logs refer.
#[derive(Clone, Debug)]
pub struct SourceReader {
    /// The project.
    pub project: Project,
    /// The environment.
    pub environment: Environment,
}

/// The scope for deploying to an environment.
const fn to_deploy(environment: Environment) -> Scope {
    match environment {
        Environment::Dev => Scope::DeployDev,
        Environment::Prod => Scope::DeployProd,
    }
}

/// Returns the caller with a deploy token for the project in the path, if the request has one.
async fn token<S>(parts: &mut Parts, state: &S) -> Result<Option<DeployTokenCaller>, ApiError>
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    if !has_token(&parts.headers) {
        return Ok(None);
    }
    let Ok(context) = Context::from_request_parts(parts, state).await;
    let auth = Arc::<AuthState>::from_ref(state);
    let caller = DeployTokenCaller::of(&auth, &parts.headers, context.source()).await?;
    Ok(Some(caller))
}

/// Returns the caller with a deploy token that may read the logs of the project in the path.
async fn log_token<S>(parts: &mut Parts, state: &S) -> Result<Option<DeployTokenCaller>, ApiError>
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    let Some(caller) = token(parts, state).await? else {
        return Ok(None);
    };
    caller.check(&slug(parts, state).await, Scope::Logs)?;
    Ok(Some(caller))
}

impl<S> FromRequestParts<S> for EnvironmentDeployer
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Some(caller) = token(parts, state).await? else {
            let editor = EnvironmentEditor::from_request_parts(parts, state).await?;
            return Ok(Self {
                caller: ScopedCaller::Account(editor.caller, editor.access),
                project: editor.project,
                environment: editor.environment,
            });
        };
        let slug = slug(parts, state).await;
        let environment = environment(parts, state).await?;
        caller.check(&slug, to_deploy(environment))?;
        check_not_deleted(&Arc::<AuthState>::from_ref(state), &slug).await?;
        Ok(Self {
            project: caller.project.clone(),
            caller: ScopedCaller::Token(caller),
            environment,
        })
    }
}

/// Returns the caller with a deploy token that may deploy previews of the project in the path.
async fn preview_token<S>(
    parts: &mut Parts,
    state: &S,
) -> Result<Option<DeployTokenCaller>, ApiError>
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    let Some(caller) = token(parts, state).await? else {
        return Ok(None);
    };
    caller.check(&slug(parts, state).await, to_deploy(Environment::Dev))?;
    Ok(Some(caller))
}

impl<S> FromRequestParts<S> for PreviewDeployer
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Some(caller) = preview_token(parts, state).await? else {
            let editor = ProjectEditor::from_request_parts(parts, state).await?;
            return Ok(Self {
                caller: ScopedCaller::Account(editor.caller, editor.access),
                project: editor.project,
            });
        };
        let project = caller.project.clone();
        check_not_deleted(&Arc::<AuthState>::from_ref(state), &project.slug).await?;
        Ok(Self {
            project,
            caller: ScopedCaller::Token(caller),
        })
    }
}

impl<S> FromRequestParts<S> for PreviewReader
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let project = match preview_token(parts, state).await? {
            Some(caller) => caller.project,
            None => {
                ProjectReader::from_request_parts(parts, state)
                    .await?
                    .project
            }
        };
        Ok(Self { project })
    }
}

impl<S> FromRequestParts<S> for LogReader
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Some(caller) = log_token(parts, state).await? else {
            let reader = ProjectReader::from_request_parts(parts, state).await?;
            return Ok(Self {
                caller: ScopedCaller::Account(reader.caller, reader.access),
                project: reader.project,
            });
        };
        Ok(Self {
            project: caller.project.clone(),
            caller: ScopedCaller::Token(caller),
        })
    }
}

impl<S> FromRequestParts<S> for SourceReader
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Some(caller) = log_token(parts, state).await? else {
            let reader = EnvironmentReader::from_request_parts(parts, state).await?;
            return Ok(Self {
                project: reader.project,
                environment: reader.environment,
            });
        };
        Ok(Self {
            project: caller.project,
            environment: environment(parts, state).await?,
        })
    }
}
