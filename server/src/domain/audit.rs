//! The log of security events: what happened to whom and when, in ids alone.

use uuid::Uuid;

use crate::clock::Millis;

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
    /// Sessions of a player were ended, by the player or the operator.
    SessionsEnded,
    /// The operator suspended a player.
    Suspended,
    /// The operator lifted a suspension.
    Unsuspended,
    /// A signing key was added.
    KeyAdded,
}

impl AuditKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Linked,
        Self::Merged,
        Self::SignedIn,
        Self::Created,
        Self::Renamed,
        Self::SessionsEnded,
        Self::Suspended,
        Self::Unsuspended,
        Self::KeyAdded,
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
            Self::KeyAdded => "key-added",
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
    /// The provider's id, or the key's.
    pub subject: Option<String>,
}

/// Which events.
#[derive(Clone, Copy, Debug)]
pub struct AuditQuery {
    /// Only those in which this player had a part.
    pub player: Option<Uuid>,
    /// Only those before this number.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: usize,
}
