//! Converts PostgreSQL's errors for callers of the store.

use platform_store::StoreError;
use tokio_postgres::error::SqlState;

/// The unique constraints, with PostgreSQL's name, and the table and column for the caller.
const UNIQUE: [(&str, &str, &str); 17] = [
    ("players_id", "players", "id"),
    ("players_username", "players", "username"),
    ("sessions_hash", "sessions", "hash"),
    ("game_sessions_hash", "game_sessions", "hash"),
    ("hand_offs_code", "hand_offs", "code"),
    ("identities_key", "identities", "key"),
    ("pending_sign_ins_state", "pending_sign_ins", "state"),
    (
        "device_authorizations_device_code",
        "device_authorizations",
        "device_code",
    ),
    ("devices_id", "devices", "id"),
    ("refresh_tokens_hash", "refresh_tokens", "hash"),
    ("signing_keys_kid", "signing_keys", "kid"),
    ("signing_keys_follows", "signing_keys", "follows"),
    ("projects_slug", "projects", "slug"),
    ("deployments_id", "deployments", "id"),
    ("test_players_id", "test_players", "id"),
    ("domains_in_service", "domains", "name"),
    ("deployments_of_project", "deployments", "id"),
];

/// Why an operation failed, inside this back end.
#[derive(Debug)]
pub(super) enum Error {
    /// The operation refused, or found an invalid row.
    Store(StoreError),
    /// PostgreSQL or the connection to it failed.
    Postgres(tokio_postgres::Error),
    /// There was no answer within the limit.
    TimedOut,
    /// The rows that the operation read changed before it could lock them.
    Changed,
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl Error {
    /// Returns whether the operation conflicted with another transaction, so that it may succeed if
    /// it runs again.
    pub(super) fn is_conflict(&self) -> bool {
        match self {
            Self::Changed => true,
            Self::Postgres(error) => matches!(
                error.code(),
                Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED)
            ),
            Self::Store(_) | Self::TimedOut => false,
        }
    }

    /// Returns whether a sent text contains U+0000, which PostgreSQL does not accept.
    pub(super) fn is_nul(&self) -> bool {
        matches!(self, Self::Postgres(error)
            if error.code() == Some(&SqlState::CHARACTER_NOT_IN_REPERTOIRE))
    }

    /// Returns whether there is no partition for a new row.
    pub(super) fn lacks_partition(&self) -> bool {
        // A violated check has the same code, but its error also names the constraint.
        matches!(self, Self::Postgres(error) if error.as_db_error().is_some_and(|error|
            *error.code() == SqlState::CHECK_VIOLATION && error.constraint().is_none()))
    }

    /// Returns whether PostgreSQL gave no answer, so that the effect of the last statement is
    /// unknown.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::TimedOut => true,
            Self::Postgres(error) => error.as_db_error().is_none(),
            Self::Store(_) | Self::Changed => false,
        }
    }

    /// Returns whether the connection is no longer usable: the server ended it, did not answer, or
    /// does not accept writes. A new connection may reach another server.
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            Self::TimedOut => true,
            Self::Postgres(error) => match error.code() {
                Some(code) => is_unavailable(code),
                None => true,
            },
            Self::Store(_) | Self::Changed => false,
        }
    }

    /// Converts the error of a write whose answer was lost.
    pub(super) fn uncertain(self) -> StoreError {
        match self {
            Self::Postgres(error) => StoreError::Uncertain(describe(&error)),
            Self::TimedOut => StoreError::Uncertain(TIMED_OUT.into()),
            other => other.into(),
        }
    }
}

/// The message if there was no answer within the limit.
const TIMED_OUT: &str = "the database gave no answer in time";

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let error = match error {
            Error::Store(error) => return error,
            Error::TimedOut => return Self::Unavailable(TIMED_OUT.into()),
            Error::Changed => {
                return Self::Unavailable("other transactions kept changing the same rows".into());
            }
            Error::Postgres(error) => error,
        };
        let Some(found) = error.as_db_error() else {
            return if is_conversion(&error) {
                Self::Database(Box::new(error))
            } else {
                Self::Unavailable(describe(&error))
            };
        };
        if *found.code() == SqlState::UNIQUE_VIOLATION {
            let constraint = found.constraint().unwrap_or_default();
            if let Some((_, table, column)) =
                UNIQUE.into_iter().find(|(name, ..)| *name == constraint)
            {
                return Self::Conflict { table, column };
            }
        }
        if *found.code() == SqlState::LOCK_NOT_AVAILABLE {
            return Self::Busy;
        }
        if is_unavailable(found.code()) || Error::is_conflict_code(found.code()) {
            return Self::Unavailable(describe(&error));
        }
        Self::Database(Box::new(error))
    }
}

impl Error {
    fn is_conflict_code(code: &SqlState) -> bool {
        *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
    }
}

/// Returns whether a value had another type than the program expected, which is a bug.
fn is_conversion(error: &tokio_postgres::Error) -> bool {
    use std::error::Error as _;
    let text = error.to_string();
    error.source().is_some()
        && (text.starts_with("error serializing") || text.starts_with("error deserializing"))
}

/// Returns whether the same call may succeed later, or on another server. This is so for four
/// classes of PostgreSQL's codes (appendix A of its manual), which are connection exceptions,
/// insufficient resources, operator intervention and system errors, and for a standby that only
/// reads.
fn is_unavailable(code: &SqlState) -> bool {
    let class = code.code().get(..2).unwrap_or_default();
    matches!(class, "08" | "53" | "57" | "58") || *code == SqlState::READ_ONLY_SQL_TRANSACTION
}

/// Returns an error with its cause, in one line. PostgreSQL's detail is left out, because it
/// contains values of a row.
pub(super) fn describe(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    match (error.as_db_error(), error.source()) {
        (Some(found), _) => format!("{}: {}", found.code().code(), found.message()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}
