//! The settings of every connection.

use std::time::Duration;

use platform_store::ConnectError;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

/// How long a statement waits while another process, such as an operator's command, locks the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long emptying a log waits for its readers, during which nobody can write.
pub(super) const TIDY_LOG: Duration = Duration::from_millis(200);
/// Statements that a connection keeps prepared.
const PREPARED: usize = 32;

/// Applies the settings of every connection.
pub(super) fn prepare(connection: &Connection, cache_kib: i32) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    // Otherwise SQLite prepares a statement again for each new value of `column = ?1`, in case that
    // a better plan exists for it. That takes several times as long as a look-up.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)
}

/// The error of a database that could not be opened.
pub(super) fn not_opened(error: rusqlite::Error) -> ConnectError {
    ConnectError::Database(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::StatementStatus;

    /// Returns how often a look-up was prepared again for three values.
    fn prepared_again(connection: &Connection) -> i32 {
        connection
            .execute_batch(
                "CREATE TABLE players (id BLOB PRIMARY KEY, name TEXT) WITHOUT ROWID;
                 CREATE TABLE sessions (hash BLOB PRIMARY KEY, player BLOB) WITHOUT ROWID;
                 CREATE INDEX sessions_of_player ON sessions (player);",
            )
            .unwrap();
        let sql =
            "SELECT p.name FROM sessions s JOIN players p ON p.id = s.player WHERE s.hash = ?1";
        for value in 0..3_u8 {
            let mut statement = connection.prepare_cached(sql).unwrap();
            assert!(!statement.exists([[value; 32].as_slice()]).unwrap());
        }
        let statement = connection.prepare_cached(sql).unwrap();
        statement.get_status(StatementStatus::RePrepare)
    }

    #[test]
    fn a_statement_is_not_prepared_again_for_each_value() {
        let connection = Connection::open_in_memory().unwrap();
        prepare(&connection, 64).unwrap();
        assert_eq!(prepared_again(&connection), 0);
    }

    #[test]
    fn without_this_setting_it_would_be() {
        let connection = Connection::open_in_memory().unwrap();
        assert_ne!(prepared_again(&connection), 0);
    }
}
