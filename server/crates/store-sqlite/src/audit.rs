//! The log of security events.

use async_trait::async_trait;
use platform_domain::audit::{
    Actor, ActorKind, AuditEvent, AuditKind, AuditQuery, By, GIVEN_MILLIS, ROUTINE_MILLIS, Refused,
    SOURCE_MILLIS,
};
use platform_domain::clock::Millis;
use platform_domain::node::Topic;
use platform_store::{AuditStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::error::Error;
use super::nodes;
use super::rows::{count, uuid};
use super::store::SqliteStore;

#[async_trait]
impl AuditStore for SqliteStore {
    async fn list_audit_events(&self, query: AuditQuery) -> Result<Vec<AuditEvent>, StoreError> {
        self.main
            .read_much(move |connection| list_audit_events(connection, query))
            .await
    }

    async fn note_refusal(&self, refused: Refused, by: By, now: Millis) -> Result<(), StoreError> {
        self.main
            .write(move |connection| add_refusal(connection, &refused, by, now))
            .await
    }

    async fn note_project_act(
        &self,
        kind: AuditKind,
        (slug, detail): (&str, &str),
        by: By,
        now: Millis,
    ) -> Result<(), StoreError> {
        let (slug, detail) = (slug.to_owned(), detail.to_owned());
        self.main
            .write(move |connection| add_of_project(connection, kind, (&slug, &detail), by, now))
            .await
    }

    async fn sweep_audit_events(&self, now: Millis, limit: usize) -> Result<usize, StoreError> {
        self.main
            .write(move |connection| sweep(connection, now, count(limit)))
            .await
    }
}

/// [`Actor::Operator`] as it is stored.
const OPERATOR: &str = "operator";
/// [`Actor::Admin`] as it is stored; the player is in another column.
const ADMIN: &str = "admin";

/// The columns that [`event`] reads.
const COLUMNS: &str =
    "id, at, kind, player, other, subject, actor, admin, detail, network, request, member";

/// An event to be written.
pub(super) struct Entry<'a> {
    kind: AuditKind,
    at: Millis,
    player: Option<Uuid>,
    other: Option<Uuid>,
    subject: Option<&'a str>,
    detail: Option<&'a str>,
    by: By,
}

impl<'a> Entry<'a> {
    pub(super) fn of(kind: AuditKind, at: Millis) -> Self {
        Self {
            kind,
            at,
            player: None,
            other: None,
            subject: None,
            detail: None,
            by: Actor::Own.into(),
        }
    }

    pub(super) fn by(mut self, by: impl Into<By>) -> Self {
        self.by = by.into();
        self
    }

    pub(super) fn player(mut self, player: Uuid) -> Self {
        self.player = Some(player);
        self
    }

    pub(super) fn other(mut self, other: Uuid) -> Self {
        self.other = Some(other);
        self
    }

    pub(super) fn subject(mut self, subject: &'a str) -> Self {
        self.subject = Some(subject);
        self
    }

    pub(super) fn detail(mut self, detail: &'a str) -> Self {
        self.detail = Some(detail);
        self
    }
}

/// The values for the columns `actor`, `admin` and `member`.
type ActorColumns<'a> = (
    Option<&'static str>,
    Option<&'a [u8; 16]>,
    Option<&'a [u8; 16]>,
);

fn actor_columns(actor: &Actor) -> ActorColumns<'_> {
    match actor {
        Actor::Own => (None, None, None),
        Actor::Operator => (Some(OPERATOR), None, None),
        Actor::Admin(admin) => (Some(ADMIN), Some(admin.as_bytes()), None),
        Actor::Member(member) => (None, None, Some(member.as_bytes())),
    }
}

