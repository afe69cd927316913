//! What changed, for the server that keeps it in memory; nodes and leases, which only a store of
//! several servers uses.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::node::{Changes, LISTED_MILLIS, Lease, Node, NodeReport, Reported, Topic};
use platform_store::{NodeStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use super::error::Error;
use super::rows::uuid;
use super::store::SqliteStore;

/// The time in milliseconds.
const NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";

#[async_trait]
impl NodeStore for SqliteStore {
    fn is_shared(&self) -> bool {
        false
    }

    async fn newest_change(&self) -> Result<i64, StoreError> {
        self.main.read(newest)
    }

    async fn list_changes(&self, after: i64) -> Result<Changes, StoreError> {
        self.main.read(|connection| list_changes(connection, after))
    }

    async fn report_node(&self, report: &NodeReport) -> Result<Reported, StoreError> {
        let report = report.clone();
        self.main
            .write(move |connection| report_node(connection, &report))
            .await
    }

    async fn list_nodes(&self) -> Result<Vec<Node>, StoreError> {
        self.main.read(list_nodes)
    }

    async fn remove_node(&self, id: Uuid) -> Result<(), StoreError> {
        self.main
            .write(move |connection| {
                connection.execute("DELETE FROM leases WHERE holder = ?1", [id.as_bytes()])?;
                connection.execute("DELETE FROM nodes WHERE id = ?1", [id.as_bytes()])?;
                Ok(())
            })
            .await
    }

    async fn take_lease(
        &self,
        name: &str,
        holder: Uuid,
        millis: Millis,
    ) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.main
            .write(move |connection| {
                let sql = format!(
                    "INSERT INTO leases (name, holder, until) VALUES (?1, ?2, {NOW} + ?3)
                     ON CONFLICT (name) DO UPDATE
                     SET holder = excluded.holder, until = excluded.until
                     WHERE leases.holder = excluded.holder OR leases.until <= {NOW}"
                );
                let values = params![name, holder.as_bytes(), millis];
                Ok(connection.prepare_cached(&sql)?.execute(values)? > 0)
            })
            .await
    }

    async fn renew_leases(&self, holder: Uuid, millis: Millis) -> Result<Vec<String>, StoreError> {
        self.main
            .write(move |connection| {
                let sql = format!(
                    "UPDATE leases SET until = {NOW} + ?2 WHERE holder = ?1 RETURNING name"
                );
                let mut statement = connection.prepare_cached(&sql)?;
                let names =
                    statement.query_map(params![holder.as_bytes(), millis], |row| row.get(0))?;
                let mut names = names.collect::<Result<Vec<String>, _>>()?;
                names.sort();
                Ok(names)
            })
            .await
    }

    async fn list_leases(&self) -> Result<Vec<Lease>, StoreError> {
        self.main.read(list_leases)
    }
}

/// Raises the version of a topic, in the transaction of its change.
pub(super) fn raise(connection: &Connection, topic: &Topic) -> Result<(), Error> {
    let raised: i64 = connection
        .prepare_cached("UPDATE change_counter SET last = last + 1 RETURNING last")?
        .query_row([], |row| row.get(0))?;
    connection
        .prepare_cached(
            "INSERT INTO changes (topic, version) VALUES (?1, ?2)
             ON CONFLICT (topic) DO UPDATE SET version = excluded.version",
        )?
        .execute(params![topic.name(), raised])?;
    Ok(())
}

fn newest(connection: &Connection) -> Result<i64, Error> {
    let newest = connection
        .prepare_cached("SELECT last FROM change_counter")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(newest.unwrap_or(0))
}

fn list_changes(connection: &Connection, after: i64) -> Result<Changes, Error> {
    // One statement, so both are of one moment.
    let mut statement = connection.prepare_cached(
        "SELECT last, topic FROM change_counter LEFT JOIN changes ON version > ?1
         ORDER BY version, topic",
    )?;
    let mut changes = Changes {
        newest: after,
        topics: Vec::new(),
    };
    let mut rows = statement.query([after])?;
    while let Some(row) = rows.next()? {
        changes.newest = row.get(0)?;
        let topic: Option<String> = row.get(1)?;
        changes
            .topics
            .extend(topic.as_deref().and_then(Topic::from_name));
    }
    Ok(changes)
}

fn report_node(connection: &Connection, report: &NodeReport) -> Result<Reported, Error> {
    connection
        .prepare_cached(&format!("DELETE FROM nodes WHERE seen_at < {NOW} - ?1"))?
        .execute([LISTED_MILLIS])?;
    let at = connection
        .prepare_cached(&format!(
            "INSERT INTO nodes (id, address, program, settings, started_at, seen_at, applied,
                 clock_offset, degraded)
             VALUES (?1, ?2, ?3, ?4, {NOW}, {NOW}, ?5, ?6, ?7)
             ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at,
                 applied = excluded.applied, clock_offset = excluded.clock_offset,
                 degraded = excluded.degraded
             RETURNING seen_at"
        ))?
        .query_row(
            params![
                report.id.as_bytes(),
                report.address,
                report.binary,
                report.settings,
                report.applied,
                report.clock_offset,
                report.degraded.join(","),
            ],
            |row| row.get(0),
        )?;
    Ok(Reported {
        at,
        newest: newest(connection)?,
        waits_for_standby: None,
    })
}

fn list_nodes(connection: &Connection) -> Result<Vec<Node>, Error> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id, address, program, settings, started_at, applied, clock_offset, degraded,
             {NOW} - seen_at
         FROM nodes WHERE seen_at >= {NOW} - ?1 ORDER BY started_at, id"
    ))?;
    let mut nodes = Vec::new();
    let mut rows = statement.query([LISTED_MILLIS])?;
    while let Some(row) = rows.next()? {
        let (id, address): (Vec<u8>, String) = (row.get(0)?, row.get(1)?);
        let degraded: String = row.get(7)?;
        let degraded = degraded.split(',').filter(|name| !name.is_empty());
        nodes.push(Node {
            report: NodeReport {
                id: uuid(&id, "nodes", "id", || address.clone())?,
                binary: row.get(2)?,
                settings: row.get(3)?,
                applied: row.get(5)?,
                clock_offset: row.get(6)?,
                degraded: degraded.map(str::to_owned).collect(),
                address,
            },
            started_at: row.get(4)?,
            silent: row.get(8)?,
        });
    }
    Ok(nodes)
}

fn list_leases(connection: &Connection) -> Result<Vec<Lease>, Error> {
    let sql = format!("SELECT name, holder, until - {NOW} FROM leases ORDER BY name");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut leases = Vec::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (name, holder): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
        leases.push(Lease {
            holder: uuid(&holder, "leases", "holder", || name.clone())?,
            left: row.get(2)?,
            name,
        });
    }
    Ok(leases)
}
