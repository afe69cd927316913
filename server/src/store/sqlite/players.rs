//! Players: guests, their names, and who they are now.

use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::{sessions, uuid};
use crate::clock::Millis;
use crate::domain::audit::{AuditKind, By};
use crate::domain::player::{Player, PlayerState};
use crate::domain::username;
use crate::store::{NewGuest, StoreError};

/// The player in a row's first eight columns.
pub(super) fn player(row: &Row<'_>) -> Result<Player, StoreError> {
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
        // A guest that was merged away is that before all else: it is nobody's
        // player any more, so there is nobody to suspend.
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
    })
}

pub(super) fn find_player(connection: &Connection, id: Uuid) -> Result<Option<Player>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, username, linked, merged_into, suspended_at, suspension_reason, created_at,
                seen_at
         FROM players WHERE id = ?1",
    )?;
    let mut rows = statement.query([id.as_bytes()])?;
    rows.next()?.map(player).transpose()
}

pub(super) fn add_guest(connection: &Connection, guest: &NewGuest) -> Result<Player, StoreError> {
    if let Some(cap) = guest.cap {
        let held: u32 = connection
            .prepare_cached(
                "SELECT count(*) FROM (SELECT 1 FROM players
                 WHERE address = ?1 AND seen_at >= ?2 LIMIT ?3)",
            )?
            .query_row(params![guest.address, cap.seen_since, cap.guests], |row| {
                row.get(0)
            })?;
        if held >= cap.guests {
            return Err(StoreError::GuestCap);
        }
    }
    let player = add_player(
        connection,
        guest.id,
        &guest.usernames,
        Some(&guest.address),
        guest.now,
    )?;
    sessions::add_session(connection, &guest.session, guest.id, None, guest.now)?;
    Ok(player)
}

/// Makes a player, a guest until an identity is linked.
pub(super) fn add_player(
    connection: &Connection,
    id: Uuid,
    usernames: &[String],
    address: Option<&str>,
    now: Millis,
) -> Result<Player, StoreError> {
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
            });
        }
    }
    Err(StoreError::Conflict {
        table: "players",
        column: "username",
    })
}

pub(super) fn see_guest(
    connection: &Connection,
    player: Uuid,
    now: Millis,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE players SET seen_at = ?2 WHERE id = ?1 AND seen_at < ?2")?
        .execute(params![player.as_bytes(), now])?;
    Ok(())
}

/// Lets a guest go whose last session has ended: no address holds it any more,
/// and its name is free, since nobody will come back to it. A suspended one
/// stays as it is.
pub(super) fn let_go(connection: &Connection, player: &[u8]) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            // A space is in no name, so this key is nobody's.
            "UPDATE players
             SET address = NULL, username = 'gone-' || substr(lower(hex(id)), 15),
                 username_key = ' ' || hex(id)
             WHERE id = ?1 AND linked = 0 AND suspended_at IS NULL
               AND NOT EXISTS (SELECT 1 FROM sessions
                               WHERE player = players.id AND ended_at IS NULL)",
        )?
        .execute([player])?;
    Ok(())
}

pub(super) fn rename_player(
    connection: &Connection,
    player: Uuid,
    name: &str,
    by: By,
    now: Millis,
) -> Result<(), StoreError> {
    let renamed = connection
        .prepare_cached("UPDATE players SET username = ?2, username_key = ?3 WHERE id = ?1")?
        .execute(params![player.as_bytes(), name, username::unique_key(name)])?;
    if renamed == 0 {
        return Err(StoreError::Missing { table: "players" });
    }
    let event = Entry::of(AuditKind::Renamed, now).player(player).by(by);
    audit::add(connection, &event)
}
