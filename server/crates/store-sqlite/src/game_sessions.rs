//! Sessions of games that are apart, and the codes with which browsers get them.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::game_session::{
    BLANK_MILLIS, GameOfSession, GameSession, GameSessionHash, HAND_OFF_MILLIS, HandOff,
    HandOffHash, PER_PARENT, Purpose, Redemption,
};
use platform_domain::session::{KEPT_MILLIS, SessionHash};
use platform_store::{GameSessionStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use super::error::Error;
use super::rows::uuid;
use super::session_rows;
use super::store::SqliteStore;

#[async_trait]
impl GameSessionStore for SqliteStore {
    async fn add_hand_off(&self, hand_off: HandOff) -> Result<(), StoreError> {
        self.main
            .write(move |connection| add_hand_off(connection, &hand_off))
            .await
    }

    async fn redeem_hand_off(&self, redemption: Redemption) -> Result<bool, StoreError> {
        // Anybody can send any code: an unknown one costs no write.
        let (code, now) = (redemption.code, redemption.now);
        if !self
            .main
            .read(|connection| is_open(connection, &code, now))?
        {
            return Ok(false);
        }
        self.main
            .write(move |connection| redeem(connection, &redemption))
            .await
    }

    async fn take_sign_out(
        &self,
        code: &HandOffHash,
        now: Millis,
    ) -> Result<Option<SessionHash>, StoreError> {
        let code = *code;
        if !self
            .main
            .read(|connection| is_open(connection, &code, now))?
        {
            return Ok(None);
        }
        self.main
            .write(move |connection| take_sign_out(connection, &code, now))
            .await
    }

    async fn lookup_game_session(
        &self,
        hash: &GameSessionHash,
    ) -> Result<Option<GameSession>, StoreError> {
        self.main.read(|connection| {
            // Both rows are of one moment.
            let snapshot = connection.unchecked_transaction()?;
            lookup(&snapshot, hash)
        })
    }

    async fn find_blank_session(&self, parent: &SessionHash) -> Result<Option<Uuid>, StoreError> {
        self.main.read(|connection| find_blank(connection, parent))
    }

    async fn list_games_of_sessions(&self, player: Uuid) -> Result<Vec<GameOfSession>, StoreError> {
        self.main.read(|connection| list_games(connection, player))
    }

    async fn touch_game_session(
        &self,
        hash: &GameSessionHash,
        now: Millis,
    ) -> Result<(), StoreError> {
        let hash = *hash;
        self.main
            .write(move |connection| touch(connection, &hash, now))
            .await
    }

    async fn end_blank_session(&self, parent: &SessionHash) -> Result<(), StoreError> {
        let parent = *parent;
        self.main
            .write(
                move |connection| match session_rows::lookup_session(connection, &parent)? {
                    None => remove_of(connection, &parent),
                    Some(_) => Ok(()),
                },
            )
            .await
    }

    async fn end_game_session(&self, hash: &GameSessionHash) -> Result<(), StoreError> {
        let hash = *hash;
        self.main
            .write(move |connection| {
                connection
                    .prepare_cached("DELETE FROM game_sessions WHERE hash = ?1")?
                    .execute([hash.0.as_slice()])?;
                Ok(())
            })
            .await
    }
}

fn add_hand_off(connection: &Connection, hand_off: &HandOff) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT INTO hand_offs (code, purpose, player, parent, game, origin, state, made_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            hand_off.code.0.as_slice(),
            hand_off.purpose.number(),
            hand_off.player.as_bytes(),
            hand_off.parent.0.as_slice(),
            hand_off.game,
            hand_off.origin,
            hand_off.state.as_slice(),
            hand_off.made_at
        ])?;
    Ok(())
}

fn is_open(connection: &Connection, code: &HandOffHash, now: Millis) -> Result<bool, Error> {
    Ok(connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM hand_offs WHERE code = ?1 AND made_at > ?2)")?
        .query_row(params![code.0.as_slice(), now - HAND_OFF_MILLIS], |row| {
            row.get(0)
        })?)
}

fn redeem(connection: &Connection, redemption: &Redemption) -> Result<bool, Error> {
    let added = connection
        .prepare_cached(
            "INSERT INTO game_sessions (hash, player, parent, game, created_at, used_at, blank)
             SELECT ?1, player, parent, game, ?2, ?2,
                 NOT EXISTS (SELECT 1 FROM sessions WHERE hash = parent)
             FROM hand_offs
             WHERE code = ?3 AND purpose = ?4 AND game = ?5 AND origin = ?6 AND state = ?7
                 AND made_at > ?8",
        )?
        .execute(params![
            redemption.session.0.as_slice(),
            redemption.now,
            redemption.code.0.as_slice(),
            Purpose::Play.number(),
            redemption.game,
            redemption.origin,
            redemption.state.as_slice(),
            redemption.now - HAND_OFF_MILLIS
        ])?;
    if added == 0 {
        return Ok(false);
    }
    make_room(connection, &redemption.session)?;
    connection
        .prepare_cached("DELETE FROM hand_offs WHERE code = ?1")?
        .execute([redemption.code.0.as_slice()])?;
    Ok(true)
}

/// Removes the least recently used sessions of the same game and parent as this one, if there are
/// too many.
fn make_room(connection: &Connection, added: &GameSessionHash) -> Result<(), Error> {
    connection
        .prepare_cached(
            "DELETE FROM game_sessions WHERE hash IN
                 (SELECT other.hash FROM game_sessions other JOIN game_sessions added
                      ON other.parent = added.parent AND other.game = added.game
                  WHERE added.hash = ?1
                  ORDER BY other.hash = added.hash DESC, other.used_at DESC
                  LIMIT -1 OFFSET ?2)",
        )?
        .execute(params![added.0.as_slice(), PER_PARENT])?;
    Ok(())
}

