//! Events about players.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::player_event::{PlayerEvent, SentPlayerEvent, WaitingPlayerEvent};
use platform_domain::webhook::WebhookOutcome;
use platform_store::stored_alerts::write_status;
use platform_store::{PlayerEventStore, StoreError, deleted_data};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::Error;
use super::rows::{count, get};
use super::store::PostgresStore;
use super::transaction::Transaction;

#[async_trait]
impl PlayerEventStore for PostgresStore {
    async fn list_due_player_events(
        &self,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<WaitingPlayerEvent>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT e.id, p.slug, e.data, e.made_at, e.tries
                 FROM player_events e JOIN projects p ON p.id = e.project
                 WHERE e.next_at <= $1 ORDER BY e.next_at, e.id LIMIT $2",
                &[&now, &count(limit)],
            )
            .await?;
        let events = rows.iter().map(|row| {
            Ok(WaitingPlayerEvent {
                id: get(row, 0)?,
                slug: get(row, 1)?,
                data: get(row, 2)?,
                made_at: get(row, 3)?,
                tries: tries(row, 4)?,
            })
        });
        Ok(events.collect::<Result<_, Error>>()?)
    }

    async fn note_player_event(&self, sent: SentPlayerEvent) -> Result<(), StoreError> {
        let outcome = &sent.outcome;
        self.main
            .write(
                "UPDATE player_events SET next_at = $2, last_at = $3, last_status = $4,
                     last_error = $5, tries = tries + CASE WHEN $6 THEN 0 ELSE 1 END,
                     delivered_at = CASE WHEN $6 THEN $3 ELSE delivered_at END
                 WHERE id = $1",
                &[
                    &sent.id,
                    &sent.next_at,
                    &outcome.at,
                    &write_status(outcome.status),
                    &outcome.error,
                    &sent.is_delivered,
                ],
            )
            .await
            .map(drop)
    }

    async fn give_up_player_events(&self, slug: &str) -> Result<(), StoreError> {
        self.main
            .write(
                "UPDATE player_events SET next_at = NULL
                 WHERE next_at IS NOT NULL
                     AND project = (SELECT id FROM projects WHERE slug = $1)",
                &[&slug],
            )
            .await
            .map(drop)
    }

    async fn list_player_events(
        &self,
        slug: &str,
        limit: usize,
    ) -> Result<Vec<PlayerEvent>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT id, made_at, tries, next_at, delivered_at, last_at, last_status, last_error
                 FROM player_events
                 WHERE project = (SELECT id FROM projects WHERE slug = $1 AND removed_at IS NULL)
                 ORDER BY id DESC LIMIT $2",
                &[&slug, &count(limit)],
            )
            .await?;
        Ok(rows.iter().map(event).collect::<Result<_, Error>>()?)
    }

    async fn replay_player_event(
        &self,
        slug: &str,
        id: i64,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let replayed = self
            .main
            .write(
                "UPDATE player_events SET next_at = $3, tries = 0, delivered_at = NULL
                 WHERE id = $2 AND project =
                     (SELECT id FROM projects WHERE slug = $1 AND removed_at IS NULL)
                 RETURNING 1",
                &[&slug, &id, &now],
            )
            .await?;
        Ok(!replayed.is_empty())
    }

    async fn sweep_player_events(&self, before: Millis, limit: usize) -> Result<usize, StoreError> {
        let swept = self
            .main
            .write(
                "DELETE FROM player_events WHERE id = ANY(ARRAY(
                     SELECT id FROM player_events WHERE made_at < $1
                     LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
                &[&before, &count(limit)],
            )
            .await?;
        Ok(swept.len())
    }
}

fn tries(row: &Row, index: usize) -> Result<u16, Error> {
    let tries: i16 = get(row, index)?;
    Ok(tries.unsigned_abs())
}

fn event(row: &Row) -> Result<PlayerEvent, Error> {
    let last_at: Option<Millis> = get(row, 5)?;
    let (status, error): (Option<i16>, Option<String>) = (get(row, 6)?, get(row, 7)?);
    let status = status.map(i16::unsigned_abs);
    Ok(PlayerEvent {
        id: get(row, 0)?,
        made_at: get(row, 1)?,
        tries: tries(row, 2)?,
        next_at: get(row, 3)?,
        delivered_at: get(row, 4)?,
        last: last_at.map(|at| WebhookOutcome { at, status, error }),
    })
}

/// Adds the event that a player is deleted, for every project with a webhook that asked for it and a game
/// that the player had a token of. What the player has is not removed yet.
pub(super) async fn add_deleted(
    transaction: &Transaction,
    player: Uuid,
    guests: &[Uuid],
    now: Millis,
) -> Result<(), Error> {
    transaction
        .execute(
            "INSERT INTO player_events (project, data, made_at, next_at)
             SELECT w.project, $1, $2, $2 FROM webhooks w JOIN projects p ON p.id = w.project
             WHERE w.wants_players AND w.off_at IS NULL AND p.deleted_at IS NULL
                 AND EXISTS (SELECT 1 FROM player_games g
                             WHERE g.project = w.project AND g.played_at IS NOT NULL
                                 AND (g.player = $3 OR g.player = ANY($4)))",
            &[&deleted_data(player, guests, now), &now, &player, &guests],
        )
        .await
        .map(drop)
}
