//! The rows of a store as they are: read from files that nothing changes, or added to new ones.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::try_unfold;
use platform_store::tables::{Kind, Part, Place};
use platform_store::transfer::{
    BATCH, BeginError, Begun, Moved, Row, RowSource, RowTarget, Rows, Value, key_of,
};
use platform_store::{ConnectError, SchemaPolicy, StoreError};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql};

use super::connection::not_opened;
use super::database::{make_private_directory, make_private_file};
use super::error::Error;
use super::migrations::{self, Schema};
use super::store::beside;

/// Columns that have another name or form in these files: table, column, and the expression.
const EXPRESSIONS: &[(&str, &str, &str)] = &[
    ("device_authorizations", "interval_seconds", "\"interval\""),
    // Null only in rows that an old version of the program has made.
    ("players", "seen_at", "coalesce(seen_at, created_at)"),
];

/// Computes the columns of environments of log records that follow from the records.
const COMPLETE_LOGS: &str =
    "UPDATE log_environments SET bytes = counted.bytes, strangers_bytes = counted.strangers
     FROM (SELECT environment, sum(bytes) AS bytes, sum(bytes * is_strangers) AS strangers
           FROM log_record_sizes GROUP BY environment) AS counted
     WHERE counted.environment = log_environments.id";

/// The two files of a store, opened for their rows.
#[derive(Debug)]
pub struct SqliteRows {
    paths: [PathBuf; 2],
    main: Arc<Mutex<Connection>>,
    logs: Arc<Mutex<Connection>>,
}

impl SqliteRows {
    /// Opens the store at `path` for reading. Everything is read as it is now, even if it changes
    /// meanwhile, and nothing is written.
    ///
    /// # Errors
    /// [`ConnectError`]
    pub async fn open(path: &Path) -> Result<Self, ConnectError> {
        Self::on_both(path, open_snapshot).await
    }

    /// Creates the files of a new store at `path`. They survive a power failure only once their
    /// owner has synced them.
    ///
    /// # Errors
    /// [`ConnectError`]
    pub async fn create(path: &Path) -> Result<Self, ConnectError> {
        Self::on_both(path, create).await
    }

    async fn on_both(
        path: &Path,
        open: fn(&Path, &Schema) -> Result<Connection, ConnectError>,
    ) -> Result<Self, ConnectError> {
        let paths = [path.to_owned(), beside(path)];
        tokio::task::spawn_blocking(move || {
            let shared = |connection| Arc::new(Mutex::new(connection));
            Ok(Self {
                main: shared(open(&paths[0], &migrations::MAIN)?),
                logs: shared(open(&paths[1], &migrations::LOGS)?),
                paths,
            })
        })
        .await
        .unwrap_or_else(|error| Err(ConnectError::Database(Box::new(error))))
    }

    async fn on<T: Send + 'static>(
        &self,
        place: Place,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        run(self.connection(place), work).await
    }

    fn connection(&self, place: Place) -> Arc<Mutex<Connection>> {
        Arc::clone(match place {
            Place::Main => &self.main,
            Place::Logs => &self.logs,
        })
    }
}

async fn run<T: Send + 'static>(
    connection: Arc<Mutex<Connection>>,
    work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(move || {
        let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        work(&connection).map_err(StoreError::from)
    });
    done.await
        .unwrap_or_else(|error| Err(StoreError::Database(Box::new(error))))
}

fn open_snapshot(path: &Path, schema: &Schema) -> Result<Connection, ConnectError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(not_opened)?;
    schema.bring_up_to_date(&mut connection, SchemaPolicy::Refuse)?;
    // A transaction begins with its first read.
    connection
        .execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")
        .map_err(not_opened)?;
    Ok(connection)
}

fn create(path: &Path, schema: &Schema) -> Result<Connection, ConnectError> {
    let failed = |source| ConnectError::File {
        path: path.display().to_string(),
        source,
    };
    if let Some(directory) = path.parent().filter(|path| !path.as_os_str().is_empty()) {
        make_private_directory(directory).map_err(failed)?;
    }
    make_private_file(path).map_err(failed)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(not_opened)?;
    // If the program is killed, the files are worth nothing.
    connection
        .execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        .map_err(not_opened)?;
    schema.bring_up_to_date(&mut connection, SchemaPolicy::Upgrade)?;
    Ok(connection)
}

