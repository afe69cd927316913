//! The rows of players: reading, adding, confirming and releasing one. Operations on players,
//! sessions, devices and sign-ins consist of these.

use platform_domain::clock::Millis;
use platform_domain::player::{Player, PlayerState};
use platform_domain::username;
use platform_store::StoreError;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::error::Error;
use super::rows::uuid;

/// Reads the player from a row's first nine columns.
pub(super) fn player(row: &Row<'_>) -> Result<Player, Error> {
    let id = uuid(
        row.get_ref(0)?.as_blob().unwrap_or_default(),
        "players",
        "id",
        String::new,
    )?;
    let merged_into: Option<Vec<u8>> = row.get(3)?;
    let linked: bool = row.get(2)?;
    let suspended_at: Option<Millis> = row.get(4)?;
    let state = match (merged_into, suspended_at, linked) {
        // A merged guest counts as merged, not as suspended: nobody has this player any more, so
        // there is nobody to suspend.
        (Some(into), _, _) => PlayerState::Merged {
            into: uuid(&into, "players", "merged_into", || id.to_string())?,
        },
        (None, Some(_), linked) => PlayerState::Suspended {
            reason: row.get(5)?,
            linked,
        },
        (None, None, true) => PlayerState::Account,
        (None, None, false) => PlayerState::Guest,
    };
    let created_at = row.get(6)?;
    Ok(Player {
        id,
        username: row.get(1)?,
        state,
        created_at,
        seen_at: row.get::<_, Option<Millis>>(7)?.unwrap_or(created_at),
        awaited: row.get(8)?,
    })
}

pub(super) fn find_player(connection: &Connection, id: Uuid) -> Result<Option<Player>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT id, username, linked, merged_into, suspended_at, suspension_reason, created_at,
                seen_at, awaiting IS NOT NULL
         FROM players WHERE id = ?1",
    )?;
    let mut rows = statement.query([id.as_bytes()])?;
    rows.next()?.map(player).transpose()
}

/// Returns the player with this id, who must exist.
pub(super) fn require_player(connection: &Connection, id: Uuid) -> Result<Player, Error> {
    let found = find_player(connection, id)?;
    Ok(found.ok_or(StoreError::Missing { table: "players" })?)
}

/// Adds a player, which is a guest until an identity is linked. It gets the first of these
/// usernames that is free.
pub(super) fn add_player(
    connection: &Connection,
    id: Uuid,
    usernames: &[String],
    address: Option<&str>,
    now: Millis,
) -> Result<Player, Error> {
    let mut add = connection.prepare_cached(
        "INSERT INTO players (id, username, username_key, address, created_at, seen_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT (username_key) DO NOTHING",
    )?;
    for name in usernames {
        let key = username::unique_key(name);
        if add.execute(params![id.as_bytes(), name, key, address, now])? == 1 {
            return Ok(Player {
                id,
                username: name.clone(),
                state: PlayerState::Guest,
                created_at: now,
                seen_at: now,
                awaited: false,
            });
        }
    }
    Err(StoreError::Conflict {
        table: "players",
        column: "username",
    }
    .into())
}

/// Keeps the row of a guest with a cookie that has not come back for a token: it is neither swept nor
/// removed to make room. The game it waits for is then empty, so that it counts for no game.
pub(super) fn keep_awaited(connection: &Connection, player: Uuid) -> Result<(), Error> {
    connection
        .prepare_cached("UPDATE players SET awaiting = '' WHERE id = ?1 AND awaiting IS NOT NULL")?
        .execute([player.as_bytes()])?;
    Ok(())
}

/// Releases a guest whose last session has ended: it counts for no address any more, and its
/// username becomes free, unless a browser can restore the guest. A suspended guest stays as it is.
pub(super) fn let_go(connection: &Connection, player: &[u8]) -> Result<(), Error> {
    connection
        .prepare_cached(
            "UPDATE players SET address = NULL, awaiting = NULL
             WHERE id = ?1 AND linked = 0 AND suspended_at IS NULL
               AND NOT EXISTS (SELECT 1 FROM sessions
                               WHERE player = players.id AND ended_at IS NULL)",
        )?
        .execute([player])?;
    connection
        .prepare_cached(
            // No username contains a space, so no other player has this key.
            "UPDATE players
             SET username = 'gone-' || substr(lower(hex(id)), 15),
                 username_key = ' ' || hex(id)
             WHERE id = ?1 AND linked = 0 AND suspended_at IS NULL
               AND NOT EXISTS (SELECT 1 FROM sessions
                               WHERE player = players.id AND ended_at IS NULL)
               AND NOT EXISTS (SELECT 1 FROM left_guests WHERE player = players.id)",
        )?
        .execute([player])?;
    Ok(())
}