/// Writes an event, in the transaction of the act itself, and raises the version of what it changes.
pub(super) fn add(connection: &Connection, entry: &Entry<'_>) -> Result<(), Error> {
    let (actor, admin, member) = actor_columns(&entry.by.actor);
    let source = entry.by.source.as_ref();
    connection
        .prepare_cached(
            "INSERT INTO audit_events
                 (at, kind, player, other, subject, actor, admin, detail, network, request, member)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            entry.at,
            entry.kind.as_str(),
            entry.player.as_ref().map(Uuid::as_bytes),
            entry.other.as_ref().map(Uuid::as_bytes),
            entry.subject,
            actor,
            admin,
            entry.detail,
            source.map(|source| source.network.as_str()),
            source.map(|source| source.request.as_str()),
            member
        ])?;
    match Topic::of(entry.kind, entry.player, entry.subject) {
        Some(topic) => nodes::raise(connection, &topic),
        None => Ok(()),
    }
}

/// Returns the owner of a project; `None` if it has none, or does not exist.
pub(super) fn owner(connection: &Connection, slug: &str) -> Result<Option<Uuid>, Error> {
    let owner: Option<Option<Vec<u8>>> = connection
        .prepare_cached("SELECT owner FROM projects WHERE slug = ?1 AND removed_at IS NULL")?
        .query_row([slug], |row| row.get(0))
        .optional()?;
    owner
        .flatten()
        .map(|bytes| uuid(&bytes, "projects", "owner", || slug.to_owned()))
        .transpose()
}

/// Writes an event of a project, with its owner as the player, its slug and a detail.
pub(super) fn add_of_project(
    connection: &Connection,
    kind: AuditKind,
    (slug, detail): (&str, &str),
    by: By,
    now: Millis,
) -> Result<(), Error> {
    let owner = owner(connection, slug)?;
    // The platform deploys its own demo at every start: no event.
    if owner.is_none() && by == By::from(Actor::Own) {
        return match Topic::of(kind, None, Some(slug)) {
            Some(topic) => nodes::raise(connection, &topic),
            None => Ok(()),
        };
    }
    let detail = by.detail(detail);
    let mut event = Entry::of(kind, now).subject(slug).detail(&detail).by(by);
    if let Some(owner) = owner {
        event = event.player(owner);
    }
    add(connection, &event)
}

/// Writes that a token for a project's test player was issued, unless the last hour already has the
/// same event: programs request these tokens often.
pub(super) fn add_given(
    connection: &Connection,
    (slug, detail): (&str, &str),
    by: By,
    now: Millis,
) -> Result<(), Error> {
    let owner = owner(connection, slug)?;
    let (actor, admin, member) = actor_columns(&by.actor);
    // The kind is written in the SQL text, so that the index on these events is used.
    let known = connection
        .prepare_cached(
            "SELECT 1 FROM audit_events
             WHERE kind = 'test-token-given' AND subject = ?1 AND detail = ?2
               AND at > ?3 AND at <= ?4 AND player IS ?5 AND actor IS ?6 AND admin IS ?7
               AND member IS ?8",
        )?
        .exists(params![
            slug,
            detail,
            now.saturating_sub(GIVEN_MILLIS),
            now,
            owner.as_ref().map(Uuid::as_bytes),
            actor,
            admin,
            member
        ])?;
    if known {
        return Ok(());
    }
    let kind = AuditKind::TestTokenGiven;
    add_of_project(connection, kind, (slug, detail), by, now)
}

/// Writes that a request was refused.
pub(super) fn add_refusal(
    connection: &Connection,
    refused: &Refused,
    by: By,
    now: Millis,
) -> Result<(), Error> {
    let mut event = Entry::of(refused.kind, now).detail(&refused.detail).by(by);
    event.player = refused.player;
    event.subject = refused.subject.as_deref();
    add(connection, &event)
}

