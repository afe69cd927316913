//! `GET` and `POST /api/projects/<slug>/invitations`, `DELETE …/invitations/<invitation>`, and
//! `POST /api/invitations/read` and `accept`: how people join a project.
//!
//! Whoever has an invitation's link may use it, so its secret is treated like one: it is in the
//! fragment of the link, which browsers send to no server, and in the body of a request, which no
//! log has.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use platform_protocol::paths::INVITATION_PAGE;
use platform_protocol::people::{OPEN_INVITATIONS, PER_PROJECT, PROJECTS_OF_OTHERS, Role};
use platform_protocol::problem::ProblemCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::people::{MemberRole, RoleName, no_owner};
use crate::auth::caller::{Access, AccountCaller, ApiCaller};
use crate::auth::project_caller::{ProjectManager, ProjectOwner, ProjectPath};
use crate::domain::date::rfc3339;
use crate::domain::people::{
    AcceptedInvitation, AddedInvitation, INVITATION_MILLIS, Invitation, InvitationSecret,
    NewInvitation, PeopleLimits, Right, WithdrawnInvitation,
};
use crate::projects::ProjectsState;
use crate::projects::settings_limits::Act;
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// The invitation to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewInvitation)]
pub struct WantedInvitation {
    /// What whoever accepts it may do.
    role: MemberRole,
}

/// A path that names an invitation.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct InvitationPath {
    /// The id of an invitation.
    #[param(value_type = String)]
    invitation: Uuid,
}

/// An open invitation, without its link.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Invitation)]
pub struct InvitationView {
    /// Its id.
    #[schema(format = "uuid")]
    pub id: String,
    /// What whoever accepts it may do.
    #[schema(value_type = RoleName)]
    pub role: Role,
    /// When it was created (RFC 3339).
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it expires (RFC 3339).
    #[schema(format = DateTime)]
    pub expires_at: String,
}

impl From<Invitation> for InvitationView {
    fn from(invitation: Invitation) -> Self {
        Self {
            id: invitation.id.to_string(),
            role: invitation.role,
            created_at: rfc3339(invitation.created_at),
            expires_at: rfc3339(invitation.expires_at),
        }
    }
}

/// The open invitations of a project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Invitations)]
pub struct InvitationsView {
    /// Newest first.
    pub invitations: Vec<InvitationView>,
    /// How many there may be.
    #[schema(example = 20)]
    pub most: usize,
}

/// A new invitation, with its link.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedInvitation)]
pub struct CreatedView {
    /// The page on which one account can accept it. No later response has it.
    #[schema(
        format = "uri",
        example = "https://play.example/invitations#platform_in_…"
    )]
    pub link: String,
    /// The invitation.
    #[serde(flatten)]
    pub invitation: InvitationView,
}

/// The secret of an invitation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InvitationSecret)]
pub struct Secret {
    /// What the link has behind `#`.
    #[schema(max_length = 100)]
    secret: String,
}

/// What an invitation offers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Offer)]
pub struct OfferView {
    /// The project.
    #[schema(example = "my-game")]
    pub slug: String,
    /// The name of the project's owner.
    #[schema(required)]
    pub owner_username: Option<String>,
    /// What whoever accepts it may do.
    #[schema(value_type = RoleName)]
    pub role: Role,
    /// The caller's role in the project so far; null without one.
    #[schema(required, value_type = Option<RoleName>)]
    pub your_role: Option<Role>,
    /// When it expires (RFC 3339).
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// The role that the caller has in a project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Membership)]
pub struct MembershipView {
    /// The project.
    #[schema(example = "my-game")]
    pub slug: String,
    /// What the caller may do.
    #[schema(value_type = RoleName)]
    pub role: Role,
}

/// Lists the open invitations of a project.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/invitations",
    operation_id = "listInvitations",
    params(ProjectPath),
    responses((status = 200, description = "The invitations, without their links.", body = InvitationsView))
)]
pub async fn list(
    State(state): State<Arc<ProjectsState>>,
    manager: ProjectManager,
) -> Result<ApiJson<InvitationsView>, ApiError> {
    let now = state.platform.clock.now();
    let store = &state.platform.store;
    let open = store.list_invitations(&manager.project.slug, now).await?;
    Ok(ApiJson(InvitationsView {
        invitations: open.into_iter().map(InvitationView::from).collect(),
        most: OPEN_INVITATIONS,
    }))
}