#[async_trait]
impl RowSource for SqliteRows {
    async fn fingerprint(&self) -> Result<String, StoreError> {
        let mut parts = Vec::new();
        for path in &self.paths {
            let found = std::fs::metadata(path)
                .map_err(|error| StoreError::Unavailable(error.to_string()))?;
            let changed = found.modified().ok().and_then(|time| {
                let since = time.duration_since(UNIX_EPOCH).ok()?;
                Some(since.as_nanos())
            });
            let mut log = path.clone().into_os_string();
            log.push("-wal");
            let log = std::fs::metadata(log).as_ref().map_or(0, Metadata::len);
            let changed = changed.unwrap_or_default();
            parts.push(format!("{} {changed} {log}", found.len()));
        }
        Ok(parts.join(", "))
    }

    async fn count(&self, part: &'static Part) -> Result<u64, StoreError> {
        self.on(part.place, move |connection| {
            let (table, only) = (part.table, part.only.unwrap_or("true"));
            let sql = format!("SELECT count(*) FROM {table} WHERE {only}");
            let rows: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
            Ok(rows.unsigned_abs())
        })
        .await
    }

    async fn read(
        &self,
        part: &'static Part,
        after: Option<Vec<Value>>,
    ) -> Result<Rows, StoreError> {
        let begin = (self.connection(part.place), after, false);
        let batches = try_unfold(begin, move |(connection, after, ended)| async move {
            if ended {
                return Ok(None);
            }
            let rows = run(Arc::clone(&connection), move |connection| {
                read_batch(connection, part, after.as_deref())
            });
            let rows = rows.await?;
            let after = rows.last().map(|row| key_of(part, row));
            let ended = rows.len() < BATCH;
            Ok((!rows.is_empty()).then_some((rows, (connection, after, ended))))
        });
        Ok(batches.boxed())
    }
}

/// Returns the expression that reads a column.
fn expression(part: &Part, column: &str) -> String {
    let known = EXPRESSIONS
        .iter()
        .find(|(table, name, _)| *table == part.table && *name == column);
    known.map_or_else(|| format!("\"{column}\""), |found| found.2.to_owned())
}

fn read_batch(
    connection: &Connection,
    part: &Part,
    after: Option<&[Value]>,
) -> Result<Vec<Row>, Error> {
    let columns: Vec<String> = part
        .columns
        .iter()
        .map(|(name, _)| expression(part, name))
        .collect();
    let (columns, key) = (columns.join(", "), part.key.join(", "));
    let (table, only) = (part.table, part.only.unwrap_or("true"));
    let places: Vec<String> = (1..=part.key.len()).map(|n| format!("?{n}")).collect();
    let places = places.join(", ");
    let later = after.map_or_else(String::new, |_| format!("AND ({key}) > ({places})"));
    let sql =
        format!("SELECT {columns} FROM {table} WHERE {only} {later} ORDER BY {key} LIMIT {BATCH}");
    let kinds = part
        .key_places()
        .filter_map(|place| part.columns.get(place));
    let values = after.unwrap_or_default().iter().zip(kinds);
    let values = values.map(|(value, column)| Cell(value, column.1));
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    let mut batch = Vec::new();
    while let Some(row) = rows.next()? {
        let mut values = Row::with_capacity(part.columns.len());
        for (index, (name, kind)) in part.columns.iter().enumerate() {
            let value = row.get_ref(index)?;
            let value = value_of(value, *kind).ok_or_else(|| StoreError::Corrupt {
                table: part.table,
                column: name,
                row: format!("number {}", batch.len() + 1),
            })?;
            values.push(value);
        }
        batch.push(values);
    }
    Ok(batch)
}

fn value_of(value: ValueRef<'_>, kind: Kind) -> Option<Value> {
    Some(match (value, kind) {
        (ValueRef::Null, _) => Value::Null,
        (ValueRef::Integer(number), Kind::Integer | Kind::Small | Kind::Boolean) => {
            Value::Integer(number)
        }
        (ValueRef::Text(text), Kind::Text) => Value::text(String::from_utf8(text.to_vec()).ok()?),
        (ValueRef::Blob([]), Kind::Deployment) => Value::Null,
        (ValueRef::Blob(bytes), Kind::Bytes | Kind::Uuid | Kind::Deployment) => {
            Value::Bytes(bytes.to_vec())
        }
        _ => return None,
    })
}

/// A value, as these files keep it in a column of this type.
struct Cell<'value>(&'value Value, Kind);

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match (self.0, self.1) {
            (Value::Null, Kind::Deployment) => ValueRef::Blob(&[]),
            (Value::Null, _) => ValueRef::Null,
            (Value::Integer(number), _) => ValueRef::Integer(*number),
            (Value::Text(text), _) => ValueRef::Text(text.as_bytes()),
            (Value::Bytes(bytes), _) => ValueRef::Blob(bytes),
        }))
    }
}

