//! The log of security events: what happened to whom and when, in ids alone, and
//! why somebody was suspended, as they were told.

use uuid::Uuid;

use crate::clock::Millis;

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// The player whom it happened to; where it happened to nobody, the platform
    /// itself.
    Own,
    /// The operator, by a command of the server.
    Operator,
    /// An administrator.
    Admin(Uuid),
}

/// Where an act came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The address (IPv4, or IPv6 /64).
    pub network: String,
    /// The id of the request, which the server's log has as well.
    pub request: String,
}

/// Who did it, and where it came from: what the store is told with every act
/// that the log keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct By {
    /// Who.
    pub actor: Actor,
    /// From where; none for what did not come as a request.
    pub source: Option<Source>,
}

impl By {
    /// What somebody did by a request.
    #[must_use]
    pub const fn request(actor: Actor, source: Source) -> Self {
        Self {
            actor,
            source: Some(source),
        }
    }
}

/// What did not come as a request.
impl From<Actor> for By {
    fn from(actor: Actor) -> Self {
        Self {
            actor,
            source: None,
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuditKind {
    /// A guest was linked to a new identity and is an account now.
    Linked,
    /// A guest (`player`) went into an account (`other`).
    Merged,
    /// A known identity signed in to its account.
    SignedIn,
    /// An account was made for a new identity, without a guest.
    Created,
    /// A player took another name.
    Renamed,
    /// A sign-in failed: `subject` is the provider, `detail` why. Nobody knows
    /// whose it would have been.
    SignInFailed,
    /// A player signed out, in one browser.
    SignedOut,
    /// A guest that was signed out is gone on as, in its browser; `other` is the
    /// guest whom the browser had meanwhile, and who was signed out by it.
    GuestRestored,
    /// Sessions of a player were ended.
    SessionsEnded,
    /// A player was suspended; `subject` is the reason, if one was given.
    Suspended,
    /// A suspension was lifted.
    Unsuspended,
    /// A player let a device sign in.
    DeviceApproved,
    /// A player did not let a device sign in.
    DeviceDenied,
    /// A device's sign-in was ended, by the device or the player.
    DeviceRevoked,
    /// A device's refresh token came a second time, which ended its sign-in.
    DeviceTokenReused,
    /// A signing key was added.
    KeyAdded,
    /// A signing key (`subject`) was taken back.
    KeyRevoked,
    /// A player became an administrator.
    AdminGranted,
    /// A player is an administrator no longer.
    AdminRevoked,
    /// A project (`subject`) went to a player, from another one (`other`).
    ProjectTransferred,
    /// Somebody asked for what administrators alone may do, or an administrator
    /// without the right to it just then; `detail` is the call.
    AdministrationRefused,
    /// Events of one kind (`subject`) were too many to be kept; `detail` is how
    /// many were left out since it was last said.
    EventsLeftOut,
    /// A project (`subject`) was made; its owner is `player`.
    ProjectCreated,
    /// A project (`subject`) was deployed; `detail` is the environment and the
    /// deployment. The owner is `player`, here and below.
    Deployed,
    /// An earlier deployment of a project (`subject`) is shown again; `detail` is
    /// the environment, the deployment, and the one that was shown before.
    RolledBack,
    /// A backend of a project (`subject`) was set or taken away; `detail` is the
    /// environment and the address.
    BackendChanged,
    /// Another setting of a project (`subject`) was changed; `detail` says which.
    SettingChanged,
    /// Somebody was given a token of one of a project's (`subject`) test players,
    /// which `detail` names; it is said once an hour.
    TestTokenGiven,
    /// An administrator was let to change somebody else's project (`subject`),
    /// or to play it as a test player; its owner is `player`.
    ProjectAdministered,
    /// A project (`subject`) of a player was disabled.
    ProjectDisabled,
    /// A project (`subject`) of a player was enabled again.
    ProjectEnabled,
    /// A project (`subject`) of a player was deleted; it can be restored.
    ProjectDeleted,
    /// A project (`subject`) of a player was restored.
    ProjectRestored,
    /// A deleted project (`subject`) was removed for good.
    ProjectRemoved,
}

impl AuditKind {
    /// Every kind.
    pub const ALL: [Self; 34] = [
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
        Self::ProjectDisabled,
        Self::ProjectEnabled,
        Self::ProjectDeleted,
        Self::ProjectRestored,
        Self::ProjectRemoved,
    ];

    /// Those that are kept for [`ROUTINE_MILLIS`] alone.
    pub const ROUTINE: [Self; 6] = [
        Self::SignInFailed,
        Self::SignedOut,
        Self::GuestRestored,
        Self::AdministrationRefused,
        Self::EventsLeftOut,
        Self::TestTokenGiven,
    ];

    /// The name under which it is kept and shown.
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
            Self::ProjectDisabled => "project-disabled",
            Self::ProjectEnabled => "project-enabled",
            Self::ProjectDeleted => "project-deleted",
            Self::ProjectRestored => "project-restored",
            Self::ProjectRemoved => "project-removed",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// An event, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// Its number; later ones are higher.
    pub id: i64,
    /// When it happened.
    pub at: Millis,
    /// What happened.
    pub kind: AuditKind,
    /// Whom it happened to; none for what concerns the platform itself.
    pub player: Option<Uuid>,
    /// The other player that had a part in it.
    pub other: Option<Uuid>,
    /// The id of the provider, the client or the key, the project, or the reason
    /// of a suspension.
    pub subject: Option<String>,
    /// What was done, beyond the subject: the environment and the deployment, or
    /// why a sign-in failed.
    pub detail: Option<String>,
    /// Who did it.
    pub actor: Actor,
    /// The network (IPv4, or IPv6 /64) that it came from, for as long as that is
    /// kept; none for what did not come as a request.
    pub network: Option<String>,
    /// The id of the request.
    pub request: Option<String>,
}

/// Something that was refused, of which nothing but the event is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// [`AuditKind::SignInFailed`] or [`AuditKind::AdministrationRefused`]; or
    /// [`AuditKind::EventsLeftOut`], where too many of these were.
    pub kind: AuditKind,
    /// Who asked, where that is known.
    pub player: Option<Uuid>,
    /// The provider, or the problem that was answered.
    pub subject: Option<String>,
    /// Why, or what was asked for.
    pub detail: String,
}

/// How long routine events are kept: those that anybody can cause, and that
/// there are most of.
pub const ROUTINE_MILLIS: Millis = 90 * 24 * 60 * 60 * 1_000;
/// For how long it is not said again that the same token was given.
pub const GIVEN_MILLIS: Millis = 60 * 60 * 1_000;
/// How long it is kept where an act came from.
pub const SOURCE_MILLIS: Millis = 365 * 24 * 60 * 60 * 1_000;

/// What kind of actor did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActorKind {
    /// [`Actor::Own`]
    Own,
    /// [`Actor::Operator`]
    Operator,
    /// [`Actor::Admin`], whichever
    Admin,
}

impl ActorKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Own, Self::Operator, Self::Admin];

    /// The name under which it is shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "self",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The kind of this name.
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
        }
    }
}

/// Which events.
#[derive(Clone, Copy, Debug)]
pub struct AuditQuery {
    /// Only those in which this player had a part, also as an administrator.
    pub player: Option<Uuid>,
    /// Only those of this kind.
    pub kind: Option<AuditKind>,
    /// Only what somebody of this kind did.
    pub actor: Option<ActorKind>,
    /// Only those before this number.
    pub before: Option<i64>,
    /// Only those after this number, the oldest first.
    pub after: Option<i64>,
    /// At most so many.
    pub limit: usize,
}

impl AuditQuery {
    /// The newest events, whatever they are.
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
