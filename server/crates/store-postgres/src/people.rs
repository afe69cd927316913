//! The people of projects. Every operation that changes them locks the project's row first, and
//! then, if it counts what a player has, the player's.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::device::TokenHash;
use platform_domain::people::{
    AcceptedInvitation, AddedInvitation, ChangedMember, FoundInvitation, Invitation, MemberChange,
    NewInvitation, Outlet, PeopleLimits, Person, Right, SetOutlet, WithdrawnInvitation, regainable,
    set_by,
};
use platform_domain::player::PlayerState;
use platform_domain::project::Project;
use platform_protocol::people::Role;
use platform_store::stored_forms::{member_event, read_role};
use platform_store::{PeopleStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::rows::{count, get};
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{handovers, outlets, players, projects};

#[async_trait]
impl PeopleStore for PostgresStore {
    async fn find_project_for(
        &self,
        slug: &str,
        player: Uuid,
    ) -> Result<Option<(Project, Option<Role>)>, StoreError> {
        let row = self
            .main
            .row(
                "SELECT p.slug, p.owner, p.created_at, m.role FROM projects p
                 LEFT JOIN members m ON m.project = p.id AND m.player = $2
                 WHERE p.slug = $1 AND p.removed_at IS NULL",
                &[&slug, &player],
            )
            .await?;
        let Some(row) = row else { return Ok(None) };
        let project = projects::project(&row)?;
        let role = match project.owner {
            Some(owner) if owner == player => Some(Role::Owner),
            _ => role(&row, 3)?,
        };
        Ok(Some((project, role)))
    }

    async fn list_projects_for(&self, player: Uuid) -> Result<Vec<(Project, Role)>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT slug, owner, created_at, NULL::text AS role FROM projects WHERE owner = $1
                 UNION ALL
                 SELECT p.slug, p.owner, p.created_at, m.role
                 FROM members m JOIN projects p ON p.id = m.project
                 WHERE m.player = $1 AND p.removed_at IS NULL
                 ORDER BY slug",
                &[&player],
            )
            .await?;
        let projects = rows.iter().map(|row| {
            let role = role(row, 3)?.unwrap_or(Role::Owner);
            Ok((projects::project(row)?, role))
        });
        Ok(projects.collect::<Result<_, Error>>()?)
    }

    async fn list_people(&self, slug: &str) -> Result<Vec<Person>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT o.id AS player, o.username, NULL::text AS role, NULL::bigint AS since
                 FROM projects p JOIN players o ON o.id = p.owner
                 WHERE p.slug = $1 AND p.removed_at IS NULL
                 UNION ALL
                 SELECT m.player, o.username, m.role, m.since FROM members m
                 JOIN projects p ON p.id = m.project JOIN players o ON o.id = m.player
                 WHERE p.slug = $1 AND p.removed_at IS NULL
                 ORDER BY since NULLS FIRST, player",
                &[&slug],
            )
            .await?;
        Ok(rows.iter().map(person).collect::<Result<_, _>>()?)
    }

    async fn list_outlets(&self, slug: &str) -> Result<Vec<SetOutlet>, StoreError> {
        let rows = self.main.rows(outlets::LIST, &[&slug]).await?;
        Ok(outlets::read(&rows)?)
    }

    async fn add_invitation(
        &self,
        slug: &str,
        new: NewInvitation,
        by: By,
    ) -> Result<AddedInvitation, StoreError> {
        transact!(self.main, transaction => add_invitation(&transaction, slug, &new, &by))
    }

    async fn list_invitations(
        &self,
        slug: &str,
        now: Millis,
    ) -> Result<Vec<Invitation>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT i.id, i.role, i.created_at, i.expires_at FROM invitations i
                 JOIN projects p ON p.id = i.project
                 WHERE p.slug = $1 AND p.removed_at IS NULL AND i.expires_at > $2
                 ORDER BY i.created_at DESC, i.id DESC",
                &[&slug, &now],
            )
            .await?;
        let invitations = rows.iter().map(|row| invitation(row, 0));
        Ok(invitations.collect::<Result<_, _>>()?)
    }

    async fn find_invitation(
        &self,
        hash: TokenHash,
        now: Millis,
    ) -> Result<Option<FoundInvitation>, StoreError> {
        let row = self.main.row(FIND, &[&hash.0.as_slice(), &now]).await?;
        Ok(row.as_ref().map(found).transpose()?)
    }

    async fn withdraw_invitation(
        &self,
        slug: &str,
        right: Right,
        id: Uuid,
        by: By,
        now: Millis,
    ) -> Result<WithdrawnInvitation, StoreError> {
        transact!(self.main, transaction =>
            withdraw_invitation(&transaction, slug, right, id, &by, now))
    }

    async fn accept_invitation(
        &self,
        hash: TokenHash,
        player: Uuid,
        limits: PeopleLimits,
        by: By,
        now: Millis,
    ) -> Result<AcceptedInvitation, StoreError> {
        transact!(self.main, transaction =>
            accept_invitation(&transaction, hash, player, limits, &by, now))
    }

    async fn change_role(
        &self,
        slug: &str,
        owner: Uuid,
        to: (Uuid, Role),
        by: By,
        now: Millis,
    ) -> Result<ChangedMember, StoreError> {
        transact!(self.main, transaction => change_role(&transaction, slug, owner, to, &by, now))
    }

    async fn remove_member(
        &self,
        slug: &str,
        right: Right,
        player: Uuid,
        by: By,
        now: Millis,
    ) -> Result<ChangedMember, StoreError> {
        transact!(self.main, transaction =>
            remove_member(&transaction, slug, right, player, &by, now))
    }
}

