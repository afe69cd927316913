//! Accounts: their identities.

use platform_domain::clock::Millis;
use platform_domain::identity::{Identity, IdentityKey, LinkedIdentity};
use platform_store::StoreError;
use uuid::Uuid;

use super::database::Database;
use super::error::Error;
use super::player_games;
use super::rows::{bytes, get};
use super::transaction::Transaction;

/// Returns the player of an identity.
pub(super) async fn owner(
    transaction: &Transaction,
    key: &IdentityKey,
) -> Result<Option<Uuid>, Error> {
    let row = transaction
        .row(
            "SELECT player FROM identities WHERE key = $1",
            &[&key.0.as_slice()],
        )
        .await?;
    row.as_ref().map(|row| get(row, 0)).transpose()
}

/// Makes `player` the account of a new identity.
pub(super) async fn link(
    transaction: &Transaction,
    identity: &Identity,
    player: Uuid,
    now: Millis,
) -> Result<(), Error> {
    let added = transaction
        .execute(
            "INSERT INTO identities (key, provider, player, linked_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (key) DO NOTHING",
            &[
                &identity.key.0.as_slice(),
                &identity.provider,
                &player,
                &now,
            ],
        )
        .await?;
    if added == 0 {
        // Another sign-in has linked this identity in the meantime.
        return Err(Error::Changed);
    }
    transaction
        .execute(
            "UPDATE players SET linked = true, address = NULL, awaiting = NULL WHERE id = $1",
            &[&player],
        )
        .await
        .map(drop)
}

/// Marks a guest as merged into `account`.
pub(super) async fn merge(
    transaction: &Transaction,
    guest: Uuid,
    account: Uuid,
    now: Millis,
) -> Result<(), Error> {
    transaction
        .execute(
            "UPDATE players SET merged_into = $2, merged_at = $3, address = NULL, awaiting = NULL
             WHERE id = $1 AND NOT linked AND merged_into IS NULL",
            &[&guest, &account, &now],
        )
        .await?;
    player_games::unite(transaction, guest, account).await
}

pub(super) async fn list_identities(
    database: &Database,
    player: Uuid,
) -> Result<Vec<LinkedIdentity>, StoreError> {
    let rows = database
        .rows(
            "SELECT provider, key, linked_at FROM identities WHERE player = $1
             ORDER BY linked_at, key",
            &[&player],
        )
        .await?;
    let identities = rows.iter().map(|row| {
        Ok(LinkedIdentity {
            provider: get(row, 0)?,
            key: IdentityKey(bytes(row, 1, "identities", "key")?),
            linked_at: get(row, 2)?,
        })
    });
    Ok(identities.collect::<Result<_, Error>>()?)
}
