//! What administrators and the operator may see and do.

use uuid::Uuid;

use crate::clock::Millis;
use crate::project::FileEntry;

/// A player who may administer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// The player.
    pub player: Uuid,
    /// The player's name now.
    pub username: String,
    /// When the player became an administrator.
    pub granted_at: Millis,
}

/// The result of making a player an administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    /// The player is one now.
    Done,
    /// The player was already one.
    Already,
    /// There is no such player.
    NoPlayer,
    /// A guest, which may be lost with its cookie, or a merged guest.
    NotAnAccount,
}

/// The result of transferring a project to a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transferred {
    /// It belongs to the player now.
    Done,
    /// It already belonged to the player.
    Already,
    /// There is no such project.
    NoProject,
    /// There is no such player.
    NoPlayer,
    /// A guest or a merged guest: these own nothing.
    NotAnAccount,
}

/// A guest that was merged into an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergedGuest {
    /// The guest.
    pub guest: Uuid,
    /// When.
    pub merged_at: Option<Millis>,
}

/// An address (IPv4, or IPv6 /64) and the number of guests that count for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldingAddress {
    /// The address.
    pub address: String,
    /// How many guests.
    pub guests: u32,
    /// When the last of them was last seen.
    pub seen_at: Millis,
}

/// What a copy of the store needs besides the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreCopy {
    /// The files of its deployments.
    pub files: Vec<FileEntry>,
}
