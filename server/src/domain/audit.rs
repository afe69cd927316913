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
    /// A player became an administrator.
    AdminGranted,
    /// A player is an administrator no longer.
    AdminRevoked,
    /// A project (`subject`) went to a player, from another one (`other`).
    ProjectTransferred,
    /// An administrator was let to change somebody else's project (`subject`),
    /// or to play it as a test player; its owner is `player`.
    ProjectAdministered,
}

impl AuditKind {
    /// Every kind.
    pub const ALL: [Self; 17] = [
        Self::Linked,
        Self::Merged,
        Self::SignedIn,
        Self::Created,
        Self::Renamed,
        Self::SessionsEnded,
        Self::Suspended,
        Self::Unsuspended,
        Self::DeviceApproved,
        Self::DeviceDenied,
        Self::DeviceRevoked,
        Self::DeviceTokenReused,
        Self::KeyAdded,
        Self::AdminGranted,
        Self::AdminRevoked,
        Self::ProjectTransferred,
        Self::ProjectAdministered,
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
            Self::SessionsEnded => "sessions-ended",
            Self::Suspended => "suspended",
            Self::Unsuspended => "unsuspended",
            Self::DeviceApproved => "device-approved",
            Self::DeviceDenied => "device-denied",
            Self::DeviceRevoked => "device-revoked",
            Self::DeviceTokenReused => "device-token-reused",
            Self::KeyAdded => "key-added",
            Self::AdminGranted => "admin-granted",
            Self::AdminRevoked => "admin-revoked",
            Self::ProjectTransferred => "project-transferred",
            Self::ProjectAdministered => "project-administered",
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
    /// Who did it.
    pub actor: Actor,
}

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
