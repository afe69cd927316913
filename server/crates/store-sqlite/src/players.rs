//! Players: guests, their names, and their present state.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::player::{Player, PlayerState};
use platform_domain::session::BACK_MILLIS;
use platform_domain::username;
use platform_store::{NewGuest, PlayerStore, StoreError};
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::rows::uuid;
use super::sessions;
use super::store::SqliteStore;

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
        self.main.read(|connection| find_player(connection, id))
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

/// The player in a row's first nine columns.
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
        // A merged guest is that first of all: it belongs to no browser any more, so it cannot be
        // suspended.
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
    let player = add_player(
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
    sessions::add_session(connection, &guest.session, guest.id, None, guest.now)?;
    Ok(Player {
        awaited: guest.awaiting.is_some(),
        ..player
    })
}

/// Adds a guest again, or gives it one more session if that was just done.
pub(super) fn bring_back_guest(connection: &Connection, guest: &NewGuest) -> Result<Player, Error> {
    let Some(player) = find_player(connection, guest.id)? else {
        return add_guest(connection, guest);
    };
    let is_young = guest.now - player.created_at < BACK_MILLIS;
    let is_here = sessions::has_session(connection, player.id, guest.now)?;
    if player.state != PlayerState::Guest || !is_young || !is_here {
        return Err(StoreError::Conflict {
            table: "players",
            column: "id",
        }
        .into());
    }
    sessions::add_session(connection, &guest.session, player.id, None, guest.now)?;
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
    let mut sessions = connection.prepare_cached("DELETE FROM sessions WHERE player = ?1")?;
    let mut players =
        connection.prepare_cached("DELETE FROM players WHERE id = ?1 AND awaiting IS NOT NULL")?;
    for id in ids {
        sessions.execute([id])?;
        players.execute([id])?;
    }
    Ok(())
}

/// Records that a guest's cookie has come back: from now on the guest counts.
pub(super) fn confirm(connection: &Connection, player: Uuid) -> Result<(), Error> {
    connection
        .prepare_cached(
            "UPDATE players SET awaiting = NULL WHERE id = ?1 AND awaiting IS NOT NULL",
        )?
        .execute([player.as_bytes()])?;
    Ok(())
}

/// Adds a player, who is a guest until an identity is linked.
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

pub(super) fn see_guest(connection: &Connection, player: Uuid, now: Millis) -> Result<(), Error> {
    connection
        .prepare_cached("UPDATE players SET seen_at = ?2 WHERE id = ?1 AND seen_at < ?2")?
        .execute(params![player.as_bytes(), now])?;
    confirm(connection, player)
}

/// Releases a guest whose last session has ended: it counts for no address any more, and its name
/// is free, unless a browser can restore it. A suspended guest stays as it is.
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
            // No name contains a space, so no player has this key.
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
