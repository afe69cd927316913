//! Old events and addresses.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::retention::{Retention, shorten};
use platform_store::{ADDRESS_COLUMNS, AddressColumn, RetentionStore, StoreError};

use super::database::Database;
use super::error::Error;
use super::rows::{count, get};
use super::store::PostgresStore;

#[async_trait]
impl RetentionStore for PostgresStore {
    async fn apply_retention(
        &self,
        retention: Retention,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let most = count(limit);
        let mut changed = 0;
        if let Some(before) = retention.events_before {
            let rows = self
                .main
                .write(
                    "DELETE FROM audit_events WHERE id = ANY(ARRAY(
                         SELECT id FROM audit_events WHERE at < $1
                         ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
                    &[&before, &most],
                )
                .await?;
            changed += rows.len();
        }
        for column in ADDRESS_COLUMNS {
            changed += shorten_in(&self.main, column, retention.addresses_before, limit).await?;
        }
        let rows = self
            .main
            .write(
                "UPDATE players SET address = NULL WHERE id = ANY(ARRAY(
                     SELECT id FROM players WHERE address IS NOT NULL AND seen_at < $1
                     LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
                &[&retention.guests_before, &most],
            )
            .await?;
        Ok(changed + rows.len())
    }
}

/// Shortens addresses of one table from before, at most `limit`. Returns how many.
async fn shorten_in(
    database: &Database,
    column: &AddressColumn,
    before: Millis,
    limit: usize,
) -> Result<usize, StoreError> {
    let AddressColumn { table, key, since } = column;
    let sql = format!(
        "SELECT DISTINCT network FROM (
             SELECT network FROM {table}
             WHERE network IS NOT NULL AND right(network, 3) NOT IN ('/24', '/48')
                 AND {since} < $1 LIMIT $2) AS long"
    );
    let rows = database
        .rows_of_many(&sql, &[&before, &count(limit)])
        .await?;
    let long: Vec<String> = rows
        .iter()
        .map(|row| get(row, 0))
        .collect::<Result<_, Error>>()?;
    if long.is_empty() {
        return Ok(0);
    }
    let short: Vec<Option<String>> = long.iter().map(|network| shorten(network)).collect();
    let sql = format!(
        "UPDATE {table} t SET network = found.short
         FROM (SELECT o.{key} AS key, n.short FROM {table} o
               JOIN unnest($3::text[], $4::text[]) AS n (long, short) ON n.long = o.network
               WHERE o.network IS NOT NULL AND right(o.network, 3) NOT IN ('/24', '/48')
                   AND o.{since} < $1 LIMIT $2 FOR UPDATE OF o SKIP LOCKED) AS found
         WHERE t.{key} = found.key RETURNING 1"
    );
    let changed = database
        .write(&sql, &[&before, &count(limit), &long, &short])
        .await?;
    Ok(changed.len())
}
