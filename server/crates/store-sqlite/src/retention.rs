//! Old events and addresses.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::retention::{Retention, shorten};
use platform_store::{ADDRESS_COLUMNS, AddressColumn, RetentionStore, StoreError};
use rusqlite::types::Value;
use rusqlite::{Connection, params};

use super::error::Error;
use super::rows::count;
use super::store::SqliteStore;

#[async_trait]
impl RetentionStore for SqliteStore {
    async fn apply_retention(
        &self,
        retention: Retention,
        limit: usize,
    ) -> Result<usize, StoreError> {
        // Whole tables may be looked at for it, so the writer is only given what was found.
        let found = self
            .main
            .read_much(move |connection| Found::of(connection, retention, limit));
        let found = found.await?;
        if found.is_empty() {
            return Ok(0);
        }
        self.main
            .write(move |connection| found.apply(connection))
            .await
    }
}

/// A row's key, its address and the shortened one.
type Long = (Value, String, Option<String>);

/// What is too old.
struct Found {
    events: Vec<i64>,
    addresses: Vec<(AddressColumn, Vec<Long>)>,
    guests: Vec<Vec<u8>>,
}

impl Found {
    fn of(connection: &Connection, retention: Retention, limit: usize) -> Result<Self, Error> {
        let events = match retention.events_before {
            None => Vec::new(),
            Some(before) => connection
                .prepare_cached("SELECT id FROM audit_events WHERE at < ?1 ORDER BY at LIMIT ?2")?
                .query_map([before, count(limit)], |row| row.get(0))?
                .collect::<Result<_, _>>()?,
        };
        let before = retention.addresses_before;
        let addresses = ADDRESS_COLUMNS
            .iter()
            .map(|column| Ok((*column, long(connection, column, before, limit)?)))
            .collect::<Result<_, Error>>()?;
        let guests = connection
            .prepare_cached(
                "SELECT id FROM players WHERE address IS NOT NULL AND seen_at < ?1 LIMIT ?2",
            )?
            .query_map([retention.guests_before, count(limit)], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        Ok(Self {
            events,
            addresses,
            guests,
        })
    }

    fn is_empty(&self) -> bool {
        let no_addresses = self.addresses.iter().all(|(_, rows)| rows.is_empty());
        self.events.is_empty() && no_addresses && self.guests.is_empty()
    }

    fn apply(&self, connection: &Connection) -> Result<usize, Error> {
        let mut changed = 0;
        let mut remove = connection.prepare_cached("DELETE FROM audit_events WHERE id = ?1")?;
        for event in &self.events {
            changed += remove.execute([event])?;
        }
        for (column, rows) in &self.addresses {
            let sql = format!(
                "UPDATE {} SET network = ?3 WHERE {} = ?1 AND network = ?2",
                column.table, column.key
            );
            let mut shorten = connection.prepare_cached(&sql)?;
            for (key, long, short) in rows {
                changed += shorten.execute(params![key, long, short])?;
            }
        }
        let mut forget =
            connection.prepare_cached("UPDATE players SET address = NULL WHERE id = ?1")?;
        for guest in &self.guests {
            changed += forget.execute([guest])?;
        }
        Ok(changed)
    }
}

/// Returns rows with an address from before, which was not shortened yet.
fn long(
    connection: &Connection,
    column: &AddressColumn,
    before: Millis,
    limit: usize,
) -> Result<Vec<Long>, Error> {
    let AddressColumn { table, key, since } = column;
    let sql = format!(
        "SELECT {key}, network FROM {table}
         WHERE network IS NOT NULL AND substr(network, -3) NOT IN ('/24', '/48')
             AND {since} < ?1 LIMIT ?2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([before, count(limit)], |row| {
        let network: String = row.get(1)?;
        let short = shorten(&network);
        Ok((row.get(0)?, network, short))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
