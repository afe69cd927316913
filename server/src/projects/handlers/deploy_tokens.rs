//! `GET` and `POST /api/projects/<slug>/tokens`, and `DELETE …/tokens/<token>`: the deploy tokens
//! of a project.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use platform_protocol::deploy_token::{DEFAULT_DAYS, MAX_DAYS, NAME_CHARS, PER_PROJECT, Scope};
use platform_protocol::people::Role;
use platform_protocol::problem::ProblemCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::auth::caller::Access;
use crate::auth::project_caller::{ProjectManager, ProjectOwner, ProjectPath};
use crate::clock::Millis;
use crate::domain::date::rfc3339;
use crate::domain::deploy_token::{
    AddedDeployToken, DeploySecret, DeployToken, NewDeployToken, expiry, parse_name,
};
use crate::projects::ProjectsState;
use crate::projects::settings_limits::Act;
use crate::web::api::{ApiJson, invalid};
use crate::web::api_error::ApiError;

/// What a deploy token allows.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(as = DeployTokenScope, rename_all = "kebab-case")]
pub enum ScopeName {
    /// Deploying to the dev environment.
    DeployDev,
    /// Deploying to the production environment.
    DeployProd,
    /// Reading logs and errors of both environments, and the deployed files that they refer to.
    Logs,
}

/// The deploy token to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewDeployToken)]
pub struct WantedToken {
    /// A name that says what it is for: one line. No other valid token of the project has it.
    #[schema(min_length = 1, max_length = 60, example = "GitHub Actions")]
    name: String,
    /// What it allows.
    #[schema(value_type = Vec<ScopeName>, min_items = 1)]
    scopes: BTreeSet<Scope>,
    /// For how many days it is valid; default 90.
    #[serde(default = "default_days")]
    #[schema(minimum = 1, maximum = 365, default = 90)]
    days: u16,
}

const fn default_days() -> u16 {
    DEFAULT_DAYS
}

/// A path that names a deploy token.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct TokenPath {
    /// The id of a deploy token.
    #[param(value_type = String)]
    token: Uuid,
}

/// A deploy token, without its text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeployToken)]
pub struct DeployTokenView {
    /// Its id.
    #[schema(format = "uuid")]
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it allows.
    #[schema(value_type = Vec<ScopeName>)]
    pub scopes: Vec<Scope>,
    /// When it was created (RFC 3339).
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it expires (RFC 3339).
    #[schema(format = DateTime)]
    pub expires_at: String,
    /// Whether it has expired.
    pub expired: bool,
    /// The day on which it was last used (UTC); null if it was never used.
    #[schema(required, format = Date, example = "2026-01-31")]
    pub used_on: Option<String>,
}

/// The deploy tokens of a project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeployTokens)]
pub struct DeployTokensView {
    /// The tokens that were not revoked, newest first.
    pub tokens: Vec<DeployTokenView>,
    /// How many valid tokens the project may have.
    #[schema(example = 20)]
    pub most: usize,
}

/// A new deploy token, with its text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedDeployToken)]
pub struct CreatedView {
    /// The token's text. No later response has it.
    #[schema(example = "pdt_…")]
    pub secret: String,
    /// The token.
    #[serde(flatten)]
    pub token: DeployTokenView,
}

impl DeployTokenView {
    fn of(token: DeployToken, now: Millis) -> Self {
        let day = |at: Millis| rfc3339(at).split('T').next().map(str::to_owned);
        Self {
            id: token.id.to_string(),
            name: token.name,
            scopes: token.scopes,
            created_at: rfc3339(token.created_at),
            expires_at: rfc3339(token.expires_at),
            expired: now >= token.expires_at,
            used_on: token.used_at.and_then(day),
        }
    }
}

/// Lists the deploy tokens.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/tokens",
    operation_id = "listDeployTokens",
    params(ProjectPath),
    responses((status = 200, description = "The tokens, without their texts.", body = DeployTokensView))
)]
pub async fn list(
    State(state): State<Arc<ProjectsState>>,
    manager: ProjectManager,
) -> Result<ApiJson<DeployTokensView>, ApiError> {
    let now = state.platform.clock.now();
    let slug = &manager.project.slug;
    let tokens = state.platform.store.list_deploy_tokens(slug).await?;
    Ok(ApiJson(DeployTokensView {
        tokens: tokens
            .into_iter()
            .map(|token| DeployTokenView::of(token, now))
            .collect(),
        most: PER_PROJECT,
    }))
}

