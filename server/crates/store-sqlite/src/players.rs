//! Players: guests, their names, and their present state.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::player::{Player, PlayerState};
use platform_domain::session::BACK_MILLIS;
use platform_domain::username;
use platform_store::{GuestCap, NewGuest, PlayerStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};
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

    async fn has_room_for_new_guest(
        &self,
        address: &str,
        game: &str,
        cap: GuestCap,
    ) -> Result<bool, StoreError> {
        self.main.read(|connection| {
            Ok(admits(connection, address, Some(game), cap)?
                || !admits(connection, address, None, cap)?)
        })
    }

    async fn confirm_guest(
        &self,
        player: Uuid,
        cap: Option<GuestCap>,
        now: Millis,
    ) -> Result<bool, StoreError> {
        self.main
            .write(move |connection| confirm_guest(connection, player, cap, now))
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
        if !admits(connection, &guest.address, guest.awaiting.as_deref(), cap)? {
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

/// Whether an address has room for one more guest: of this game, or one with a cookie that came back.
fn admits(
    connection: &Connection,
    address: &str,
    game: Option<&str>,
    cap: GuestCap,
) -> Result<bool, Error> {
    let confirmed: u32 = connection
        .prepare_cached(
            "SELECT count(*) FROM (SELECT 1 FROM players
             WHERE address = ?1 AND seen_at >= ?2 AND awaiting IS NULL LIMIT ?3)",
        )?
        .query_row(params![address, cap.seen_since, cap.guests], |row| {
            row.get(0)
        })?;
    let Some(game) = game.filter(|_| confirmed < cap.guests) else {
        return Ok(confirmed < cap.guests);
    };
    let awaited: u32 = connection
        .prepare_cached(
            "SELECT count(*) FROM (SELECT 1 FROM players
             WHERE address = ?1 AND awaiting = ?2 AND created_at >= ?3 LIMIT ?4)",
        )?
        .query_row(
            params![address, game, cap.awaited_since, cap.guests],
            |row| row.get(0),
        )?;
    Ok(confirmed.saturating_add(awaited) < cap.guests)
}

/// Records that a guest's cookie came back, if its address has room.
fn confirm_guest(
    connection: &Connection,
    player: Uuid,
    cap: Option<GuestCap>,
    now: Millis,
) -> Result<bool, Error> {
    let awaited: Option<(bool, Option<String>)> = connection
        .prepare_cached("SELECT awaiting IS NOT NULL, address FROM players WHERE id = ?1")?
        .query_row([player.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match awaited {
        None => return Ok(false),
        Some((true, address)) => {
            if let (Some(address), Some(cap)) = (address, cap)
                && !admits(connection, &address, None, cap)?
            {
                return Ok(false);
            }
            connection
                .prepare_cached("UPDATE players SET awaiting = NULL WHERE id = ?1")?
                .execute([player.as_bytes()])?;
        }
        Some((false, _)) => {}
    }
    see_guest(connection, player, now)?;
    Ok(true)
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
            "SELECT id FROM players
             WHERE awaiting IS NOT NULL AND awaiting <> '' AND created_at <= ?1 LIMIT ?2",
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
    let mut played = connection.prepare_cached("DELETE FROM player_games WHERE player = ?1")?;
    let mut players =
        connection.prepare_cached("DELETE FROM players WHERE id = ?1 AND awaiting IS NOT NULL")?;
    for id in ids {
        played.execute([id])?;
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
    Ok(())
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
