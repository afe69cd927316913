//! The history of the schemas, and upgrading a database.

use std::time::Duration;

use platform_domain::node::LIVE_MILLIS;
use platform_store::{ConnectError, SchemaPolicy};
use refinery_core::{Migration, Runner};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config};

use super::servers;

/// The history of one schema: every migration with its name and text, oldest first. A released
/// migration is never edited.
#[derive(Debug)]
pub(super) struct Schema {
    /// The table that records the applied migrations: both schemas may be in one database.
    pub(super) history: &'static str,
    /// The table with one row, which is locked while migrations are applied. It also says which
    /// older programs can use the schema.
    pub(super) lock: &'static str,
    /// The table that exists while rows are moved into the database from another store.
    pub(super) incoming: &'static str,
    /// The table in which running programs say which schema they know, if this schema has it.
    pub(super) nodes: Option<&'static str>,
    /// The oldest program that can use this schema, as the newest schema that it knows. Servers are
    /// upgraded one after the other, so a release only adds to the schema, and this stays; what the
    /// release before no longer uses is removed one release later, and this is raised.
    pub(super) readable_from: i32,
    pub(super) migrations: &'static [(&'static str, &'static str)],
}

/// Players, sessions, keys, projects.
pub(super) const MAIN: Schema = Schema {
    history: "platform_schema_history",
    lock: "platform_schema_lock",
    incoming: "platform_incoming",
    nodes: Some("nodes"),
    readable_from: 3,
    migrations: &[
        ("V1__first", include_str!("../migrations/0001_first.sql")),
        (
            "V2__stored_files",
            include_str!("../migrations/0002_stored_files.sql"),
        ),
        ("V3__nodes", include_str!("../migrations/0003_nodes.sql")),
        (
            "V4__node_schemas",
            include_str!("../migrations/0004_node_schemas.sql"),
        ),
        (
            "V5__shared_secrets",
            include_str!("../migrations/0005_shared_secrets.sql"),
        ),
        (
            "V6__deploy_tokens",
            include_str!("../migrations/0006_deploy_tokens.sql"),
        ),
        ("V7__people", include_str!("../migrations/0007_people.sql")),
        (
            "V8__previews",
            include_str!("../migrations/0008_previews.sql"),
        ),
        (
            "V9__listings",
            include_str!("../migrations/0009_listings.sql"),
        ),
        (
            "V10__webhooks",
            include_str!("../migrations/0010_webhooks.sql"),
        ),
        (
            "V11__player_games",
            include_str!("../migrations/0011_player_games.sql"),
        ),
        (
            "V12__setters",
            include_str!("../migrations/0012_setters.sql"),
        ),
        (
            "V13__handovers",
            include_str!("../migrations/0013_handovers.sql"),
        ),
        (
            "V14__deletions",
            include_str!("../migrations/0014_deletions.sql"),
        ),
        (
            "V15__retention",
            include_str!("../migrations/0015_retention.sql"),
        ),
        (
            "V16__player_events",
            include_str!("../migrations/0016_player_events.sql"),
        ),
        (
            "V17__game_sessions",
            include_str!("../migrations/0017_game_sessions.sql"),
        ),
        (
            "V18__certificates",
            include_str!("../migrations/0018_certificates.sql"),
        ),
        (
            "V19__domains",
            include_str!("../migrations/0019_domains.sql"),
        ),
        ("V20__traced", include_str!("../migrations/0020_traced.sql")),
    ],
};

