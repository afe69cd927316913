//! Administration: the part of the store that administrators and the operator read and change.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use platform_domain::administration::{Admin, Granted, HoldingAddress, MergedGuest, Transferred};
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::player::Player;
use uuid::Uuid;

use super::StoreError;

/// Operations of administration. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait AdminStore: Send + Sync {
    /// Makes an account an administrator.
    async fn grant_admin(&self, player: Uuid, by: By, now: Millis) -> Result<Granted, StoreError>;

    /// Takes a player's rights as an administrator away. Returns whether the
    /// player had them.
    async fn revoke_admin(&self, player: Uuid, by: By, now: Millis) -> Result<bool, StoreError>;

    /// Returns whether the player is an administrator.
    async fn is_admin(&self, player: Uuid) -> Result<bool, StoreError>;

    /// Returns the administrators. The one who was added first comes first.
    async fn list_admins(&self) -> Result<Vec<Admin>, StoreError>;

    /// Transfers a project to an account. Its members stay, without the new owner; its deploy tokens
    /// and open invitations end.
    async fn transfer_project(
        &self,
        slug: &str,
        to: Uuid,
        by: By,
        now: Millis,
    ) -> Result<Transferred, StoreError>;

    /// Returns the player who has this name, or a name that looks like it.
    async fn find_player_by_name(&self, name: &str) -> Result<Option<Player>, StoreError>;

    /// Returns the players whose names begin with `start`, or look as if they
    /// did, by name; at most `limit`.
    async fn list_players_by_name(
        &self,
        start: &str,
        limit: usize,
    ) -> Result<Vec<Player>, StoreError>;

    /// Returns the present names of these players. Unknown players are left
    /// out.
    async fn list_usernames(
        &self,
        players: BTreeSet<Uuid>,
    ) -> Result<BTreeMap<Uuid, String>, StoreError>;

    /// Returns the guests that were merged into an account, newest first, at
    /// most `limit`.
    async fn list_merged_guests(
        &self,
        account: Uuid,
        limit: usize,
    ) -> Result<Vec<MergedGuest>, StoreError>;

    /// Returns the addresses with guests that were seen since `seen_since`, at
    /// most `limit`. The address with the most guests comes first.
    async fn list_holding_addresses(
        &self,
        seen_since: Millis,
        limit: usize,
    ) -> Result<Vec<HoldingAddress>, StoreError>;

    /// Returns the guests of one address that were seen since `seen_since`, at
    /// most `limit`. The guest that was seen last comes first.
    async fn list_held_guests(
        &self,
        address: &str,
        seen_since: Millis,
        limit: usize,
    ) -> Result<Vec<Player>, StoreError>;
}
