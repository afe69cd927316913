//! Adding rows to a new store. A table that no migration knows, one for each schema, remembers how
//! far the rows of each part were moved, in the transaction that adds them. While it exists, no
//! server opens the store.

use std::collections::BTreeSet;

use async_trait::async_trait;
use platform_store::StoreError;
use platform_store::tables::{Kind, LOG_RECORDS, PARTS, Part, Place};
use platform_store::transfer::{BeginError, Begun, Moved, Row, RowTarget, Value};
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;

use super::values::{Cell, type_of};
use super::{PostgresRows, names};
use crate::error::Error;
use crate::log_days::{self, partition};
use crate::migrations;

/// The row that is of no part: it has the source's fingerprint, and whether all was compared.
const SOURCE: &str = "(source)";
/// Tables that must be empty as well, because a server that runs has rows there.
const OF_SERVERS: &str = "nodes";
/// The size of a log record without its texts, in bytes.
const ROW_BYTES: i64 = 160;

/// A column that only this back end has, and its value for a row.
struct Extra {
    table: &'static str,
    column: &'static str,
    kind: Kind,
    value: fn(&Part, &Row) -> Value,
}

const EXTRAS: [Extra; 2] = [
    Extra {
        table: "signing_keys",
        column: "follows",
        kind: Kind::Text,
        // No key's id, until all keys are there.
        value: |part, row| match column(part, row, "kid") {
            Some(Value::Text(kid)) => Value::Text(format!("#{kid}")),
            _ => Value::Null,
        },
    },
    Extra {
        table: LOG_RECORDS,
        column: "bytes",
        kind: Kind::Integer,
        value: |part, row| {
            let texts = ["message", "stack", "url", "metadata"];
            let lengths = texts.into_iter().filter_map(|name| column(part, row, name));
            let texts: usize = lengths.map(Value::text_length).sum();
            Value::Integer(ROW_BYTES + i64::try_from(texts).unwrap_or(i64::MAX - ROW_BYTES))
        },
    },
];

/// Returns the value of a row's column.
fn column<'row>(part: &Part, row: &'row Row, name: &str) -> Option<&'row Value> {
    let place = part.columns.iter().position(|column| column.0 == name)?;
    row.get(place)
}

/// Computes which key each key follows.
const COMPLETE_KEYS: &str = "UPDATE signing_keys k SET follows = known.follows
     FROM (SELECT position, coalesce(lag(kid) OVER (ORDER BY position), '') AS follows
           FROM signing_keys) AS known
     WHERE k.position = known.position AND k.follows <> known.follows";
/// Computes the days of log records, and what their environments know of them. 20 bits of an id
/// number the records of a millisecond, and a day has 86,400,000 of these.
const COMPLETE_LOGS: &str = "DELETE FROM log_days;
     INSERT INTO log_days (day, environment, records, bytes, strangers_bytes)
     SELECT (id >> 20) / 86400000, environment, count(*), sum(bytes),
         coalesce(sum(bytes) FILTER (WHERE player IS NULL), 0)
     FROM log_records GROUP BY 1, 2;
     UPDATE log_environments SET last_id = 0, far_id = 0, bytes = 0, strangers_bytes = 0;
     UPDATE log_environments e SET last_id = found.last_id
     FROM (SELECT environment, max(id) AS last_id FROM log_records GROUP BY environment) AS found
     WHERE found.environment = e.id;
     UPDATE log_environments e
     SET bytes = found.bytes, strangers_bytes = found.strangers_bytes
     FROM (SELECT environment, sum(bytes) AS bytes, sum(strangers_bytes) AS strangers_bytes
           FROM log_days GROUP BY environment) AS found
     WHERE found.environment = e.id";

impl PostgresRows {
    /// Begins to move rows into one database.
    async fn begin_in(&self, place: Place, source: &str) -> Result<Begun, BeginError> {
        let client = self.client(place);
        let marker = marker(place);
        let begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
        client.batch_execute(begin).await.map_err(of_store)?;
        let begun = begin_in(client, place, marker, source).await;
        let end = if begun.is_ok() { "COMMIT" } else { "ROLLBACK" };
        client.batch_execute(end).await.map_err(of_store)?;
        begun
    }
}

