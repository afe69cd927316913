//! Extractors for the caller of the project API, and checks of the caller's rights.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use platform_protocol::names::CONSOLE_AUDIENCE;
use platform_protocol::people::Role;
use platform_protocol::problem::ProblemCode;
use uuid::Uuid;

use crate::auth::AuthState;
use crate::auth::deploy_token_caller::{DeployTokenCaller, has_token, not_for_tokens};
use crate::auth::game_tokens::ConsoleRights;
use crate::auth::refusal_log;
use crate::clock::Millis;
use crate::domain::audit::{Actor, AuditKind, By, Refused, Source};
use crate::domain::console_token::{Hold, Holder};
use crate::domain::player::PlayerState;
use crate::domain::project::Project;
use crate::store::StoreError;
use crate::web::api_error::ApiError;
use crate::web::limiter::too_many_requests;
use crate::web::request_context::Context;

/// The maximum number of characters of a call's path in the audit log.
const CALL_CHARS: usize = 120;

/// The player whose token the request contains. The session or the device for which the token was
/// minted has not ended.
#[derive(Clone, Debug)]
pub struct ApiCaller {
    /// The player.
    pub player: Uuid,
    /// Whether it is a guest.
    pub is_guest: bool,
    /// When the token expires, in milliseconds since the Unix epoch.
    pub expires_at: Millis,
    /// Whether the player is an administrator, named in the settings or granted by a command.
    /// [`Self::administers`] says whether the caller may administer at the moment.
    pub is_admin: bool,
    /// The origin of the request.
    pub source: Source,
    rights: ConsoleRights,
    /// Whether the sign-in is recent enough for administration.
    is_fresh: bool,
    /// Method and path.
    call: String,
}

impl<S> FromRequestParts<S> for ApiCaller
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Ok(context) = Context::from_request_parts(parts, state).await;
        let state = &*Arc::<AuthState>::from_ref(state);
        if has_token(&parts.headers) {
            // Invalid tokens get the same response everywhere.
            DeployTokenCaller::of(state, &parts.headers, context.source()).await?;
            return Err(not_for_tokens());
        }
        let token = state.tokens.of(&parts.headers, CONSOLE_AUDIENCE);
        let token =
            token.ok_or_else(|| not_signed_in(ProblemCode::NotSignedIn.default_detail()))?;
        let rights = token.console.ok_or_else(ended)?;
        state
            .limits
            .calls
            .count(&token.player)
            .await
            .map_err(too_many_requests)?;
        let holder = holder(state, &rights.hold, token.player).await?;
        let path = parts.uri.path().chars().filter(|char| !char.is_control());
        let path: String = path.take(CALL_CHARS).collect();
        Ok(Self {
            player: token.player,
            is_guest: holder.player.is_anonymous(),
            expires_at: Millis::try_from(token.expires_at)
                .unwrap_or(Millis::MAX)
                .saturating_mul(1_000),
            is_admin: is_admin(state, &holder),
            source: context.source(),
            rights,
            is_fresh: holder.is_fresh(state.platform.clock.now()),
            call: format!("{} {path}", parts.method),
        })
    }
}

/// A caller with an account, who may therefore have projects.
#[derive(Clone, Debug)]
pub struct AccountCaller(pub ApiCaller);

impl<S> FromRequestParts<S> for AccountCaller
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = ApiCaller::from_request_parts(parts, state).await?;
        if caller.is_guest {
            return Err(ApiError::new(ProblemCode::NotAllowed)
                .with_detail("Guests cannot have projects. Please sign in first."));
        }
        Ok(Self(caller))
    }
}

