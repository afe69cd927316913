//! The log of security events.

use async_trait::async_trait;
use platform_domain::audit::{
    Actor, ActorKind, AuditEvent, AuditKind, AuditQuery, By, GIVEN_MILLIS, ROUTINE_MILLIS, Refused,
    SOURCE_MILLIS,
};
use platform_domain::clock::Millis;
use platform_domain::node::Topic;
use platform_store::{AuditStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::Value;
use super::error::Error;
use super::rows::{count, get};
use super::store::PostgresStore;
use super::transaction::Transaction;

#[async_trait]
impl AuditStore for PostgresStore {
    async fn list_audit_events(&self, query: AuditQuery) -> Result<Vec<AuditEvent>, StoreError> {
        let before = query.before.unwrap_or(i64::MAX);
        let after = query.after.unwrap_or(i64::MIN);
        let kind = query.kind.map(AuditKind::as_str);
        let actor = query.actor.map(ActorKind::as_str);
        let limit = count(query.limit);
        let mut values: Vec<Value<'_>> = vec![&before, &after, &limit];
        if let Some(kind) = &kind {
            values.push(kind);
        }
        if let Some(actor) = actor.as_ref().filter(|_| has_name(query.actor)) {
            values.push(actor);
        }
        if let Some(player) = &query.player {
            values.push(player);
        }
        let sql = list(&query);
        let mut rows = self.main.rows(&sql, &values).await?;
        if query.after.is_some() && !rows.is_empty() {
            rows = transact!(self.main, transaction => follow(&transaction, &sql, &values))?;
        }
        let events = rows.iter().map(event);
        Ok(events.collect::<Result<_, _>>()?)
    }

    async fn note_refusal(&self, refused: Refused, by: By, now: Millis) -> Result<(), StoreError> {
        let mut event = Entry::of(refused.kind, now).detail(&refused.detail).by(&by);
        event.player = refused.player;
        event.subject = refused.subject.as_deref();
        let (actor, admin, member) = actor_columns(event.by.actor);
        self.main
            .write(INSERT, &event.values(&actor, &admin, &member))
            .await
            .map(drop)
    }

    async fn note_project_act(
        &self,
        kind: AuditKind,
        act: (&str, &str),
        by: By,
        now: Millis,
    ) -> Result<(), StoreError> {
        transact!(self.main, transaction => add_of_project(&transaction, kind, act, &by, now))
    }

    async fn sweep_audit_events(&self, now: Millis, limit: usize) -> Result<usize, StoreError> {
        let limit = count(limit);
        let mut swept = 0;
        for kind in AuditKind::ROUTINE {
            // Ids are ordered by time, and there is no index on both kind and time.
            let rows = self
                .main
                .write(
                    "DELETE FROM audit_events WHERE id = ANY(ARRAY(
                         SELECT id FROM audit_events WHERE kind = $1 AND id <= (
                             SELECT id FROM audit_events WHERE at <= $2 ORDER BY at DESC LIMIT 1)
                         ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED)) RETURNING 1",
                    &[&kind.as_str(), &(now - ROUTINE_MILLIS), &limit],
                )
                .await?;
            swept += rows.len();
        }
        let rows = self
            .main
            .write(
                "UPDATE audit_events SET network = NULL, request = NULL WHERE id = ANY(ARRAY(
                     SELECT id FROM audit_events WHERE network IS NOT NULL AND at <= $1
                     LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1",
                &[&(now - SOURCE_MILLIS), &limit],
            )
            .await?;
        Ok(swept + rows.len())
    }
}

/// [`Actor::Operator`] as it is stored.
const OPERATOR: &str = "operator";
/// [`Actor::Admin`] as it is stored; the player is in another column.
const ADMIN: &str = "admin";

const COLUMNS: &str =
    "id, at, kind, player, other, subject, actor, admin, detail, network, request, member";

const INSERT: &str = "INSERT INTO audit_events
         (at, kind, player, other, subject, actor, admin, detail, network, request, member)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

