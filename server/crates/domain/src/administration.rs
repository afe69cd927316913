//! What those who run the platform may look at and do.

use uuid::Uuid;

use crate::clock::Millis;

/// A player who may administer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// The player.
    pub player: Uuid,
    /// The player's name now.
    pub username: String,
    /// Since when.
    pub granted_at: Millis,
}

/// What came of making a player an administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    /// The player is one now.
    Done,
    /// The player was one before.
    Already,
    /// There is no such player.
    NoPlayer,
    /// A guest, who may be gone with the next cookie, or one that was merged
    /// away.
    NotAnAccount,
}

/// What came of giving a project to a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transferred {
    /// It is the player's now.
    Done,
    /// It was the player's before.
    Already,
    /// There is no such project.
    NoProject,
    /// There is no such player.
    NoPlayer,
    /// A guest, or one that was merged away: those own nothing.
    NotAnAccount,
}

/// A guest that went into an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergedGuest {
    /// The guest.
    pub guest: Uuid,
    /// When.
    pub merged_at: Option<Millis>,
}

/// An address (IPv4, or IPv6 /64) with the guests that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldingAddress {
    /// The address.
    pub address: String,
    /// How many guests.
    pub guests: u32,
    /// When the last of them was last here.
    pub seen_at: Millis,
}

/// What a copy of the store needs besides itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreCopy {
    /// The names of all files that its deployments have.
    pub files: Vec<String>,
}