/// RFC 6750 §3: includes how to authenticate.
pub(super) fn not_signed_in(sentence: impl Into<Cow<'static, str>>) -> ApiError {
    ApiError::new(ProblemCode::NotSignedIn)
        .with_detail(sentence)
        .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

fn ended() -> ApiError {
    not_signed_in("This sign-in has ended. Please sign in again.")
}

/// Returns the holder of the session or device that the token depends on, unless it has ended. Each
/// request reads the store once, so that an end, a suspension, a grant or a revocation takes effect
/// with the next request.
async fn holder(state: &AuthState, hold: &Hold, player: Uuid) -> Result<Holder, ApiError> {
    let holder = state
        .platform
        .store
        .find_holder(hold, state.platform.clock.now())
        .await?;
    let holder = holder.filter(|holder| holder.player.id == player);
    let holder = holder.ok_or_else(ended)?;
    match &holder.player.state {
        PlayerState::Guest | PlayerState::Account => Ok(holder),
        PlayerState::Merged { .. } => Err(ended()),
        PlayerState::Suspended { reason, .. } => Err(ApiError::suspended(reason.clone())),
    }
}

/// Whether the player may administer; a guest never may.
fn is_admin(state: &AuthState, holder: &Holder) -> bool {
    let named = state.platform.config.admins.contains(&holder.player.id);
    holder.player.state == PlayerState::Account && (named || holder.is_admin)
}

/// Who opened something that outlives the request, and with which sign-in. Whoever keeps it looks
/// the right up again before each use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opener {
    /// The player.
    pub player: Uuid,
    /// The session or device with which the player is signed in.
    pub hold: Hold,
}

impl Opener {
    /// Whether the player, with this sign-in, may act as a developer of the project at the moment:
    /// with a role in it, or as an administrator.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn develops(&self, state: &AuthState, slug: &str) -> Result<bool, StoreError> {
        let (store, now) = (&state.platform.store, state.platform.clock.now());
        let holder = store.find_holder(&self.hold, now).await?;
        let holder = holder.filter(|holder| holder.player.id == self.player);
        let Some(holder) = holder.filter(|holder| holder.player.state == PlayerState::Account)
        else {
            return Ok(false);
        };
        let found = store.find_project_for(slug, self.player).await?;
        let role = found.and_then(|(_, role)| role);
        let administers = is_admin(state, &holder)
            && matches!(self.hold, Hold::Session(_))
            && holder.is_fresh(now);
        Ok(administers || role.is_some_and(|role| role >= Role::Developer))
    }
}

impl ApiCaller {
    /// Returns who calls, and with which sign-in, to look the right up again later.
    #[must_use]
    pub fn opener(&self) -> Opener {
        Opener {
            player: self.player,
            hold: self.rights.hold,
        }
    }

    /// Checks again whether the caller is signed in and may administer, so that a long request does
    /// not outlive the caller's rights.
    ///
    /// # Errors
    /// `not-signed-in`, `account-suspended`; errors of the store.
    pub async fn look_again(&mut self, state: &AuthState) -> Result<(), ApiError> {
        let holder = holder(state, &self.rights.hold, self.player).await?;
        self.is_admin = is_admin(state, &holder);
        self.is_fresh = holder.is_fresh(state.platform.clock.now());
        Ok(())
    }

    /// Rejects callers who may not administer at the moment, and records this.
    ///
    /// # Errors
    /// `not-allowed`, `step-up-required`.
    pub async fn administration(&self, state: &AuthState) -> Result<(), ApiError> {
        let refusal = if self.is_admin {
            self.step_up("")
        } else {
            let alone = "Only administrators may do this.";
            Some(ApiError::new(ProblemCode::NotAllowed).with_detail(alone))
        };
        match refusal {
            Some(refusal) => Err(self.refused(state, refusal).await),
            None => Ok(()),
        }
    }

    /// Whether the caller may administer at the moment, with this token.
    #[must_use]
    pub fn administers(&self) -> bool {
        self.is_admin && self.step_up("").is_none()
    }

    /// Returns why an administrator may not administer at the moment; `about` is the first
    /// sentence.
    fn step_up(&self, about: &str) -> Option<ApiError> {
        let sentence = if !self.rights.may_administer {
            "Administration needs a sign-in in a browser within the last 15 minutes. A device \
             cannot administer. Use the platform's own pages."
        } else if !self.is_fresh {
            "Administration needs a sign-in within the last 15 minutes. Please sign in again."
        } else {
            return None;
        };
        let detail = format!("{about}{sentence}");
        Some(ApiError::new(ProblemCode::StepUpRequired).with_detail(detail))
    }

