//! The settings of every connection.

use std::time::Duration;

use platform_store::ConnectError;
use rusqlite::Connection;

/// How long a statement waits while another process, such as an operator's command, locks the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Statements that a connection keeps prepared.
const PREPARED: usize = 32;

/// Applies the settings of every connection.
pub(super) fn prepare(connection: &Connection, cache_kib: i32) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)
}

/// The error of a database that could not be opened.
pub(super) fn not_opened(error: rusqlite::Error) -> ConnectError {
    ConnectError::Database(Box::new(error))
}
