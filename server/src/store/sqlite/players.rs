//! Players and their sessions.

use rusqlite::{Connection, Row, params};

use super::uuid;
use crate::clock::Millis;
use crate::domain::player::{Player, PlayerState};
use crate::domain::session::{Session, SessionHash};
use crate::domain::username;
use crate::store::{NewGuest, StoreError};

pub(super) fn lookup_session(
    connection: &Connection,
    hash: &SessionHash,
) -> Result<Option<Session>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT p.id, p.username, p.linked, p.merged_into, p.suspended_at, p.suspension_reason,
                p.created_at, s.created_at, s.renewed_at, s.ended_at
         FROM sessions s JOIN players p ON p.id = s.player WHERE s.hash = ?1",
    )?;
    let mut rows = statement.query([hash.0.as_slice()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(Session {
        hash: *hash,
        player: player(row)?,
        created_at: row.get(7)?,
        renewed_at: row.get(8)?,
        ended_at: row.get(9)?,
    }))
}

/// The player in a row's first seven columns.
fn player(row: &Row<'_>) -> Result<Player, StoreError> {
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
    Ok(Player {
        id,
        username: row.get(1)?,
        state,
        created_at: row.get(6)?,
    })
}

pub(super) fn add_guest(connection: &Connection, guest: &NewGuest) -> Result<Player, StoreError> {
    let mut add = connection.prepare_cached(
        "INSERT INTO players (id, username, username_key, address, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (username_key) DO NOTHING",
    )?;
    let mut taken = None;
    for name in &guest.usernames {
        let key = username::without_case(name);
        let added = add.execute(params![
            guest.id.as_bytes(),
            name,
            key,
            guest.address,
            guest.now
        ])?;
        if added == 1 {
            taken = Some(name);
            break;
        }
    }
    let username = taken
        .ok_or(StoreError::Conflict {
            table: "players",
            column: "username",
        })?
        .clone();
    connection
        .prepare_cached(
            "INSERT INTO sessions (hash, player, created_at, renewed_at) VALUES (?1, ?2, ?3, ?3)",
        )?
        .execute(params![
            guest.session.0.as_slice(),
            guest.id.as_bytes(),
            guest.now
        ])?;
    Ok(Player {
        id: guest.id,
        username,
        state: PlayerState::Guest,
        created_at: guest.now,
    })
}

pub(super) fn renew_session(
    connection: &Connection,
    hash: &SessionHash,
    now: Millis,
) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE sessions SET renewed_at = ?2
             WHERE hash = ?1 AND renewed_at < ?2 AND ended_at IS NULL",
        )?
        .execute(params![hash.0.as_slice(), now])?;
    Ok(())
}

pub(super) fn end_session(
    connection: &Connection,
    hash: &SessionHash,
    now: Millis,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE sessions SET ended_at = ?2 WHERE hash = ?1 AND ended_at IS NULL")?
        .execute(params![hash.0.as_slice(), now])?;
    Ok(())
}