/// Creates a deploy token. Only the project's owner may: a token is valid for longer than an
/// administrator's sign-in.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`, `quota-exceeded`, `too-many-requests`.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/tokens",
    operation_id = "createDeployToken",
    params(ProjectPath),
    request_body = WantedToken,
    responses(
        (status = 201, description = "The token with its text, which no later response has.", body = CreatedView),
        (status = 409, description = "`quota-exceeded`: the project has as many valid tokens as it may."),
    )
)]
pub async fn create(
    State(state): State<Arc<ProjectsState>>,
    owner: ProjectOwner,
    ApiJson(wanted): ApiJson<WantedToken>,
) -> Result<(StatusCode, ApiJson<CreatedView>), ApiError> {
    let access = Access::Role(Role::Owner);
    state
        .count(Act::Setting, &owner.caller, &owner.project, access)
        .await?;
    let platform = &state.platform;
    let now = platform.clock.now();
    let secret = DeploySecret::generate(platform.entropy.uuid_v7(now), &*platform.entropy);
    let token = wanted.token(secret.id(), owner.caller.player, now)?;
    let new = NewDeployToken {
        token: token.clone(),
        hash: secret.hash(),
        most: PER_PROJECT,
    };
    let slug = &owner.project.slug;
    let added = platform.store.add_deploy_token(slug, new, owner.by());
    match added.await? {
        AddedDeployToken::Done => {}
        AddedDeployToken::NameTaken => {
            let name = &token.name;
            let sentence = format!("The project already has a deploy token with the name {name}.");
            return Err(invalid(sentence));
        }
        AddedDeployToken::TooMany => {
            return Err(
                ApiError::new(ProblemCode::QuotaExceeded).with_detail(format!(
                    "A project can have {PER_PROJECT} valid deploy tokens. Revoke one first."
                )),
            );
        }
    }
    let view = CreatedView {
        secret: secret.expose().to_owned(),
        token: DeployTokenView::of(token, now),
    };
    Ok((StatusCode::CREATED, ApiJson(view)))
}

/// Revokes a deploy token: the next request with it is refused.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    delete,
    path = "/api/projects/{slug}/tokens/{token}",
    operation_id = "revokeDeployToken",
    params(ProjectPath, TokenPath),
    responses((status = 200, description = "The token, which is revoked.", body = DeployTokenView))
)]
pub async fn revoke(
    State(state): State<Arc<ProjectsState>>,
    manager: ProjectManager,
    token: Result<Path<TokenPath>, PathRejection>,
) -> Result<ApiJson<DeployTokenView>, ApiError> {
    let missing = || {
        ApiError::new(ProblemCode::NotFound)
            .with_detail("This project has no such deploy token, or it was revoked before.")
    };
    let Path(TokenPath { token }) = token.map_err(|_| missing())?;
    let now = state.platform.clock.now();
    let slug = &manager.project.slug;
    let store = &state.platform.store;
    let revoked = store.revoke_deploy_token(slug, token, manager.by(), now);
    let revoked = revoked.await?.ok_or_else(missing)?;
    Ok(ApiJson(DeployTokenView::of(revoked, now)))
}

impl WantedToken {
    /// Returns the new token.
    fn token(self, id: Uuid, created_by: Uuid, now: Millis) -> Result<DeployToken, ApiError> {
        let name = parse_name(&self.name).ok_or_else(|| {
            invalid(format!(
                "A deploy token needs a name: one line of at most {NAME_CHARS} visible characters."
            ))
        })?;
        if self.scopes.is_empty() {
            let scopes = Scope::ALL.map(Scope::as_str).join(", ");
            let sentence = format!("A deploy token needs at least one scope: {scopes}.");
            return Err(invalid(sentence));
        }
        let expires_at = expiry(now, self.days).ok_or_else(|| {
            invalid(format!(
                "A deploy token is valid for at least one day and at most {MAX_DAYS} days."
            ))
        })?;
        Ok(DeployToken {
            id,
            name: name.to_owned(),
            scopes: self.scopes.into_iter().collect(),
            created_by,
            created_at: now,
            expires_at,
            used_at: None,
            revoked_at: None,
        })
    }
}