#[async_trait]
impl RowTarget for SqliteRows {
    async fn begin(&self, _source: &str) -> Result<Begun, BeginError> {
        for part in platform_store::tables::PARTS {
            if self.count(part).await? > 0 {
                return Err(BeginError::NotEmpty { table: part.table });
            }
        }
        Ok(Begun::Open)
    }

    async fn moved(&self, _part: &'static Part) -> Result<Moved, StoreError> {
        // The files are new.
        Ok(Moved::default())
    }

    async fn add(
        &self,
        part: &'static Part,
        before: &Moved,
        rows: Vec<Row>,
    ) -> Result<Moved, StoreError> {
        let moved = before.after(part, &rows);
        self.on(part.place, move |connection| add(connection, part, &rows))
            .await?;
        Ok(moved)
    }

    async fn complete(&self) -> Result<(), StoreError> {
        self.on(Place::Logs, |connection| {
            Ok(connection.execute_batch(COMPLETE_LOGS)?)
        })
        .await
    }

    async fn end(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

fn add(connection: &Connection, part: &Part, rows: &[Row]) -> Result<(), Error> {
    let name = |column: &str| {
        if (part.table, column) == ("device_authorizations", "interval_seconds") {
            "\"interval\"".to_owned()
        } else {
            format!("\"{column}\"")
        }
    };
    let names: Vec<String> = part.columns.iter().map(|column| name(column.0)).collect();
    let places: Vec<String> = (1..=names.len()).map(|n| format!("?{n}")).collect();
    let (table, names, places) = (part.table, names.join(", "), places.join(", "));
    let sql = format!("INSERT INTO {table} ({names}) VALUES ({places})");
    let transaction = connection.unchecked_transaction()?;
    let mut insert = transaction.prepare_cached(&sql)?;
    for row in rows {
        let values = row.iter().zip(part.columns);
        let values = values.map(|(value, column)| Cell(value, column.1));
        insert.execute(rusqlite::params_from_iter(values))?;
    }
    drop(insert);
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use platform_store::tables::compare_with_schema;

    use super::*;

    /// Columns that follow from the records.
    const DERIVED: [(&str, &str); 2] = [
        ("log_environments", "bytes"),
        ("log_environments", "strangers_bytes"),
    ];

    #[tokio::test]
    async fn every_column_is_moved() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("platform.db");
        let rows = SqliteRows::create(&path).await.unwrap();
        for place in [Place::Main, Place::Logs] {
            let tables = rows.on(place, |connection| {
                let mut statement = connection.prepare(
                    "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c
                     WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'
                         AND t.name <> 'refinery_schema_history' ORDER BY 1",
                )?;
                let mut tables: Vec<(String, Vec<String>)> = Vec::new();
                let mut found = statement.query([])?;
                while let Some(row) = found.next()? {
                    let (table, mut column): (String, String) = (row.get(0)?, row.get(1)?);
                    if (&*table, &*column) == ("device_authorizations", "interval") {
                        column = "interval_seconds".to_owned();
                    }
                    match tables.last_mut().filter(|last| last.0 == table) {
                        Some(last) => last.1.push(column),
                        None => tables.push((table, vec![column])),
                    }
                }
                Ok(tables)
            });
            let errors = compare_with_schema(place, &tables.await.unwrap(), &DERIVED, &[]);
            assert!(errors.is_empty(), "{errors:#?}");
        }
    }

    #[tokio::test]
    async fn every_part_is_read_in_the_order_of_an_index() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("platform.db");
        let rows = SqliteRows::create(&path).await.unwrap();
        for part in platform_store::tables::PARTS {
            let key = part.key.join(", ");
            let plan = rows.on(part.place, move |connection| {
                let sql = format!(
                    "EXPLAIN QUERY PLAN SELECT * FROM {} WHERE ({key}) > ({key}) ORDER BY {key}",
                    part.table
                );
                let mut statement = connection.prepare(&sql)?;
                let lines = statement.query_map([], |row| row.get::<_, String>(3))?;
                Ok(lines.collect::<Result<Vec<_>, _>>()?.join("; "))
            });
            let plan = plan.await.unwrap();
            assert!(!plan.contains("TEMP B-TREE"), "{}: {plan}", part.name);
        }
    }
}
