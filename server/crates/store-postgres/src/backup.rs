//! Copies of the whole store. Each table is one file in the format of PostgreSQL's `COPY`, so that
//! `psql` and [`restore_copy`] can read it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{SinkExt as _, TryStreamExt as _};
use platform_domain::administration::StoreCopy;
use platform_store::{BackupStore, ConnectError, SchemaPolicy, StoreError};
use tempfile::TempDir;
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_postgres::Client;

use super::address;
use super::database::Database;
use super::error::Error;
use super::log_days;
use super::migrations::{connect, not_opened};
use super::store::PostgresStore;
use super::transaction::Transaction;

/// The tables, each after those that it references, with the column whose numbers the database
/// assigns, if there is one. Nodes, leases and versions of changes belong to the running servers, so
/// a copy has none.
const MAIN: &[(&str, Option<&str>)] = &[
    ("players", None),
    ("guest_addresses", None),
    ("sessions", None),
    ("left_guests", None),
    ("identities", None),
    ("pending_sign_ins", None),
    ("admins", None),
    ("audit_events", Some("id")),
    ("device_authorizations", None),
    ("devices", None),
    ("refresh_tokens", None),
    ("signing_keys", Some("position")),
    ("projects", Some("id")),
    ("deployments", None),
    ("deployment_files", None),
    ("current_deployments", None),
    ("stored_files", None),
    ("environment_settings", None),
    ("test_players", None),
    ("player_counts", None),
    ("distinct_players", None),
    ("play_times", None),
];

/// The tables of the log records.
const LOGS: &[(&str, Option<&str>)] = &[
    ("log_environments", Some("id")),
    ("log_days", None),
    ("log_records", None),
    ("log_error_counts", None),
];

/// How many bytes of a file are read at a time.
const CHUNK: usize = 64 * 1_024;

#[async_trait]
impl BackupStore for PostgresStore {
    async fn copy_into(&self, folder: Arc<TempDir>) -> Result<StoreCopy, StoreError> {
        let (main, logs) = (self.main.clone(), self.logs.database.clone());
        // The copying continues even if the caller stops waiting.
        let copying = tokio::spawn(async move {
            let files = copy_tables(&main, MAIN, folder.path()).await?;
            copy_tables(&logs, LOGS, folder.path()).await?;
            Ok(StoreCopy { files })
        });
        let copied = copying.await;
        copied.unwrap_or_else(|error| Err(StoreError::Database(Box::new(error))))
    }
}

/// Returns the path of a table's copy.
fn file_of(folder: &Path, table: &str) -> PathBuf {
    folder.join(format!("{table}.copy"))
}

/// Copies these tables as one transaction sees them. Returns the files of all deployments, if one
/// of the tables contains them.
async fn copy_tables(
    database: &Database,
    tables: &[(&str, Option<&str>)],
    folder: &Path,
) -> Result<Vec<String>, StoreError> {
    let snapshot = database.snapshot().await?;
    let mut files = Vec::new();
    for (table, _) in tables {
        copy_table(&snapshot, table, &file_of(folder, table)).await?;
        if *table == "deployment_files" {
            files = list_files(&snapshot).await?;
        }
    }
    snapshot.finish_reading().await?;
    Ok(files)
}

/// Lists the files of all deployments. They are read with `COPY`, because it has no time limit,
/// unlike other reads.
async fn list_files(snapshot: &Transaction) -> Result<Vec<String>, StoreError> {
    let sql = "COPY (SELECT DISTINCT encode(sha256, 'hex') FROM deployment_files ORDER BY 1)
         TO STDOUT";
    let rows = snapshot.copy_out(sql).await?;
    futures_util::pin_mut!(rows);
    let mut files = Vec::new();
    // Each part consists of whole rows, and each row ends with a line feed.
    while let Some(part) = rows.try_next().await.map_err(Error::from)? {
        let names = part.split(|byte| *byte == b'\n');
        let names = names.filter(|name| !name.is_empty());
        files.extend(names.map(|name| String::from_utf8_lossy(name).into_owned()));
    }
    Ok(files)
}

async fn copy_table(snapshot: &Transaction, table: &str, path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    options.mode(0o600);
    let mut file = options.open(path).await.map_err(of_file)?;
    let rows = snapshot
        .copy_out(&format!("COPY (SELECT * FROM {table}) TO STDOUT"))
        .await?;
    futures_util::pin_mut!(rows);
    while let Some(part) = rows.try_next().await.map_err(Error::from)? {
        file.write_all(&part).await.map_err(of_file)?;
    }
    file.sync_all().await.map_err(of_file)
}

#[expect(clippy::needless_pass_by_value, reason = "it is a `map_err` function")]
fn of_file(error: std::io::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

/// Fills the empty database at `url` from the copy of a store in `folder`.
///
/// # Errors
/// [`ConnectError`]. The database then has empty tables, or is unchanged.
pub async fn restore_copy(url: &str, folder: &Path) -> Result<(), ConnectError> {
    // Opening the store creates the tables, if they do not exist.
    let store = PostgresStore::open(url, None, SchemaPolicy::Upgrade).await?;
    let _ = platform_store::Store::close(&store).await;
    let client = connect(&address::parse(url)?).await?;
    client.batch_execute("BEGIN").await.map_err(not_opened)?;
    for (table, column) in MAIN.iter().chain(LOGS) {
        if *table == "log_records" {
            make_days(&client).await.map_err(not_opened)?;
        }
        fill_table(&client, table, &file_of(folder, table)).await?;
        if let Some(column) = column {
            let sql = format!(
                "SELECT setval(pg_get_serial_sequence('{table}', '{column}'),
                     (SELECT coalesce(max({column}), 0) + 1 FROM {table}), false)"
            );
            client.batch_execute(&sql).await.map_err(not_opened)?;
        }
    }
    client.batch_execute("COMMIT").await.map_err(not_opened)
}

/// Creates the partitions for the days of the log records.
async fn make_days(client: &Client) -> Result<(), tokio_postgres::Error> {
    for row in client
        .query("SELECT DISTINCT day FROM log_days", &[])
        .await?
    {
        client
            .batch_execute(&log_days::partition(row.try_get(0)?))
            .await?;
    }
    Ok(())
}

async fn fill_table(client: &Client, table: &str, path: &Path) -> Result<(), ConnectError> {
    let failed = |source| ConnectError::File {
        path: path.display().to_string(),
        source,
    };
    let mut file = File::open(path).await.map_err(failed)?;
    let rows = client.copy_in(&format!("COPY {table} FROM STDIN")).await;
    let rows = rows.map_err(not_opened)?;
    futures_util::pin_mut!(rows);
    let mut part = vec![0; CHUNK];
    loop {
        let read = file.read(&mut part).await.map_err(failed)?;
        let Some(part) = part.get(..read).filter(|part| !part.is_empty()) else {
            break;
        };
        let part = std::io::Cursor::new(part.to_vec());
        rows.send(part).await.map_err(not_opened)?;
    }
    rows.finish().await.map_err(not_opened).map(drop)
}
