//! Sessions of games that are apart, and the codes with which browsers get them.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::game_session::{
    BLANK_MILLIS, GameOfSession, GameSession, GameSessionHash, HAND_OFF_MILLIS, HandOff,
    HandOffHash, PER_PARENT, Purpose, Redemption,
};
use platform_domain::session::{KEPT_MILLIS, SessionHash};
use platform_store::{GameSessionStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::Database;
use super::error::Error;
use super::rows::{bytes, get};
use super::sessions;
use super::store::PostgresStore;
use super::transaction::Transaction;

/// How many other sessions of a game and parent may stay beside a new one.
const OTHERS: i64 = PER_PARENT - 1;

#[async_trait]
impl GameSessionStore for PostgresStore {
    async fn add_hand_off(&self, hand_off: HandOff) -> Result<(), StoreError> {
        self.main
            .write(
                "INSERT INTO hand_offs
                     (code, purpose, player, parent, game, origin, state, made_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                &[
                    &hand_off.code.0.as_slice(),
                    &hand_off.purpose.number(),
                    &hand_off.player,
                    &hand_off.parent.0.as_slice(),
                    &hand_off.game,
                    &hand_off.origin,
                    &hand_off.state.as_slice(),
                    &hand_off.made_at,
                ],
            )
            .await
            .map(drop)
    }

    async fn redeem_hand_off(&self, redemption: Redemption) -> Result<bool, StoreError> {
        // Anybody can send any code: an unknown one costs no write.
        if !is_open(&self.main, &redemption.code, redemption.now).await? {
            return Ok(false);
        }
        // If two requests have the same code, only one removes its row.
        let rows = self
            .main
            .write(
                "WITH redeemed AS (
                     DELETE FROM hand_offs
                     WHERE code = $3 AND purpose = $4 AND game = $5 AND origin = $6
                         AND state = $7 AND made_at > $8
                     RETURNING player, parent, game,
                         NOT EXISTS (SELECT 1 FROM sessions WHERE hash = parent) AS blank),
                 room AS (
                     DELETE FROM game_sessions WHERE hash = ANY(ARRAY(
                         SELECT hash FROM game_sessions JOIN redeemed USING (parent, game)
                         ORDER BY used_at DESC OFFSET $9)))
                 INSERT INTO game_sessions
                     (hash, player, parent, game, created_at, used_at, blank)
                 SELECT $1, player, parent, game, $2, $2, blank
                 FROM redeemed RETURNING 1",
                &[
                    &redemption.session.0.as_slice(),
                    &redemption.now,
                    &redemption.code.0.as_slice(),
                    &Purpose::Play.number(),
                    &redemption.game,
                    &redemption.origin,
                    &redemption.state.as_slice(),
                    &(redemption.now - HAND_OFF_MILLIS),
                    // The new one is not among those that the statement sees.
                    &OTHERS,
                ],
            )
            .await?;
        Ok(!rows.is_empty())
    }

    async fn take_sign_out(
        &self,
        code: &HandOffHash,
        now: Millis,
    ) -> Result<Option<SessionHash>, StoreError> {
        if !is_open(&self.main, code, now).await? {
            return Ok(None);
        }
        let rows = self
            .main
            .write(
                "DELETE FROM hand_offs WHERE code = $1 AND purpose = $2 AND made_at > $3
                 RETURNING parent",
                &[
                    &code.0.as_slice(),
                    &Purpose::SignOut.number(),
                    &(now - HAND_OFF_MILLIS),
                ],
            )
            .await?;
        let parent = rows.first().map(|row| bytes(row, 0, "hand_offs", "parent"));
        Ok(parent.transpose()?.map(SessionHash))
    }

    async fn lookup_game_session(
        &self,
        hash: &GameSessionHash,
    ) -> Result<Option<GameSession>, StoreError> {
        if let Some(found) = sessions::find_of_game(&self.main, hash).await? {
            return Ok(Some(found));
        }
        let row = self
            .main
            .row(
                "SELECT player, parent, game, created_at, used_at FROM game_sessions WHERE hash = $1",
                &[&hash.0.as_slice()],
            )
            .await?;
        let blank = |row: &Row| -> Result<GameSession, Error> {
            Ok(GameSession {
                hash: *hash,
                player: get(row, 0)?,
                parent: SessionHash(bytes(row, 1, "game_sessions", "parent")?),
                game: get(row, 2)?,
                created_at: get(row, 3)?,
                used_at: get(row, 4)?,
                session: None,
            })
        };
        Ok(row.as_ref().map(blank).transpose()?)
    }

    async fn find_blank_session(&self, parent: &SessionHash) -> Result<Option<Uuid>, StoreError> {
        let row = self
            .main
            .row(
                "SELECT player FROM (
                     SELECT player FROM game_sessions WHERE parent = $1
                     UNION ALL SELECT player FROM hand_offs WHERE parent = $1) AS of_parent
                 WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE hash = $1) LIMIT 1",
                &[&parent.0.as_slice()],
            )
            .await?;
        Ok(row.as_ref().map(|row| get(row, 0)).transpose()?)
    }

    async fn list_games_of_sessions(&self, player: Uuid) -> Result<Vec<GameOfSession>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT DISTINCT parent, game FROM game_sessions
                 WHERE parent IN (SELECT hash FROM sessions WHERE player = $1)
                 ORDER BY game, parent",
                &[&player],
            )
            .await?;
        let games = rows.iter().map(|row| {
            Ok(GameOfSession {
                parent: SessionHash(bytes(row, 0, "game_sessions", "parent")?),
                game: get(row, 1)?,
            })
        });
        Ok(games.collect::<Result<_, Error>>()?)
    }

    async fn touch_game_session(
        &self,
        hash: &GameSessionHash,
        now: Millis,
    ) -> Result<(), StoreError> {
        self.main
            .write(
                "UPDATE game_sessions SET used_at = greatest(used_at, $2),
                     blank = NOT EXISTS (SELECT 1 FROM sessions WHERE hash = game_sessions.parent)
                 WHERE hash = $1",
                &[&hash.0.as_slice(), &now],
            )
            .await
            .map(drop)
    }

    async fn end_blank_session(&self, parent: &SessionHash) -> Result<(), StoreError> {
        transact!(self.main, transaction => end_blank(&transaction, parent))
    }

    async fn end_game_session(&self, hash: &GameSessionHash) -> Result<(), StoreError> {
        self.main
            .write(
                "DELETE FROM game_sessions WHERE hash = $1",
                &[&hash.0.as_slice()],
            )
            .await
            .map(drop)
    }
}