/// Creates an invitation, which one account can accept within seven days. Only the project's owner
/// may: a role lasts for longer than an administrator's sign-in.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`, `quota-exceeded`, `too-many-requests`.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/invitations",
    operation_id = "createInvitation",
    params(ProjectPath),
    request_body = WantedInvitation,
    responses(
        (status = 201, description = "The invitation with its link, which no later response has.", body = CreatedView),
        (status = 409, description = "`quota-exceeded`: the project has as many open invitations as it may."),
    )
)]
pub async fn create(
    State(state): State<Arc<ProjectsState>>,
    owner: ProjectOwner,
    ApiJson(wanted): ApiJson<WantedInvitation>,
) -> Result<(StatusCode, ApiJson<CreatedView>), ApiError> {
    let (platform, project) = (&state.platform, &owner.project);
    let access = Access::Role(Role::Owner);
    state
        .count(Act::Setting, &owner.caller, project, access)
        .await?;
    let now = platform.clock.now();
    let secret = InvitationSecret::generate(&*platform.entropy);
    let invitation = Invitation {
        id: platform.entropy.uuid_v7(now),
        role: wanted.role.into(),
        created_at: now,
        expires_at: now.saturating_add(INVITATION_MILLIS),
    };
    let new = NewInvitation {
        invitation: invitation.clone(),
        hash: secret.hash(),
        owner: owner.caller.player,
        most: OPEN_INVITATIONS,
    };
    let added = platform
        .store
        .add_invitation(&project.slug, new, owner.by());
    match added.await? {
        AddedInvitation::Done => {}
        AddedInvitation::NotOwner => {
            return Err(no_owner());
        }
        AddedInvitation::TooMany => {
            return Err(
                ApiError::new(ProblemCode::QuotaExceeded).with_detail(format!(
                    "A project can have {OPEN_INVITATIONS} open invitations. Withdraw one first."
                )),
            );
        }
    }
    let link = format!("{}{INVITATION_PAGE}#{}", platform.origin, secret.expose());
    let invitation = invitation.into();
    Ok((
        StatusCode::CREATED,
        ApiJson(CreatedView { link, invitation }),
    ))
}

/// Withdraws an open invitation: its link leads nowhere from now on.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    delete,
    path = "/api/projects/{slug}/invitations/{invitation}",
    operation_id = "withdrawInvitation",
    params(ProjectPath, InvitationPath),
    responses((status = 200, description = "The invitation, which is withdrawn.", body = InvitationView))
)]
pub async fn withdraw(
    State(state): State<Arc<ProjectsState>>,
    manager: ProjectManager,
    invitation: Result<Path<InvitationPath>, PathRejection>,
) -> Result<ApiJson<InvitationView>, ApiError> {
    let missing = || {
        ApiError::new(ProblemCode::NotFound).with_detail(
            "The project has no such invitation: it was accepted or withdrawn, or has expired.",
        )
    };
    let Path(InvitationPath { invitation }) = invitation.map_err(|_| missing())?;
    let right = match manager.access {
        Access::Role(_) => Right::Owner(manager.caller.player),
        Access::Admin => Right::Administrator,
    };
    let now = state.platform.clock.now();
    let (store, slug) = (&state.platform.store, &manager.project.slug);
    let withdrawn = store.withdraw_invitation(slug, right, invitation, manager.by(), now);
    match withdrawn.await? {
        WithdrawnInvitation::Done(invitation) => Ok(ApiJson(invitation.into())),
        WithdrawnInvitation::NotOwner => Err(no_owner()),
        WithdrawnInvitation::Gone => Err(missing()),
    }
}

