//! Administration.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use platform_domain::administration::{Admin, Granted, HoldingAddress, MergedGuest, Transferred};
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::player::Player;
use platform_domain::username;
use platform_store::{AdminStore, StoreError};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::database::Value;
use super::error::Error;
use super::players;
use super::rows::{count, get};
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{deploy_tokens, people, webhooks};

#[async_trait]
impl AdminStore for PostgresStore {
    async fn grant_admin(&self, player: Uuid, by: By, now: Millis) -> Result<Granted, StoreError> {
        transact!(self.main, transaction => grant_admin(&transaction, player, &by, now))
    }

    async fn revoke_admin(&self, player: Uuid, by: By, now: Millis) -> Result<bool, StoreError> {
        transact!(self.main, transaction => revoke_admin(&transaction, player, &by, now))
    }

    async fn is_admin(&self, player: Uuid) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM admins WHERE player = $1";
        Ok(self.main.row(sql, &[&player]).await?.is_some())
    }

    async fn list_admins(&self) -> Result<Vec<Admin>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT a.player, p.username, a.granted_at
                 FROM admins a JOIN players p ON p.id = a.player ORDER BY a.granted_at, a.player",
                &[],
            )
            .await?;
        let admins = rows.iter().map(|row| {
            Ok(Admin {
                player: get(row, 0)?,
                username: get(row, 1)?,
                granted_at: get(row, 2)?,
            })
        });
        Ok(admins.collect::<Result<_, Error>>()?)
    }

    async fn transfer_project(
        &self,
        slug: &str,
        to: Uuid,
        by: By,
        now: Millis,
    ) -> Result<Transferred, StoreError> {
        transact!(self.main, transaction => transfer_project(&transaction, slug, to, &by, now))
    }

    async fn find_player_by_name(&self, name: &str) -> Result<Option<Player>, StoreError> {
        let key = username::unique_key(name);
        let found = self.players("p.username_key = $1", &[&key]).await?;
        Ok(found.into_iter().next())
    }

    async fn list_players_by_name(
        &self,
        start: &str,
        limit: usize,
    ) -> Result<Vec<Player>, StoreError> {
        let from = username::unique_key(start);
        // No name contains `char::MAX`, so this key follows every name with the prefix.
        let to = format!("{from}{}", char::MAX);
        self.players(
            "p.username_key >= $1 AND p.username_key < $2 ORDER BY p.username_key LIMIT $3",
            &[&from, &to, &count(limit)],
        )
        .await
    }

    async fn list_usernames(
        &self,
        players: BTreeSet<Uuid>,
    ) -> Result<BTreeMap<Uuid, String>, StoreError> {
        let players: Vec<Uuid> = players.into_iter().collect();
        let sql = "SELECT id, username FROM players WHERE id = ANY($1)";
        let rows = self.main.rows(sql, &[&players]).await?;
        let names = rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?)));
        Ok(names.collect::<Result<_, Error>>()?)
    }

    async fn list_merged_guests(
        &self,
        account: Uuid,
        limit: usize,
    ) -> Result<Vec<MergedGuest>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT id, merged_at FROM players WHERE merged_into = $1
                 ORDER BY merged_at DESC, id LIMIT $2",
                &[&account, &count(limit)],
            )
            .await?;
        let guests = rows.iter().map(|row| {
            Ok(MergedGuest {
                guest: get(row, 0)?,
                merged_at: get(row, 1)?,
            })
        });
        Ok(guests.collect::<Result<_, Error>>()?)
    }

    async fn list_holding_addresses(
        &self,
        seen_since: Millis,
        limit: usize,
    ) -> Result<Vec<HoldingAddress>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT address, count(*) AS guests, max(seen_at) FROM players
                 WHERE address IS NOT NULL AND seen_at >= $1 AND awaiting IS NULL
                 GROUP BY address ORDER BY guests DESC, address LIMIT $2",
                &[&seen_since, &count(limit)],
            )
            .await?;
        let addresses = rows.iter().map(|row| {
            Ok(HoldingAddress {
                address: get(row, 0)?,
                guests: u32::try_from(get::<i64>(row, 1)?).unwrap_or(u32::MAX),
                seen_at: get(row, 2)?,
            })
        });
        Ok(addresses.collect::<Result<_, Error>>()?)
    }

    async fn list_held_guests(
        &self,
        address: &str,
        seen_since: Millis,
        limit: usize,
    ) -> Result<Vec<Player>, StoreError> {
        self.players(
            "p.address = $1 AND p.seen_at >= $2 AND p.awaiting IS NULL
             ORDER BY p.seen_at DESC, p.id LIMIT $3",
            &[&address, &seen_since, &count(limit)],
        )
        .await
    }
}