/// An event to be written.
pub(super) struct Entry<'a> {
    kind: AuditKind,
    kind_name: &'static str,
    at: Millis,
    player: Option<Uuid>,
    other: Option<Uuid>,
    subject: Option<&'a str>,
    detail: Option<&'a str>,
    by: By,
    network: Option<String>,
    request: Option<String>,
}

impl<'a> Entry<'a> {
    pub(super) fn of(kind: AuditKind, at: Millis) -> Self {
        Self {
            kind,
            kind_name: kind.as_str(),
            at,
            player: None,
            other: None,
            subject: None,
            detail: None,
            by: Actor::Own.into(),
            network: None,
            request: None,
        }
    }

    pub(super) fn by(mut self, by: &By) -> Self {
        let source = by.source.as_ref();
        self.network = source.map(|source| source.network.clone());
        self.request = source.map(|source| source.request.clone());
        self.by = by.clone();
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

    pub(super) const fn detail(mut self, detail: &'a str) -> Self {
        self.detail = Some(detail);
        self
    }

    /// Returns the values for [`INSERT`].
    fn values<'v>(
        &'v self,
        actor: &'v Option<&'static str>,
        admin: &'v Option<Uuid>,
        member: &'v Option<Uuid>,
    ) -> [Value<'v>; 11] {
        [
            &self.at,
            &self.kind_name,
            &self.player,
            &self.other,
            &self.subject,
            actor,
            admin,
            &self.detail,
            &self.network,
            &self.request,
            member,
        ]
    }
}

/// Returns the values for the columns `actor`, `admin` and `member`.
const fn actor_columns(actor: Actor) -> (Option<&'static str>, Option<Uuid>, Option<Uuid>) {
    match actor {
        Actor::Own => (None, None, None),
        Actor::Operator => (Some(OPERATOR), None, None),
        Actor::Admin(admin) => (Some(ADMIN), Some(admin), None),
        Actor::Member(member) => (None, None, Some(member)),
    }
}

/// Writes an event, in the transaction of the act itself, and raises the version of what it changes.
pub(super) async fn add(transaction: &Transaction, entry: &Entry<'_>) -> Result<(), Error> {
    if let Some(topic) = Topic::of(entry.kind, entry.player, entry.subject) {
        transaction.changes(topic);
    }
    let (actor, admin, member) = actor_columns(entry.by.actor);
    transaction
        .execute(INSERT, &entry.values(&actor, &admin, &member))
        .await
        .map(drop)
}

/// Returns the owner of a project; `None` if it has none, or does not exist.
pub(super) async fn owner(transaction: &Transaction, slug: &str) -> Result<Option<Uuid>, Error> {
    let row = transaction
        .row(
            "SELECT owner FROM projects WHERE slug = $1 AND removed_at IS NULL",
            &[&slug],
        )
        .await?;
    row.as_ref().map_or(Ok(None), |row| get(row, 0))
}

/// Writes an event of a project, with its owner as the player, its slug and a detail.
pub(super) async fn add_of_project(
    transaction: &Transaction,
    kind: AuditKind,
    (slug, detail): (&str, &str),
    by: &By,
    now: Millis,
) -> Result<(), Error> {
    let owner = owner(transaction, slug).await?;
    // The platform deploys its own demo at every start: no event.
    if owner.is_none() && *by == By::from(Actor::Own) {
        if let Some(topic) = Topic::of(kind, None, Some(slug)) {
            transaction.changes(topic);
        }
        return Ok(());
    }
    let detail = by.detail(detail);
    let mut event = Entry::of(kind, now).subject(slug).detail(&detail).by(by);
    event.player = owner;
    add(transaction, &event).await
}