/// Removes routine events that are too old, and the origin of events that are older still, at most
/// `limit` of each.
pub(super) fn sweep(connection: &Connection, now: Millis, limit: i64) -> Result<usize, Error> {
    // Ids are ordered by time, and there is no index on both kind and time.
    let newest_old: Option<i64> = connection
        .prepare_cached("SELECT id FROM audit_events WHERE at <= ?1 ORDER BY at DESC LIMIT 1")?
        .query_row([now - ROUTINE_MILLIS], |row| row.get(0))
        .optional()?;
    let mut swept = 0;
    if let Some(newest_old) = newest_old {
        let mut remove = connection.prepare_cached(
            "DELETE FROM audit_events WHERE id IN
                 (SELECT id FROM audit_events WHERE kind = ?1 AND id <= ?2 ORDER BY id LIMIT ?3)",
        )?;
        for kind in AuditKind::ROUTINE {
            swept += remove.execute(params![kind.as_str(), newest_old, limit])?;
        }
    }
    swept += connection
        .prepare_cached(
            "UPDATE audit_events SET network = NULL, request = NULL WHERE id IN
                 (SELECT id FROM audit_events WHERE network IS NOT NULL AND at <= ?1 LIMIT ?2)",
        )?
        .execute([now - SOURCE_MILLIS, limit])?;
    Ok(swept)
}

pub(super) fn list_audit_events(
    connection: &Connection,
    query: AuditQuery,
) -> Result<Vec<AuditEvent>, Error> {
    let before = query.before.unwrap_or(i64::MAX);
    let after = query.after.unwrap_or(i64::MIN);
    // A reader that continues after an event wants the next ones, not the newest.
    let order = query.after.map_or("DESC", |_| "ASC");
    let kind = query.kind.map(AuditKind::as_str);
    let actor = query.actor.map(ActorKind::as_str);
    // Every filter that is set is a separate condition, so that an index can be used.
    let actor_is = match query.actor {
        None => "?4 IS NULL",
        Some(ActorKind::Own) => "actor IS NULL AND member IS NULL AND ?4 IS NOT NULL",
        Some(ActorKind::Member) => "member IS NOT NULL AND ?4 IS NOT NULL",
        Some(ActorKind::Operator | ActorKind::Admin) => "actor = ?4",
    };
    let kind_is = kind.map_or("?3 IS NULL", |_| "kind = ?3");
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut events = Vec::new();
    let mut collect = |mut rows: rusqlite::Rows<'_>| -> Result<(), Error> {
        while let Some(row) = rows.next()? {
            events.push(event(row)?);
        }
        Ok(())
    };
    match query.player {
        Some(player) => {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM audit_events
                 WHERE id IN (SELECT id FROM audit_events WHERE player = ?6
                              UNION SELECT id FROM audit_events WHERE other = ?6
                              UNION SELECT id FROM audit_events WHERE admin = ?6
                              UNION SELECT id FROM audit_events WHERE member = ?6)
                   AND id < ?1 AND id > ?5 AND {kind_is} AND {actor_is}
                 ORDER BY id {order} LIMIT ?2",
            ))?;
            let player = player.as_bytes();
            collect(statement.query(params![before, limit, kind, actor, after, player])?)?;
        }
        None => {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM audit_events
                 WHERE id < ?1 AND id > ?5 AND {kind_is} AND {actor_is}
                 ORDER BY id {order} LIMIT ?2",
            ))?;
            collect(statement.query(params![before, limit, kind, actor, after])?)?;
        }
    }
    Ok(events)
}

fn event(row: &Row<'_>) -> Result<AuditEvent, Error> {
    let id: i64 = row.get(0)?;
    let player = |index, column| -> Result<Option<Uuid>, Error> {
        let bytes: Option<Vec<u8>> = row.get(index)?;
        bytes
            .map(|bytes| uuid(&bytes, "audit_events", column, || id.to_string()))
            .transpose()
    };
    let kind: String = row.get(2)?;
    let actor: Option<String> = row.get(6)?;
    let actor = match (actor.as_deref(), player(7, "admin")?, player(11, "member")?) {
        (None, None, None) => Actor::Own,
        (None, None, Some(member)) => Actor::Member(member),
        (Some(OPERATOR), None, None) => Actor::Operator,
        (Some(ADMIN), Some(admin), None) => Actor::Admin(admin),
        _ => {
            return Err(StoreError::Corrupt {
                table: "audit_events",
                column: "actor",
                row: id.to_string(),
            }
            .into());
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
        detail: row.get(8)?,
        actor,
        network: row.get(9)?,
        request: row.get(10)?,
    })
}
