//! Offers of projects to one of their developers. Every operation that changes them locks the project's
//! row first, and then, if it counts what a player has, the player's.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::people::{
    EndedHandover, HandedOn, Handover, NewHandover, OfferedHandover, Right,
};
use platform_domain::player::PlayerState;
use platform_protocol::people::Role;
use platform_store::{HandoverStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::rows::get;
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{deploy_tokens, people, players, webhooks};

#[async_trait]
impl HandoverStore for PostgresStore {
    async fn offer_handover(
        &self,
        slug: &str,
        new: NewHandover,
        by: By,
    ) -> Result<OfferedHandover, StoreError> {
        transact!(self.main, transaction => offer(&transaction, slug, new, &by))
    }

    async fn find_handover(&self, slug: &str, now: Millis) -> Result<Option<Handover>, StoreError> {
        let developer = Role::Developer.as_str();
        let row = self.main.row(FIND, &[&slug, &now, &developer]).await?;
        let found = row.as_ref().map(found).transpose()?;
        Ok(found.map(|(_, handover)| handover))
    }

    async fn end_handover(
        &self,
        slug: &str,
        right: Right,
        by: By,
        now: Millis,
    ) -> Result<EndedHandover, StoreError> {
        transact!(self.main, transaction => end(&transaction, slug, right, &by, now))
    }

    async fn accept_handover(
        &self,
        slug: &str,
        heir: Uuid,
        most: u32,
        by: By,
        now: Millis,
    ) -> Result<HandedOn, StoreError> {
        transact!(self.main, transaction => accept(&transaction, slug, (heir, most), &by, now))
    }
}

/// Finds an offer that counts.
const FIND: &str = "SELECT h.owner, h.heir, o.username, h.offered_at, h.expires_at
    FROM projects p
    JOIN handovers h ON h.project = p.id AND h.owner = p.owner
    JOIN members m ON m.project = p.id AND m.player = h.heir AND m.role = $3
    JOIN players o ON o.id = h.heir
    JOIN players w ON w.id = h.owner AND w.suspended_at IS NULL
    WHERE p.slug = $1 AND p.removed_at IS NULL AND p.deleted_at IS NULL AND h.expires_at > $2";

/// Reads who made an offer, and the offer.
fn found(row: &Row) -> Result<(Uuid, Handover), Error> {
    let handover = Handover {
        heir: get(row, 1)?,
        username: get(row, 2)?,
        offered_at: get(row, 3)?,
        expires_at: get(row, 4)?,
    };
    Ok((get(row, 0)?, handover))
}

/// Finds an offer that counts, in a project that is locked.
async fn find(
    transaction: &Transaction,
    slug: &str,
    now: Millis,
) -> Result<Option<(Uuid, Handover)>, Error> {
    let developer = Role::Developer.as_str();
    let row = transaction.row(FIND, &[&slug, &now, &developer]).await?;
    row.as_ref().map(found).transpose()
}

/// Writes an event about the offer of a project, with its owner and the heir.
async fn add_event(
    transaction: &Transaction,
    (kind, slug): (AuditKind, &str),
    (owner, heir): (Uuid, Uuid),
    by: &By,
    now: Millis,
) -> Result<(), Error> {
    let event = Entry::of(kind, now)
        .player(owner)
        .other(heir)
        .subject(slug)
        .by(by);
    audit::add(transaction, &event).await
}

async fn offer(
    transaction: &Transaction,
    slug: &str,
    new: NewHandover,
    by: &By,
) -> Result<OfferedHandover, Error> {
    let (owner, heir) = (new.owner, new.heir);
    let Some(project) = people::lock_owned(transaction, slug, owner).await? else {
        return Ok(OfferedHandover::NotOwner);
    };
    let member = people::member(transaction, project, heir).await?;
    let Some(member) = member.filter(|member| member.role == Role::Developer) else {
        return Ok(OfferedHandover::NotADeveloper);
    };
    let player = players::lock_one(transaction, heir).await?;
    if player.is_none_or(|player| player.state != PlayerState::Account) {
        return Ok(OfferedHandover::Suspended);
    }
    transaction
        .execute(
            "INSERT INTO handovers (project, owner, heir, offered_at, expires_at)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (project) DO UPDATE SET owner = excluded.owner, heir = excluded.heir,
                 offered_at = excluded.offered_at, expires_at = excluded.expires_at",
            &[&project, &owner, &heir, &new.offered_at, &new.expires_at],
        )
        .await?;
    let kind = AuditKind::HandoverOffered;
    add_event(transaction, (kind, slug), (owner, heir), by, new.offered_at).await?;
    Ok(OfferedHandover::Done(Handover {
        heir,
        username: member.username,
        offered_at: new.offered_at,
        expires_at: new.expires_at,
    }))
}

async fn end(
    transaction: &Transaction,
    slug: &str,
    right: Right,
    by: &By,
    now: Millis,
) -> Result<EndedHandover, Error> {
    let locked = people::lock(transaction, slug).await?;
    let owner = locked.and_then(|(_, owner)| owner);
    if matches!(right, Right::Owner(player) if owner != Some(player)) {
        return Ok(EndedHandover::NotOwner);
    }
    let found = find(transaction, slug, now).await?;
    let found = found.filter(|(owner, handover)| right.holds(Some(*owner), handover.heir));
    let (Some((project, _)), Some((owner, handover))) = (locked, found) else {
        return Ok(EndedHandover::NotOffered);
    };
    remove_of(transaction, project).await?;
    let kind = match right {
        Right::Member(_) => AuditKind::HandoverDeclined,
        Right::Owner(_) | Right::Administrator => AuditKind::HandoverWithdrawn,
    };
    add_event(transaction, (kind, slug), (owner, handover.heir), by, now).await?;
    Ok(EndedHandover::Done(handover))
}

async fn accept(
    transaction: &Transaction,
    slug: &str,
    (heir, most): (Uuid, u32),
    by: &By,
    now: Millis,
) -> Result<HandedOn, Error> {
    let Some((project, _)) = people::lock(transaction, slug).await? else {
        return Ok(HandedOn::NotOffered);
    };
    let found = find(transaction, slug, now).await?;
    let Some((owner, _)) = found.filter(|(_, handover)| handover.heir == heir) else {
        return Ok(HandedOn::NotOffered);
    };
    // An operation that counts an owner's projects and adds one locks the owner's row.
    let player = players::lock_one(transaction, heir).await?;
    if player.is_none_or(|player| player.state != PlayerState::Account) {
        return Ok(HandedOn::Suspended);
    }
    let sql = "SELECT count(*) FROM projects WHERE owner = $1 AND removed_at IS NULL";
    if people::number(transaction, sql, &heir).await? >= i64::from(most) {
        return Ok(HandedOn::TooManyProjects);
    }
    transaction
        .execute(
            "UPDATE projects SET owner = $2 WHERE id = $1",
            &[&project, &heir],
        )
        .await?;
    people::new_owner(transaction, project, heir).await?;
    transaction
        .execute(
            "INSERT INTO members (project, player, role, since) VALUES ($1, $2, $3, $4)",
            &[&project, &owner, &Role::Developer.as_str(), &now],
        )
        .await?;
    deploy_tokens::revoke_all(transaction, slug, now).await?;
    webhooks::remove_of(transaction, project).await?;
    let kind = AuditKind::ProjectHandedOn;
    add_event(transaction, (kind, slug), (owner, heir), by, now).await?;
    Ok(HandedOn::Done)
}

/// Removes the offer of a project, which is locked. Writes no event.
pub(super) async fn remove_of(transaction: &Transaction, project: i64) -> Result<(), Error> {
    transaction
        .execute("DELETE FROM handovers WHERE project = $1", &[&project])
        .await
        .map(drop)
}

/// Removes the offer of a project, which is locked, if it is one to this player. Writes no event.
pub(super) async fn remove_to(
    transaction: &Transaction,
    project: i64,
    heir: Uuid,
) -> Result<(), Error> {
    transaction
        .execute(
            "DELETE FROM handovers WHERE project = $1 AND heir = $2",
            &[&project, &heir],
        )
        .await
        .map(drop)
}
