//! Sessions.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::console_token::{Hold, Holder};
use platform_domain::player::UNCONFIRMED_MILLIS;
use platform_domain::session::{KEPT_MILLIS, SESSION_MILLIS, Session, SessionHash, SessionSummary};
use platform_domain::sign_in::SIGN_IN_MILLIS;
use platform_store::{SessionStore, StoreError};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::rows::uuid;
use super::store::SqliteStore;
use super::{devices, game_sessions, left_guests, player_rows, players, session_rows};

#[async_trait]
impl SessionStore for SqliteStore {
    async fn lookup_session(&self, hash: &SessionHash) -> Result<Option<Session>, StoreError> {
        self.main
            .read(|connection| session_rows::lookup_session(connection, hash))
    }

    async fn find_holder(&self, hold: &Hold, now: Millis) -> Result<Option<Holder>, StoreError> {
        self.main.read(|connection| match hold {
            Hold::Session(hash) => find_holder(connection, hash, now),
            Hold::Device(device) => devices::find_holder(connection, *device, now),
        })
    }

    async fn renew_session(&self, hash: &SessionHash, now: Millis) -> Result<(), StoreError> {
        let hash = *hash;
        self.main
            .write(move |connection| renew_session(connection, &hash, now))
            .await
    }

    async fn end_session(&self, hash: &SessionHash, by: By, now: Millis) -> Result<(), StoreError> {
        let hash = *hash;
        self.main
            .write(move |connection| sign_out(connection, &hash, by, now))
            .await
    }

    async fn note_browser(&self, hash: &SessionHash, browser: &str) -> Result<(), StoreError> {
        let (hash, browser) = (*hash, browser.to_owned());
        self.main
            .write(move |connection| note_browser(connection, &hash, &browser))
            .await
    }

    async fn end_session_of(
        &self,
        player: Uuid,
        hash: &SessionHash,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let hash = *hash;
        self.main
            .write(move |connection| end_session_of(connection, player, &hash, by, now))
            .await
    }

    async fn end_other_sessions(
        &self,
        player: Uuid,
        kept: Option<&SessionHash>,
        by: By,
        now: Millis,
    ) -> Result<usize, StoreError> {
        let kept = kept.copied();
        self.main
            .write(move |connection| end_other_sessions(connection, player, kept.as_ref(), by, now))
            .await
    }

    async fn list_sessions(
        &self,
        player: Uuid,
        now: Millis,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        self.main
            .read(|connection| list_sessions(connection, player, now))
    }

    async fn list_ended_sessions(&self, since: Millis) -> Result<Vec<(Uuid, Millis)>, StoreError> {
        self.main
            .read_much(move |connection| list_ended(connection, since))
            .await
    }

    async fn sweep_sessions(&self, now: Millis, limit: usize) -> Result<usize, StoreError> {
        self.main
            .write(move |connection| sweep_sessions(connection, now, limit))
            .await
    }
}

/// The player of a session that has not ended.
pub(super) fn find_holder(
    connection: &Connection,
    hash: &SessionHash,
    now: Millis,
) -> Result<Option<Holder>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT p.id, p.username, p.linked, p.merged_into, p.suspended_at, p.suspension_reason,
                p.created_at, p.seen_at, p.awaiting IS NOT NULL,
                EXISTS (SELECT 1 FROM admins WHERE player = p.id),
                s.authenticated_at
         FROM sessions s JOIN players p ON p.id = s.player
         WHERE s.hash = ?1 AND s.ended_at IS NULL AND s.renewed_at > ?2",
    )?;
    let mut rows = statement.query(params![hash.0.as_slice(), now - SESSION_MILLIS])?;
    rows.next()?.map(session_rows::holder).transpose()
}

pub(super) fn renew_session(
    connection: &Connection,
    hash: &SessionHash,
    now: Millis,
) -> Result<(), Error> {
    connection
        .prepare_cached(
            "UPDATE sessions SET renewed_at = ?2
             WHERE hash = ?1 AND renewed_at < ?2 AND ended_at IS NULL",
        )?
        .execute(params![hash.0.as_slice(), now])?;
    Ok(())
}

/// Ends a session because its player signed out.
pub(super) fn sign_out(
    connection: &Connection,
    hash: &SessionHash,
    by: By,
    now: Millis,
) -> Result<(), Error> {
    let Some(player) = session_rows::end_session(connection, hash, now)? else {
        return Ok(());
    };
    let event = Entry::of(AuditKind::SignedOut, now).player(player).by(by);
    audit::add(connection, &event)
}

