//! Checking a copy of the store before anything is done with it.

use std::path::{Path, PathBuf};

use platform_domain::project::FileEntry;
use rusqlite::{Connection, OpenFlags};

use super::backup::list_files;
use super::migrations::{LOGS, MAIN, Schema};
use super::store::{SqliteStore, beside};

/// How many faults of a damaged file are looked for; one of them is told.
const FAULTS: u32 = 1;

/// What a copy that can be used contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedCopy {
    /// The version of its schema.
    pub schema: i32,
    /// The version that this program upgrades it to.
    pub known: i32,
    /// The number of its players.
    pub players: u64,
    /// The deployed files to which it refers.
    pub files: Vec<FileEntry>,
}

/// Why a copy cannot be used; a line for the operator. `file` is the name of the file in the copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyFault {
    /// A newer program wrote it.
    #[error(
        "its {file} has schema version {found}, but this program knows only versions up to \
         {known}; use the program that made it, or a newer one"
    )]
    TooNew {
        /// The file.
        file: String,
        /// The version of the file.
        found: i32,
        /// The newest version that this program knows.
        known: i32,
    },
    /// It is a database of something else.
    #[error("its {0} is not a database of this platform")]
    Foreign(String),
    /// The database is damaged.
    #[error("its {file} is damaged: {what}")]
    Damaged {
        /// The file.
        file: String,
        /// What SQLite found.
        what: String,
    },
    /// It could not be read at all.
    #[error("its {file} cannot be read")]
    Unreadable {
        /// The file.
        file: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl SqliteStore {
    /// Returns the file of the log records that belong to the store at `path`.
    #[must_use]
    pub fn logs_beside(path: &Path) -> PathBuf {
        beside(path)
    }

    /// Checks the copy of a store at `path`, with its log records beside it: that both are databases
    /// of this platform and of no newer version, that SQLite finds no damage, and that no row refers
    /// to a missing one. Nothing is changed. It blocks, and reads everything.
    ///
    /// # Errors
    /// [`CopyFault`]
    pub fn check_copy(path: &Path) -> Result<CheckedCopy, CopyFault> {
        let (schema, players): (i32, i64) = check_file(path, &MAIN, |connection| {
            connection.query_row("SELECT count(*) FROM players", [], |row| row.get(0))
        })?;
        check_file(&beside(path), &LOGS, |_| Ok(()))?;
        let files = list_files(path).map_err(|error| CopyFault::Unreadable {
            file: name_of(path),
            source: Box::new(platform_store::StoreError::from(error)),
        })?;
        Ok(CheckedCopy {
            schema,
            known: MAIN.newest(),
            players: u64::try_from(players).unwrap_or(0),
            files: files.files,
        })
    }
}

/// Checks one file, and returns the version of its schema and what `read` finds in it.
fn check_file<T>(
    path: &Path,
    schema: &Schema,
    read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<(i32, T), CopyFault> {
    let file = name_of(path);
    let unreadable = |source: rusqlite::Error| CopyFault::Unreadable {
        file: file.clone(),
        source: Box::new(source),
    };
    let opened = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let connection = opened.map_err(unreadable)?;
    let found = schema.version_of(&connection).map_err(unreadable)?;
    let found = found.ok_or_else(|| CopyFault::Foreign(file.clone()))?;
    let known = schema.newest();
    if found > known {
        return Err(CopyFault::TooNew { file, found, known });
    }
    if let Some(what) = fault_of(&connection).map_err(unreadable)? {
        return Err(CopyFault::Damaged { file, what });
    }
    let value = read(&connection).map_err(unreadable)?;
    Ok((found, value))
}

/// Returns what is wrong with a database.
fn fault_of(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let found: String =
        connection.query_row(&format!("PRAGMA integrity_check({FAULTS})"), [], |row| {
            row.get(0)
        })?;
    if found != "ok" {
        return Ok(Some(found));
    }
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
    Ok(Some(format!(
        "a row of {table} refers to a row of {parent} that is missing"
    )))
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