/// Returns the name of the table that remembers how far rows were moved.
const fn marker(place: Place) -> &'static str {
    match place {
        Place::Main => migrations::MAIN.incoming,
        Place::Logs => migrations::LOGS.incoming,
    }
}

fn of_store(error: tokio_postgres::Error) -> StoreError {
    Error::from(error).into()
}

async fn begin_in(
    client: &Client,
    place: Place,
    marker: &str,
    source: &str,
) -> Result<Begun, BeginError> {
    let exists = client
        .query_one("SELECT to_regclass($1::text) IS NOT NULL", &[&marker])
        .await
        .and_then(|row| row.try_get::<_, bool>(0))
        .map_err(of_store)?;
    if exists {
        // Waits for what is left of an interrupted move.
        let sql = format!("SELECT source, moved FROM {marker} WHERE part = '{SOURCE}' FOR UPDATE");
        let row = client.query_one(&sql, &[]).await.map_err(of_store)?;
        let known: String = row.try_get(0).map_err(of_store)?;
        let compared: i64 = row.try_get(1).map_err(of_store)?;
        if known != source {
            return Err(BeginError::OtherSource);
        }
        return Ok(if compared > 0 {
            Begun::Compared
        } else {
            Begun::Open
        });
    }
    let tables: BTreeSet<&'static str> = PARTS
        .iter()
        .filter(|part| part.place == place)
        .map(|part| part.table)
        .chain((place == Place::Main).then_some(OF_SERVERS))
        .collect();
    for table in tables {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {table})");
        let row = client.query_one(&sql, &[]).await.map_err(of_store)?;
        if row.try_get(0).map_err(of_store)? {
            return Err(BeginError::NotEmpty { table });
        }
    }
    let create = format!(
        "CREATE TABLE {marker} (part TEXT COLLATE \"C\" PRIMARY KEY, last BYTEA,
             moved BIGINT NOT NULL, source TEXT)"
    );
    client.batch_execute(&create).await.map_err(of_store)?;
    let insert = format!("INSERT INTO {marker} (part, moved, source) VALUES ('{SOURCE}', 0, $1)");
    client
        .execute(&insert, &[&source])
        .await
        .map_err(of_store)?;
    Ok(Begun::Open)
}

#[async_trait]
impl RowTarget for PostgresRows {
    async fn begin(&self, source: &str) -> Result<Begun, BeginError> {
        if self.begin_in(Place::Main, source).await? == Begun::Compared {
            return Ok(Begun::Compared);
        }
        self.begin_in(Place::Logs, source).await
    }

    async fn moved(&self, part: &'static Part) -> Result<Moved, StoreError> {
        Ok(moved(self.client(part.place), part, "").await?)
    }

    async fn add(
        &self,
        part: &'static Part,
        before: &Moved,
        rows: Vec<Row>,
    ) -> Result<Moved, StoreError> {
        let client = self.client(part.place);
        let begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
        client.batch_execute(begin).await.map_err(of_store)?;
        let added = add(client, part, before, &rows).await;
        let end = if added.is_ok() { "COMMIT" } else { "ROLLBACK" };
        client.batch_execute(end).await.map_err(of_store)?;
        Ok(added?)
    }

    async fn complete(&self) -> Result<(), StoreError> {
        for place in [Place::Main, Place::Logs] {
            let mut sql = vec!["BEGIN".to_owned()];
            for part in PARTS.iter().filter(|part| part.place == place) {
                let Some(column) = part.numbered else {
                    continue;
                };
                let table = part.table;
                sql.push(format!(
                    "SELECT setval(pg_get_serial_sequence('{table}', '{column}'),
                         (SELECT coalesce(max({column}), 0) + 1 FROM {table}), false)"
                ));
            }
            sql.push(match place {
                Place::Main => COMPLETE_KEYS.to_owned(),
                Place::Logs => COMPLETE_LOGS.to_owned(),
            });
            // The planner knows nothing of tables that have just been filled.
            sql.extend(["COMMIT".to_owned(), "ANALYZE".to_owned()]);
            let sql = sql.join("; ");
            let client = self.client(place);
            client.batch_execute(&sql).await.map_err(of_store)?;
        }
        Ok(())
    }

    async fn end(&self) -> Result<(), StoreError> {
        // If this is interrupted, the next move only does the rest of it.
        let (main, logs) = (marker(Place::Main), marker(Place::Logs));
        let compared = format!("UPDATE {main} SET moved = 1 WHERE part = '{SOURCE}'");
        let (first, last) = (
            format!("DROP TABLE IF EXISTS {logs}"),
            format!("DROP TABLE {main}"),
        );
        for (client, sql) in [
            (&self.main, &compared),
            (&self.logs, &first),
            (&self.main, &last),
        ] {
            client.batch_execute(sql).await.map_err(of_store)?;
        }
        Ok(())
    }
}

