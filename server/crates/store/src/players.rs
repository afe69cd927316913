//! Players: the part of the store that makes guests and knows who everybody is.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::player::Player;
use platform_domain::session::SessionHash;
use uuid::Uuid;

use super::StoreError;

/// A guest that is about to exist.
#[derive(Clone, Debug)]
pub struct NewGuest {
    /// The player's id.
    pub id: Uuid,
    /// Names to try, best first; the first that nobody has is taken.
    pub usernames: Vec<String>,
    /// The session of the browser that asked.
    pub session: SessionHash,
    /// The address (IPv4, or IPv6 /64) that it came from.
    pub address: String,
    /// How many guests the address may hold; none for any number.
    pub cap: Option<GuestCap>,
    /// The game that asked for a guest whose cookie has yet to come back; none
    /// where it has.
    pub awaiting: Option<String>,
    /// Now.
    pub now: Millis,
}

/// How many guests an address may hold at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestCap {
    /// The most there may be.
    pub guests: u32,
    /// A guest that was last seen before this does not count.
    pub seen_since: Millis,
    /// Rows that there may be of guests whose cookie has not come back, for one
    /// address and one game. They do not count as held.
    pub awaited: u32,
}

/// Operations on players. [`Store`](super::Store)'s documentation says what every one
/// promises.
#[async_trait]
pub trait PlayerStore: Send + Sync {
    /// Makes a guest and its session in one. Where too many of its address and
    /// game wait for their cookie to come back, the rows of the oldest of them
    /// go: their cookies make them again.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] on `username` if every name is taken;
    /// [`StoreError::GuestCap`].
    async fn add_guest(&self, guest: NewGuest) -> Result<Player, StoreError>;

    /// Makes a guest again whose row was swept before its cookie came back, and
    /// gives it a session. Where another request of its browser was faster, by
    /// [`BACK_MILLIS`](platform_domain::session::BACK_MILLIS) at most, it gets one
    /// session more.
    ///
    /// # Errors
    /// As [`PlayerStore::add_guest`], and [`StoreError::Conflict`] on `id` if the
    /// player is there otherwise.
    async fn bring_back_guest(&self, guest: NewGuest) -> Result<Player, StoreError>;

    /// Moves a guest's last use forward to `now`, and keeps that its cookie has
    /// come back.
    async fn see_guest(&self, player: Uuid, now: Millis) -> Result<(), StoreError>;

    /// The player of this id.
    async fn find_player(&self, id: Uuid) -> Result<Option<Player>, StoreError>;

    /// Gives a player another name.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] on `username` if another player has it or one
    /// that looks like it; [`StoreError::Missing`] if there is no such player.
    async fn rename_player(
        &self,
        player: Uuid,
        username: &str,
        by: By,
        now: Millis,
    ) -> Result<(), StoreError>;
}