/// Writes that a token for a project's test player was issued, unless the last hour already has the
/// same event: programs request these tokens often. The caller has locked the project.
pub(super) async fn add_given(
    transaction: &Transaction,
    (slug, detail): (&str, &str),
    by: &By,
    now: Millis,
) -> Result<(), Error> {
    let owner = owner(transaction, slug).await?;
    let (actor, admin, member) = actor_columns(by.actor);
    // The kind is written in the SQL text, so that the index on these events is used.
    let known = transaction
        .row(
            "SELECT 1 FROM audit_events
             WHERE kind = 'test-token-given' AND subject = $1 AND detail = $2
               AND at > $3 AND at <= $4 AND player IS NOT DISTINCT FROM $5
               AND actor IS NOT DISTINCT FROM $6 AND admin IS NOT DISTINCT FROM $7
               AND member IS NOT DISTINCT FROM $8 LIMIT 1",
            &[
                &slug,
                &detail,
                &now.saturating_sub(GIVEN_MILLIS),
                &now,
                &owner,
                &actor,
                &admin,
                &member,
            ],
        )
        .await?;
    if known.is_some() {
        return Ok(());
    }
    let kind = AuditKind::TestTokenGiven;
    add_of_project(transaction, kind, (slug, detail), by, now).await
}

/// Reads events for a reader that will later continue after the last of them. Ids are assigned
/// before the commit, so an event with a smaller id may become visible after one with a larger id.
/// The lock waits until all assigned ids are committed, and prevents new ones meanwhile.
async fn follow(
    transaction: &Transaction,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Vec<Row>, Error> {
    transaction
        .execute("LOCK TABLE audit_events IN SHARE MODE", &[])
        .await?;
    transaction.rows(sql, values).await
}

/// Whether the column `actor` has a name for this kind of actor.
const fn has_name(actor: Option<ActorKind>) -> bool {
    matches!(actor, Some(ActorKind::Operator | ActorKind::Admin))
}

/// Returns the query for events. Every filter that is set is a separate condition, so that an index
/// can be used.
fn list(query: &AuditQuery) -> String {
    // A reader that continues after an event wants the next ones, not the newest.
    let order = query.after.map_or("DESC", |_| "ASC");
    let mut next = 4;
    let mut place = || {
        next += 1;
        next - 1
    };
    let kind = query
        .kind
        .map_or_else(String::new, |_| format!("AND kind = ${}", place()));
    let actor = match query.actor {
        None => String::new(),
        Some(ActorKind::Own) => "AND actor IS NULL AND member IS NULL".to_owned(),
        Some(ActorKind::Member) => "AND member IS NOT NULL".to_owned(),
        Some(ActorKind::Operator | ActorKind::Admin) => format!("AND actor = ${}", place()),
    };
    let part = |condition: &str| {
        format!(
            "(SELECT {COLUMNS} FROM audit_events
              WHERE id < $1 AND id > $2 {kind} {actor} {condition} ORDER BY id {order} LIMIT $3)"
        )
    };
    if query.player.is_none() {
        return part("");
    }
    let player = place();
    let parts = ["player", "other", "admin", "member"]
        .map(|column| part(&format!("AND {column} = ${player}")));
    format!("{} ORDER BY id {order} LIMIT $3", parts.join(" UNION "))
}

fn event(row: &Row) -> Result<AuditEvent, Error> {
    let id: i64 = get(row, 0)?;
    let corrupt = |column| StoreError::Corrupt {
        table: "audit_events",
        column,
        row: id.to_string(),
    };
    let actor: Option<&str> = get(row, 6)?;
    let actor = match (actor, get(row, 7)?, get(row, 11)?) {
        (None, None, None) => Actor::Own,
        (None, None, Some(member)) => Actor::Member(member),
        (Some(OPERATOR), None, None) => Actor::Operator,
        (Some(ADMIN), Some(admin), None) => Actor::Admin(admin),
        _ => return Err(corrupt("actor").into()),
    };
    Ok(AuditEvent {
        id,
        at: get(row, 1)?,
        kind: AuditKind::from_name(get(row, 2)?).ok_or_else(|| corrupt("kind"))?,
        player: get(row, 3)?,
        other: get(row, 4)?,
        subject: get(row, 5)?,
        detail: get(row, 8)?,
        actor,
        network: get(row, 9)?,
        request: get(row, 10)?,
    })
}
