//! The log of security events: what happened to which player and when, as ids, and the reasons of
//! suspensions.

use uuid::Uuid;

use crate::clock::Millis;

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// The player of the event; without a player, the platform itself.
    Own,
    /// The operator, by a command of the server.
    Operator,
    /// An administrator.
    Admin(Uuid),
    /// A member of the event's project, who is not its owner.
    Member(Uuid),
}

/// The origin of an act.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The address (IPv4, or IPv6 /64).
    pub network: String,
    /// The id of the request, which is in the server's log as well.
    pub request: String,
}

/// Who acted, and from where. The store gets this with every act that the log keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct By {
    /// Who.
    pub actor: Actor,
    /// The origin; `None` if there was no request.
    pub source: Option<Source>,
    /// The name of the deploy token with which it was done, as [`Actor::Own`].
    pub deploy_token: Option<String>,
}

impl By {
    /// An act by a request.
    #[must_use]
    pub const fn request(actor: Actor, source: Source) -> Self {
        Self {
            actor,
            source: Some(source),
            deploy_token: None,
        }
    }

    /// An act by a request with the deploy token of this name.
    #[must_use]
    pub const fn deploy_token(name: String, source: Source) -> Self {
        Self {
            actor: Actor::Own,
            source: Some(source),
            deploy_token: Some(name),
        }
    }

    /// Returns who acted on a project of this owner; `None` for the operator, and for the platform
    /// itself.
    #[must_use]
    pub fn person(&self, owner: Option<Uuid>) -> Option<Uuid> {
        match self.actor {
            Actor::Own => owner,
            Actor::Operator => None,
            Actor::Admin(player) | Actor::Member(player) => Some(player),
        }
    }

    /// Returns the detail of an event, which names the deploy token, if there was one.
    #[must_use]
    pub fn detail(&self, detail: &str) -> String {
        match &self.deploy_token {
            Some(name) => format!("{detail} with the deploy token {name}"),
            None => detail.to_owned(),
        }
    }
}