/// Finds an open invitation with its project.
const FIND: &str = "SELECT p.slug, p.owner, p.created_at, i.id, i.role, i.created_at, i.expires_at
    FROM invitations i JOIN projects p ON p.id = i.project
    WHERE i.hash = $1 AND i.expires_at > $2 AND p.removed_at IS NULL AND p.deleted_at IS NULL";

/// Reads a member's role, which may be null.
fn role(row: &Row, index: usize) -> Result<Option<Role>, Error> {
    let name: Option<&str> = get(row, index)?;
    Ok(name.map(|name| read_role(name, "members")).transpose()?)
}

/// Reads a person from the columns player, name, role (null for the owner) and beginning.
fn person(row: &Row) -> Result<Person, Error> {
    Ok(Person {
        player: get(row, 0)?,
        username: get(row, 1)?,
        role: role(row, 2)?.unwrap_or(Role::Owner),
        since: get(row, 3)?,
    })
}

/// Reads an invitation from the columns id, role, creation and expiry, the first of which is at
/// `first`.
fn invitation(row: &Row, first: usize) -> Result<Invitation, Error> {
    Ok(Invitation {
        id: get(row, first)?,
        role: read_role(get(row, first + 1)?, "invitations")?,
        created_at: get(row, first + 2)?,
        expires_at: get(row, first + 3)?,
    })
}

fn found(row: &Row) -> Result<FoundInvitation, Error> {
    Ok(FoundInvitation {
        invitation: invitation(row, 3)?,
        project: projects::project(row)?,
    })
}

/// Locks a project. Returns its id, and its owner.
pub(super) async fn lock(
    transaction: &Transaction,
    slug: &str,
) -> Result<Option<(i64, Option<Uuid>)>, Error> {
    let row = transaction
        .row(
            "SELECT id, owner FROM projects WHERE slug = $1 AND removed_at IS NULL
             FOR NO KEY UPDATE",
            &[&slug],
        )
        .await?;
    row.map(|row| Ok((get(&row, 0)?, get(&row, 1)?)))
        .transpose()
}

/// Locks a project, and returns its id if this player owns it.
pub(super) async fn lock_owned(
    transaction: &Transaction,
    slug: &str,
    owner: Uuid,
) -> Result<Option<i64>, Error> {
    let found = lock(transaction, slug).await?;
    let owned = found.filter(|(_, found)| *found == Some(owner));
    Ok(owned.map(|(project, _)| project))
}

/// Returns a member of a project.
pub(super) async fn member(
    transaction: &Transaction,
    project: i64,
    player: Uuid,
) -> Result<Option<Person>, Error> {
    let row = transaction
        .row(
            "SELECT m.player, o.username, m.role, m.since FROM members m
             JOIN players o ON o.id = m.player WHERE m.project = $1 AND m.player = $2",
            &[&project, &player],
        )
        .await?;
    row.as_ref().map(person).transpose()
}

/// Runs a statement that counts rows.
pub(super) async fn number(
    transaction: &Transaction,
    sql: &str,
    value: super::database::Value<'_>,
) -> Result<i64, Error> {
    let row = transaction.row(sql, &[value]).await?;
    row.as_ref().map_or(Ok(0), |row| get(row, 0))
}

async fn add_invitation(
    transaction: &Transaction,
    slug: &str,
    new: &NewInvitation,
    by: &By,
) -> Result<AddedInvitation, Error> {
    let Some((project, owner)) = lock(transaction, slug).await? else {
        return Err(StoreError::Missing { table: "projects" }.into());
    };
    if owner != Some(new.owner) {
        return Ok(AddedInvitation::NotOwner);
    }
    let invitation = &new.invitation;
    transaction
        .execute(
            "DELETE FROM invitations WHERE project = $1 AND expires_at <= $2",
            &[&project, &invitation.created_at],
        )
        .await?;
    let sql = "SELECT count(*) FROM invitations WHERE project = $1";
    if number(transaction, sql, &project).await? >= count(new.most) {
        return Ok(AddedInvitation::TooMany);
    }
    let role = invitation.role.as_str();
    transaction
        .execute(
            "INSERT INTO invitations (id, project, role, hash, created_at, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6)",
            &[
                &invitation.id,
                &project,
                &role,
                &new.hash.0.as_slice(),
                &invitation.created_at,
                &invitation.expires_at,
            ],
        )
        .await?;
    let kind = AuditKind::InvitationCreated;
    audit::add_of_project(transaction, kind, (slug, role), by, invitation.created_at).await?;
    Ok(AddedInvitation::Done)
}

