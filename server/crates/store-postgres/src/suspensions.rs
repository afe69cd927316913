//! Suspended players.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::player::SuspendedPlayer;
use platform_store::{StoreError, SuspensionStore};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::rows::get;
use super::store::PostgresStore;
use super::transaction::Transaction;

#[async_trait]
impl SuspensionStore for PostgresStore {
    async fn suspend_player(
        &self,
        player: Uuid,
        reason: Option<&str>,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        transact!(self.main, transaction => suspend(&transaction, player, reason, &by, now))
    }

    async fn unsuspend_player(
        &self,
        player: Uuid,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        transact!(self.main, transaction => unsuspend(&transaction, player, &by, now))
    }

    async fn list_suspended_players(
        &self,
        since: Millis,
    ) -> Result<Vec<SuspendedPlayer>, StoreError> {
        let rows = self
            .main
            .rows(
                // A merged guest may still have a valid token.
                "SELECT id, suspension_reason FROM players WHERE suspended_at >= $1
                 UNION SELECT g.id, p.suspension_reason
                 FROM players p JOIN players g ON g.merged_into = p.id
                 WHERE p.suspended_at >= $1
                 ORDER BY 1",
                &[&since],
            )
            .await?;
        let players = rows.iter().map(|row| {
            Ok(SuspendedPlayer {
                id: get(row, 0)?,
                reason: get(row, 1)?,
            })
        });
        Ok(players.collect::<Result<_, Error>>()?)
    }
}

async fn suspend(
    transaction: &Transaction,
    player: Uuid,
    reason: Option<&str>,
    by: &By,
    now: Millis,
) -> Result<bool, Error> {
    let suspended = transaction
        .execute(
            "UPDATE players SET suspended_at = $2, suspension_reason = $3, awaiting = NULL
             WHERE id = $1 AND merged_into IS NULL",
            &[&player, &now, &reason],
        )
        .await?;
    if suspended == 0 {
        return Ok(false);
    }
    // The reason is stored in the event as well: the player's row loses it when the suspension is
    // lifted.
    let mut event = Entry::of(AuditKind::Suspended, now).player(player).by(by);
    if let Some(reason) = reason {
        event = event.subject(reason);
    }
    audit::add(transaction, &event).await?;
    Ok(true)
}

async fn unsuspend(
    transaction: &Transaction,
    player: Uuid,
    by: &By,
    now: Millis,
) -> Result<bool, Error> {
    let lifted = transaction
        .execute(
            "UPDATE players SET suspended_at = NULL, suspension_reason = NULL
             WHERE id = $1 AND suspended_at IS NOT NULL",
            &[&player],
        )
        .await?;
    if lifted == 0 {
        return Ok(false);
    }
    let event = Entry::of(AuditKind::Unsuspended, now).player(player).by(by);
    audit::add(transaction, &event).await?;
    Ok(true)
}
