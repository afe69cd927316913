//! Converts SQLite's errors for callers of the store.

use platform_store::StoreError;
use rusqlite::{ErrorCode, ffi};

/// The unique columns, with SQLite's name, and the table and column for the caller.
const UNIQUE: [(&str, &str, &str); 16] = [
    ("players.id", "players", "id"),
    ("players.username_key", "players", "username"),
    ("sessions.hash", "sessions", "hash"),
    ("game_sessions.hash", "game_sessions", "hash"),
    ("hand_offs.code", "hand_offs", "code"),
    ("identities.key", "identities", "key"),
    ("pending_sign_ins.state", "pending_sign_ins", "state"),
    (
        "device_authorizations.device_code",
        "device_authorizations",
        "device_code",
    ),
    ("devices.id", "devices", "id"),
    ("refresh_tokens.hash", "refresh_tokens", "hash"),
    ("signing_keys.kid", "signing_keys", "kid"),
    ("projects.slug", "projects", "slug"),
    ("deployments.id", "deployments", "id"),
    ("test_players.id", "test_players", "id"),
    ("domains.name", "domains", "name"),
    (
        "deployments.project, deployments.environment, deployments.id",
        "deployments",
        "id",
    ),
];

/// Why an operation failed, inside this back end.
///
/// `?` cannot turn an error of `rusqlite` into a [`StoreError`], since both belong to other crates.
/// So operations return this error, and [`Database`](super::database::Database) converts it.
#[derive(Debug)]
pub(super) enum Error {
    /// The operation refused, or found an invalid row.
    Store(StoreError),
    /// SQLite failed.
    Sqlite(rusqlite::Error),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let error = match error {
            Error::Store(error) => return error,
            Error::Sqlite(error) => error,
        };
        let rusqlite::Error::SqliteFailure(failure, message) = &error else {
            return StoreError::Database(Box::new(error));
        };
        match failure.code {
            // Another process locks the file, the disk is full or read-only, or memory is short: nothing
            // was written, and the same call may succeed later.
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DiskFull
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::OutOfMemory => StoreError::Unavailable(error.to_string()),
            ErrorCode::ConstraintViolation if is_unique(failure.extended_code) => message
                .as_deref()
                .and_then(conflict)
                .unwrap_or_else(|| StoreError::Database(Box::new(error))),
            _ => StoreError::Database(Box::new(error)),
        }
    }
}

const fn is_unique(extended_code: i32) -> bool {
    matches!(
        extended_code,
        ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
    )
}

/// Parses `UNIQUE constraint failed: players.username_key`.
fn conflict(message: &str) -> Option<StoreError> {
    let (_, violated) = message.rsplit_once(": ")?;
    let (_, table, column) = UNIQUE.into_iter().find(|(name, ..)| *name == violated)?;
    Some(StoreError::Conflict { table, column })
}