fn take_sign_out(
    connection: &Connection,
    code: &HandOffHash,
    now: Millis,
) -> Result<Option<SessionHash>, Error> {
    let parent = connection
        .prepare_cached(
            "DELETE FROM hand_offs WHERE code = ?1 AND purpose = ?2 AND made_at > ?3
             RETURNING parent",
        )?
        .query_row(
            params![
                code.0.as_slice(),
                Purpose::SignOut.number(),
                now - HAND_OFF_MILLIS
            ],
            |row| row.get(0),
        )
        .optional()?;
    Ok(parent.map(SessionHash))
}

fn lookup(connection: &Connection, hash: &GameSessionHash) -> Result<Option<GameSession>, Error> {
    let found = connection
        .prepare_cached(
            "SELECT player, parent, game, created_at, used_at FROM game_sessions WHERE hash = ?1",
        )?
        .query_row([hash.0.as_slice()], |row| {
            let player: Vec<u8> = row.get(0)?;
            let parent = SessionHash(row.get(1)?);
            Ok((player, parent, row.get(2)?, row.get(3)?, row.get(4)?))
        })
        .optional()?;
    let Some((player, parent, game, created_at, used_at)) = found else {
        return Ok(None);
    };
    Ok(Some(GameSession {
        hash: *hash,
        player: uuid(&player, "game_sessions", "player", String::new)?,
        parent,
        game,
        created_at,
        used_at,
        session: session_rows::lookup_session(connection, &parent)?,
    }))
}

fn find_blank(connection: &Connection, parent: &SessionHash) -> Result<Option<Uuid>, Error> {
    let player: Option<Vec<u8>> = connection
        .prepare_cached(
            "SELECT player FROM game_sessions WHERE parent = ?1
             UNION ALL SELECT player FROM hand_offs WHERE parent = ?1
             LIMIT 1",
        )?
        .query_row([parent.0.as_slice()], |row| row.get(0))
        .optional()?;
    let Some(player) = player else {
        return Ok(None);
    };
    if session_rows::lookup_session(connection, parent)?.is_some() {
        return Ok(None);
    }
    uuid(&player, "game_sessions", "player", String::new).map(Some)
}

fn list_games(connection: &Connection, player: Uuid) -> Result<Vec<GameOfSession>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT parent, game FROM game_sessions
         WHERE parent IN (SELECT hash FROM sessions WHERE player = ?1) ORDER BY game, parent",
    )?;
    let games = statement
        .query_map([player.as_bytes()], |row| {
            Ok(GameOfSession {
                parent: SessionHash(row.get(0)?),
                game: row.get(1)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(games)
}

fn touch(connection: &Connection, hash: &GameSessionHash, now: Millis) -> Result<(), Error> {
    connection
        .prepare_cached(
            "UPDATE game_sessions SET used_at = max(used_at, ?2),
                 blank = NOT EXISTS (SELECT 1 FROM sessions WHERE hash = game_sessions.parent)
             WHERE hash = ?1",
        )?
        .execute(params![hash.0.as_slice(), now])?;
    Ok(())
}

/// Lets what comes from the session `old` come from `new`, which has the same player.
pub(super) fn follow(
    connection: &Connection,
    old: &SessionHash,
    new: &SessionHash,
) -> Result<(), Error> {
    for sql in [
        "UPDATE game_sessions SET parent = ?2 WHERE parent = ?1",
        "UPDATE hand_offs SET parent = ?2 WHERE parent = ?1",
    ] {
        connection
            .prepare_cached(sql)?
            .execute(params![old.0.as_slice(), new.0.as_slice()])?;
    }
    Ok(())
}

/// Removes what comes from a session.
pub(super) fn remove_of(connection: &Connection, parent: &SessionHash) -> Result<(), Error> {
    for sql in [
        "DELETE FROM game_sessions WHERE parent = ?1",
        "DELETE FROM hand_offs WHERE parent = ?1",
    ] {
        connection
            .prepare_cached(sql)?
            .execute([parent.0.as_slice()])?;
    }
    Ok(())
}

/// Removes what is too old to mean anything, at most `limit` of each. Returns how many rows.
pub(super) fn sweep(connection: &Connection, now: Millis, limit: i64) -> Result<usize, Error> {
    // Their visitors have played meanwhile, in another game.
    connection
        .prepare_cached(
            "UPDATE game_sessions SET blank = 0 WHERE hash IN
                 (SELECT hash FROM game_sessions WHERE blank = 1 AND used_at <= ?1
                      AND EXISTS (SELECT 1 FROM sessions WHERE hash = parent) LIMIT ?2)",
        )?
        .execute(params![now - BLANK_MILLIS, limit])?;
    let mut swept = 0;
    for (sql, before) in [
        (
            "DELETE FROM game_sessions WHERE hash IN
                 (SELECT hash FROM game_sessions WHERE used_at <= ?1 LIMIT ?2)",
            now - KEPT_MILLIS,
        ),
        (
            "DELETE FROM game_sessions WHERE hash IN
                 (SELECT hash FROM game_sessions WHERE blank = 1 AND used_at <= ?1
                      AND NOT EXISTS (SELECT 1 FROM sessions WHERE hash = parent) LIMIT ?2)",
            now - BLANK_MILLIS,
        ),
        (
            "DELETE FROM hand_offs WHERE code IN
                 (SELECT code FROM hand_offs WHERE made_at <= ?1 LIMIT ?2)",
            now - HAND_OFF_MILLIS,
        ),
    ] {
        swept += connection
            .prepare_cached(sql)?
            .execute(params![before, limit])?;
    }
    Ok(swept)
}
