//! Offers of projects to one of their developers.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::people::{
    EndedHandover, HandedOn, Handover, NewHandover, OfferedHandover, Right,
};
use platform_domain::player::PlayerState;
use platform_protocol::people::Role;
use platform_store::{HandoverStore, StoreError};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::rows::uuid;
use super::store::SqliteStore;
use super::{deploy_tokens, people, player_rows, webhooks};

#[async_trait]
impl HandoverStore for SqliteStore {
    async fn offer_handover(
        &self,
        slug: &str,
        new: NewHandover,
        by: By,
    ) -> Result<OfferedHandover, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| offer(connection, &slug, new, by))
            .await
    }

    async fn find_handover(&self, slug: &str, now: Millis) -> Result<Option<Handover>, StoreError> {
        let found = self.main.read(|connection| find(connection, slug, now))?;
        Ok(found.map(|found| found.handover))
    }

    async fn end_handover(
        &self,
        slug: &str,
        right: Right,
        by: By,
        now: Millis,
    ) -> Result<EndedHandover, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| end(connection, &slug, right, by, now))
            .await
    }

    async fn accept_handover(
        &self,
        slug: &str,
        heir: Uuid,
        most: u32,
        by: By,
        now: Millis,
    ) -> Result<HandedOn, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| accept(connection, &slug, (heir, most), by, now))
            .await
    }
}

/// An offer that counts, with the row of its project and who made it.
struct Found {
    project: i64,
    owner: Uuid,
    handover: Handover,
}

fn find(connection: &Connection, slug: &str, now: Millis) -> Result<Option<Found>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT p.id, h.owner, h.heir, o.username, h.offered_at, h.expires_at
         FROM projects p
         JOIN handovers h ON h.project = p.id AND h.owner = p.owner
         JOIN members m ON m.project = p.id AND m.player = h.heir AND m.role = ?3
         JOIN players o ON o.id = h.heir
         JOIN players w ON w.id = h.owner AND w.suspended_at IS NULL
         WHERE p.slug = ?1 AND p.removed_at IS NULL AND p.deleted_at IS NULL
             AND h.expires_at > ?2",
    )?;
    let mut rows = statement.query(params![slug, now, Role::Developer.as_str()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let (owner, heir): (Vec<u8>, Vec<u8>) = (row.get(1)?, row.get(2)?);
    Ok(Some(Found {
        project: row.get(0)?,
        owner: uuid(&owner, "handovers", "owner", || slug.to_owned())?,
        handover: Handover {
            heir: uuid(&heir, "handovers", "heir", || slug.to_owned())?,
            username: row.get(3)?,
            offered_at: row.get(4)?,
            expires_at: row.get(5)?,
        },
    }))
}

/// Writes an event about the offer of a project, with its owner and the heir.
fn add_event(
    connection: &Connection,
    (kind, slug): (AuditKind, &str),
    (owner, heir): (Uuid, Uuid),
    by: By,
    now: Millis,
) -> Result<(), Error> {
    let event = Entry::of(kind, now)
        .player(owner)
        .other(heir)
        .subject(slug)
        .by(by);
    audit::add(connection, &event)
}

fn is_account(connection: &Connection, player: Uuid) -> Result<bool, Error> {
    let found = player_rows::find_player(connection, player)?;
    Ok(found.is_some_and(|found| found.state == PlayerState::Account))
}

fn offer(
    connection: &Connection,
    slug: &str,
    new: NewHandover,
    by: By,
) -> Result<OfferedHandover, Error> {
    let (owner, heir) = (new.owner, new.heir);
    let Some(project) = people::owned(connection, slug, owner)? else {
        return Ok(OfferedHandover::NotOwner);
    };
    let member = people::member(connection, project, heir)?;
    let Some(member) = member.filter(|member| member.role == Role::Developer) else {
        return Ok(OfferedHandover::NotADeveloper);
    };
    if !is_account(connection, heir)? {
        return Ok(OfferedHandover::Suspended);
    }
    connection
        .prepare_cached(
            "INSERT INTO handovers (project, owner, heir, offered_at, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (project) DO UPDATE SET owner = excluded.owner, heir = excluded.heir,
                 offered_at = excluded.offered_at, expires_at = excluded.expires_at",
        )?
        .execute(params![
            project,
            owner.as_bytes(),
            heir.as_bytes(),
            new.offered_at,
            new.expires_at
        ])?;
    let kind = AuditKind::HandoverOffered;
    add_event(connection, (kind, slug), (owner, heir), by, new.offered_at)?;
    Ok(OfferedHandover::Done(Handover {
        heir,
        username: member.username,
        offered_at: new.offered_at,
        expires_at: new.expires_at,
    }))
}

fn end(
    connection: &Connection,
    slug: &str,
    right: Right,
    by: By,
    now: Millis,
) -> Result<EndedHandover, Error> {
    if let Right::Owner(owner) = right
        && people::owned(connection, slug, owner)?.is_none()
    {
        return Ok(EndedHandover::NotOwner);
    }
    let found = find(connection, slug, now)?;
    let may = |found: &Found| right.holds(Some(found.owner), found.handover.heir);
    let Some(found) = found.filter(may) else {
        return Ok(EndedHandover::NotOffered);
    };
    remove_of(connection, found.project)?;
    let kind = match right {
        Right::Member(_) => AuditKind::HandoverDeclined,
        Right::Owner(_) | Right::Administrator => AuditKind::HandoverWithdrawn,
    };
    let between = (found.owner, found.handover.heir);
    add_event(connection, (kind, slug), between, by, now)?;
    Ok(EndedHandover::Done(found.handover))
}

fn accept(
    connection: &Connection,
    slug: &str,
    (heir, most): (Uuid, u32),
    by: By,
    now: Millis,
) -> Result<HandedOn, Error> {
    let found = find(connection, slug, now)?.filter(|found| found.handover.heir == heir);
    let Some(Found { project, owner, .. }) = found else {
        return Ok(HandedOn::NotOffered);
    };
    if !is_account(connection, heir)? {
        return Ok(HandedOn::Suspended);
    }
    let owned: u32 = connection
        .prepare_cached("SELECT count(*) FROM projects WHERE owner = ?1 AND removed_at IS NULL")?
        .query_row([heir.as_bytes()], |row| row.get(0))?;
    if owned >= most {
        return Ok(HandedOn::TooManyProjects);
    }
    connection
        .prepare_cached("UPDATE projects SET owner = ?2 WHERE id = ?1")?
        .execute(params![project, heir.as_bytes()])?;
    people::new_owner(connection, project, heir)?;
    connection
        .prepare_cached(
            "INSERT INTO members (project, player, role, since) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            project,
            owner.as_bytes(),
            Role::Developer.as_str(),
            now
        ])?;
    deploy_tokens::revoke_all(connection, slug, now)?;
    webhooks::remove_of(connection, project)?;
    let kind = AuditKind::ProjectHandedOn;
    add_event(connection, (kind, slug), (owner, heir), by, now)?;
    Ok(HandedOn::Done)
}

/// Removes the offer of a project. Writes no event.
pub(super) fn remove_of(connection: &Connection, project: i64) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM handovers WHERE project = ?1")?
        .execute([project])?;
    Ok(())
}

/// Removes the offer of a project if it is one to this player. Writes no event.
pub(super) fn remove_to(connection: &Connection, project: i64, heir: Uuid) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM handovers WHERE project = ?1 AND heir = ?2")?
        .execute(params![project, heir.as_bytes()])?;
    Ok(())
}
