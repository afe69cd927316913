//! The log of security events.

use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::uuid;
use crate::clock::Millis;
use crate::domain::audit::{Actor, ActorKind, AuditEvent, AuditKind, AuditQuery};
use crate::store::StoreError;

/// [`Actor::Operator`], as it is kept.
const OPERATOR: &str = "operator";
/// [`Actor::Admin`], as it is kept, with the player in another column.
const ADMIN: &str = "admin";

/// An event that is about to be written.
pub(super) struct Entry<'a> {
    kind: AuditKind,
    at: Millis,
    player: Option<Uuid>,
    other: Option<Uuid>,
    subject: Option<&'a str>,
    actor: Actor,
}

impl<'a> Entry<'a> {
    pub(super) const fn of(kind: AuditKind, at: Millis) -> Self {
        Self {
            kind,
            at,
            player: None,
            other: None,
            subject: None,
            actor: Actor::Own,
        }
    }

    pub(super) const fn by(mut self, actor: Actor) -> Self {
        self.actor = actor;
        self
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
    let (actor, admin) = match &entry.actor {
        Actor::Own => (None, None),
        Actor::Operator => (Some(OPERATOR), None),
        Actor::Admin(admin) => (Some(ADMIN), Some(admin.as_bytes())),
    };
    connection
        .prepare_cached(
            "INSERT INTO audit_events (at, kind, player, other, subject, actor, admin)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            entry.at,
            entry.kind.as_str(),
            entry.player.as_ref().map(Uuid::as_bytes),
            entry.other.as_ref().map(Uuid::as_bytes),
            entry.subject,
            actor,
            admin
        ])?;
    Ok(())
}

pub(super) fn list_audit_events(
    connection: &Connection,
    query: AuditQuery,
) -> Result<Vec<AuditEvent>, StoreError> {
    let before = query.before.unwrap_or(i64::MAX);
    let kind = query.kind.map(AuditKind::as_str);
    let actor = query.actor.map(ActorKind::as_str);
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
                "SELECT id, at, kind, player, other, subject, actor, admin FROM audit_events
                 WHERE id IN (SELECT id FROM audit_events WHERE player = ?1
                              UNION SELECT id FROM audit_events WHERE other = ?1
                              UNION SELECT id FROM audit_events WHERE admin = ?1) AND id < ?2
                   AND (?4 IS NULL OR kind = ?4) AND (?5 IS NULL OR ifnull(actor, 'self') = ?5)
                 ORDER BY id DESC LIMIT ?3",
            )?;
            collect(statement.query(params![player.as_bytes(), before, limit, kind, actor])?)?;
        }
        None => {
            // Every filter that is set is a condition of its own, so that an
            // index answers it.
            let kind_is = kind.map_or("?3 IS NULL", |_| "kind = ?3");
            let actor_is = match query.actor {
                None => "?4 IS NULL",
                Some(ActorKind::Own) => "actor IS NULL AND ?4 IS NOT NULL",
                Some(_) => "actor = ?4",
            };
            let mut statement = connection.prepare_cached(&format!(
                "SELECT id, at, kind, player, other, subject, actor, admin FROM audit_events
                 WHERE id < ?1 AND {kind_is} AND {actor_is}
                 ORDER BY id DESC LIMIT ?2",
            ))?;
            collect(statement.query(params![before, limit, kind, actor])?)?;
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
    let actor: Option<String> = row.get(6)?;
    let actor = match (actor.as_deref(), player(7, "admin")?) {
        (None, None) => Actor::Own,
        (Some(OPERATOR), None) => Actor::Operator,
        (Some(ADMIN), Some(admin)) => Actor::Admin(admin),
        _ => {
            return Err(StoreError::Corrupt {
                table: "audit_events",
                column: "actor",
                row: id.to_string(),
            });
        }
    };
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
        actor,
    })
}
