//! `GET /api/projects/<slug>/people`, and `PUT` and `DELETE …/people/<sub>`: who may do what with a
//! project.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use platform_protocol::names::Environment;
use platform_protocol::people::{PER_PROJECT, Role};
use platform_protocol::problem::ProblemCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::handover::HandoverView;
use super::views::DeployerView;
use crate::auth::caller::Access;
use crate::auth::project_caller::{ProjectOwner, ProjectPath, ProjectReader};
use crate::domain::date::rfc3339;
use crate::domain::people::{
    ChangedMember, Handover, MemberChange, Outlet, Person, Right, SetOutlet,
};
use crate::projects::ProjectsState;
use crate::projects::settings_limits::Act;
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// What somebody may do with a project.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(as = Role, rename_all = "kebab-case")]
pub enum RoleName {
    /// Reads everything of the project, and changes nothing.
    Viewer,
    /// Deploys, rolls back, changes the game's settings, and plays as test players.
    Developer,
    /// Decides besides who else may do what, and whether the game is online.
    Owner,
}

/// The role of a member, who is not the owner.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MemberRole {
    /// Reads everything of the project, and changes nothing.
    Viewer,
    /// Deploys, rolls back, changes the game's settings, and plays as test players.
    Developer,
}

impl From<MemberRole> for Role {
    fn from(role: MemberRole) -> Self {
        match role {
            MemberRole::Viewer => Self::Viewer,
            MemberRole::Developer => Self::Developer,
        }
    }
}

/// A path that names a person of a project.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct PersonPath {
    /// The id of an account, `sub` in its tokens.
    #[param(value_type = String)]
    sub: Uuid,
}

/// Somebody with a role in a project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Person)]
pub struct PersonView {
    /// The account's id.
    #[schema(format = "uuid")]
    pub sub: String,
    /// Its name now.
    pub username: String,
    /// What the person may do.
    #[schema(value_type = RoleName)]
    pub role: Role,
    /// When the person joined (RFC 3339); null for the owner.
    #[schema(required, format = DateTime)]
    pub since: Option<String>,
}

impl From<Person> for PersonView {
    fn from(person: Person) -> Self {
        Self {
            sub: person.player.to_string(),
            username: person.username,
            role: person.role,
            since: person.since.map(rfc3339),
        }
    }
}

/// Where data of a project goes, by an address that its people set.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Outlet)]
pub enum OutletName {
    /// The webhook, which is told about errors.
    Webhook,
    /// The backend of dev, which gets requests of players with their tokens.
    BackendDev,
    /// The backend of prod.
    BackendProd,
}

impl From<Outlet> for OutletName {
    fn from(outlet: Outlet) -> Self {
        match outlet {
            Outlet::Webhook => Self::Webhook,
            Outlet::Backend(Environment::Dev) => Self::BackendDev,
            Outlet::Backend(Environment::Prod) => Self::BackendProd,
        }
    }
}

/// Who set where data of a project goes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SetOutlet)]
pub struct SetOutletView {
    /// Which address it is.
    pub outlet: OutletName,
    /// Who set it last; null if unknown, or if the operator did.
    #[schema(required)]
    pub set_by: Option<DeployerView>,
}

impl From<SetOutlet> for SetOutletView {
    fn from(SetOutlet { outlet, set_by }: SetOutlet) -> Self {
        Self {
            outlet: outlet.into(),
            set_by: set_by.map(|by| DeployerView {
                sub: by.player.to_string(),
                username: Some(by.username),
            }),
        }
    }
}

/// A member after a change of its role or its removal.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChangedPerson)]
pub struct ChangedPersonView {
    /// The account's id.
    #[schema(format = "uuid")]
    pub sub: String,
    /// Its name now.
    pub username: String,
    /// What the person may do now; or might do until the removal.
    #[schema(value_type = RoleName)]
    pub role: Role,
    /// When the person joined (RFC 3339).
    #[schema(required, format = DateTime)]
    pub since: Option<String>,
    /// How many open invitations were withdrawn, because the person may know their links: those that
    /// give more than the person may do now. None if the person left.
    #[schema(example = 0)]
    pub invitations_withdrawn: u32,
    /// What the person has set that stays, though they may not set it any more. Look whether it is still
    /// yours: it gets data of the project.
    pub left: Vec<OutletName>,
}

impl From<MemberChange> for ChangedPersonView {
    fn from(change: MemberChange) -> Self {
        let MemberChange {
            person,
            withdrawn,
            left,
        } = change;
        let PersonView {
            sub,
            username,
            role,
            since,
        } = person.into();
        Self {
            sub,
            username,
            role,
            since,
            invitations_withdrawn: withdrawn,
            left: left.into_iter().map(OutletName::from).collect(),
        }
    }
}

/// The people of a project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = People)]
pub struct PeopleView {
    /// The owner first, then the members in the order in which they joined.
    pub people: Vec<PersonView>,
    /// Where data of the project goes, by addresses that its people set, and who set each.
    pub outlets: Vec<SetOutletView>,
    /// How many people the project may have.
    #[schema(example = 50)]
    pub most: usize,
    /// The offer of the project to one of its developers, which its owner, this developer and
    /// administrators see; null without one.
    #[schema(required)]
    pub handover: Option<HandoverView>,
}