async fn withdraw_invitation(
    transaction: &Transaction,
    slug: &str,
    right: Right,
    id: Uuid,
    by: &By,
    now: Millis,
) -> Result<WithdrawnInvitation, Error> {
    let (project, owner) = match lock(transaction, slug).await? {
        Some((project, owner)) => (Some(project), owner),
        None => (None, None),
    };
    if !right.decides(owner) {
        return Ok(WithdrawnInvitation::NotOwner);
    }
    let row = transaction
        .row(
            "DELETE FROM invitations WHERE id = $1 AND project = $2 AND expires_at > $3
             RETURNING id, role, created_at, expires_at",
            &[&id, &project, &now],
        )
        .await?;
    let Some(row) = row else {
        return Ok(WithdrawnInvitation::Gone);
    };
    let withdrawn = invitation(&row, 0)?;
    let (kind, role) = (AuditKind::InvitationWithdrawn, withdrawn.role.as_str());
    audit::add_of_project(transaction, kind, (slug, role), by, now).await?;
    Ok(WithdrawnInvitation::Done(withdrawn))
}

async fn accept_invitation(
    transaction: &Transaction,
    hash: TokenHash,
    player: Uuid,
    limits: PeopleLimits,
    by: &By,
    now: Millis,
) -> Result<AcceptedInvitation, Error> {
    // The first look says which project to lock; only what the second one finds counts.
    let hash = hash.0.as_slice();
    let Some(row) = transaction.row(FIND, &[&hash, &now]).await? else {
        return Ok(AcceptedInvitation::Gone);
    };
    let slug = found(&row)?.project.slug;
    let Some((project, owner)) = lock(transaction, &slug).await? else {
        return Ok(AcceptedInvitation::Gone);
    };
    let Some(row) = transaction.row(FIND, &[&hash, &now]).await? else {
        return Ok(AcceptedInvitation::Gone);
    };
    let invitation = found(&row)?.invitation;
    let role = invitation.role;
    if owner == Some(player) {
        return Ok(AcceptedInvitation::Already(slug, Role::Owner));
    }
    let before = member(transaction, project, player).await?;
    let before = before.map(|member| member.role);
    match before {
        Some(before) if before >= role => return Ok(AcceptedInvitation::Already(slug, before)),
        Some(_) => {}
        None => {
            if let Some(refused) = refuse_member(transaction, project, player, limits).await? {
                return Ok(refused);
            }
        }
    }
    transaction
        .execute(
            "INSERT INTO members (project, player, role, since) VALUES ($1, $2, $3, $4)
             ON CONFLICT (project, player) DO UPDATE SET role = excluded.role",
            &[&project, &player, &role.as_str(), &now],
        )
        .await?;
    transaction
        .execute("DELETE FROM invitations WHERE id = $1", &[&invitation.id])
        .await?;
    let change = (player, before, Some(role));
    add_of_member(transaction, (&slug, owner), change, &[], by, now).await?;
    Ok(AcceptedInvitation::Done(slug, role))
}

/// Returns why the player cannot become a member, if so. The project is locked.
async fn refuse_member(
    transaction: &Transaction,
    project: i64,
    player: Uuid,
    limits: PeopleLimits,
) -> Result<Option<AcceptedInvitation>, Error> {
    let found = players::lock_one(transaction, player).await?;
    if found.is_none_or(|found| found.state != PlayerState::Account) {
        return Ok(Some(AcceptedInvitation::NotAnAccount));
    }
    let sql = "SELECT count(*) FROM members WHERE project = $1";
    let members = number(transaction, sql, &project).await?;
    // The owner is one of the people.
    if members.saturating_add(1) >= count(limits.people) {
        return Ok(Some(AcceptedInvitation::TooManyPeople));
    }
    let sql = "SELECT count(*) FROM members WHERE player = $1";
    if number(transaction, sql, &player).await? >= count(limits.projects) {
        return Ok(Some(AcceptedInvitation::TooManyProjects));
    }
    Ok(None)
}

