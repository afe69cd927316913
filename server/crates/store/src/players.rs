//! Players: the part of the store that adds guests and finds players.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::player::Player;
use platform_domain::session::SessionHash;
use uuid::Uuid;

use super::StoreError;

/// A guest to be added.
#[derive(Clone, Debug)]
pub struct NewGuest {
    /// The player's id.
    pub id: Uuid,
    /// Names to try, in this order. The guest gets the first name that is free.
    pub usernames: Vec<String>,
    /// The session of the browser that sent the request.
    pub session: SessionHash,
    /// The address (IPv4, or IPv6 /64) of the request.
    pub address: String,
    /// The limit of guests for the address; `None` for no limit.
    pub cap: Option<GuestCap>,
    /// The game that the request came from, if no request has carried the
    /// guest's cookie yet; otherwise `None`.
    pub awaiting: Option<String>,
    /// Now.
    pub now: Millis,
}

/// The limit of guests for one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestCap {
    /// The largest number of guests that count for the address.
    pub guests: u32,
    /// A guest that was last seen before this time does not count.
    pub seen_since: Millis,
    /// A guest with a cookie that has not come back counts against the limit of its own game alone, and
    /// only if it was added at this time or later.
    pub awaited_since: Millis,
    /// The largest number of rows of guests with a cookie that has not come back, for
    /// one address and one game.
    pub awaited: u32,
}

/// Operations on players. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait PlayerStore: Send + Sync {
    /// Adds a guest and its session in one transaction. If too many guests of
    /// the same address and game wait for their cookie to come back, the oldest
    /// of them are removed; their cookies make them again.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] on `username` if every name is taken;
    /// [`StoreError::GuestCap`].
    async fn add_guest(&self, guest: NewGuest) -> Result<Player, StoreError>;

    /// Adds a guest again whose row was removed before its cookie came back,
    /// with a session. If another request of the same browser added it at most
    /// [`BACK_MILLIS`](platform_domain::session::BACK_MILLIS) earlier, the
    /// guest gets one more session.
    ///
    /// # Errors
    /// As [`PlayerStore::add_guest`], and [`StoreError::Conflict`] on `id` if
    /// the player exists for another reason.
    async fn bring_back_guest(&self, guest: NewGuest) -> Result<Player, StoreError>;

    /// Whether the new guests of a game, with cookies that have not come back, leave room for one more at
    /// the address. True as well if the address is full without them. [`PlayerStore::add_guest`]
    /// decides; this only reads, so that a refusal costs little.
    async fn has_room_for_new_guest(
        &self,
        address: &str,
        game: &str,
        cap: GuestCap,
    ) -> Result<bool, StoreError>;

    /// Records that a guest's cookie has come back at `now`, unless its address holds as many
    /// guests as it may. Returns whether the guest counts for its address now.
    async fn confirm_guest(
        &self,
        player: Uuid,
        cap: Option<GuestCap>,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Sets a guest's last use to `now`, if that is later.
    async fn see_guest(&self, player: Uuid, now: Millis) -> Result<(), StoreError>;

    /// Returns the player of this id.
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
