//! `PUT` and `DELETE /api/projects/<slug>/handover`, and `POST …/handover/accept`: how a project gets
//! another owner.
//!
//! Whoever owns a project answers for it, and it counts among the projects that an account may own. So
//! the owner offers the project, and keeps it until the heir accepts.

use std::sync::Arc;

use axum::extract::State;
use platform_protocol::people::Role;
use platform_protocol::problem::ProblemCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::people::{self, no_owner, right};
use super::views::ProjectView;
use crate::auth::caller::Access;
use crate::auth::project_caller::{ProjectEditor, ProjectOwner, ProjectPath, ProjectReader};
use crate::domain::date::rfc3339;
use crate::domain::people::{
    EndedHandover, HANDOVER_MILLIS, HandedOn, Handover, NewHandover, OfferedHandover, Right,
};
use crate::projects::ProjectsState;
use crate::projects::settings_limits::Act;
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// The account to offer a project to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Heir {
    /// The id of one of its developers.
    #[schema(value_type = String, format = "uuid")]
    sub: Uuid,
}

/// The offer of a project to one of its developers, who owns it after accepting.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Handover)]
pub struct HandoverView {
    /// The developer's id.
    #[schema(format = "uuid")]
    pub sub: String,
    /// The developer's name now.
    pub username: String,
    /// When the project was offered (RFC 3339).
    #[schema(format = DateTime)]
    pub offered_at: String,
    /// When the offer expires (RFC 3339).
    #[schema(format = DateTime)]
    pub expires_at: String,
}

impl From<Handover> for HandoverView {
    fn from(handover: Handover) -> Self {
        Self {
            sub: handover.heir.to_string(),
            username: handover.username,
            offered_at: rfc3339(handover.offered_at),
            expires_at: rfc3339(handover.expires_at),
        }
    }
}

fn refused(code: ProblemCode, sentence: &'static str) -> ApiError {
    ApiError::new(code).with_detail(sentence)
}

fn not_offered() -> ApiError {
    refused(
        ProblemCode::NotFound,
        "This project is not offered to you, or not any more: an offer ends after seven days, and when \
         its owner withdraws it. Ask the owner for a new one.",
    )
}

/// Offers a project to one of its developers, for seven days and in place of an earlier offer. It stays
/// the caller's until the developer accepts.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`, `too-many-requests`.
#[utoipa::path(
    put,
    path = "/api/projects/{slug}/handover",
    operation_id = "offerHandover",
    params(ProjectPath),
    request_body = Heir,
    responses((status = 200, description = "The offer.", body = HandoverView))
)]
pub async fn offer(
    State(state): State<Arc<ProjectsState>>,
    owner: ProjectOwner,
    ApiJson(heir): ApiJson<Heir>,
) -> Result<ApiJson<HandoverView>, ApiError> {
    let player = owner.caller.player;
    if heir.sub == player {
        let sentence = "The project is yours already.";
        return Err(refused(ProblemCode::InvalidRequest, sentence));
    }
    let (project, access) = (&owner.project, Access::Role(Role::Owner));
    state
        .count(Act::Setting, &owner.caller, project, access)
        .await?;
    let now = state.platform.clock.now();
    let new = NewHandover {
        owner: player,
        heir: heir.sub,
        offered_at: now,
        expires_at: now.saturating_add(HANDOVER_MILLIS),
    };
    let store = &state.platform.store;
    let offered = store.offer_handover(&project.slug, new, owner.by());
    match offered.await? {
        OfferedHandover::Done(handover) => Ok(ApiJson(handover.into())),
        OfferedHandover::NotOwner => Err(no_owner()),
        OfferedHandover::NotADeveloper => Err(refused(
            ProblemCode::NotFound,
            "A project can be offered to one of its developers alone. Invite the account, or make it \
             a developer, first.",
        )),
        OfferedHandover::Suspended => Err(refused(
            ProblemCode::NotAllowed,
            "This account is suspended, and the game would be offline.",
        )),
    }
}

/// Ends the offer of a project: its owner and administrators withdraw it, and the developer to whom it
/// was made declines it.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    delete,
    path = "/api/projects/{slug}/handover",
    operation_id = "endHandover",
    params(ProjectPath),
    responses((status = 200, description = "The offer, which has ended.", body = HandoverView))
)]
pub async fn end(
    State(state): State<Arc<ProjectsState>>,
    mut reader: ProjectReader,
) -> Result<ApiJson<HandoverView>, ApiError> {
    let (slug, now) = (reader.project.slug.clone(), state.platform.clock.now());
    let store = &state.platform.store;
    let mut right = right(&reader);
    let mut ended = store.end_handover(&slug, right, reader.by(), now).await?;
    let is_member = matches!(right, Right::Member(_));
    if ended == EndedHandover::NotOffered && is_member && reader.caller.is_admin {
        // It may be offered to somebody else, which an administrator withdraws.
        let found = reader.caller.project(&state.auth, &slug, Role::Owner);
        (reader.project, reader.access) = found.await?;
        right = people::right(&reader);
        ended = store.end_handover(&slug, right, reader.by(), now).await?;
    }
    match ended {
        EndedHandover::Done(handover) => Ok(ApiJson(handover.into())),
        EndedHandover::NotOwner => Err(no_owner()),
        EndedHandover::NotOffered if matches!(right, Right::Member(_)) => Err(not_offered()),
        EndedHandover::NotOffered => Err(refused(
            ProblemCode::NotFound,
            "This project is not offered to anybody: the offer was accepted or declined, or has \
             expired.",
        )),
    }
}

/// Accepts the offer of a project, which belongs to the caller from then on. The former owner becomes a
/// developer. Deploy tokens, the webhook and open invitations end, since the former owner made them.
///
/// # Errors
/// `not-found`, `not-allowed`, `quota-exceeded`.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/handover/accept",
    operation_id = "acceptHandover",
    params(ProjectPath),
    responses(
        (status = 200, description = "The project, which belongs to the caller.", body = ProjectView),
        (status = 409, description = "`quota-exceeded`: the caller owns as many projects as an account may."),
    )
)]
pub async fn accept(
    State(state): State<Arc<ProjectsState>>,
    heir: ProjectEditor,
) -> Result<ApiJson<ProjectView>, ApiError> {
    let most = match state.platform.config.projects_per_account {
        0 => u32::MAX,
        most => most,
    };
    let (slug, player) = (&heir.project.slug, heir.caller.player);
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    let accepted = store.accept_handover(slug, player, most, heir.by(), now);
    match accepted.await? {
        HandedOn::Done => {}
        HandedOn::NotOffered => return Err(not_offered()),
        HandedOn::Suspended => {
            let sentence = "This account is suspended, and the game would be offline.";
            return Err(refused(ProblemCode::NotAllowed, sentence));
        }
        HandedOn::TooManyProjects => {
            return Err(refused(
                ProblemCode::QuotaExceeded,
                "You own as many projects as an account may. Delete or hand on one of them first; \
                 the offer stays open for seven days.",
            ));
        }
    }
    state.hosting.refresh(slug).await?;
    let found = store.find_project_for(slug, player).await?;
    let (project, role) = found.ok_or_else(no_owner)?;
    Ok(ApiJson(ProjectView::of(&state, project, role).await?))
}
