//! Accounts: their identities, and their suspension.

use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::identity::{Identity, IdentityKey, LinkedIdentity};
use platform_domain::player::SuspendedPlayer;
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::uuid;

/// Whose identity it is.
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

/// Marks a guest as gone into `account`.
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
    Ok(())
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

pub(super) fn suspend_player(
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
    // It is kept here as well: of the player it goes when it is lifted.
    let mut event = Entry::of(AuditKind::Suspended, now).player(player).by(by);
    if let Some(reason) = reason {
        event = event.subject(reason);
    }
    audit::add(connection, &event)?;
    Ok(true)
}

pub(super) fn unsuspend_player(
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

pub(super) fn list_suspended_players(
    connection: &Connection,
    since: Millis,
) -> Result<Vec<SuspendedPlayer>, Error> {
    let mut statement =
        // A guest that went into the account may have a token still.
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
