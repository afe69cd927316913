//! Favourites of players, and what they played lately.

use std::collections::BTreeMap;

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::player_game::{PLAYED_ONCE, PlayerGame, SetFavourite};
use platform_store::{PlayerGameStore, StoreError};
use uuid::Uuid;

use super::error::Error;
use super::rows::{count, get};
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{players, projects};

#[async_trait]
impl PlayerGameStore for PostgresStore {
    async fn set_favourite(
        &self,
        player: Uuid,
        slug: &str,
        favourite: bool,
        most: usize,
        now: Millis,
    ) -> Result<SetFavourite, StoreError> {
        let favourite_at = favourite.then_some(now);
        transact!(self.main, transaction =>
            set(&transaction, (player, slug), favourite_at, most))
    }

    async fn list_player_games(
        &self,
        player: Uuid,
        played: usize,
    ) -> Result<Vec<PlayerGame>, StoreError> {
        let rows = self.main.rows(OF_PLAYER, &[&player]).await?;
        let mut kept = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            let game = PlayerGame {
                slug: get(row, 0)?,
                favourite_at: get(row, 1)?,
                played_at: get(row, 2)?,
            };
            if place < played || game.favourite_at.is_some() {
                kept.push(game);
            }
        }
        Ok(kept)
    }

    async fn note_token(&self, player: Uuid, slug: &str) -> Result<(), StoreError> {
        // Most tokens are not the first ones, and write nothing.
        let known = self
            .main
            .row(
                "SELECT 1 FROM player_games g JOIN projects p ON p.id = g.project
                 WHERE g.player = $1 AND p.slug = $2 AND g.played_at IS NOT NULL",
                &[&player, &slug],
            )
            .await?;
        if known.is_some() {
            return Ok(());
        }
        self.main
            .write(
                "INSERT INTO player_games AS known (player, project, played_at)
                 SELECT $1, id, $3 FROM projects WHERE slug = $2
                 ON CONFLICT (player, project) DO UPDATE SET
                     played_at = coalesce(known.played_at, excluded.played_at)",
                &[&player, &slug, &PLAYED_ONCE],
            )
            .await
            .map(drop)
    }

    async fn sweep_played(&self, before: Millis, limit: usize) -> Result<usize, StoreError> {
        let swept = self
            .main
            .write(
                "WITH old AS (
                     SELECT player, project FROM player_games
                     WHERE played_at > $3 AND played_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
                 UPDATE player_games g SET played_at = $3 FROM old
                 WHERE g.player = old.player AND g.project = old.project RETURNING 1",
                &[&before, &count(limit), &PLAYED_ONCE],
            )
            .await?;
        Ok(swept.len())
    }
}

/// The games of a player.
const OF_PLAYER: &str = "SELECT p.slug, g.favourite_at, nullif(g.played_at, 0) AS played
     FROM player_games g JOIN projects p ON p.id = g.project
     WHERE g.player = $1 AND p.removed_at IS NULL
       AND (g.favourite_at IS NOT NULL OR g.played_at > 0)
     ORDER BY played DESC NULLS LAST, p.slug";

async fn set(
    transaction: &Transaction,
    (player, slug): (Uuid, &str),
    favourite_at: Option<Millis>,
    most: usize,
) -> Result<SetFavourite, Error> {
    // An operation that counts a player's favourites and adds one locks the player's row.
    players::lock_one(transaction, player).await?;
    let project = transaction.row(projects::NUMBER, &[&slug]).await?;
    let project = projects::found(project.as_ref())?;
    if favourite_at.is_none() {
        transaction
            .execute(
                "DELETE FROM player_games
                 WHERE player = $1 AND project = $2 AND played_at IS NULL",
                &[&player, &project],
            )
            .await?;
        transaction
            .execute(
                "UPDATE player_games SET favourite_at = NULL WHERE player = $1 AND project = $2",
                &[&player, &project],
            )
            .await?;
        return Ok(SetFavourite::Done);
    }
    let row = transaction
        .row(
            "SELECT count(*), coalesce(bool_or(project = $2), false) FROM player_games
             WHERE player = $1 AND favourite_at IS NOT NULL",
            &[&player, &project],
        )
        .await?
        .ok_or(Error::Changed)?;
    if get::<bool>(&row, 1)? {
        return Ok(SetFavourite::Done);
    }
    if get::<i64>(&row, 0)? >= count(most) {
        return Ok(SetFavourite::TooMany);
    }
    transaction
        .execute(
            "INSERT INTO player_games (player, project, favourite_at) VALUES ($1, $2, $3)
             ON CONFLICT (player, project) DO UPDATE SET favourite_at = excluded.favourite_at",
            &[&player, &project, &favourite_at],
        )
        .await?;
    Ok(SetFavourite::Done)
}

/// Notes what was played in production. Rows are written in the order of their keys, so that two
/// nodes do not wait for each other.
pub(super) async fn note_played(
    transaction: &Transaction,
    played: &BTreeMap<(Uuid, i64), Millis>,
) -> Result<(), Error> {
    let players: Vec<Uuid> = played.keys().map(|key| key.0).collect();
    let projects: Vec<i64> = played.keys().map(|key| key.1).collect();
    let hours: Vec<Millis> = played.values().copied().collect();
    transaction
        .execute(
            "INSERT INTO player_games AS known (player, project, played_at)
             SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[])
             ON CONFLICT (player, project) DO UPDATE SET played_at = excluded.played_at
             WHERE known.played_at IS NULL OR known.played_at < excluded.played_at",
            &[&players, &projects, &hours],
        )
        .await
        .map(drop)
}

/// Gives an account what a guest that is merged into it has.
pub(super) async fn unite(
    transaction: &Transaction,
    guest: Uuid,
    account: Uuid,
) -> Result<(), Error> {
    transaction
        .execute(
            "INSERT INTO player_games AS known (player, project, favourite_at, played_at)
             SELECT $2, project, favourite_at, played_at FROM player_games WHERE player = $1
             ORDER BY project
             ON CONFLICT (player, project) DO UPDATE SET
                 favourite_at = coalesce(known.favourite_at, excluded.favourite_at),
                 played_at = greatest(known.played_at, excluded.played_at)",
            &[&guest, &account],
        )
        .await?;
    transaction
        .execute("DELETE FROM player_games WHERE player = $1", &[&guest])
        .await
        .map(drop)
}