/// The new role of a member.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRole {
    /// What the member may do.
    role: MemberRole,
}

/// Lists the people of a project.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/people",
    operation_id = "listPeople",
    params(ProjectPath),
    responses((status = 200, description = "Its owner and its members.", body = PeopleView))
)]
pub async fn list(
    State(state): State<Arc<ProjectsState>>,
    reader: ProjectReader,
) -> Result<ApiJson<PeopleView>, ApiError> {
    let (store, slug) = (&state.platform.store, &reader.project.slug);
    let people = store.list_people(slug).await?;
    let outlets = store.list_outlets(slug).await?;
    let handover = store
        .find_handover(slug, state.platform.clock.now())
        .await?;
    let right = match reader.caller.is_admin {
        true => Right::Administrator,
        false => right(&reader),
    };
    let concerns = |one: &Handover| right.holds(reader.project.owner, one.heir);
    Ok(ApiJson(PeopleView {
        outlets: outlets.into_iter().map(SetOutletView::from).collect(),
        people: people.into_iter().map(PersonView::from).collect(),
        most: PER_PROJECT,
        handover: handover.filter(concerns).map(HandoverView::from),
    }))
}

/// Returns by what right the caller decides about the people of the project.
pub(super) const fn right(reader: &ProjectReader) -> Right {
    let player = reader.caller.player;
    match reader.access {
        Access::Role(Role::Owner) => Right::Owner(player),
        Access::Role(Role::Viewer | Role::Developer) => Right::Member(player),
        Access::Admin => Right::Administrator,
    }
}

fn no_member() -> ApiError {
    ApiError::new(ProblemCode::NotFound).with_detail("The project has no such member.")
}

/// The caller lost the project between the check of the request and the change.
pub(super) fn no_owner() -> ApiError {
    ApiError::new(ProblemCode::NotAllowed)
        .with_detail("The project belongs to another account now.")
}

/// Gives a member another role, from the member's next request on. If it is less, open invitations
/// for more are withdrawn.
///
/// # Errors
/// `not-found`; `not-allowed`, also for the owner's own role; `invalid-request`.
#[utoipa::path(
    put,
    path = "/api/projects/{slug}/people/{sub}",
    operation_id = "changeRole",
    params(ProjectPath, PersonPath),
    request_body = NewRole,
    responses((status = 200, description = "The member, as it is now.", body = ChangedPersonView))
)]
pub async fn change_role(
    State(state): State<Arc<ProjectsState>>,
    owner: ProjectOwner,
    person: Result<Path<PersonPath>, PathRejection>,
    ApiJson(new): ApiJson<NewRole>,
) -> Result<ApiJson<ChangedPersonView>, ApiError> {
    let Path(PersonPath { sub }) = person.map_err(|_| no_member())?;
    let player = owner.caller.player;
    if sub == player {
        return Err(ApiError::new(ProblemCode::NotAllowed).with_detail(
            "The role of a project's owner changes only when the project is handed on.",
        ));
    }
    let access = Access::Role(Role::Owner);
    let project = &owner.project;
    state
        .count(Act::Setting, &owner.caller, project, access)
        .await?;
    let (to, now) = ((sub, new.role.into()), state.platform.clock.now());
    let store = &state.platform.store;
    let changed = store.change_role(&project.slug, player, to, owner.by(), now);
    match changed.await? {
        ChangedMember::Done(done) => Ok(ApiJson(done.into())),
        ChangedMember::NotOwner => Err(no_owner()),
        ChangedMember::NotAMember => Err(no_member()),
    }
}

/// Removes a member from a project, from the member's next request on. Members may remove
/// themselves; everybody else only the owner and administrators, which withdraws all open
/// invitations.
///
/// # Errors
/// `not-found`; `not-allowed`, also for the owner, who cannot leave.
#[utoipa::path(
    delete,
    path = "/api/projects/{slug}/people/{sub}",
    operation_id = "removePerson",
    params(ProjectPath, PersonPath),
    responses((status = 200, description = "Who was a member.", body = ChangedPersonView))
)]
pub async fn remove(
    State(state): State<Arc<ProjectsState>>,
    mut reader: ProjectReader,
    person: Result<Path<PersonPath>, PathRejection>,
) -> Result<ApiJson<ChangedPersonView>, ApiError> {
    let sub = person.ok().map(|Path(PersonPath { sub })| sub);
    let slug = reader.project.slug.clone();
    if sub != Some(reader.caller.player) {
        let found = reader.caller.project(&state.auth, &slug, Role::Owner);
        (reader.project, reader.access) = found.await?;
    }
    let sub = sub.ok_or_else(no_member)?;
    if reader.project.owner == Some(sub) {
        return Err(ApiError::new(ProblemCode::NotAllowed).with_detail(
            "The owner cannot leave the project. Hand it on to one of its developers first.",
        ));
    }
    let (right, now) = (right(&reader), state.platform.clock.now());
    let store = &state.platform.store;
    let removed = store.remove_member(&slug, right, sub, reader.by(), now);
    match removed.await? {
        ChangedMember::Done(done) => Ok(ApiJson(done.into())),
        ChangedMember::NotOwner => Err(no_owner()),
        ChangedMember::NotAMember => Err(no_member()),
    }
}
