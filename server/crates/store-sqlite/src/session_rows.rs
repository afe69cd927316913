//! The rows of sessions: reading, adding and ending one. Operations on players, sessions, devices
//! and sign-ins consist of these.

use platform_domain::clock::Millis;
use platform_domain::console_token::Holder;
use platform_domain::deletion::Deletion;
use platform_domain::session::{SESSION_MILLIS, Session, SessionHash};
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::error::Error;
use super::player_rows;
use super::rows::uuid;

pub(super) fn lookup_session(
    connection: &Connection,
    hash: &SessionHash,
) -> Result<Option<Session>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT p.id, p.username, p.linked, p.merged_into, p.suspended_at, p.suspension_reason,
                p.created_at, p.seen_at, p.awaiting IS NOT NULL,
                s.created_at, s.renewed_at, s.ended_at, s.browser, p.deletion_asked_at,
                p.deletion_at
         FROM sessions s JOIN players p ON p.id = s.player WHERE s.hash = ?1",
    )?;
    let mut rows = statement.query([hash.0.as_slice()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let asked_at: Option<Millis> = row.get(13)?;
    let at: Option<Millis> = row.get(14)?;
    Ok(Some(Session {
        hash: *hash,
        player: player_rows::player(row)?,
        created_at: row.get(9)?,
        renewed_at: row.get(10)?,
        ended_at: row.get(11)?,
        browser: row.get(12)?,
        deletion: asked_at
            .zip(at)
            .map(|(asked_at, at)| Deletion { asked_at, at }),
    }))
}

/// Adds a session. `authenticated_at` is when the player last proved its identity; `None` for a
/// guest.
pub(super) fn add_session(
    connection: &Connection,
    hash: &SessionHash,
    player: Uuid,
    authenticated_at: Option<Millis>,
    now: Millis,
) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT INTO sessions (hash, player, created_at, renewed_at, authenticated_at)
             VALUES (?1, ?2, ?3, ?3, ?4)",
        )?
        .execute(params![
            hash.0.as_slice(),
            player.as_bytes(),
            now,
            authenticated_at
        ])?;
    Ok(())
}

/// Ends a session, without an event. Returns its player, if it had not ended before.
pub(super) fn end_session(
    connection: &Connection,
    hash: &SessionHash,
    now: Millis,
) -> Result<Option<Uuid>, Error> {
    let ended = connection
        .prepare_cached("UPDATE sessions SET ended_at = ?2 WHERE hash = ?1 AND ended_at IS NULL")?
        .execute(params![hash.0.as_slice(), now])?;
    if ended == 0 {
        return Ok(None);
    }
    let player: Vec<u8> = connection
        .prepare_cached("SELECT player FROM sessions WHERE hash = ?1")?
        .query_row([hash.0.as_slice()], |row| row.get(0))?;
    player_rows::let_go(connection, &player)?;
    uuid(&player, "sessions", "player", String::new).map(Some)
}

/// Returns whether the player has a session that has not ended or expired.
pub(super) fn has_session(
    connection: &Connection,
    player: Uuid,
    now: Millis,
) -> Result<bool, Error> {
    Ok(connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM sessions
                            WHERE player = ?1 AND ended_at IS NULL AND renewed_at > ?2)",
        )?
        .query_row(params![player.as_bytes(), now - SESSION_MILLIS], |row| {
            row.get(0)
        })?)
}

/// Reads a player, whether it is an administrator, and when it last proved its identity.
pub(super) fn holder(row: &Row<'_>) -> Result<Holder, Error> {
    Ok(Holder {
        player: player_rows::player(row)?,
        is_admin: row.get(9)?,
        authenticated_at: row.get(10)?,
    })
}
