//! The schemas' history, inside the program, and bringing a database up to it.

use refinery_core::{Migration, Runner};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;

use crate::domain::username;
use crate::store::ConnectError;

/// The history of one file's schema: every migration by its name and text,
/// oldest first. A migration that was released is never edited: the next one
/// changes what it made.
#[derive(Debug)]
pub(super) struct Schema(&'static [(&'static str, &'static str)]);

/// Players, sessions, keys, projects.
pub(super) const MAIN: Schema = Schema(&[
    (
        "V1__players_keys_projects",
        include_str!("../../../migrations/sqlite/0001_players_keys_projects.sql"),
    ),
    (
        "V2__accounts",
        include_str!("../../../migrations/sqlite/0002_accounts.sql"),
    ),
]);

/// Frontend log records.
pub(super) const LOGS: Schema = Schema(&[(
    "V1__log_records",
    include_str!("../../../migrations/sqlite/logs/0001_log_records.sql"),
)]);

/// The table in which the migration library records what it applied.
const HISTORY: &str = "refinery_schema_history";

impl Schema {
    /// Applies what the database lacks. Every migration is one transaction, so a
    /// start that is cut off leaves a whole schema behind, old or new.
    pub(super) fn bring_up_to_date(&self, connection: &mut Connection) -> Result<(), ConnectError> {
        let migrations = self
            .0
            .iter()
            .map(|(name, sql)| Migration::unapplied(name, sql))
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        let known = migrations.iter().map(Migration::version).max().unwrap_or(0);
        add_functions(connection).map_err(super::database::database)?;
        let mut runner = Runner::new(&migrations);
        runner.set_migration_table_name(HISTORY);
        let found = if connection
            .table_exists(None, HISTORY)
            .map_err(super::database::database)?
        {
            runner
                .get_last_applied_migration(connection)
                .map_err(failed)?
        } else {
            None
        };
        let found = found.map_or(0, |migration| migration.version());
        if found > known {
            return Err(ConnectError::TooNew { found, known });
        }
        if found < known {
            runner.run(connection).map_err(failed)?;
        }
        Ok(())
    }
}

/// Functions that migrations use beside SQLite's own: what the program
/// computes of a row that it wrote by an older rule.
fn add_functions(connection: &Connection) -> rusqlite::Result<()> {
    connection.create_scalar_function(
        "unique_key",
        1,
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC,
        |context| Ok(username::unique_key(context.get_raw(0).as_str()?)),
    )
}

fn failed(error: refinery_core::Error) -> ConnectError {
    ConnectError::Migration(Box::new(error))
}