/// Writes that a member joined, has another role, or is gone, from the roles before and after, and what
/// the member has set that stays.
async fn add_of_member(
    transaction: &Transaction,
    (slug, owner): (&str, Option<Uuid>),
    (player, before, after): (Uuid, Option<Role>, Option<Role>),
    left: &[Outlet],
    by: &By,
    now: Millis,
) -> Result<(), Error> {
    let Some((kind, detail)) = member_event(before, after, left) else {
        return Ok(());
    };
    let mut event = Entry::of(kind, now)
        .subject(slug)
        .other(player)
        .detail(&detail)
        .by(by);
    if let Some(owner) = owner {
        event = event.player(owner);
    }
    audit::add(transaction, &event).await
}

async fn change_role(
    transaction: &Transaction,
    slug: &str,
    owner: Uuid,
    (player, role): (Uuid, Role),
    by: &By,
    now: Millis,
) -> Result<ChangedMember, Error> {
    let Some(project) = lock_owned(transaction, slug, owner).await? else {
        return Ok(ChangedMember::NotOwner);
    };
    let Some(mut person) = member(transaction, project, player).await? else {
        return Ok(ChangedMember::NotAMember);
    };
    let before = person.role;
    let (mut withdrawn, mut left) = (0, Vec::new());
    if before != role {
        transaction
            .execute(
                "UPDATE members SET role = $3 WHERE project = $1 AND player = $2",
                &[&project, &player, &role.as_str()],
            )
            .await?;
        let change = (player, Some(before), Some(role));
        if role < Role::Developer {
            handovers::remove_to(transaction, project, player).await?;
            left = left_by(transaction, slug, player).await?;
        }
        add_of_member(transaction, (slug, Some(owner)), change, &left, by, now).await?;
        let lost = (before, Some(role));
        withdrawn = withdraw_after(transaction, (project, slug), lost, by, now).await?;
    }
    person.role = role;
    Ok(ChangedMember::Done(MemberChange {
        person,
        withdrawn,
        left,
    }))
}

/// Returns what a member has set last of a project, which is locked.
async fn left_by(
    transaction: &Transaction,
    slug: &str,
    player: Uuid,
) -> Result<Vec<Outlet>, Error> {
    let rows = transaction.rows(outlets::LIST, &[&slug]).await?;
    Ok(set_by(outlets::read(&rows)?, player))
}

/// Withdraws the open invitations by which a member would get back what somebody else took. The
/// project is locked.
async fn withdraw_after(
    transaction: &Transaction,
    (project, slug): (i64, &str),
    (before, after): (Role, Option<Role>),
    by: &By,
    now: Millis,
) -> Result<u32, Error> {
    let mut withdrawn = 0;
    for role in regainable(before, after) {
        let role = role.as_str();
        let rows = transaction
            .rows(
                "DELETE FROM invitations WHERE project = $1 AND role = $2 AND expires_at > $3
                 RETURNING id",
                &[&project, &role, &now],
            )
            .await?;
        for _ in rows {
            let kind = AuditKind::InvitationWithdrawn;
            audit::add_of_project(transaction, kind, (slug, role), by, now).await?;
            withdrawn += 1;
        }
    }
    Ok(withdrawn)
}

async fn remove_member(
    transaction: &Transaction,
    slug: &str,
    right: Right,
    player: Uuid,
    by: &By,
    now: Millis,
) -> Result<ChangedMember, Error> {
    let Some((project, owner)) = lock(transaction, slug).await? else {
        return Ok(ChangedMember::NotAMember);
    };
    if !right.holds(owner, player) {
        return Ok(ChangedMember::NotOwner);
    }
    let Some(person) = member(transaction, project, player).await? else {
        return Ok(ChangedMember::NotAMember);
    };
    remove(transaction, project, player).await?;
    handovers::remove_to(transaction, project, player).await?;
    let change = (player, Some(person.role), None);
    let left = left_by(transaction, slug, player).await?;
    add_of_member(transaction, (slug, owner), change, &left, by, now).await?;
    let withdrawn = if right == Right::Member(player) {
        0
    } else {
        withdraw_after(transaction, (project, slug), (person.role, None), by, now).await?
    };
    Ok(ChangedMember::Done(MemberChange {
        person,
        withdrawn,
        left,
    }))
}

/// Removes a member's row. Writes no event.
async fn remove(transaction: &Transaction, project: i64, player: Uuid) -> Result<(), Error> {
    transaction
        .execute(
            "DELETE FROM members WHERE project = $1 AND player = $2",
            &[&project, &player],
        )
        .await
        .map(drop)
}

/// Removes the new owner of a project from its members, and ends the invitations and the offer that the
/// former owner made. The caller has locked the project.
pub(super) async fn new_owner(
    transaction: &Transaction,
    project: i64,
    owner: Uuid,
) -> Result<(), Error> {
    remove(transaction, project, owner).await?;
    transaction
        .execute("DELETE FROM invitations WHERE project = $1", &[&project])
        .await?;
    handovers::remove_of(transaction, project).await
}