impl PostgresStore {
    /// Returns the players that match `condition`, with `values` for its parameters.
    async fn players(
        &self,
        condition: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Player>, StoreError> {
        let sql = format!(
            "SELECT {} FROM players p WHERE {condition}",
            players::COLUMNS
        );
        let rows = self.main.rows(&sql, values).await?;
        Ok(rows.iter().map(players::player).collect::<Result<_, _>>()?)
    }
}

/// Returns whether the player is an account, suspended or not; `None` if the player does not exist.
/// An account stays one, because an identity is never removed.
async fn is_account(transaction: &Transaction, player: Uuid) -> Result<Option<bool>, Error> {
    let sql = "SELECT linked FROM players WHERE id = $1";
    let row = transaction.row(sql, &[&player]).await?;
    row.as_ref().map(|row| get(row, 0)).transpose()
}

async fn grant_admin(
    transaction: &Transaction,
    player: Uuid,
    by: &By,
    now: Millis,
) -> Result<Granted, Error> {
    match is_account(transaction, player).await? {
        None => return Ok(Granted::NoPlayer),
        Some(false) => return Ok(Granted::NotAnAccount),
        Some(true) => {}
    }
    let added = transaction
        .execute(
            "INSERT INTO admins (player, granted_at) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            &[&player, &now],
        )
        .await?;
    if added == 0 {
        return Ok(Granted::Already);
    }
    let event = Entry::of(AuditKind::AdminGranted, now)
        .player(player)
        .by(by);
    audit::add(transaction, &event).await?;
    Ok(Granted::Done)
}

async fn revoke_admin(
    transaction: &Transaction,
    player: Uuid,
    by: &By,
    now: Millis,
) -> Result<bool, Error> {
    let removed = transaction
        .execute("DELETE FROM admins WHERE player = $1", &[&player])
        .await?;
    if removed == 0 {
        return Ok(false);
    }
    let event = Entry::of(AuditKind::AdminRevoked, now)
        .player(player)
        .by(by);
    audit::add(transaction, &event).await?;
    Ok(true)
}

async fn transfer_project(
    transaction: &Transaction,
    slug: &str,
    to: Uuid,
    by: &By,
    now: Millis,
) -> Result<Transferred, Error> {
    let row = transaction
        .row(
            "SELECT owner, id FROM projects WHERE slug = $1 AND removed_at IS NULL
             FOR NO KEY UPDATE",
            &[&slug],
        )
        .await?;
    let Some(row) = row else {
        return Ok(Transferred::NoProject);
    };
    match is_account(transaction, to).await? {
        None => return Ok(Transferred::NoPlayer),
        Some(false) => return Ok(Transferred::NotAnAccount),
        Some(true) => {}
    }
    let from: Option<Uuid> = get(&row, 0)?;
    if from == Some(to) {
        return Ok(Transferred::Already);
    }
    transaction
        .execute(
            "UPDATE projects SET owner = $2, forget_from = $3 WHERE slug = $1",
            &[&slug, &to, &now],
        )
        .await?;
    let project = get(&row, 1)?;
    people::new_owner(transaction, project, to).await?;
    deploy_tokens::revoke_all(transaction, slug, now).await?;
    webhooks::remove_of(transaction, project).await?;
    let mut event = Entry::of(AuditKind::ProjectTransferred, now)
        .player(to)
        .subject(slug)
        .by(by);
    if let Some(from) = from {
        event = event.other(from);
    }
    audit::add(transaction, &event).await?;
    Ok(Transferred::Done)
}