fn gone() -> ApiError {
    ApiError::new(ProblemCode::NotFound).with_detail(
        "This invitation does not exist, or not any more: each can be accepted once, within seven \
         days. Ask the project's owner for a new one.",
    )
}

/// Shows what an invitation offers, before it is accepted.
///
/// # Errors
/// `not-found`.
#[utoipa::path(
    post,
    path = "/api/invitations/read",
    operation_id = "readInvitation",
    request_body = Secret,
    responses(
        (status = 200, description = "The project and the role.", body = OfferView),
        (status = 404, description = "`not-found`: the invitation is not open any more, or never was."),
    )
)]
pub async fn read(
    State(state): State<Arc<ProjectsState>>,
    caller: ApiCaller,
    ApiJson(Secret { secret }): ApiJson<Secret>,
) -> Result<ApiJson<OfferView>, ApiError> {
    let secret = InvitationSecret::parse(&secret).ok_or_else(gone)?;
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    let found = store.find_invitation(secret.hash(), now).await?;
    let found = found.ok_or_else(gone)?;
    let owner = match found.project.owner {
        Some(owner) => store.find_player(owner).await?,
        None => None,
    };
    let slug = found.project.slug;
    let standing = store.find_project_for(&slug, caller.player).await?;
    Ok(ApiJson(OfferView {
        owner_username: owner.map(|owner| owner.username),
        role: found.invitation.role,
        your_role: standing.and_then(|(_, role)| role),
        expires_at: rfc3339(found.invitation.expires_at),
        slug,
    }))
}

/// Accepts an invitation, which nobody else can accept then.
///
/// # Errors
/// `not-allowed` for guests, `not-found`, `quota-exceeded`.
#[utoipa::path(
    post,
    path = "/api/invitations/accept",
    operation_id = "acceptInvitation",
    request_body = Secret,
    responses(
        (status = 200, description = "The caller's role in the project.", body = MembershipView),
        (status = 404, description = "`not-found`: the invitation is not open any more, or never was."),
        (status = 409, description = "`quota-exceeded`: the project has as many people as it may, or the account is in as many projects of others."),
    )
)]
pub async fn accept(
    State(state): State<Arc<ProjectsState>>,
    AccountCaller(caller): AccountCaller,
    ApiJson(Secret { secret }): ApiJson<Secret>,
) -> Result<ApiJson<MembershipView>, ApiError> {
    let secret = InvitationSecret::parse(&secret).ok_or_else(gone)?;
    let limits = PeopleLimits {
        people: PER_PROJECT,
        projects: PROJECTS_OF_OTHERS,
    };
    // Whoever accepts is a member from then on, whatever the role.
    let by = caller.by(Access::Role(Role::Viewer));
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    let accepted = store.accept_invitation(secret.hash(), caller.player, limits, by, now);
    let full = |sentence| Err(ApiError::new(ProblemCode::QuotaExceeded).with_detail(sentence));
    match accepted.await? {
        AcceptedInvitation::Done(slug, role) | AcceptedInvitation::Already(slug, role) => {
            Ok(ApiJson(MembershipView { slug, role }))
        }
        AcceptedInvitation::Gone => Err(gone()),
        AcceptedInvitation::NotAnAccount => Err(ApiError::new(ProblemCode::NotAllowed)
            .with_detail("Guests cannot have projects. Please sign in first.")),
        AcceptedInvitation::TooManyPeople => full(format!(
            "A project can have {PER_PROJECT} people, and this one has as many. Ask its owner to \
             remove somebody first."
        )),
        AcceptedInvitation::TooManyProjects => full(format!(
            "You are in {PROJECTS_OF_OTHERS} projects of others, the limit for one account. Leave \
             one of them first."
        )),
    }
}
