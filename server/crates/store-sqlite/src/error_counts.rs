//! How many errors and warnings each deployment had in each hour.

use platform_domain::clock::Millis;
use platform_domain::counting::{HOUR, Span};
use platform_domain::log::{ERRORS_KNOWN, ErrorCount, ErrorQuery, NewLogRecords};
use platform_protocol::log::LogLevel;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::error::Error;
use super::log_rows::find_environment;
use super::rows;

/// Counts the errors and warnings of one request.
pub(super) fn add(
    connection: &Connection,
    environment: i64,
    new: &NewLogRecords,
) -> Result<(), Error> {
    let of = |level| -> i64 {
        let entries = new.entries.iter().filter(|entry| entry.level == level);
        entries.map(|entry| i64::from(entry.count)).sum()
    };
    let (errors, warnings) = (of(LogLevel::Error), of(LogLevel::Warn));
    if errors + warnings == 0 {
        return Ok(());
    }
    let hour = Span::Hour.start(new.received_at);
    let deployment: &[u8] = new.deployment.as_ref().map_or(&[], |id| id.as_bytes());
    let counted = connection
        .prepare_cached(
            "UPDATE log_error_counts
             SET errors = errors + ?4, warnings = warnings + ?5, last_at = max(last_at, ?6)
             WHERE environment = ?1 AND hour = ?2 AND deployment = ?3",
        )?
        .execute(params![
            environment,
            hour,
            deployment,
            errors,
            warnings,
            new.received_at
        ])?;
    if counted > 0 {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO log_error_counts
                 (environment, hour, deployment, errors, warnings, last_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            environment,
            hour,
            deployment,
            errors,
            warnings,
            new.received_at
        ])?;
    // Old rows are removed when a new one is added, so their number stays bounded.
    connection
        .prepare_cached("DELETE FROM log_error_counts WHERE environment = ?1 AND hour < ?2")?
        .execute([environment, hour - ERRORS_KNOWN])?;
    Ok(())
}

/// The errors and warnings of an environment by deployment. The deployment with the latest ones
/// comes first.
pub(super) fn list(connection: &Connection, query: &ErrorQuery) -> Result<Vec<ErrorCount>, Error> {
    let Some(environment) = find_environment(connection, &query.slug, query.environment)? else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(
        "SELECT deployment, sum(errors), sum(warnings), max(last_at)
         FROM log_error_counts WHERE environment = ?1 AND hour >= ?2 AND hour < ?3
         GROUP BY deployment ORDER BY max(last_at) DESC LIMIT ?4",
    )?;
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let from = Span::Hour.start(query.from);
    let to = Span::Hour.start(query.to.saturating_add(HOUR - 1));
    let mut rows = statement.query(params![environment, from, to, limit])?;
    let mut counts = Vec::new();
    while let Some(row) = rows.next()? {
        let deployment: Vec<u8> = row.get(0)?;
        let number =
            |index| -> rusqlite::Result<u64> { Ok(row.get::<_, i64>(index)?.unsigned_abs()) };
        let last_at: Millis = row.get(3)?;
        counts.push(ErrorCount {
            deployment: deployment_id(&deployment, last_at)?,
            errors: number(1)?,
            warnings: number(2)?,
            last_at,
        });
    }
    Ok(counts)
}

fn deployment_id(bytes: &[u8], last_at: Millis) -> Result<Option<Uuid>, Error> {
    if bytes.is_empty() {
        return Ok(None);
    }
    rows::uuid(bytes, "log_error_counts", "deployment", || {
        last_at.to_string()
    })
    .map(Some)
}
