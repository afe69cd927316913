//! The rows of a store as they are: read from a database as one moment has them, or added to a new
//! one, batch by batch, so that an interrupted move can go on.
//!
//! | module | holds |
//! |---|---|
//! | `values` | converts values |
//! | `target` | adding rows, and what follows from all of them |

mod target;
#[cfg(test)]
mod tests;
mod values;

use async_trait::async_trait;
use futures_util::stream::try_unfold;
use futures_util::{StreamExt as _, TryStreamExt as _};
use platform_store::tables::{LOG_RECORDS, Part, Place};
use platform_store::transfer::{BATCH, Row, RowSource, Rows, Value};
use platform_store::{ConnectError, SchemaPolicy, StoreError};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{Client, Config};

use self::values::{Cell, read_row};
use super::address;
use super::error::Error;
use super::migrations::{self, connect, not_opened};
use super::store::of_logs;

/// Begins to read everything as it is at this moment. A standby can do that, too.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The databases of a store, opened for their rows.
pub struct PostgresRows {
    main: Client,
    logs: Client,
}

impl std::fmt::Debug for PostgresRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresRows").finish_non_exhaustive()
    }
}

impl PostgresRows {
    /// Opens the store at `url` for reading, with its log records at `logs`, or in the same
    /// database. Everything is read as it is now. The server may be a standby.
    ///
    /// # Errors
    /// [`ConnectError`]
    pub async fn open(url: &str, logs: Option<&str>) -> Result<Self, ConnectError> {
        let open = async |url: &str, schema: &migrations::Schema| {
            let mut config = address::parse(url)?;
            config.target_session_attrs(TargetSessionAttrs::Any);
            schema.require(&config).await?;
            let client = connect(&config).await?;
            // The snapshot is taken by the first statement.
            let begin = format!("{SNAPSHOT}; SELECT 1");
            client.batch_execute(&begin).await.map_err(not_opened)?;
            Ok(client)
        };
        Ok(Self {
            main: open(url, &migrations::MAIN).await?,
            logs: match logs {
                Some(logs) => open(logs, &migrations::LOGS).await.map_err(of_logs)?,
                None => open(url, &migrations::LOGS).await?,
            },
        })
    }

    /// Opens a database that rows are moved into, and another one for log records if there is
    /// `logs`. Creates the tables, if they do not exist.
    ///
    /// # Errors
    /// [`ConnectError`]
    pub async fn create(url: &str, logs: Option<&str>) -> Result<Self, ConnectError> {
        let open = async |config: Config, schema: &migrations::Schema| {
            schema.upgrade(&config, SchemaPolicy::Upgrade).await?;
            connect(&config).await
        };
        let separate = match logs {
            Some(logs) => Some(address::parse(logs).map_err(of_logs)?),
            None => None,
        };
        let main = address::parse(url)?;
        Ok(Self {
            main: open(main.clone(), &migrations::MAIN).await?,
            logs: match separate {
                Some(logs) => open(logs, &migrations::LOGS).await.map_err(of_logs)?,
                None => open(main, &migrations::LOGS).await?,
            },
        })
    }

    fn client(&self, place: Place) -> &Client {
        match place {
            Place::Main => &self.main,
            Place::Logs => &self.logs,
        }
    }
}

/// Returns the names of columns, as SQL.
fn names<'a>(columns: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = columns.map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

#[async_trait]
impl RowSource for PostgresRows {
    async fn fingerprint(&self) -> Result<String, StoreError> {
        // A snapshot does not change.
        Ok(String::new())
    }

    async fn count(&self, part: &'static Part) -> Result<u64, StoreError> {
        let (table, only) = (part.table, part.only.unwrap_or("true"));
        let sql = format!("SELECT count(*) FROM {table} WHERE {only}");
        let row = self.client(part.place).query_one(&sql, &[]).await;
        let rows: i64 = row
            .and_then(|row| row.try_get(0))
            .map_err(Error::from)
            .map_err(StoreError::from)?;
        Ok(rows.unsigned_abs())
    }

    async fn read(
        &self,
        part: &'static Part,
        after: Option<Vec<Value>>,
    ) -> Result<Rows, StoreError> {
        let key = names(part.key.iter().copied());
        let columns = names(part.columns.iter().map(|column| column.0));
        let (table, only) = (part.table, part.only.unwrap_or("true"));
        let places: Vec<String> = (1..=part.key.len()).map(|n| format!("${n}")).collect();
        let later = after.as_ref().map_or_else(String::new, |_| {
            format!("AND ({key}) > ({})", places.join(", "))
        });
        let sql = format!("SELECT {columns} FROM {table} WHERE {only} {later} ORDER BY {key}");
        let after = after.unwrap_or_default();
        let kinds = part
            .key_places()
            .filter_map(|place| part.columns.get(place));
        let values: Vec<Cell<'_>> = after
            .iter()
            .zip(kinds)
            .map(|(value, column)| Cell(value, column.1))
            .collect();
        let found = self.client(part.place).query_raw(&sql, &values).await;
        let found = found.map_err(Error::from)?.map_err(Error::from);
        let rows = found.and_then(move |row| async move { read_row(&row, part) });
        let rows = rows.chunks(BATCH).map(|batch| {
            let rows = batch.into_iter().collect::<Result<Vec<Row>, Error>>();
            rows.map_err(StoreError::from)
        });
        if part.table == LOG_RECORDS {
            return Ok(apart(rows.boxed()));
        }
        Ok(rows.boxed())
    }
}

/// Makes the ids of log records differ: two environments may have records with the same id. Each
/// id that is not greater than the one before it becomes the next one after that.
fn apart(rows: Rows) -> Rows {
    let apart = try_unfold((rows, i64::MIN), |(mut rows, mut last)| async move {
        let Some(mut batch) = rows.try_next().await? else {
            return Ok(None);
        };
        for row in &mut batch {
            if let Some(Value::Integer(id)) = row.first_mut() {
                *id = (*id).max(last.saturating_add(1));
                last = *id;
            }
        }
        Ok::<_, StoreError>(Some((batch, (rows, last))))
    });
    apart.boxed()
}
