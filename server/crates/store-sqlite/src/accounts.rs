//! Accounts: their identities, and merging a guest into one.

use platform_domain::clock::Millis;
use platform_domain::identity::{Identity, IdentityKey, LinkedIdentity};
use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use super::error::Error;
use super::player_games;
use super::rows::uuid;

/// Returns the player of an identity.
pub(super) fn owner(connection: &Connection, key: &IdentityKey) -> Result<Option<Uuid>, Error> {
    let owner: Option<Vec<u8>> = connection
        .prepare_cached("SELECT player FROM identities WHERE key = ?1")?
        .query_row([key.0.as_slice()], |row| row.get(0))
        .optional()?;
    owner
        .map(|owner| uuid(&owner, "identities", "player", String::new))
        .transpose()
}

/// Makes `player` the account of a new identity.
pub(super) fn link(
    connection: &Connection,
    identity: &Identity,
    player: Uuid,
    now: Millis,
) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT INTO identities (key, provider, player, linked_at) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            identity.key.0.as_slice(),
            identity.provider,
            player.as_bytes(),
            now
        ])?;
    connection
        .prepare_cached(
            "UPDATE players SET linked = 1, address = NULL, awaiting = NULL WHERE id = ?1",
        )?
        .execute([player.as_bytes()])?;
    Ok(())
}

/// Marks a guest as merged into `account`.
pub(super) fn merge(
    connection: &Connection,
    guest: Uuid,
    account: Uuid,
    now: Millis,
) -> Result<(), Error> {
    connection
        .prepare_cached(
            "UPDATE players SET merged_into = ?2, merged_at = ?3, address = NULL, awaiting = NULL
             WHERE id = ?1 AND linked = 0 AND merged_into IS NULL",
        )?
        .execute(params![guest.as_bytes(), account.as_bytes(), now])?;
    player_games::unite(connection, guest, account)
}

pub(super) fn list_identities(
    connection: &Connection,
    player: Uuid,
) -> Result<Vec<LinkedIdentity>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT provider, key, linked_at FROM identities WHERE player = ?1 ORDER BY linked_at, key",
    )?;
    let identities = statement
        .query_map([player.as_bytes()], |row| {
            Ok(LinkedIdentity {
                provider: row.get(0)?,
                key: IdentityKey(row.get(1)?),
                linked_at: row.get(2)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(identities)
}