async fn is_open(database: &Database, code: &HandOffHash, now: Millis) -> Result<bool, StoreError> {
    let row = database
        .row(
            "SELECT 1 FROM hand_offs WHERE code = $1 AND made_at > $2",
            &[&code.0.as_slice(), &(now - HAND_OFF_MILLIS)],
        )
        .await?;
    Ok(row.is_some())
}

async fn end_blank(transaction: &Transaction, parent: &SessionHash) -> Result<(), Error> {
    match sessions::lookup_session(transaction, parent).await? {
        None => remove_of(transaction, parent).await,
        Some(_) => Ok(()),
    }
}

/// Lets what comes from the session `old` come from `new`, which has the same player.
pub(super) async fn follow(
    transaction: &Transaction,
    old: &SessionHash,
    new: &SessionHash,
) -> Result<(), Error> {
    for sql in [
        "UPDATE game_sessions SET parent = $2 WHERE parent = $1",
        "UPDATE hand_offs SET parent = $2 WHERE parent = $1",
    ] {
        let sessions: [super::database::Value<'_>; 2] = [&old.0.as_slice(), &new.0.as_slice()];
        transaction.execute(sql, &sessions).await?;
    }
    Ok(())
}

/// Removes what comes from a session.
pub(super) async fn remove_of(
    transaction: &Transaction,
    parent: &SessionHash,
) -> Result<(), Error> {
    for sql in [
        "DELETE FROM game_sessions WHERE parent = $1",
        "DELETE FROM hand_offs WHERE parent = $1",
    ] {
        transaction.execute(sql, &[&parent.0.as_slice()]).await?;
    }
    Ok(())
}

/// Removes what is too old to mean anything, at most `limit` of each. Returns how many rows.
pub(super) async fn sweep(
    database: &Database,
    now: Millis,
    limit: i64,
) -> Result<usize, StoreError> {
    // Their visitors have played meanwhile, in another game.
    database
        .write(
            "UPDATE game_sessions SET blank = false WHERE hash = ANY(ARRAY(
                 SELECT hash FROM game_sessions WHERE blank AND used_at <= $1
                     AND EXISTS (SELECT 1 FROM sessions WHERE hash = game_sessions.parent)
                 LIMIT $2 FOR UPDATE SKIP LOCKED))",
            &[&(now - BLANK_MILLIS), &limit],
        )
        .await?;
    let mut swept = 0;
    for (sql, before) in [
        (
            "DELETE FROM game_sessions WHERE hash = ANY(ARRAY(
                 SELECT hash FROM game_sessions WHERE used_at <= $1
                 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
            now - KEPT_MILLIS,
        ),
        (
            "DELETE FROM game_sessions WHERE hash = ANY(ARRAY(
                 SELECT hash FROM game_sessions WHERE blank AND used_at <= $1
                     AND NOT EXISTS (SELECT 1 FROM sessions WHERE hash = game_sessions.parent)
                 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
            now - BLANK_MILLIS,
        ),
        (
            "DELETE FROM hand_offs WHERE code = ANY(ARRAY(
                 SELECT code FROM hand_offs WHERE made_at <= $1
                 LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
            now - HAND_OFF_MILLIS,
        ),
    ] {
        swept += database.write(sql, &[&before, &limit]).await?.len();
    }
    Ok(swept)
}
