//! Administration: the part of the store that those who run the platform look
//! at and change.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use platform_domain::administration::{Admin, Granted, HoldingAddress, MergedGuest, Transferred};
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::player::Player;
use uuid::Uuid;

use super::StoreError;

/// Operations of administration. [`Store`](super::Store)'s documentation says
/// what every one promises.
#[async_trait]
pub trait AdminStore: Send + Sync {
    /// Makes an account an administrator.
    async fn grant_admin(&self, player: Uuid, by: By, now: Millis) -> Result<Granted, StoreError>;

    /// Makes a player an administrator no longer. Answers whether it was one.
    async fn revoke_admin(&self, player: Uuid, by: By, now: Millis) -> Result<bool, StoreError>;

    /// Whether the player was made an administrator.
    async fn is_admin(&self, player: Uuid) -> Result<bool, StoreError>;

    /// The administrators, oldest first.
    async fn list_admins(&self) -> Result<Vec<Admin>, StoreError>;

    /// Gives a project to an account.
    async fn transfer_project(
        &self,
        slug: &str,
        to: Uuid,
        by: By,
        now: Millis,
    ) -> Result<Transferred, StoreError>;

    /// The player who has this name, or one that looks like it.
    async fn find_player_by_name(&self, name: &str) -> Result<Option<Player>, StoreError>;

    /// Players whose names begin so, or look as if they did, by name; at most
    /// `limit`.
    async fn list_players_by_name(
        &self,
        start: &str,
        limit: usize,
    ) -> Result<Vec<Player>, StoreError>;

    /// The names that these players have now; none for who is not there.
    async fn list_usernames(
        &self,
        players: BTreeSet<Uuid>,
    ) -> Result<BTreeMap<Uuid, String>, StoreError>;

    /// The guests that went into an account, newest first, at most `limit`.
    async fn list_merged_guests(
        &self,
        account: Uuid,
        limit: usize,
    ) -> Result<Vec<MergedGuest>, StoreError>;

    /// The addresses that hold guests who were here since `seen_since`, those
    /// with most first, at most `limit`.
    async fn list_holding_addresses(
        &self,
        seen_since: Millis,
        limit: usize,
    ) -> Result<Vec<HoldingAddress>, StoreError>;

    /// The guests of one address who were here since `seen_since`, last one
    /// first, at most `limit`.
    async fn list_held_guests(
        &self,
        address: &str,
        seen_since: Millis,
        limit: usize,
    ) -> Result<Vec<Player>, StoreError>;
}
