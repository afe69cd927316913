//! Guests that were signed out, and the browsers that can restore them.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::left_guest::{
    LEFT_MILLIS, LeftGuest, LeftHash, MOST_LEFT, Restore, Restored, SignedOut,
};
use platform_domain::player::PlayerState;
use platform_domain::session::{Session, SessionHash, SessionStatus};
use platform_store::{LeftGuestStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::store::SqliteStore;
use super::{player_rows, session_rows};

#[async_trait]
impl LeftGuestStore for SqliteStore {
    async fn sign_out(
        &self,
        session: &SessionHash,
        browser: &LeftHash,
        by: By,
        now: Millis,
    ) -> Result<SignedOut, StoreError> {
        let (session, browser) = (*session, *browser);
        self.main
            .write(move |connection| sign_out(connection, &session, &browser, by, now))
            .await
    }

    async fn list_left_guests(
        &self,
        browser: &LeftHash,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<LeftGuest>, StoreError> {
        self.main
            .read(|connection| list_left_guests(connection, browser, now, limit))
    }

    async fn restore_guest(&self, restore: Restore) -> Result<Restored, StoreError> {
        self.main
            .write(move |connection| restore_guest(connection, &restore))
            .await
    }
}

fn sign_out(
    connection: &Connection,
    session: &SessionHash,
    browser: &LeftHash,
    by: By,
    now: Millis,
) -> Result<SignedOut, Error> {
    let Some(found) = session_rows::lookup_session(connection, session)? else {
        return Ok(SignedOut::Nothing);
    };
    if found.ended_at.is_some() {
        return Ok(SignedOut::Nothing);
    }
    let event = Entry::of(AuditKind::SignedOut, now).player(found.player.id);
    audit::add(connection, &event.by(by))?;
    if found.player.is_anonymous() {
        leave(connection, &found, browser, now)?;
        Ok(SignedOut::Guest)
    } else {
        session_rows::end_session(connection, session, now)?;
        Ok(SignedOut::Account)
    }
}

/// Ends a guest's session so that this browser can restore the guest.
fn leave(
    connection: &Connection,
    session: &Session,
    browser: &LeftHash,
    now: Millis,
) -> Result<(), Error> {
    let player = session.player.id;
    connection
        .prepare_cached(
            "INSERT INTO left_guests (browser, player, left_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (browser, player) DO UPDATE SET left_at = ?3",
        )?
        .execute(params![browser.0.as_slice(), player.as_bytes(), now])?;
    session_rows::end_session(connection, &session.hash, now)?;
    forget_shortest(connection, browser)
}

/// Removes those beyond [`MOST_LEFT`] that were guests for the shortest time.
fn forget_shortest(connection: &Connection, browser: &LeftHash) -> Result<(), Error> {
    let most = i64::try_from(MOST_LEFT).unwrap_or(i64::MAX);
    let forgotten: Vec<Vec<u8>> = connection
        .prepare_cached(
            "SELECT l.player FROM left_guests l JOIN players p ON p.id = l.player
             WHERE l.browser = ?1 ORDER BY l.left_at - p.created_at DESC, l.player
             LIMIT -1 OFFSET ?2",
        )?
        .query_map(params![browser.0.as_slice(), most], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for player in forgotten {
        connection
            .prepare_cached("DELETE FROM left_guests WHERE browser = ?1 AND player = ?2")?
            .execute(params![browser.0.as_slice(), player])?;
        player_rows::let_go(connection, &player)?;
    }
    Ok(())
}

fn list_left_guests(
    connection: &Connection,
    browser: &LeftHash,
    now: Millis,
    limit: usize,
) -> Result<Vec<LeftGuest>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT p.id, p.username, p.linked, p.merged_into, p.suspended_at, p.suspension_reason,
                p.created_at, p.seen_at, p.awaiting IS NOT NULL, l.left_at
         FROM left_guests l JOIN players p ON p.id = l.player
         WHERE l.browser = ?1 AND l.left_at > ?2
           AND p.linked = 0 AND p.merged_into IS NULL AND p.suspended_at IS NULL
         ORDER BY l.left_at - p.created_at DESC, l.player LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![browser.0.as_slice(), now - LEFT_MILLIS, limit])?;
    let mut guests = Vec::new();
    while let Some(row) = rows.next()? {
        guests.push(LeftGuest {
            player: player_rows::player(row)?,
            left_at: row.get(9)?,
        });
    }
    Ok(guests)
}

fn restore_guest(connection: &Connection, restore: &Restore) -> Result<Restored, Error> {
    let now = restore.now;
    let known = connection
        .prepare_cached(
            "SELECT 1 FROM left_guests WHERE browser = ?1 AND player = ?2 AND left_at > ?3",
        )?
        .query_row(
            params![
                restore.browser.0.as_slice(),
                restore.guest.as_bytes(),
                now - LEFT_MILLIS
            ],
            |_| Ok(()),
        )
        .optional()?;
    if known.is_none() {
        return Ok(Restored::NotThere);
    }
    let Some(player) = player_rows::find_player(connection, restore.guest)? else {
        return Ok(Restored::NotThere);
    };
    match player.state {
        PlayerState::Guest => {}
        PlayerState::Suspended { reason, .. } => return Ok(Restored::Suspended { reason }),
        PlayerState::Account | PlayerState::Merged { .. } => return Ok(Restored::NotThere),
    }
    let held = match &restore.held {
        Some(held) => session_rows::lookup_session(connection, held)?,
        None => None,
    };
    let mut event = Entry::of(AuditKind::GuestRestored, now).player(restore.guest);
    if let Some(held) = held {
        match held.status(now) {
            // Restoring another guest must not bypass a suspension.
            SessionStatus::Suspended(reason) => return Ok(Restored::Suspended { reason }),
            SessionStatus::Good if !held.player.is_anonymous() => return Ok(Restored::SignedIn),
            SessionStatus::Good => {
                leave(connection, &held, &restore.browser, now)?;
                event = event.other(held.player.id);
            }
            SessionStatus::Stranger | SessionStatus::Expired | SessionStatus::Leaving(_) => {}
        }
    }
    take_back(connection, restore)?;
    audit::add(connection, &event.by(restore.by.clone()))?;
    let player = player_rows::find_player(connection, restore.guest)?;
    Ok(player.map_or(Restored::NotThere, Restored::Back))
}

/// Gives the guest a session and an address again.
fn take_back(connection: &Connection, restore: &Restore) -> Result<(), Error> {
    let guest = restore.guest.as_bytes();
    connection
        .prepare_cached("DELETE FROM left_guests WHERE player = ?1")?
        .execute([guest])?;
    connection
        .prepare_cached(
            "UPDATE players SET address = ?2, seen_at = max(seen_at, ?3) WHERE id = ?1",
        )?
        .execute(params![guest, restore.address, restore.now])?;
    session_rows::add_session(
        connection,
        &restore.session,
        restore.guest,
        None,
        restore.now,
    )
}

/// Removes every way to restore this player.
pub(super) fn forget(connection: &Connection, player: Uuid) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM left_guests WHERE player = ?1")?
        .execute([player.as_bytes()])?;
    Ok(())
}

/// Removes expired ones, at most `limit`. Returns how many.
pub(super) fn sweep(connection: &Connection, now: Millis, limit: i64) -> Result<usize, Error> {
    let over: Vec<(Vec<u8>, Vec<u8>)> = connection
        .prepare_cached("SELECT browser, player FROM left_guests WHERE left_at <= ?1 LIMIT ?2")?
        .query_map([now - LEFT_MILLIS, limit], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<Result<_, _>>()?;
    for (browser, player) in &over {
        connection
            .prepare_cached("DELETE FROM left_guests WHERE browser = ?1 AND player = ?2")?
            .execute([browser, player])?;
        player_rows::let_go(connection, player)?;
    }
    Ok(over.len())
}