/// Frontend log records.
pub(super) const LOGS: Schema = Schema {
    history: "platform_log_schema_history",
    lock: "platform_log_schema_lock",
    incoming: "platform_log_incoming",
    nodes: None,
    readable_from: 1,
    migrations: &[
        (
            "V1__first",
            include_str!("../migrations/logs/0001_first.sql"),
        ),
        (
            "V2__error_groups",
            include_str!("../migrations/logs/0002_error_groups.sql"),
        ),
        (
            "V3__error_alerts",
            include_str!("../migrations/logs/0003_error_alerts.sql"),
        ),
        (
            "V4__error_group_room",
            include_str!("../migrations/logs/0004_error_group_room.sql"),
        ),
    ],
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
        let client = connect(config).await?;
        self.check_version(&client).await?;
        self.check_complete(&client).await
    }

    async fn check_complete(&self, client: &Client) -> Result<(), ConnectError> {
        if exists(client, self.incoming).await? {
            return Err(ConnectError::Incomplete);
        }
        Ok(())
    }

    /// Returns the newest schema that this program knows.
    pub(super) fn known(&self) -> i32 {
        i32::try_from(self.migrations.len()).unwrap_or(i32::MAX)
    }

    /// Applies missing migrations, if that is allowed; a new database always gets all. If several
    /// programs start at once, one of them applies the migrations and the others wait.
    pub(super) async fn upgrade(
        &self,
        config: &Config,
        policy: SchemaPolicy,
    ) -> Result<Client, ConnectError> {
        let mut client = connect(config).await?;
        if policy == SchemaPolicy::Upgrade && self.version(&client).await? < self.known() {
            let migrations = self.migrations()?;
            let work = self.apply(config, &mut client, &migrations);
            tokio::time::timeout(PATIENCE, work)
                .await
                .map_err(|error| ConnectError::Migration(Box::new(error)))??;
        }
        self.check_version(&client).await?;
        Ok(client)
    }

    /// Checks that this program can use the database's schema: it is the newest that the program
    /// knows, or a newer one that only has more. So servers can be upgraded one after the other.
    async fn check_version(&self, client: &Client) -> Result<(), ConnectError> {
        let (found, known) = (self.version(client).await?, self.known());
        if found < known {
            return Err(ConnectError::TooOld { found, known });
        }
        if found > known && !self.is_readable(client).await? {
            return Err(ConnectError::TooNew { found, known });
        }
        Ok(())
    }

    fn migrations(&self) -> Result<Vec<Migration>, ConnectError> {
        self.migrations
            .iter()
            .map(|(name, sql)| Migration::unapplied(name, sql))
            .collect::<Result<_, _>>()
            .map_err(|error| ConnectError::Migration(Box::new(error)))
    }

    /// Returns the version of the database's schema; 0 if it has none.
    async fn version(&self, client: &Client) -> Result<i32, ConnectError> {
        if !exists(client, self.history).await? {
            return Ok(0);
        }
        let sql = format!("SELECT coalesce(max(version), 0) FROM {}", self.history);
        let row = client.query_one(&sql, &[]).await.map_err(not_opened)?;
        row.try_get(0).map_err(not_opened)
    }

    /// Whether this program can use the schema of a newer one.
    async fn is_readable(&self, client: &Client) -> Result<bool, ConnectError> {
        let sql = format!("SELECT readable_from FROM {}", self.lock);
        let row = client.query_opt(&sql, &[]).await.map_err(not_opened)?;
        let Some(row) = row else {
            return Ok(false);
        };
        let readable_from: i32 = row.try_get(0).map_err(not_opened)?;
        Ok(self.known() >= readable_from)
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
        let lock = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT 1 FROM {} FOR UPDATE",
            self.lock
        );
        holder.batch_execute(&lock).await.map_err(not_opened)?;
        self.refuse_older_nodes(&holder).await?;
        // This holds before the first migration does, whatever becomes of this program.
        let raise = format!(
            "UPDATE {} SET readable_from = greatest(readable_from, $1)",
            self.lock
        );
        let raised = holder.execute(&raise, &[&self.readable_from]).await;
        raised.map_err(not_opened)?;
        let again = format!("COMMIT; {lock}");
        holder.batch_execute(&again).await.map_err(not_opened)?;
        if self.version(&holder).await? < self.known() {
            let mut runner = Runner::new(migrations);
            runner.set_migration_table_name(self.history);
            runner
                .run_async(client)
                .await
                .map_err(|error| ConnectError::Migration(Box::new(error)))?;
        }
        holder.batch_execute("COMMIT").await.map_err(not_opened)
    }

    /// Refuses to upgrade a database that running programs use which cannot use the new schema.
    async fn refuse_older_nodes(&self, client: &Client) -> Result<(), ConnectError> {
        let Some(nodes) = self.nodes else {
            return Ok(());
        };
        if !exists(client, nodes).await? {
            return Ok(());
        }
        // The first programs that reported did not say which schema they know. It was the third.
        let sql = format!(
            "SELECT string_agg(address || ' (' || program || ')', ', ' ORDER BY address)
             FROM {nodes}
             WHERE coalesce(CAST(to_jsonb({nodes}) ->> 'schema' AS INTEGER), 3) < $1
               AND seen_at > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) - $2"
        );
        let row = client
            .query_one(&sql, &[&self.readable_from, &LIVE_MILLIS])
            .await;
        let row = row.map_err(not_opened)?;
        let older: Option<String> = row.try_get(0).map_err(not_opened)?;
        older.map_or(Ok(()), |nodes| Err(ConnectError::StillUsed { nodes }))
    }

    /// Creates the table of the lock and its row, if they do not exist.
    async fn make_lock(&self, client: &Client) -> Result<(), ConnectError> {
        let lock = self.lock;
        let sql = format!(
            "CREATE TABLE IF NOT EXISTS {lock} (id SMALLINT PRIMARY KEY);
             ALTER TABLE {lock} ADD COLUMN IF NOT EXISTS readable_from INTEGER NOT NULL DEFAULT 0;
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

/// Whether the database has this table.
async fn exists(client: &Client, table: &str) -> Result<bool, ConnectError> {
    let sql = "SELECT to_regclass($1::text) IS NOT NULL";
    let row = client.query_one(sql, &[&table]).await.map_err(not_opened)?;
    row.try_get(0).map_err(not_opened)
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
    let client = servers::open(config).await?;
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
