//! Suspended players.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::player::SuspendedPlayer;
use platform_store::{StoreError, SuspensionStore};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::rows::uuid;
use super::store::SqliteStore;

#[async_trait]
impl SuspensionStore for SqliteStore {
    async fn suspend_player(
        &self,
        player: Uuid,
        reason: Option<&str>,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let reason = reason.map(str::to_owned);
        self.main
            .write(move |connection| suspend_player(connection, player, reason.as_deref(), by, now))
            .await
    }

    async fn unsuspend_player(
        &self,
        player: Uuid,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        self.main
            .write(move |connection| unsuspend_player(connection, player, by, now))
            .await
    }

    async fn list_suspended_players(
        &self,
        since: Millis,
    ) -> Result<Vec<SuspendedPlayer>, StoreError> {
        self.main
            .read_much(move |connection| list_suspended_players(connection, since))
            .await
    }
}

fn suspend_player(
    connection: &Connection,
    player: Uuid,
    reason: Option<&str>,
    by: By,
    now: Millis,
) -> Result<bool, Error> {
    let suspended = connection
        .prepare_cached(
            "UPDATE players SET suspended_at = ?2, suspension_reason = ?3, awaiting = NULL
             WHERE id = ?1 AND merged_into IS NULL",
        )?
        .execute(params![player.as_bytes(), now, reason])?;
    if suspended == 0 {
        return Ok(false);
    }
    // The reason is stored in the event as well: the player's row loses it when the suspension is
    // lifted.
    let mut event = Entry::of(AuditKind::Suspended, now).player(player).by(by);
    if let Some(reason) = reason {
        event = event.subject(reason);
    }
    audit::add(connection, &event)?;
    Ok(true)
}

fn unsuspend_player(
    connection: &Connection,
    player: Uuid,
    by: By,
    now: Millis,
) -> Result<bool, Error> {
    let lifted = connection
        .prepare_cached(
            "UPDATE players SET suspended_at = NULL, suspension_reason = NULL
             WHERE id = ?1 AND suspended_at IS NOT NULL",
        )?
        .execute([player.as_bytes()])?;
    if lifted == 0 {
        return Ok(false);
    }
    let event = Entry::of(AuditKind::Unsuspended, now).player(player).by(by);
    audit::add(connection, &event)?;
    Ok(true)
}

fn list_suspended_players(
    connection: &Connection,
    since: Millis,
) -> Result<Vec<SuspendedPlayer>, Error> {
    let mut statement =
        // A merged guest may still have a valid token.
        connection.prepare_cached(
            "SELECT id, suspension_reason FROM players WHERE suspended_at >= ?1
             UNION SELECT g.id, p.suspension_reason
             FROM players p JOIN players g ON g.merged_into = p.id
             WHERE p.suspended_at >= ?1",
        )?;
    let mut rows = statement.query([since])?;
    let mut players = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get_ref(0)?.as_blob().unwrap_or_default();
        players.push(SuspendedPlayer {
            id: uuid(id, "players", "id", String::new)?,
            reason: row.get(1)?,
        });
    }
    Ok(players)
}
