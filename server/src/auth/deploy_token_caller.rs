//! Callers with a deploy token: programs that may do a few things with one project.
//!
//! The token is read from the store at each request, so that a revocation takes effect with the
//! next one, on every node. Only the extractors of `scoped_caller` accept these callers.

use axum::http::HeaderMap;
use platform_protocol::deploy_token::{PREFIX, Scope};
use platform_protocol::problem::ProblemCode;
use platform_verifier::{Credentials, bearer};

use crate::auth::AuthState;
use crate::auth::caller::not_signed_in;
use crate::domain::audit::{By, Source};
use crate::domain::deploy_token::{DeploySecret, DeployToken, FoundDeployToken};
use crate::domain::errors::chain;
use crate::domain::project::Project;
use crate::web::api_error::ApiError;
use crate::web::limiter::too_many_requests;

/// A caller whose deploy token is valid.
#[derive(Clone, Debug)]
pub struct DeployTokenCaller {
    /// The token.
    pub token: DeployToken,
    /// The token's project.
    pub project: Project,
    /// The origin of the request.
    pub source: Source,
    secret: DeploySecret,
}

/// Whether a request has a deploy token, valid or not.
pub(super) fn has_token(headers: &HeaderMap) -> bool {
    text(headers).is_some()
}

fn text(headers: &HeaderMap) -> Option<&str> {
    match bearer(headers) {
        Credentials::Token(text) if text.starts_with(PREFIX) => Some(text),
        _ => None,
    }
}

/// The refusal of a valid token for a call that no deploy token may make.
pub(super) fn not_for_tokens() -> ApiError {
    ApiError::new(ProblemCode::NotAllowed).with_detail(
        "A deploy token only allows what its scopes say: deploying its project, or reading its \
         logs. Sign in for everything else.",
    )
}

impl DeployTokenCaller {
    /// Returns the caller with the token of a request.
    ///
    /// # Errors
    /// `not-signed-in` if it is not valid, which says why; `account-suspended` if the project's
    /// owner is; `too-many-requests`.
    pub(super) async fn of(
        state: &AuthState,
        headers: &HeaderMap,
        source: Source,
    ) -> Result<Self, ApiError> {
        let damaged = "This is not a complete deploy token. Copy it again, or create another one.";
        let secret = text(headers).and_then(DeploySecret::parse);
        let secret = secret.ok_or_else(|| not_signed_in(damaged))?;
        let (unknown, hash) = (&state.limits.unknown_tokens, secret.hash());
        unknown.count(&hash, &source.network)?;
        let found = look_up(state, &secret).await;
        // A token that was not looked up, or whose owner is suspended, may be as valid as before.
        match &found {
            Ok(_) => unknown.keep(hash, true),
            Err(error) if error.slug() == ProblemCode::NotSignedIn => unknown.keep(hash, false),
            Err(_) => {}
        }
        let FoundDeployToken { token, project, .. } = found?;
        state
            .limits
            .calls
            .count(&token.id)
            .await
            .map_err(too_many_requests)?;
        note_use(state, &token).await;
        Ok(Self {
            token,
            project,
            source,
            secret,
        })
    }

    /// Checks that the token is for this project, and has the scope.
    ///
    /// # Errors
    /// `not-allowed`
    pub(super) fn check(&self, slug: &str, scope: Scope) -> Result<(), ApiError> {
        let name = &self.token.name;
        if self.project.slug != slug {
            let own = &self.project.slug;
            let detail = format!("The deploy token “{name}” is for the project {own} only.");
            return Err(ApiError::new(ProblemCode::NotAllowed).with_detail(detail));
        }
        if !self.token.scopes.contains(&scope) {
            let scope = scope.as_str();
            let detail = format!("The deploy token “{name}” does not have the scope {scope}.");
            return Err(ApiError::new(ProblemCode::NotAllowed).with_detail(detail));
        }
        Ok(())
    }

    /// Checks again whether the token is valid, so that a long request does not outlive it.
    ///
    /// # Errors
    /// `not-signed-in`, `account-suspended`; errors of the store.
    pub(super) async fn look_again(&mut self, state: &AuthState) -> Result<(), ApiError> {
        let found = look_up(state, &self.secret).await?;
        self.token = found.token;
        self.project = found.project;
        Ok(())
    }

    /// Returns the actor that the audit log records for an act with the token.
    #[must_use]
    pub fn by(&self) -> By {
        By::deploy_token(self.token.name.clone(), self.source.clone())
    }
}

/// Returns the token that the client sent, if it is valid.
async fn look_up(state: &AuthState, secret: &DeploySecret) -> Result<FoundDeployToken, ApiError> {
    let store = &state.platform.store;
    let found = store.find_deploy_token(secret.id()).await?;
    let found = found.filter(|found| found.is(secret));
    let found = found.ok_or_else(|| {
        not_signed_in("This deploy token does not exist. It was created on another platform, or its project was removed.")
    })?;
    if let Some(fault) = found.token.fault(state.platform.clock.now()) {
        return Err(not_signed_in(fault));
    }
    if found.owner_is_suspended {
        return Err(ApiError::new(ProblemCode::AccountSuspended)
            .with_detail("The owner of this token's project is suspended."));
    }
    Ok(found)
}

/// Records the day of the use. The request does not depend on it.
async fn note_use(state: &AuthState, token: &DeployToken) {
    let Some(day) = token.new_use(state.platform.clock.now()) else {
        return;
    };
    let store = &state.platform.store;
    if let Err(error) = store.note_deploy_token_use(token.id, day).await {
        tracing::warn!(
            error = chain(&error),
            "the use of a deploy token was not recorded"
        );
    }
}
