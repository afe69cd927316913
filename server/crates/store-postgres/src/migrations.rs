//! The history of the schemas, and upgrading a database.

use std::time::Duration;

use platform_store::{ConnectError, SchemaPolicy};
use refinery_core::{Migration, Runner};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config};

use super::address;

/// The history of one schema: every migration with its name and text, oldest first. A released
/// migration is never edited.
#[derive(Debug)]
pub(super) struct Schema {
    /// The table that records the applied migrations: both schemas may be in one database.
    history: &'static str,
    /// The table with one row, which is locked while migrations are applied.
    lock: &'static str,
    /// The table that exists while rows are moved into the database from another store.
    pub(super) incoming: &'static str,
    migrations: &'static [(&'static str, &'static str)],
}

/// Players, sessions, keys, projects.
pub(super) const MAIN: Schema = Schema {
    history: "platform_schema_history",
    lock: "platform_schema_lock",
    incoming: "platform_incoming",
    migrations: &[
        ("V1__first", include_str!("../migrations/0001_first.sql")),
        (
            "V2__stored_files",
            include_str!("../migrations/0002_stored_files.sql"),
        ),
        ("V3__nodes", include_str!("../migrations/0003_nodes.sql")),
    ],
};

/// Frontend log records.
pub(super) const LOGS: Schema = Schema {
    history: "platform_log_schema_history",
    lock: "platform_log_schema_lock",
    incoming: "platform_log_incoming",
    migrations: &[(
        "V1__first",
        include_str!("../migrations/logs/0001_first.sql"),
    )],
};

/// How long a start waits for another program that changes the schema.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often creating the lock is tried: if several programs create one table at once, PostgreSQL
/// refuses all but one.
const TRIES: u32 = 20;

impl Schema {
    /// Checks that no move into the database was interrupted, and upgrades it like
    /// [`Schema::upgrade`].
    pub(super) async fn bring_up_to_date(
        &self,
        config: &Config,
        policy: SchemaPolicy,
    ) -> Result<(), ConnectError> {
        let client = self.upgrade(config, policy).await?;
        self.check_complete(&client).await
    }

    /// Checks that the database, which may be a standby, has this schema and no interrupted move.
    pub(super) async fn require(&self, config: &Config) -> Result<(), ConnectError> {
        let mut client = connect(config).await?;
        let migrations = self.migrations()?;
        let known = migrations.iter().map(Migration::version).max().unwrap_or(0);
        let found = self.version(&mut client, &migrations).await?;
        allowed(found, known, SchemaPolicy::Refuse)?;
        self.check_complete(&client).await
    }

    async fn check_complete(&self, client: &Client) -> Result<(), ConnectError> {
        let row = client
            .query_one(
                "SELECT to_regclass($1::text) IS NOT NULL",
                &[&self.incoming],
            )
            .await
            .map_err(not_opened)?;
        if row.try_get(0).map_err(not_opened)? {
            return Err(ConnectError::Incomplete);
        }
        Ok(())
    }

    /// Applies missing migrations, if that is allowed; a new database always gets all. If several
    /// programs start at once, one of them applies the migrations and the others wait.
    pub(super) async fn upgrade(
        &self,
        config: &Config,
        policy: SchemaPolicy,
    ) -> Result<Client, ConnectError> {
        let mut client = connect(config).await?;
        let migrations = self.migrations()?;
        let known = migrations.iter().map(Migration::version).max().unwrap_or(0);
        let found = self.version(&mut client, &migrations).await?;
        if found < known && allowed(found, known, policy)? {
            let work = self.apply(config, &mut client, &migrations);
            tokio::time::timeout(PATIENCE, work)
                .await
                .map_err(|error| ConnectError::Migration(Box::new(error)))??;
        }
        allowed(self.version(&mut client, &migrations).await?, known, policy)?;
        Ok(client)
    }

    fn migrations(&self) -> Result<Vec<Migration>, ConnectError> {
        self.migrations
            .iter()
            .map(|(name, sql)| Migration::unapplied(name, sql))
            .collect::<Result<_, _>>()
            .map_err(|error| ConnectError::Migration(Box::new(error)))
    }