pub(super) fn note_browser(
    connection: &Connection,
    hash: &SessionHash,
    browser: &str,
) -> Result<(), Error> {
    connection
        .prepare_cached("UPDATE sessions SET browser = ?2 WHERE hash = ?1")?
        .execute(params![hash.0.as_slice(), browser])?;
    Ok(())
}

pub(super) fn end_session_of(
    connection: &Connection,
    player: Uuid,
    hash: &SessionHash,
    by: By,
    now: Millis,
) -> Result<bool, Error> {
    let ended = connection
        .prepare_cached(
            "UPDATE sessions SET ended_at = ?3
             WHERE hash = ?1 AND player = ?2 AND ended_at IS NULL",
        )?
        .execute(params![hash.0.as_slice(), player.as_bytes(), now])?;
    if ended == 0 {
        return Ok(false);
    }
    player_rows::let_go(connection, player.as_bytes())?;
    let event = Entry::of(AuditKind::SessionsEnded, now)
        .player(player)
        .by(by);
    audit::add(connection, &event)?;
    Ok(true)
}

/// Ends every session of a player except `kept`, without an event.
pub(super) fn end_all(
    connection: &Connection,
    player: Uuid,
    kept: Option<&SessionHash>,
    now: Millis,
) -> Result<usize, Error> {
    let ended = connection
        .prepare_cached(
            "UPDATE sessions SET ended_at = ?2
             WHERE player = ?1 AND ended_at IS NULL AND (?3 IS NULL OR hash <> ?3)",
        )?
        .execute(params![
            player.as_bytes(),
            now,
            kept.map(|kept| kept.0.as_slice())
        ])?;
    left_guests::forget(connection, player)?;
    player_rows::let_go(connection, player.as_bytes())?;
    Ok(ended)
}

pub(super) fn end_other_sessions(
    connection: &Connection,
    player: Uuid,
    kept: Option<&SessionHash>,
    by: By,
    now: Millis,
) -> Result<usize, Error> {
    let ended = end_all(connection, player, kept, now)? + devices::end_all(connection, player)?;
    if ended > 0 {
        let event = Entry::of(AuditKind::SessionsEnded, now)
            .player(player)
            .by(by);
        audit::add(connection, &event)?;
    }
    Ok(ended)
}

pub(super) fn list_sessions(
    connection: &Connection,
    player: Uuid,
    now: Millis,
) -> Result<Vec<SessionSummary>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT hash, created_at, renewed_at, browser FROM sessions
         WHERE player = ?1 AND ended_at IS NULL AND renewed_at > ?2
         ORDER BY renewed_at DESC, created_at DESC",
    )?;
    let sessions = statement
        .query_map(params![player.as_bytes(), now - SESSION_MILLIS], |row| {
            Ok(SessionSummary {
                hash: SessionHash(row.get(0)?),
                created_at: row.get(1)?,
                renewed_at: row.get(2)?,
                browser: row.get(3)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(sessions)
}

/// The players whose sessions ended at `since` or later, with the time of the last end.
pub(super) fn list_ended(
    connection: &Connection,
    since: Millis,
) -> Result<Vec<(Uuid, Millis)>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT player, max(ended_at) FROM sessions WHERE ended_at >= ?1 GROUP BY player",
    )?;
    let mut rows = statement.query([since])?;
    let mut ended = Vec::new();
    while let Some(row) = rows.next()? {
        let player = row.get_ref(0)?.as_blob().unwrap_or_default();
        let player = uuid(player, "sessions", "player", String::new)?;
        ended.push((player, row.get(1)?));
    }
    Ok(ended)
}

pub(super) fn sweep_sessions(
    connection: &Connection,
    now: Millis,
    limit: usize,
) -> Result<usize, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sessions = connection
        .prepare_cached(
            "DELETE FROM sessions WHERE hash IN
                 (SELECT hash FROM sessions WHERE renewed_at <= ?1 LIMIT ?2)",
        )?
        .execute([now - KEPT_MILLIS, limit])?;
    let pending = connection
        .prepare_cached(
            "DELETE FROM pending_sign_ins WHERE state IN
                 (SELECT state FROM pending_sign_ins WHERE started_at <= ?1 LIMIT ?2)",
        )?
        .execute([now - SIGN_IN_MILLIS, limit])?;
    let awaited = players::sweep_awaited(connection, now - UNCONFIRMED_MILLIS, limit)?;
    let left = left_guests::sweep(connection, now, limit)?;
    let games = game_sessions::sweep(connection, now, limit)?;
    Ok(sessions + pending + awaited + left + games + devices::sweep(connection, now, limit)?)
}
