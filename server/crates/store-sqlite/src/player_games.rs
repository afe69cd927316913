//! Favourites of players, and what they played lately.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::counting::NewPlayTime;
use platform_domain::player_game::{PLAYED_ONCE, PlayerGame, SetFavourite};
use platform_protocol::names::Environment;
use platform_store::{PlayerGameStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use super::error::Error;
use super::projects::project_id;
use super::rows::count;
use super::store::SqliteStore;

#[async_trait]
impl PlayerGameStore for SqliteStore {
    async fn set_favourite(
        &self,
        player: Uuid,
        slug: &str,
        favourite: bool,
        most: usize,
        now: Millis,
    ) -> Result<SetFavourite, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| {
                let project = project_id(connection, &slug)?;
                if favourite {
                    add(connection, player, project, most, now)
                } else {
                    remove(connection, player, project)?;
                    Ok(SetFavourite::Done)
                }
            })
            .await
    }

    async fn list_player_games(
        &self,
        player: Uuid,
        played: usize,
    ) -> Result<Vec<PlayerGame>, StoreError> {
        self.main
            .read(|connection| list(connection, player, count(played)))
    }

    async fn note_token(&self, player: Uuid, slug: &str) -> Result<(), StoreError> {
        if self
            .main
            .read(|connection| has_token(connection, player, slug))?
        {
            return Ok(());
        }
        let slug = slug.to_owned();
        self.main
            .write(move |connection| note_token(connection, player, &slug))
            .await
    }

    async fn sweep_played(&self, before: Millis, limit: usize) -> Result<usize, StoreError> {
        self.main
            .write(move |connection| sweep(connection, before, limit))
            .await
    }
}

/// Forgets old times.
fn sweep(connection: &Connection, before: Millis, limit: usize) -> Result<usize, Error> {
    let swept = connection
        .prepare_cached(
            "UPDATE player_games SET played_at = ?3 WHERE (player, project) IN
             (SELECT player, project FROM player_games
              WHERE played_at > ?3 AND played_at < ?1 LIMIT ?2)",
        )?
        .execute(params![before, count(limit), PLAYED_ONCE])?;
    Ok(swept)
}

/// Most tokens are not the first ones, and write nothing.
fn has_token(connection: &Connection, player: Uuid, slug: &str) -> Result<bool, Error> {
    let found = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM player_games g JOIN projects p ON p.id = g.project
                            WHERE g.player = ?1 AND p.slug = ?2 AND g.played_at IS NOT NULL)",
        )?
        .query_row(params![player.as_bytes(), slug], |row| row.get(0))?;
    Ok(found)
}

fn note_token(connection: &Connection, player: Uuid, slug: &str) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT INTO player_games (player, project, played_at)
             SELECT ?1, id, ?3 FROM projects WHERE slug = ?2
             ON CONFLICT (player, project) DO UPDATE SET
                 played_at = coalesce(played_at, excluded.played_at)",
        )?
        .execute(params![player.as_bytes(), slug, PLAYED_ONCE])?;
    Ok(())
}

fn add(
    connection: &Connection,
    player: Uuid,
    project: i64,
    most: usize,
    now: Millis,
) -> Result<SetFavourite, Error> {
    let is_known = connection
        .prepare_cached(
            "SELECT 1 FROM player_games
             WHERE player = ?1 AND project = ?2 AND favourite_at IS NOT NULL",
        )?
        .query_row(params![player.as_bytes(), project], |_| Ok(()))
        .optional()?
        .is_some();
    if is_known {
        return Ok(SetFavourite::Done);
    }
    let known: i64 = connection
        .prepare_cached(
            "SELECT count(*) FROM player_games WHERE player = ?1 AND favourite_at IS NOT NULL",
        )?
        .query_row([player.as_bytes()], |row| row.get(0))?;
    if known >= count(most) {
        return Ok(SetFavourite::TooMany);
    }
    connection
        .prepare_cached(
            "INSERT INTO player_games (player, project, favourite_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (player, project) DO UPDATE SET favourite_at = excluded.favourite_at",
        )?
        .execute(params![player.as_bytes(), project, now])?;
    Ok(SetFavourite::Done)
}

fn remove(connection: &Connection, player: Uuid, project: i64) -> Result<(), Error> {
    connection
        .prepare_cached(
            "DELETE FROM player_games WHERE player = ?1 AND project = ?2 AND played_at IS NULL",
        )?
        .execute(params![player.as_bytes(), project])?;
    connection
        .prepare_cached(
            "UPDATE player_games SET favourite_at = NULL WHERE player = ?1 AND project = ?2",
        )?
        .execute(params![player.as_bytes(), project])?;
    Ok(())
}

/// The games of a player.
pub(super) const OF_PLAYER: &str = "SELECT p.slug, g.favourite_at, nullif(g.played_at, 0) AS played
     FROM player_games g JOIN projects p ON p.id = g.project
     WHERE g.player = ?1 AND p.removed_at IS NULL
       AND (g.favourite_at IS NOT NULL OR g.played_at > 0)
     ORDER BY played IS NULL, played DESC, p.slug";

fn list(connection: &Connection, player: Uuid, played: i64) -> Result<Vec<PlayerGame>, Error> {
    let mut statement = connection.prepare_cached(OF_PLAYER)?;
    let games = statement.query_map([player.as_bytes()], |row| {
        Ok(PlayerGame {
            slug: row.get(0)?,
            favourite_at: row.get(1)?,
            played_at: row.get(2)?,
        })
    })?;
    let mut kept = Vec::new();
    for (place, game) in (0_i64..).zip(games) {
        let game = game?;
        if place < played || game.favourite_at.is_some() {
            kept.push(game);
        }
    }
    Ok(kept)
}

/// Notes what was played in production.
pub(super) fn note_played(
    connection: &Connection,
    project: i64,
    time: &NewPlayTime,
) -> Result<(), Error> {
    if time.environment != Environment::Prod {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO player_games (player, project, played_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (player, project) DO UPDATE SET played_at = excluded.played_at
             WHERE played_at IS NULL OR played_at < excluded.played_at",
        )?
        .execute(params![time.player.as_bytes(), project, time.hour])?;
    Ok(())
}

/// Gives an account what a guest that is merged into it has.
pub(super) fn unite(connection: &Connection, guest: Uuid, account: Uuid) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT INTO player_games (player, project, favourite_at, played_at)
             SELECT ?2, project, favourite_at, played_at FROM player_games WHERE player = ?1
             ON CONFLICT (player, project) DO UPDATE SET
                 favourite_at = coalesce(favourite_at, excluded.favourite_at),
                 played_at = coalesce(max(played_at, excluded.played_at), played_at,
                     excluded.played_at)",
        )?
        .execute(params![guest.as_bytes(), account.as_bytes()])?;
    connection
        .prepare_cached("DELETE FROM player_games WHERE player = ?1")?
        .execute([guest.as_bytes()])?;
    Ok(())
}