/// An act without a request.
impl From<Actor> for By {
    fn from(actor: Actor) -> Self {
        Self {
            actor,
            source: None,
            deploy_token: None,
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuditKind {
    /// A guest was linked to a new identity and is an account now.
    Linked,
    /// A guest (`player`) was merged into an account (`other`).
    Merged,
    /// A known identity signed in to its account.
    SignedIn,
    /// An account was made for a new identity, without a guest.
    Created,
    /// A player changed their name.
    Renamed,
    /// A sign-in failed: `subject` is the provider, `detail` why. The player is unknown.
    SignInFailed,
    /// A player signed out, in one browser.
    SignedOut,
    /// A browser restored a guest that was signed out; `other` is the guest that the browser had
    /// meanwhile, and which was signed out by this.
    GuestRestored,
    /// Sessions of a player were ended.
    SessionsEnded,
    /// A player was suspended; `subject` is the reason, if one was given.
    Suspended,
    /// A suspension was lifted.
    Unsuspended,
    /// A player asked to be deleted, or the operator did; `detail` is the day on which it happens.
    DeletionAsked,
    /// The deletion of a player was taken back.
    DeletionTakenBack,
    /// A player was deleted. The event does not say who.
    PlayerDeleted,
    /// A player approved the sign-in of a device.
    DeviceApproved,
    /// A player denied the sign-in of a device.
    DeviceDenied,
    /// A device's sign-in was ended, by the device or by the player.
    DeviceRevoked,
    /// A device's refresh token was used a second time, which ended its sign-in.
    DeviceTokenReused,
    /// A signing key was added.
    KeyAdded,
    /// A signing key (`subject`) was revoked.
    KeyRevoked,
    /// A player became an administrator.
    AdminGranted,
    /// A player is no longer an administrator.
    AdminRevoked,
    /// A project (`subject`) was transferred to a player, from another one (`other`).
    ProjectTransferred,
    /// A call for administrators was refused: the caller is no administrator, or the sign-in does
    /// not allow it; `detail` is the call.
    AdministrationRefused,
    /// There were too many events of one kind (`subject`) to keep them all; `detail` is how many
    /// were left out since the last such event.
    EventsLeftOut,
    /// A project (`subject`) was created; its owner is `player`.
    ProjectCreated,
    /// A project (`subject`) was deployed; `detail` is the environment and the deployment. `player`
    /// is the owner, here and below.
    Deployed,
    /// An earlier deployment of a project (`subject`) was made current again; `detail` is the
    /// environment, the deployment, and the one that was current before.
    RolledBack,
    /// The backend of a project (`subject`) was set or removed; `detail` is the environment and the
    /// address.
    BackendChanged,
    /// Another setting of a project (`subject`) was changed; `detail` says which.
    SettingChanged,
    /// A token for one of a project's (`subject`) test players was issued; `detail` names the test
    /// player. Recorded once an hour.
    TestTokenGiven,
    /// An administrator got access to another player's project (`subject`), to change it or to play
    /// it as a test player; its owner is `player`.
    ProjectAdministered,
    /// A deploy token of a project (`subject`) was created; `detail` is its name and its scopes.
    DeployTokenCreated,
    /// A deploy token of a project (`subject`) was revoked; `detail` is its name.
    DeployTokenRevoked,
    /// A project (`subject`) got a webhook, or it was changed; `detail` is its address without the
    /// path, and whether it has a new secret.
    WebhookSet,
    /// The webhook of a project (`subject`) was removed; `detail` is its address without the path.
    WebhookRemoved,
    /// The webhook of a project (`subject`) was turned off, because its receiver said that it is
    /// gone; `detail` is its address without the path.
    WebhookTurnedOff,
    /// An invitation to a project (`subject`) was created; `detail` is the role that it gives.
    InvitationCreated,
    /// An invitation to a project (`subject`) was withdrawn; `detail` is the role that it gave.
    InvitationWithdrawn,
    /// Somebody (`other`) joined a project (`subject`) by an invitation; `detail` is the role.
    MemberJoined,
    /// A member (`other`) of a project (`subject`) got another role; `detail` is the role before
    /// and the new one, and what a viewer has set as a developer.
    MemberRoleChanged,
    /// A member (`other`) of a project (`subject`) left it or was removed; `detail` is the role, and
    /// what the member has set that stays.
    MemberRemoved,
    /// The owner (`player`) of a project (`subject`) offered it to one of its developers (`other`).
    HandoverOffered,
    /// The offer of a project (`subject`) to one of its developers (`other`) was withdrawn.
    HandoverWithdrawn,
    /// One of the developers (`other`) of a project (`subject`) declined it.
    HandoverDeclined,
    /// The owner (`player`) of a project (`subject`) handed it on to another player (`other`), who
    /// accepted it, and is one of its developers now.
    ProjectHandedOn,
    /// Somebody resolved, ignored or reopened a group of errors of a project (`subject`); `detail` is
    /// the environment, the group and the new state.
    ErrorDecided,
    /// Groups of errors of a project (`subject`) were deleted; `detail` is the environment, and the
    /// group, or the state of those that were deleted.
    ErrorsDeleted,
    /// A preview of a project (`subject`) was deployed; `detail` is its name and the deployment.
    PreviewDeployed,
    /// A preview of a project (`subject`) was removed, or has ended; `detail` is its name.
    PreviewRemoved,
    /// A project (`subject`) claimed a domain; `detail` is the environment and the domain, here and
    /// below.
    DomainAdded,
    /// The domain of a project (`subject`) was proven, and is in service.
    DomainActivated,
    /// The domain of a project (`subject`) is in service, but its records are not in order any more.
    DomainFailing,
    /// The domain of a project (`subject`) was taken out of service, because it failed for too long.
    DomainTakenOff,
    /// A domain of a project (`subject`) was removed, or its claim has lapsed.
    DomainRemoved,
    /// A domain of a project (`subject`) became the environment's canonical address, or no longer is;
    /// `detail` says which as well.
    DomainCanonical,
    /// A project (`subject`) of a player was disabled.
    ProjectDisabled,
    /// A project (`subject`) of a player was enabled again.
    ProjectEnabled,
    /// A project (`subject`) of a player was deleted; it can be restored.
    ProjectDeleted,
    /// A project (`subject`) of a player was restored.
    ProjectRestored,
    /// A deleted project (`subject`) was permanently removed.
    ProjectRemoved,
}

impl AuditKind {
    /// Every kind.
    pub const ALL: [Self; 61] = [
        Self::Linked,
        Self::Merged,
        Self::SignedIn,
        Self::Created,
        Self::Renamed,
        Self::SignInFailed,
        Self::SignedOut,
        Self::GuestRestored,
        Self::SessionsEnded,
        Self::Suspended,
        Self::Unsuspended,
        Self::DeletionAsked,
        Self::DeletionTakenBack,
        Self::PlayerDeleted,
        Self::DeviceApproved,
        Self::DeviceDenied,
        Self::DeviceRevoked,
        Self::DeviceTokenReused,
        Self::KeyAdded,
        Self::KeyRevoked,
        Self::AdminGranted,
        Self::AdminRevoked,
        Self::ProjectTransferred,
        Self::AdministrationRefused,
        Self::EventsLeftOut,
        Self::ProjectCreated,
        Self::Deployed,
        Self::RolledBack,
        Self::BackendChanged,
        Self::SettingChanged,
        Self::TestTokenGiven,
        Self::ProjectAdministered,
        Self::DeployTokenCreated,
        Self::DeployTokenRevoked,
        Self::WebhookSet,
        Self::WebhookRemoved,
        Self::WebhookTurnedOff,
        Self::InvitationCreated,
        Self::InvitationWithdrawn,
        Self::MemberJoined,
        Self::MemberRoleChanged,
        Self::MemberRemoved,
        Self::HandoverOffered,
        Self::HandoverWithdrawn,
        Self::HandoverDeclined,
        Self::ProjectHandedOn,
        Self::ErrorDecided,
        Self::ErrorsDeleted,
        Self::PreviewDeployed,
        Self::PreviewRemoved,
        Self::DomainAdded,
        Self::DomainActivated,
        Self::DomainFailing,
        Self::DomainTakenOff,
        Self::DomainRemoved,
        Self::DomainCanonical,
        Self::ProjectDisabled,
        Self::ProjectEnabled,
        Self::ProjectDeleted,
        Self::ProjectRestored,
        Self::ProjectRemoved,
    ];

    /// The kinds that are kept for [`ROUTINE_MILLIS`] only.
    pub const ROUTINE: [Self; 8] = [
        Self::SignInFailed,
        Self::SignedOut,
        Self::GuestRestored,
        Self::AdministrationRefused,
        Self::EventsLeftOut,
        Self::TestTokenGiven,
        Self::ErrorDecided,
        Self::ErrorsDeleted,
    ];

    /// The name in the store and in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Linked => "linked",
            Self::Merged => "merged",
            Self::SignedIn => "signed-in",
            Self::Created => "created",
            Self::Renamed => "renamed",
            Self::SignInFailed => "sign-in-failed",
            Self::SignedOut => "signed-out",
            Self::GuestRestored => "guest-restored",
            Self::SessionsEnded => "sessions-ended",
            Self::Suspended => "suspended",
            Self::Unsuspended => "unsuspended",
            Self::DeletionAsked => "deletion-asked",
            Self::DeletionTakenBack => "deletion-taken-back",
            Self::PlayerDeleted => "player-deleted",
            Self::DeviceApproved => "device-approved",
            Self::DeviceDenied => "device-denied",
            Self::DeviceRevoked => "device-revoked",
            Self::DeviceTokenReused => "device-token-reused",
            Self::KeyAdded => "key-added",
            Self::KeyRevoked => "key-revoked",
            Self::AdminGranted => "admin-granted",
            Self::AdminRevoked => "admin-revoked",
            Self::ProjectTransferred => "project-transferred",
            Self::AdministrationRefused => "administration-refused",
            Self::EventsLeftOut => "events-left-out",
            Self::ProjectCreated => "project-created",
            Self::Deployed => "deployed",
            Self::RolledBack => "rolled-back",
            Self::BackendChanged => "backend-changed",
            Self::SettingChanged => "setting-changed",
            Self::TestTokenGiven => "test-token-given",
            Self::ProjectAdministered => "project-administered",
            Self::DeployTokenCreated => "deploy-token-created",
            Self::DeployTokenRevoked => "deploy-token-revoked",
            Self::WebhookSet => "webhook-set",
            Self::WebhookRemoved => "webhook-removed",
            Self::WebhookTurnedOff => "webhook-turned-off",
            Self::InvitationCreated => "invitation-created",
            Self::InvitationWithdrawn => "invitation-withdrawn",
            Self::MemberJoined => "member-joined",
            Self::MemberRoleChanged => "member-role-changed",
            Self::MemberRemoved => "member-removed",
            Self::HandoverOffered => "handover-offered",
            Self::HandoverWithdrawn => "handover-withdrawn",
            Self::HandoverDeclined => "handover-declined",
            Self::ProjectHandedOn => "project-handed-on",
            Self::ErrorDecided => "error-decided",
            Self::ErrorsDeleted => "errors-deleted",
            Self::PreviewDeployed => "preview-deployed",
            Self::PreviewRemoved => "preview-removed",
            Self::DomainAdded => "domain-added",
            Self::DomainActivated => "domain-activated",
            Self::DomainFailing => "domain-failing",
            Self::DomainTakenOff => "domain-taken-off",
            Self::DomainRemoved => "domain-removed",
            Self::DomainCanonical => "domain-canonical",
            Self::ProjectDisabled => "project-disabled",
            Self::ProjectEnabled => "project-enabled",
            Self::ProjectDeleted => "project-deleted",
            Self::ProjectRestored => "project-restored",
            Self::ProjectRemoved => "project-removed",
        }
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// A stored event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// Its number; later events have higher ones.
    pub id: i64,
    /// When it happened.
    pub at: Millis,
    /// What happened.
    pub kind: AuditKind,
    /// The player whom it concerns; `None` if it concerns the platform itself.
    pub player: Option<Uuid>,
    /// The other player who is involved.
    pub other: Option<Uuid>,
    /// The id of the provider, the client or the key, the project, or the reason
    /// of a suspension.
    pub subject: Option<String>,
    /// More about the act: the environment and the deployment, or why a sign-in failed.
    pub detail: Option<String>,
    /// Who did it.
    pub actor: Actor,
    /// The network (IPv4, or IPv6 /64) of the request, as long as it is kept; `None` without a
    /// request.
    pub network: Option<String>,
    /// The id of the request.
    pub request: Option<String>,
}

/// A refused request, of which only the event is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// [`AuditKind::SignInFailed`] or [`AuditKind::AdministrationRefused`]; or
    /// [`AuditKind::EventsLeftOut`], if there were too many of these.
    pub kind: AuditKind,
    /// The caller, if known.
    pub player: Option<Uuid>,
    /// The provider, or the problem in the response.
    pub subject: Option<String>,
    /// The reason, or the refused call.
    pub detail: String,
}

/// How long routine events are kept: the most frequent ones, which anybody can cause, and those
/// about errors, which are not kept for longer themselves.
pub const ROUTINE_MILLIS: Millis = 90 * 24 * 60 * 60 * 1_000;
/// How long the same test token is not recorded again.
pub const GIVEN_MILLIS: Millis = 60 * 60 * 1_000;
/// How long the origin of an act is kept.
pub const SOURCE_MILLIS: Millis = 365 * 24 * 60 * 60 * 1_000;

/// What kind of actor did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActorKind {
    /// [`Actor::Own`]
    Own,
    /// [`Actor::Operator`]
    Operator,
    /// [`Actor::Admin`] of any player
    Admin,
    /// [`Actor::Member`] of any player
    Member,
}

