//! Events about players.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::player_event::{PlayerEvent, SentPlayerEvent, WaitingPlayerEvent};
use platform_domain::webhook::WebhookOutcome;
use platform_store::stored_alerts::write_status;
use platform_store::{PlayerEventStore, StoreError, deleted_data};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::error::Error;
use super::rows::count;
use super::store::SqliteStore;

#[async_trait]
impl PlayerEventStore for SqliteStore {
    async fn list_due_player_events(
        &self,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<WaitingPlayerEvent>, StoreError> {
        self.main
            .read(|connection| list_due(connection, now, limit))
    }

    async fn note_player_event(&self, sent: SentPlayerEvent) -> Result<(), StoreError> {
        self.main
            .write(move |connection| note(connection, &sent))
            .await
    }

    async fn give_up_player_events(&self, slug: &str) -> Result<(), StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| {
                connection
                    .prepare_cached(
                        "UPDATE player_events SET next_at = NULL
                         WHERE next_at IS NOT NULL
                             AND project = (SELECT id FROM projects WHERE slug = ?1)",
                    )?
                    .execute([slug])?;
                Ok(())
            })
            .await
    }

    async fn list_player_events(
        &self,
        slug: &str,
        limit: usize,
    ) -> Result<Vec<PlayerEvent>, StoreError> {
        self.main.read(|connection| list(connection, slug, limit))
    }

    async fn replay_player_event(
        &self,
        slug: &str,
        id: i64,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| {
                let replayed = connection
                    .prepare_cached(
                        "UPDATE player_events SET next_at = ?3, tries = 0, delivered_at = NULL
                         WHERE id = ?2 AND project =
                             (SELECT id FROM projects WHERE slug = ?1 AND removed_at IS NULL)",
                    )?
                    .execute(params![slug, id, now])?;
                Ok(replayed > 0)
            })
            .await
    }

    async fn sweep_player_events(&self, before: Millis, limit: usize) -> Result<usize, StoreError> {
        self.main
            .write(move |connection| {
                Ok(connection
                    .prepare_cached(
                        "DELETE FROM player_events WHERE id IN
                             (SELECT id FROM player_events WHERE made_at < ?1 LIMIT ?2)",
                    )?
                    .execute([before, count(limit)])?)
            })
            .await
    }
}

fn list_due(
    connection: &Connection,
    now: Millis,
    limit: usize,
) -> Result<Vec<WaitingPlayerEvent>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT e.id, p.slug, e.data, e.made_at, e.tries
         FROM player_events e JOIN projects p ON p.id = e.project
         WHERE e.next_at <= ?1 ORDER BY e.next_at, e.id LIMIT ?2",
    )?;
    let events = statement.query_map([now, count(limit)], |row| {
        Ok(WaitingPlayerEvent {
            id: row.get(0)?,
            slug: row.get(1)?,
            data: row.get(2)?,
            made_at: row.get(3)?,
            tries: row.get(4)?,
        })
    })?;
    Ok(events.collect::<Result<_, _>>()?)
}

fn note(connection: &Connection, sent: &SentPlayerEvent) -> Result<(), Error> {
    let outcome = &sent.outcome;
    connection
        .prepare_cached(
            "UPDATE player_events SET next_at = ?2, last_at = ?3, last_status = ?4,
                 last_error = ?5, tries = tries + NOT ?6,
                 delivered_at = CASE WHEN ?6 THEN ?3 ELSE delivered_at END
             WHERE id = ?1",
        )?
        .execute(params![
            sent.id,
            sent.next_at,
            outcome.at,
            write_status(outcome.status),
            outcome.error,
            sent.is_delivered
        ])?;
    Ok(())
}

fn list(connection: &Connection, slug: &str, limit: usize) -> Result<Vec<PlayerEvent>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT id, made_at, tries, next_at, delivered_at, last_at, last_status, last_error
         FROM player_events
         WHERE project = (SELECT id FROM projects WHERE slug = ?1 AND removed_at IS NULL)
         ORDER BY id DESC LIMIT ?2",
    )?;
    let events = statement.query_map(params![slug, count(limit)], |row| {
        let last_at: Option<Millis> = row.get(5)?;
        let (status, error) = (row.get(6)?, row.get(7)?);
        Ok(PlayerEvent {
            id: row.get(0)?,
            made_at: row.get(1)?,
            tries: row.get(2)?,
            next_at: row.get(3)?,
            delivered_at: row.get(4)?,
            last: last_at.map(|at| WebhookOutcome { at, status, error }),
        })
    })?;
    Ok(events.collect::<Result<_, _>>()?)
}

/// Adds the event that a player is deleted, for every project with a webhook that asked for it and a game
/// that the player had a token of. What the player has is not removed yet.
pub(super) fn add_deleted(
    connection: &Connection,
    player: Uuid,
    guests: &[Uuid],
    now: Millis,
) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT INTO player_events (project, data, made_at, next_at)
             SELECT w.project, ?1, ?2, ?2 FROM webhooks w JOIN projects p ON p.id = w.project
             WHERE w.wants_players = 1 AND w.off_at IS NULL AND p.deleted_at IS NULL
                 AND EXISTS (SELECT 1 FROM player_games g
                             WHERE g.project = w.project AND g.played_at IS NOT NULL
                                 AND (g.player = ?3 OR g.player IN
                                     (SELECT id FROM players WHERE merged_into = ?3)))",
        )?
        .execute(params![
            deleted_data(player, guests, now),
            now,
            player.as_bytes()
        ])?;
    Ok(())
}
