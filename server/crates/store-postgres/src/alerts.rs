//! Alerts about groups of errors.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::error_alert::{AlertBudget, WaitingAlert, counted_from, make_alerts};
use platform_domain::error_group::{ErrorGroupId, Regrouped};
use platform_store::stored_alerts::{StoredAlert, write_alert_detail};
use platform_store::stored_groups::write_number;
use platform_store::{AlertStore, StoreError};
use tokio_postgres::Row;

use super::error::Error;
use super::rows::{count, get};
use super::store::PostgresStore;
use super::transaction::Transaction;

#[async_trait]
impl AlertStore for PostgresStore {
    async fn list_due_alerts(
        &self,
        now: Millis,
        per_environment: usize,
        limit: usize,
    ) -> Result<Vec<WaitingAlert>, StoreError> {
        let rows = self
            .logs
            .database
            .rows(
                "SELECT a.id, e.project, e.environment, a.fingerprint, a.reason, a.made_at,
                     a.tries, a.detail
                 FROM (SELECT *, row_number() OVER (PARTITION BY environment
                           ORDER BY next_at, id) AS place
                       FROM log_error_alerts WHERE next_at <= $1) a
                 JOIN log_environments e ON e.id = a.environment
                 WHERE a.place <= $2 ORDER BY a.next_at, a.id LIMIT $3",
                &[&now, &count(per_environment), &count(limit)],
            )
            .await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    async fn postpone_alert(&self, id: i64, tries: u16, next_at: Millis) -> Result<(), StoreError> {
        let tries = i16::try_from(tries).unwrap_or(i16::MAX);
        self.logs
            .database
            .write(
                "UPDATE log_error_alerts SET tries = $2, next_at = $3 WHERE id = $1",
                &[&id, &tries, &next_at],
            )
            .await
            .map(drop)
    }

    async fn remove_alert(&self, id: i64) -> Result<(), StoreError> {
        self.logs
            .database
            .write("DELETE FROM log_error_alerts WHERE id = $1", &[&id])
            .await
            .map(drop)
    }

    async fn remove_alerts(&self, slug: &str) -> Result<(), StoreError> {
        self.logs
            .database
            .write(
                "DELETE FROM log_error_alerts WHERE environment IN
                     (SELECT id FROM log_environments WHERE project = $1)",
                &[&slug],
            )
            .await
            .map(drop)
    }
}

fn read(row: &Row) -> Result<WaitingAlert, Error> {
    let stored = StoredAlert {
        id: get(row, 0)?,
        slug: get(row, 1)?,
        environment: get(row, 2)?,
        fingerprint: get(row, 3)?,
        reason: get(row, 4)?,
        made_at: get(row, 5)?,
        tries: get(row, 6)?,
        detail: get(row, 7)?,
    };
    Ok(stored.read()?)
}

/// Adds the alerts about groups that were added to. Groups and counts are not written yet, and the
/// environment is locked.
pub(super) async fn add(
    transaction: &Transaction,
    environment: i64,
    regrouped: &mut Regrouped,
    now: Millis,
) -> Result<(), Error> {
    let ids: Vec<Vec<u8>> = regrouped
        .groups
        .iter()
        .map(|group| group.id.0.to_vec())
        .collect();
    let rows = transaction
        .rows(
            "SELECT fingerprint, hour, count FROM log_error_hours
             WHERE environment = $1 AND fingerprint = ANY($2) AND hour >= $3",
            &[&environment, &ids, &counted_from(now)],
        )
        .await?;
    let before = rows.iter().map(|row| {
        let id: &[u8] = get(row, 0)?;
        let id = ErrorGroupId(id.try_into().map_err(|_| Error::Changed)?);
        Ok((id, get(row, 1)?, get::<i64>(row, 2)?.unsigned_abs()))
    });
    let before = before.collect::<Result<Vec<_>, Error>>()?;
    let row = transaction
        .row(
            "SELECT alert_hour, alerts, alerts_left_out FROM log_environments WHERE id = $1",
            &[&environment],
        )
        .await?
        .ok_or(Error::Changed)?;
    let mut budget = AlertBudget {
        hour: get(&row, 0)?,
        made: get::<i64>(&row, 1)?.try_into().unwrap_or(u32::MAX),
        left_out: get::<i64>(&row, 2)?.unsigned_abs(),
    };
    let known = budget;
    let alerts = make_alerts(regrouped, &before, &mut budget, now);
    if budget != known {
        transaction
            .execute(
                "UPDATE log_environments SET alert_hour = $2, alerts = $3, alerts_left_out = $4
                 WHERE id = $1",
                &[
                    &environment,
                    &budget.hour,
                    &i64::from(budget.made),
                    &write_number(budget.left_out),
                ],
            )
            .await?;
    }
    if alerts.is_empty() {
        return Ok(());
    }
    let ids: Vec<&[u8]> = alerts.iter().map(|one| one.group.0.as_slice()).collect();
    let reasons: Vec<&str> = alerts.iter().map(|one| one.reason.as_str()).collect();
    let details = alerts.iter().map(|one| write_alert_detail(&one.detail));
    let details: Vec<String> = details.collect();
    transaction
        .execute(
            "INSERT INTO log_error_alerts
                 (environment, fingerprint, reason, made_at, next_at, detail)
             SELECT $1, fingerprint, reason, $2, $2, detail
             FROM unnest($3::bytea[], $4::text[], $5::text[]) AS new (fingerprint, reason, detail)",
            &[&environment, &now, &ids, &reasons, &details],
        )
        .await
        .map(drop)
}
