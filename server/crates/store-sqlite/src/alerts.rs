//! Alerts about groups of errors.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::error_alert::{
    AlertBudget, NewAlert, WaitingAlert, counted_from, make_alerts,
};
use platform_domain::error_group::{ErrorGroupId, Regrouped};
use platform_store::stored_alerts::{StoredAlert, write_alert_detail};
use platform_store::stored_groups::write_number;
use platform_store::{AlertStore, StoreError};
use rusqlite::{Connection, params};

use super::error::Error;
use super::rows::count;
use super::store::SqliteStore;

#[async_trait]
impl AlertStore for SqliteStore {
    async fn list_due_alerts(
        &self,
        now: Millis,
        per_environment: usize,
        limit: usize,
    ) -> Result<Vec<WaitingAlert>, StoreError> {
        self.logs
            .read_much(move |connection| list_due(connection, now, per_environment, limit))
            .await
    }

    async fn postpone_alert(&self, id: i64, tries: u16, next_at: Millis) -> Result<(), StoreError> {
        self.logs
            .write(move |connection| {
                connection
                    .prepare_cached(
                        "UPDATE log_error_alerts SET tries = ?2, next_at = ?3 WHERE id = ?1",
                    )?
                    .execute(params![id, tries, next_at])?;
                Ok(())
            })
            .await
    }

    async fn remove_alert(&self, id: i64) -> Result<(), StoreError> {
        self.logs
            .write(move |connection| {
                connection
                    .prepare_cached("DELETE FROM log_error_alerts WHERE id = ?1")?
                    .execute([id])?;
                Ok(())
            })
            .await
    }

    async fn remove_alerts(&self, slug: &str) -> Result<(), StoreError> {
        let slug = slug.to_owned();
        self.logs
            .write(move |connection| remove_of(connection, &slug))
            .await
    }
}

/// Removes all alerts of a project.
pub(super) fn remove_of(connection: &Connection, slug: &str) -> Result<(), Error> {
    connection
        .prepare_cached(
            "DELETE FROM log_error_alerts WHERE environment IN
                 (SELECT id FROM log_environments WHERE project = ?1)",
        )?
        .execute([slug])?;
    Ok(())
}

fn list_due(
    connection: &Connection,
    now: Millis,
    per_environment: usize,
    limit: usize,
) -> Result<Vec<WaitingAlert>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT a.id, e.project, e.environment, a.fingerprint, a.reason, a.made_at, a.tries,
             a.detail
         FROM (SELECT *, row_number() OVER (PARTITION BY environment ORDER BY next_at, id) AS place
               FROM log_error_alerts WHERE next_at <= ?1) a
         JOIN log_environments e ON e.id = a.environment
         WHERE a.place <= ?2 ORDER BY a.next_at, a.id LIMIT ?3",
    )?;
    let mut rows = statement.query(params![now, count(per_environment), count(limit)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let stored = StoredAlert {
            id: row.get(0)?,
            slug: row.get(1)?,
            environment: row.get(2)?,
            fingerprint: row.get(3)?,
            reason: row.get(4)?,
            made_at: row.get(5)?,
            tries: row.get(6)?,
            detail: row.get(7)?,
        };
        found.push(stored.read()?);
    }
    Ok(found)
}

/// Adds the alerts about groups that were added to. Groups and counts are not written yet.
pub(super) fn add(
    connection: &Connection,
    environment: i64,
    regrouped: &mut Regrouped,
    now: Millis,
) -> Result<(), Error> {
    let mut before = Vec::new();
    let mut hours = connection.prepare_cached(
        "SELECT hour, count FROM log_error_hours
         WHERE environment = ?1 AND fingerprint = ?2 AND hour >= ?3",
    )?;
    for group in &regrouped.groups {
        let mut rows = hours.query(params![environment, group.id.0, counted_from(now)])?;
        while let Some(row) = rows.next()? {
            let number: i64 = row.get(1)?;
            before.push((group.id, row.get(0)?, number.unsigned_abs()));
        }
    }
    let mut budget = connection
        .prepare_cached(
            "SELECT alert_hour, alerts, alerts_left_out FROM log_environments WHERE id = ?1",
        )?
        .query_row([environment], |row| {
            let left_out: i64 = row.get(2)?;
            Ok(AlertBudget {
                hour: row.get(0)?,
                made: row.get(1)?,
                left_out: left_out.unsigned_abs(),
            })
        })?;
    let known = budget;
    let alerts = make_alerts(regrouped, &before, &mut budget, now);
    if budget != known {
        connection
            .prepare_cached(
                "UPDATE log_environments SET alert_hour = ?2, alerts = ?3, alerts_left_out = ?4
                 WHERE id = ?1",
            )?
            .execute(params![
                environment,
                budget.hour,
                budget.made,
                write_number(budget.left_out)
            ])?;
    }
    let mut add = connection.prepare_cached(
        "INSERT INTO log_error_alerts (environment, fingerprint, reason, made_at, next_at, detail)
         VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
    )?;
    for alert in alerts {
        let NewAlert {
            group: ErrorGroupId(fingerprint),
            reason,
            detail,
        } = alert;
        let detail = write_alert_detail(&detail);
        add.execute(params![
            environment,
            fingerprint,
            reason.as_str(),
            now,
            detail
        ])?;
    }
    Ok(())
}
