//! Players: guests, their names, and their present state.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::player::{Player, PlayerState};
use platform_domain::session::BACK_MILLIS;
use platform_domain::username;
use platform_store::{NewGuest, PlayerStore, StoreError};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::store::SqliteStore;
use super::{player_rows, session_rows};

#[async_trait]
impl PlayerStore for SqliteStore {
    async fn add_guest(&self, guest: NewGuest) -> Result<Player, StoreError> {
        self.main
            .write(move |connection| add_guest(connection, &guest))
            .await
    }

    async fn bring_back_guest(&self, guest: NewGuest) -> Result<Player, StoreError> {
        self.main
            .write(move |connection| bring_back_guest(connection, &guest))
            .await
    }

    async fn see_guest(&self, player: Uuid, now: Millis) -> Result<(), StoreError> {
        self.main
            .write(move |connection| see_guest(connection, player, now))
            .await
    }

    async fn find_player(&self, id: Uuid) -> Result<Option<Player>, StoreError> {
        self.main
            .read(|connection| player_rows::find_player(connection, id))
    }

    async fn rename_player(
        &self,
        player: Uuid,
        username: &str,
        by: By,
        now: Millis,
    ) -> Result<(), StoreError> {
        let username = username.to_owned();
        self.main
            .write(move |connection| rename_player(connection, player, &username, by, now))
            .await
    }
}

pub(super) fn add_guest(connection: &Connection, guest: &NewGuest) -> Result<Player, Error> {
    if let Some(cap) = guest.cap {
        let held: u32 = connection
            .prepare_cached(
                "SELECT count(*) FROM (SELECT 1 FROM players
                 WHERE address = ?1 AND seen_at >= ?2 AND awaiting IS NULL LIMIT ?3)",
            )?
            .query_row(params![guest.address, cap.seen_since, cap.guests], |row| {
                row.get(0)
            })?;
        if held >= cap.guests {
            return Err(StoreError::GuestCap.into());
        }
        if let Some(game) = &guest.awaiting {
            make_room(connection, &guest.address, game, cap.awaited)?;
        }
    }
    let player = player_rows::add_player(
        connection,
        guest.id,
        &guest.usernames,
        Some(&guest.address),
        guest.now,
    )?;
    if let Some(game) = &guest.awaiting {
        connection
            .prepare_cached("UPDATE players SET awaiting = ?2 WHERE id = ?1")?
            .execute(params![guest.id.as_bytes(), game])?;
    }
    session_rows::add_session(connection, &guest.session, guest.id, None, guest.now)?;
    Ok(Player {
        awaited: guest.awaiting.is_some(),
        ..player
    })
}

/// Adds a guest again, or gives it one more session if that was just done.
pub(super) fn bring_back_guest(connection: &Connection, guest: &NewGuest) -> Result<Player, Error> {
    let Some(player) = player_rows::find_player(connection, guest.id)? else {
        return add_guest(connection, guest);
    };
    let is_young = guest.now - player.created_at < BACK_MILLIS;
    let is_here = session_rows::has_session(connection, player.id, guest.now)?;
    if player.state != PlayerState::Guest || !is_young || !is_here {
        return Err(StoreError::Conflict {
            table: "players",
            column: "id",
        }
        .into());
    }
    session_rows::add_session(connection, &guest.session, player.id, None, guest.now)?;
    Ok(player)
}

/// Removes the oldest guests of this address and game whose cookie has not come back, so that there
/// is room for one more within `most`.
fn make_room(connection: &Connection, address: &str, game: &str, most: u32) -> Result<(), Error> {
    let ids: Vec<Vec<u8>> = connection
        .prepare_cached(
            "SELECT id FROM players WHERE address = ?1 AND awaiting = ?2
             ORDER BY created_at DESC, id LIMIT -1 OFFSET ?3",
        )?
        .query_map(params![address, game, most.saturating_sub(1)], |row| {
            row.get(0)
        })?
        .collect::<Result<_, _>>()?;
    remove_awaited(connection, &ids)
}

/// Removes guests whose cookie did not come back and that were added before `made_before`, at most
/// `limit`. Returns how many.
pub(super) fn sweep_awaited(
    connection: &Connection,
    made_before: Millis,
    limit: i64,
) -> Result<usize, Error> {
    let ids: Vec<Vec<u8>> = connection
        .prepare_cached(
            "SELECT id FROM players WHERE awaiting IS NOT NULL AND created_at <= ?1 LIMIT ?2",
        )?
        .query_map(params![made_before, limit], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    remove_awaited(connection, &ids)?;
    Ok(ids.len())
}

fn remove_awaited(connection: &Connection, ids: &[Vec<u8>]) -> Result<(), Error> {
    // They come from the player's session, but not each of them is of this player's own id.
    let mut games = connection.prepare_cached(
        "DELETE FROM game_sessions WHERE parent IN (SELECT hash FROM sessions WHERE player = ?1)",
    )?;
    let mut sessions = connection.prepare_cached("DELETE FROM sessions WHERE player = ?1")?;
    let mut players =
        connection.prepare_cached("DELETE FROM players WHERE id = ?1 AND awaiting IS NOT NULL")?;
    for id in ids {
        games.execute([id])?;
        sessions.execute([id])?;
        players.execute([id])?;
    }
    Ok(())
}

pub(super) fn see_guest(connection: &Connection, player: Uuid, now: Millis) -> Result<(), Error> {
    connection
        .prepare_cached("UPDATE players SET seen_at = ?2 WHERE id = ?1 AND seen_at < ?2")?
        .execute(params![player.as_bytes(), now])?;
    player_rows::confirm(connection, player)
}

pub(super) fn rename_player(
    connection: &Connection,
    player: Uuid,
    name: &str,
    by: By,
    now: Millis,
) -> Result<(), Error> {
    let same = connection
        .prepare_cached("SELECT 1 FROM players WHERE id = ?1 AND username = ?2")?
        .exists(params![player.as_bytes(), name])?;
    if same {
        return Ok(());
    }
    let renamed = connection
        .prepare_cached("UPDATE players SET username = ?2, username_key = ?3 WHERE id = ?1")?
        .execute(params![player.as_bytes(), name, username::unique_key(name)])?;
    if renamed == 0 {
        return Err(StoreError::Missing { table: "players" }.into());
    }
    let event = Entry::of(AuditKind::Renamed, now).player(player).by(by);
    audit::add(connection, &event)
}