async fn moved(client: &Client, part: &Part, lock: &str) -> Result<Moved, Error> {
    let marker = marker(part.place);
    let sql = format!("SELECT last, moved FROM {marker} WHERE part = $1 {lock}");
    let Some(row) = client.query_opt(&sql, &[&part.name]).await? else {
        return Ok(Moved::default());
    };
    let last: Option<&[u8]> = row.try_get(0)?;
    let rows: i64 = row.try_get(1)?;
    Ok(Moved {
        last: last.and_then(Value::decode_all),
        rows: rows.unsigned_abs(),
    })
}

async fn add(
    client: &Client,
    part: &'static Part,
    before: &Moved,
    rows: &[Row],
) -> Result<Moved, Error> {
    // The row of the source is locked, too: a part has none before its first rows.
    let marker = marker(part.place);
    let lock = format!("SELECT 1 FROM {marker} WHERE part = '{SOURCE}' FOR UPDATE");
    client.batch_execute(&lock).await?;
    if moved(client, part, "FOR UPDATE").await? != *before {
        let why = "another move into the target runs at the same time";
        return Err(StoreError::Unavailable(why.into()).into());
    }
    if part.table == LOG_RECORDS {
        make_days(client, rows).await?;
    }
    copy_in(client, part, rows).await?;
    let after = before.after(part, rows);
    let mut last = Vec::new();
    for value in after.last.iter().flatten() {
        value.encode(&mut last);
    }
    let moved = i64::try_from(after.rows).unwrap_or(i64::MAX);
    let remember = format!(
        "INSERT INTO {marker} (part, last, moved) VALUES ($1, $2, $3)
         ON CONFLICT (part) DO UPDATE SET last = excluded.last, moved = excluded.moved"
    );
    client
        .execute(&remember, &[&part.name, &last, &moved])
        .await?;
    Ok(after)
}

async fn copy_in(client: &Client, part: &Part, rows: &[Row]) -> Result<(), Error> {
    let extras = EXTRAS.iter().filter(|extra| extra.table == part.table);
    let extras: Vec<&Extra> = extras.collect();
    let columns = part.columns.iter().copied();
    let own = extras.iter().map(|extra| (extra.column, extra.kind));
    let columns: Vec<_> = columns.chain(own).collect();
    let (table, names) = (part.table, names(columns.iter().map(|column| column.0)));
    let types: Vec<_> = columns.iter().map(|column| type_of(column.1)).collect();
    let sql = format!("COPY {table} ({names}) FROM STDIN (FORMAT binary)");
    let writer = BinaryCopyInWriter::new(client.copy_in(&sql).await?, &types);
    futures_util::pin_mut!(writer);
    for row in rows {
        let own: Vec<Value> = extras
            .iter()
            .map(|extra| (extra.value)(part, row))
            .collect();
        let values = row.iter().chain(&own).zip(&columns);
        let values: Vec<Cell<'_>> = values
            .map(|(value, column)| Cell(value, column.1))
            .collect();
        writer.as_mut().write_raw(&values).await?;
    }
    writer.finish().await?;
    Ok(())
}

/// Creates the missing partitions for the days of log records.
async fn make_days(client: &Client, rows: &[Row]) -> Result<(), Error> {
    let ids = rows.iter().filter_map(|row| match row.first() {
        Some(Value::Integer(id)) => Some(log_days::day_of(*id)),
        _ => None,
    });
    for day in ids.collect::<BTreeSet<_>>() {
        let table = format!("log_records_{day}");
        let missing = "SELECT to_regclass($1::text) IS NULL";
        if client.query_one(missing, &[&table]).await?.try_get(0)? {
            client.batch_execute(&partition(day)).await?;
        }
    }
    Ok(())
}