impl ActorKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Own, Self::Operator, Self::Admin, Self::Member];

    /// The name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "self",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl From<Actor> for ActorKind {
    fn from(actor: Actor) -> Self {
        match actor {
            Actor::Own => Self::Own,
            Actor::Operator => Self::Operator,
            Actor::Admin(_) => Self::Admin,
            Actor::Member(_) => Self::Member,
        }
    }
}

/// A query for events.
#[derive(Clone, Copy, Debug)]
pub struct AuditQuery {
    /// Only events that involve this player, also as an administrator or a member.
    pub player: Option<Uuid>,
    /// Only those of this kind.
    pub kind: Option<AuditKind>,
    /// Only acts of this kind of actor.
    pub actor: Option<ActorKind>,
    /// Only those before this number.
    pub before: Option<i64>,
    /// Only events after this number, oldest first.
    pub after: Option<i64>,
    /// The largest number of events.
    pub limit: usize,
}

impl AuditQuery {
    /// The newest events of all players.
    #[must_use]
    pub const fn newest(limit: usize) -> Self {
        Self {
            player: None,
            kind: None,
            actor: None,
            before: None,
            after: None,
            limit,
        }
    }

    /// The newest events of one player.
    #[must_use]
    pub const fn of(player: Uuid, limit: usize) -> Self {
        Self {
            player: Some(player),
            ..Self::newest(limit)
        }
    }
}