    fn runner(&self, migrations: &[Migration]) -> Runner {
        let mut runner = Runner::new(migrations);
        runner.set_migration_table_name(self.history);
        runner
    }

    /// Returns the version of the database's schema; 0 if it has none.
    async fn version(
        &self,
        client: &mut Client,
        migrations: &[Migration],
    ) -> Result<i32, ConnectError> {
        let row = client
            .query_one("SELECT to_regclass($1::text) IS NOT NULL", &[&self.history])
            .await
            .map_err(not_opened)?;
        if !row.try_get::<_, bool>(0).map_err(not_opened)? {
            return Ok(0);
        }
        let last = self
            .runner(migrations)
            .get_last_applied_migration_async(client)
            .await
            .map_err(|error| ConnectError::Migration(Box::new(error)))?;
        Ok(last.map_or(0, |migration| migration.version()))
    }

    /// Applies the migrations while another connection holds the lock, because each migration is a
    /// transaction of its own.
    async fn apply(
        &self,
        config: &Config,
        client: &mut Client,
        migrations: &[Migration],
    ) -> Result<(), ConnectError> {
        let holder = connect(config).await?;
        self.make_lock(&holder).await?;
        holder
            .batch_execute(&format!(
                "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT 1 FROM {} FOR UPDATE",
                self.lock
            ))
            .await
            .map_err(not_opened)?;
        self.runner(migrations)
            .run_async(client)
            .await
            .map_err(|error| ConnectError::Migration(Box::new(error)))?;
        holder.batch_execute("COMMIT").await.map_err(not_opened)
    }

    /// Creates the table of the lock and its row, if they do not exist.
    async fn make_lock(&self, client: &Client) -> Result<(), ConnectError> {
        let lock = self.lock;
        let sql = format!(
            "CREATE TABLE IF NOT EXISTS {lock} (id SMALLINT PRIMARY KEY);
             INSERT INTO {lock} (id) VALUES (1) ON CONFLICT DO NOTHING"
        );
        let mut tries = 0;
        loop {
            tries += 1;
            match client.batch_execute(&sql).await {
                Ok(()) => return Ok(()),
                Err(error) if tries < TRIES && is_race(&error) => {}
                Err(error) => return Err(not_opened(error)),
            }
        }
    }
}

/// Returns whether the schema `found` must be upgraded to `known`; an error if that is not allowed.
fn allowed(found: i32, known: i32, policy: SchemaPolicy) -> Result<bool, ConnectError> {
    if found > known {
        return Err(ConnectError::TooNew { found, known });
    }
    if found < known && policy == SchemaPolicy::Refuse {
        return Err(ConnectError::TooOld { found, known });
    }
    Ok(found < known)
}

/// Returns whether two programs created the same table at once.
fn is_race(error: &tokio_postgres::Error) -> bool {
    matches!(
        error.code(),
        Some(
            &SqlState::UNIQUE_VIOLATION
                | &SqlState::DUPLICATE_TABLE
                | &SqlState::DUPLICATE_OBJECT
                | &SqlState::T_R_DEADLOCK_DETECTED
        )
    )
}

/// Opens a connection outside the pool.
pub(super) async fn connect(config: &Config) -> Result<Client, ConnectError> {
    let (client, connection) = config.connect(address::tls()?).await.map_err(not_opened)?;
    // The task ends when the client is dropped.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to the database ended");
        }
    });
    // A migration may take any time, and the connection that holds the lock is idle meanwhile.
    client
        .batch_execute("SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0")
        .await
        .map_err(not_opened)?;
    Ok(client)
}

pub(super) fn not_opened(error: tokio_postgres::Error) -> ConnectError {
    ConnectError::Database(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_has_no_gap() {
        for schema in [&MAIN, &LOGS] {
            for (index, (name, _)) in schema.migrations.iter().enumerate() {
                assert!(name.starts_with(&format!("V{}__", index + 1)), "{name}");
            }
        }
    }
}