    /// Records that administration was refused.
    async fn refused(&self, state: &AuthState, refusal: ApiError) -> ApiError {
        let refused = Refused {
            kind: AuditKind::AdministrationRefused,
            player: Some(self.player),
            subject: Some(refusal.slug().as_str().to_owned()),
            detail: self.call.clone(),
        };
        refusal_log::keep(state, refused, self.source.clone()).await;
        refusal
    }

    /// Returns the project with this slug, and by what right the caller acts on it: with a role of
    /// at least `least`, or as an administrator with a recent sign-in.
    ///
    /// # Errors
    /// `not-found`, `not-allowed`, `step-up-required`.
    pub async fn project(
        &self,
        state: &AuthState,
        slug: &str,
        least: Role,
    ) -> Result<(Project, Access), ApiError> {
        let store = &state.platform.store;
        let found = store.find_project_for(slug, self.player).await?;
        let (project, role) = found.ok_or_else(|| {
            ApiError::new(ProblemCode::NotFound).with_detail("This project does not exist.")
        })?;
        if let Some(role) = role.filter(|role| *role >= least) {
            return Ok((project, Access::Role(role)));
        }
        if !self.is_admin {
            return Err(refusal(role, least));
        }
        if self.rights.may_administer && self.is_fresh {
            return Ok((project, Access::Admin));
        }
        let owner = match project.owner {
            None => Cow::Borrowed("the platform itself"),
            Some(owner) => match store.find_player(owner).await? {
                Some(owner) => owner.username.into(),
                None => Cow::Borrowed("somebody else"),
            },
        };
        let about = format!("The project {slug} belongs to {owner}, not to you. ");
        match self.step_up(&about) {
            Some(refusal) => Err(self.refused(state, refusal).await),
            None => Ok((project, Access::Admin)),
        }
    }

    /// Returns the project for a call that changes it, or acts as its developer.
    ///
    /// # Errors
    /// `not-found`, `not-allowed`, `step-up-required`, `project-disabled` for a
    /// deleted one.
    pub async fn project_to_change(
        &self,
        state: &AuthState,
        slug: &str,
        least: Role,
    ) -> Result<(Project, Access), ApiError> {
        let found = self.project(state, slug, least).await?;
        check_not_deleted(state, slug).await?;
        Ok(found)
    }

    /// Returns the actor that the audit log records for the caller's act on a project.
    #[must_use]
    pub fn by(&self, access: Access) -> By {
        let actor = match access {
            Access::Role(Role::Owner) => Actor::Own,
            Access::Role(Role::Viewer | Role::Developer) => Actor::Member(self.player),
            Access::Admin => Actor::Admin(self.player),
        };
        By::request(actor, self.source.clone())
    }
}

/// By what right a caller acts on a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// With a role in it.
    Role(Role),
    /// As an administrator, without a role that suffices.
    Admin,
}

impl Access {
    /// The role, unless the caller acts as an administrator.
    #[must_use]
    pub const fn role(self) -> Option<Role> {
        match self {
            Self::Role(role) => Some(role),
            Self::Admin => None,
        }
    }
}

/// Returns why somebody with this role may not do what needs the role `least`.
fn refusal(role: Option<Role>, least: Role) -> ApiError {
    let sentence = match (role, least) {
        (None, _) => "This project belongs to another account.",
        (Some(_), Role::Owner) => "Only the owner of the project may do this.",
        (Some(_), _) => {
            "You are a viewer of this project: you can read everything, and change nothing. Its \
             owner can make you a developer."
        }
    };
    ApiError::new(ProblemCode::NotAllowed).with_detail(sentence)
}

/// Checks that a project is not deleted.
///
/// # Errors
/// `project-disabled`
pub(super) async fn check_not_deleted(state: &AuthState, slug: &str) -> Result<(), ApiError> {
    let standing = state.platform.store.find_standing(slug).await?;
    if standing.is_some_and(|standing| standing.deleted.is_some()) {
        return Err(ApiError::new(ProblemCode::ProjectDisabled)
            .with_detail("This project is deleted. Restore it first."));
    }
    Ok(())
}
