//! The log of security events.

use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::uuid;
use crate::clock::Millis;
use crate::domain::audit::{AuditEvent, AuditKind, AuditQuery};
use crate::store::StoreError;

/// An event that is about to be written.
pub(super) struct Entry<'a> {
    kind: AuditKind,
    at: Millis,
    player: Option<Uuid>,
    other: Option<Uuid>,
    subject: Option<&'a str>,
}

impl<'a> Entry<'a> {
    pub(super) const fn of(kind: AuditKind, at: Millis) -> Self {
        Self {
            kind,
            at,
            player: None,
            other: None,
            subject: None,
        }
    }

    pub(super) const fn player(mut self, player: Uuid) -> Self {
        self.player = Some(player);
        self
    }

    pub(super) const fn other(mut self, other: Uuid) -> Self {
        self.other = Some(other);
        self
    }

    pub(super) const fn subject(mut self, subject: &'a str) -> Self {
        self.subject = Some(subject);
        self
    }
}

/// Writes an event, in the transaction of what it tells of.
pub(super) fn add(connection: &Connection, entry: &Entry<'_>) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "INSERT INTO audit_events (at, kind, player, other, subject)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            entry.at,
            entry.kind.as_str(),
            entry.player.as_ref().map(Uuid::as_bytes),
            entry.other.as_ref().map(Uuid::as_bytes),
            entry.subject
        ])?;
    Ok(())
}

pub(super) fn list_audit_events(
    connection: &Connection,
    query: AuditQuery,
) -> Result<Vec<AuditEvent>, StoreError> {
    let before = query.before.unwrap_or(i64::MAX);
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut events = Vec::new();
    let mut collect = |mut rows: rusqlite::Rows<'_>| -> Result<(), StoreError> {
        while let Some(row) = rows.next()? {
            events.push(event(row)?);
        }
        Ok(())
    };
    match query.player {
        Some(player) => {
            let mut statement = connection.prepare_cached(
                "SELECT id, at, kind, player, other, subject FROM audit_events
                 WHERE id IN (SELECT id FROM audit_events WHERE player = ?1
                              UNION SELECT id FROM audit_events WHERE other = ?1) AND id < ?2
                 ORDER BY id DESC LIMIT ?3",
            )?;
            collect(statement.query(params![player.as_bytes(), before, limit])?)?;
        }
        None => {
            let mut statement = connection.prepare_cached(
                "SELECT id, at, kind, player, other, subject FROM audit_events
                 WHERE id < ?1 ORDER BY id DESC LIMIT ?2",
            )?;
            collect(statement.query([before, limit])?)?;
        }
    }
    Ok(events)
}

fn event(row: &Row<'_>) -> Result<AuditEvent, StoreError> {
    let id: i64 = row.get(0)?;
    let player = |index, column| -> Result<Option<Uuid>, StoreError> {
        let bytes: Option<Vec<u8>> = row.get(index)?;
        bytes
            .map(|bytes| uuid(&bytes, "audit_events", column, || id.to_string()))
            .transpose()
    };
    let kind: String = row.get(2)?;
    Ok(AuditEvent {
        id,
        at: row.get(1)?,
        kind: AuditKind::from_name(&kind).ok_or_else(|| StoreError::Corrupt {
            table: "audit_events",
            column: "kind",
            row: id.to_string(),
        })?,
        player: player(3, "player")?,
        other: player(4, "other")?,
        subject: row.get(5)?,
    })
}
