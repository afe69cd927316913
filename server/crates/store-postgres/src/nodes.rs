//! Nodes, what changed, and leases. All times are those of the database's clock.

use std::collections::BTreeSet;

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::node::{Changes, LISTED_MILLIS, Lease, Node, NodeReport, Reported, Topic};
use platform_store::{NodeStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::Error;
use super::migrations;
use super::rows::get;
use super::store::PostgresStore;
use super::transaction::Transaction;

/// The database's time in milliseconds, at this moment and not at the transaction's begin.
macro_rules! now {
    () => {
        "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}

#[async_trait]
impl NodeStore for PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    async fn newest_change(&self) -> Result<i64, StoreError> {
        let row = self
            .main
            .row("SELECT last FROM change_counter", &[])
            .await?;
        Ok(row.as_ref().map_or(Ok(0), |row| get(row, 0))?)
    }

    async fn list_changes(&self, after: i64) -> Result<Changes, StoreError> {
        // One statement, so both are of one moment.
        let rows = self
            .main
            .rows(
                "SELECT last, topic FROM change_counter LEFT JOIN changes ON version > $1
                 ORDER BY version, topic",
                &[&after],
            )
            .await?;
        let newest = rows.first().map_or(Ok(after), |row| get(row, 0))?;
        let topics: Vec<Option<&str>> = rows
            .iter()
            .map(|row| get(row, 1))
            .collect::<Result<_, Error>>()?;
        let topics = topics.into_iter().flatten().filter_map(Topic::from_name);
        Ok(Changes {
            newest,
            topics: topics.collect(),
        })
    }

    async fn report_node(&self, report: &NodeReport) -> Result<Reported, StoreError> {
        // A report that is written twice says the same.
        let rows = self
            .main
            .write(
                concat!(
                    "WITH clock AS (SELECT ",
                    now!(),
                    " AS now),
                     gone AS (DELETE FROM nodes WHERE seen_at < (SELECT now FROM clock) - $8)
                     INSERT INTO nodes (id, address, program, settings, started_at, seen_at,
                         applied, clock_offset, degraded, schema)
                     SELECT $1, $2, $3, $4, now, now, $5, $6, $7, $9 FROM clock
                     ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at,
                         applied = excluded.applied, clock_offset = excluded.clock_offset,
                         degraded = excluded.degraded
                     RETURNING seen_at, (SELECT last FROM change_counter),
                         current_setting('synchronous_standby_names', true) <> ''"
                ),
                &[
                    &report.id,
                    &report.address,
                    &report.binary,
                    &report.settings,
                    &report.applied,
                    &report.clock_offset,
                    &report.degraded.join(","),
                    &LISTED_MILLIS,
                    &migrations::MAIN.known(),
                ],
            )
            .await?;
        let row = rows.first().ok_or(StoreError::Missing { table: "nodes" })?;
        Ok(Reported {
            at: get(row, 0)?,
            newest: get(row, 1)?,
            waits_for_standby: get(row, 2)?,
        })
    }

    async fn list_nodes(&self) -> Result<Vec<Node>, StoreError> {
        let rows = self
            .main
            .rows(
                concat!(
                    "SELECT id, address, program, settings, started_at, applied, clock_offset,
                         degraded, ",
                    now!(),
                    " - seen_at AS silent
                     FROM nodes WHERE seen_at >= ",
                    now!(),
                    " - $1 ORDER BY started_at, id"
                ),
                &[&LISTED_MILLIS],
            )
            .await?;
        Ok(rows.iter().map(node).collect::<Result<_, Error>>()?)
    }

    async fn remove_node(&self, id: Uuid) -> Result<(), StoreError> {
        self.main
            .write(
                "WITH freed AS (DELETE FROM leases WHERE holder = $1)
                 DELETE FROM nodes WHERE id = $1",
                &[&id],
            )
            .await
            .map(drop)
    }

    async fn take_lease(
        &self,
        name: &str,
        holder: Uuid,
        millis: Millis,
    ) -> Result<bool, StoreError> {
        let taken = self
            .main
            .write(
                concat!(
                    "INSERT INTO leases AS known (name, holder, until)
                     VALUES ($1, $2, ",
                    now!(),
                    " + $3)
                     ON CONFLICT (name) DO UPDATE
                     SET holder = excluded.holder, until = excluded.until
                     WHERE known.holder = excluded.holder OR known.until <= ",
                    now!(),
                    " RETURNING 1"
                ),
                &[&name, &holder, &millis],
            )
            .await?;
        Ok(!taken.is_empty())
    }

    async fn renew_leases(&self, holder: Uuid, millis: Millis) -> Result<Vec<String>, StoreError> {
        let rows = self
            .main
            .write(
                concat!(
                    "UPDATE leases SET until = ",
                    now!(),
                    " + $2 WHERE holder = $1 RETURNING name"
                ),
                &[&holder, &millis],
            )
            .await?;
        let mut names = rows
            .iter()
            .map(|row| get(row, 0))
            .collect::<Result<Vec<String>, Error>>()?;
        names.sort();
        Ok(names)
    }

    async fn list_leases(&self) -> Result<Vec<Lease>, StoreError> {
        let rows = self
            .main
            .rows(
                concat!(
                    "SELECT name, holder, until - ",
                    now!(),
                    " FROM leases ORDER BY name"
                ),
                &[],
            )
            .await?;
        let leases = rows.iter().map(|row| {
            Ok(Lease {
                name: get(row, 0)?,
                holder: get(row, 1)?,
                left: get(row, 2)?,
            })
        });
        Ok(leases.collect::<Result<_, Error>>()?)
    }
}

fn node(row: &Row) -> Result<Node, Error> {
    let degraded: &str = get(row, 7)?;
    let degraded = degraded.split(',').filter(|name| !name.is_empty());
    Ok(Node {
        report: NodeReport {
            id: get(row, 0)?,
            address: get(row, 1)?,
            binary: get(row, 2)?,
            settings: get(row, 3)?,
            applied: get(row, 5)?,
            clock_offset: get(row, 6)?,
            degraded: degraded.map(str::to_owned).collect(),
        },
        started_at: get(row, 4)?,
        silent: get(row, 8)?,
    })
}

/// Raises the versions of what a transaction changed, as its last statement: from here to the
/// commit, others that change something wait.
pub(super) async fn raise(
    transaction: &Transaction,
    topics: &BTreeSet<Topic>,
) -> Result<(), Error> {
    let names: Vec<String> = topics.iter().map(Topic::name).collect();
    transaction
        .execute(
            "WITH counter AS (UPDATE change_counter SET last = last + 1 RETURNING last)
             INSERT INTO changes (topic, version)
             SELECT topic, last FROM unnest($1::text[]) AS topic, counter
             ON CONFLICT (topic) DO UPDATE SET version = excluded.version",
            &[&names],
        )
        .await
        .map(drop)
}
