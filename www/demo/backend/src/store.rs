//! The scores, in one SQLite file.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

/// The number of entries of the top list.
const TOP: u32 = 10;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS score (
        sub      TEXT PRIMARY KEY NOT NULL,
        -- The latest known name, for display. Never a key: it can change.
        username TEXT NOT NULL,
        best     INTEGER NOT NULL CHECK (best >= 0),
        -- When the best score was reached, in ms since the epoch.
        at       INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS score_by_best ON score (best DESC, at, sub);
";

/// A player's best score and rank, and the top list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The player's best score, 0 before the first.
    pub(crate) best: u32,
    /// From 1; `None` before the first score.
    pub(crate) rank: Option<u32>,
    /// The ten best, best first.
    pub(crate) top: Vec<Entry>,
}

/// One player's best score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) sub: String,
    pub(crate) username: String,
    pub(crate) best: u32,
}

/// Why a score operation failed. Only for the log.
#[derive(Debug, thiserror::Error)]
#[error("the scores' database failed: {0}")]
pub(crate) struct ScoreError(#[from] rusqlite::Error);

/// The scores of one environment.
#[derive(Debug)]
pub(crate) struct ScoreStore(Mutex<Connection>);

impl ScoreStore {
    /// Opens the file, and creates it if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Self, rusqlite::Error> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        // The journal stays the usual one, since another process may open the file at the same
        // time, and changing the journal does not wait for others.
        // When a call has returned, its score survives a power failure.
        connection.pragma_update(None, "synchronous", "full")?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self(Mutex::new(connection)))
    }

    /// Returns the player's standing. A changed name is stored.
    pub(crate) fn standing(&self, sub: &str, username: &str) -> Result<Standing, ScoreError> {
        self.in_transaction(|transaction| {
            transaction
                .prepare_cached("UPDATE score SET username = ?2 WHERE sub = ?1 AND username <> ?2")?
                .execute(params![sub, username])?;
            read_standing(transaction, sub)
        })
    }

    /// Raises the player's best score to `score`, if it is higher, and returns the player's new
    /// standing.
    pub(crate) fn record(
        &self,
        sub: &str,
        username: &str,
        score: u32,
        now: i64,
    ) -> Result<Standing, ScoreError> {
        self.in_transaction(|transaction| {
            // In SQLite the right-hand sides refer to the row before the update.
            transaction
                .prepare_cached(
                    "INSERT INTO score (sub, username, best, at) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (sub) DO UPDATE SET
                         username = excluded.username,
                         at = CASE WHEN excluded.best > best THEN excluded.at ELSE at END,
                         best = max(best, excluded.best)",
                )?
                .execute(params![sub, username, score, now])?;
            read_standing(transaction, sub)
        })
    }

    fn in_transaction(
        &self,
        operation: impl FnOnce(&Transaction<'_>) -> Result<Standing, rusqlite::Error>,
    ) -> Result<Standing, ScoreError> {
        // A panic elsewhere has rolled back its transaction, so the connection can still be used.
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let standing = operation(&transaction)?;
        transaction.commit()?;
        Ok(standing)
    }
}

fn read_standing(transaction: &Transaction<'_>, sub: &str) -> Result<Standing, rusqlite::Error> {
    let own: Option<(u32, i64)> = transaction
        .prepare_cached("SELECT best, at FROM score WHERE sub = ?1")?
        .query_row([sub], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let rank = match own {
        None => None,
        Some((best, at)) => Some(
            transaction
                .prepare_cached(
                    "SELECT 1 + count(*) FROM score
                     WHERE best > ?1 OR (best = ?1 AND (at, sub) < (?2, ?3))",
                )?
                .query_row(params![best, at, sub], |row| row.get(0))?,
        ),
    };
    let top = transaction
        .prepare_cached(
            "SELECT sub, username, best FROM score ORDER BY best DESC, at, sub LIMIT ?1",
        )?
        .query_map([TOP], |row| {
            Ok(Entry {
                sub: row.get(0)?,
                username: row.get(1)?,
                best: row.get(2)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(Standing {
        best: own.map_or(0, |(best, _)| best),
        rank,
        top,
    })
}
