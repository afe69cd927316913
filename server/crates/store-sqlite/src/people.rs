//! The people of projects.

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
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::projects::{project, project_id};
use super::rows::{count, uuid};
use super::store::SqliteStore;
use super::{handovers, outlets, player_rows};

#[async_trait]
impl PeopleStore for SqliteStore {
    async fn find_project_for(
        &self,
        slug: &str,
        player: Uuid,
    ) -> Result<Option<(Project, Option<Role>)>, StoreError> {
        self.main
            .read(|connection| find_project_for(connection, slug, player))
    }

    async fn list_projects_for(&self, player: Uuid) -> Result<Vec<(Project, Role)>, StoreError> {
        self.main
            .read_much(move |connection| list_projects_for(connection, player))
            .await
    }

    async fn list_people(&self, slug: &str) -> Result<Vec<Person>, StoreError> {
        self.main.read(|connection| list_people(connection, slug))
    }

    async fn list_outlets(&self, slug: &str) -> Result<Vec<SetOutlet>, StoreError> {
        self.main.read(|connection| outlets::list(connection, slug))
    }

    async fn add_invitation(
        &self,
        slug: &str,
        new: NewInvitation,
        by: By,
    ) -> Result<AddedInvitation, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| add_invitation(connection, &slug, &new, by))
            .await
    }

    async fn list_invitations(
        &self,
        slug: &str,
        now: Millis,
    ) -> Result<Vec<Invitation>, StoreError> {
        self.main
            .read(|connection| list_invitations(connection, slug, now))
    }

    async fn find_invitation(
        &self,
        hash: TokenHash,
        now: Millis,
    ) -> Result<Option<FoundInvitation>, StoreError> {
        let found = self
            .main
            .read(|connection| find_invitation(connection, hash, now))?;
        Ok(found.map(|(_, found)| found))
    }

    async fn withdraw_invitation(
        &self,
        slug: &str,
        right: Right,
        id: Uuid,
        by: By,
        now: Millis,
    ) -> Result<WithdrawnInvitation, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| withdraw_invitation(connection, &slug, right, id, by, now))
            .await
    }

    async fn accept_invitation(
        &self,
        hash: TokenHash,
        player: Uuid,
        limits: PeopleLimits,
        by: By,
        now: Millis,
    ) -> Result<AcceptedInvitation, StoreError> {
        self.main
            .write(move |connection| accept_invitation(connection, hash, player, limits, by, now))
            .await
    }

    async fn change_role(
        &self,
        slug: &str,
        owner: Uuid,
        (player, role): (Uuid, Role),
        by: By,
        now: Millis,
    ) -> Result<ChangedMember, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| {
                change_role(connection, &slug, owner, (player, role), &by, now)
            })
            .await
    }

    async fn remove_member(
        &self,
        slug: &str,
        right: Right,
        player: Uuid,
        by: By,
        now: Millis,
    ) -> Result<ChangedMember, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| remove_member(connection, &slug, right, player, &by, now))
            .await
    }
}

/// Reads a role of the table `table`, which may be null.
fn role(row: &Row<'_>, index: usize, table: &'static str) -> Result<Option<Role>, Error> {
    let name: Option<String> = row.get(index)?;
    let role = name.map(|name| read_role(&name, table)).transpose()?;
    Ok(role)
}

fn find_project_for(
    connection: &Connection,
    slug: &str,
    player: Uuid,
) -> Result<Option<(Project, Option<Role>)>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT p.slug, p.owner, p.created_at, m.role FROM projects p
         LEFT JOIN members m ON m.project = p.id AND m.player = ?2
         WHERE p.slug = ?1 AND p.removed_at IS NULL",
    )?;
    let mut rows = statement.query(params![slug, player.as_bytes()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let project = project(row)?;
    let role = match project.owner {
        Some(owner) if owner == player => Some(Role::Owner),
        _ => role(row, 3, "members")?,
    };
    Ok(Some((project, role)))
}

fn list_projects_for(connection: &Connection, player: Uuid) -> Result<Vec<(Project, Role)>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT slug, owner, created_at, NULL FROM projects WHERE owner = ?1
         UNION ALL
         SELECT p.slug, p.owner, p.created_at, m.role
         FROM members m JOIN projects p ON p.id = m.project
         WHERE m.player = ?1 AND p.removed_at IS NULL
         ORDER BY 1",
    )?;
    let mut rows = statement.query([player.as_bytes()])?;
    let mut projects = Vec::new();
    while let Some(row) = rows.next()? {
        let role = role(row, 3, "members")?.unwrap_or(Role::Owner);
        projects.push((project(row)?, role));
    }
    Ok(projects)
}

/// Reads a person from the columns player, name, role (null for the owner) and beginning.
fn person(row: &Row<'_>) -> Result<Person, Error> {
    let player: Vec<u8> = row.get(0)?;
    Ok(Person {
        player: uuid(&player, "members", "player", String::new)?,
        username: row.get(1)?,
        role: role(row, 2, "members")?.unwrap_or(Role::Owner),
        since: row.get(3)?,
    })
}

fn list_people(connection: &Connection, slug: &str) -> Result<Vec<Person>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT o.id, o.username, NULL, NULL FROM projects p JOIN players o ON o.id = p.owner
         WHERE p.slug = ?1 AND p.removed_at IS NULL
         UNION ALL
         SELECT m.player, o.username, m.role, m.since FROM members m
         JOIN projects p ON p.id = m.project JOIN players o ON o.id = m.player
         WHERE p.slug = ?1 AND p.removed_at IS NULL
         ORDER BY 4 NULLS FIRST, 1",
    )?;
    let mut rows = statement.query([slug])?;
    let mut people = Vec::new();
    while let Some(row) = rows.next()? {
        people.push(person(row)?);
    }
    Ok(people)
}

/// Returns a member of a project.
pub(super) fn member(
    connection: &Connection,
    project: i64,
    player: Uuid,
) -> Result<Option<Person>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT m.player, o.username, m.role, m.since FROM members m
         JOIN players o ON o.id = m.player WHERE m.project = ?1 AND m.player = ?2",
    )?;
    let mut rows = statement.query(params![project, player.as_bytes()])?;
    rows.next()?.map(person).transpose()
}

/// Returns the row of a project if this player owns it.
pub(super) fn owned(
    connection: &Connection,
    slug: &str,
    owner: Uuid,
) -> Result<Option<i64>, Error> {
    let found = connection
        .prepare_cached(
            "SELECT id FROM projects WHERE slug = ?1 AND owner = ?2 AND removed_at IS NULL",
        )?
        .query_row(params![slug, owner.as_bytes()], |row| row.get(0))
        .optional()?;
    Ok(found)
}

/// Reads an invitation from the columns id, role, creation and expiry.
fn invitation(row: &Row<'_>) -> Result<Invitation, Error> {
    let id: Vec<u8> = row.get(0)?;
    let name: String = row.get(1)?;
    Ok(Invitation {
        id: uuid(&id, "invitations", "id", String::new)?,
        role: read_role(&name, "invitations")?,
        created_at: row.get(2)?,
        expires_at: row.get(3)?,
    })
}

fn add_invitation(
    connection: &Connection,
    slug: &str,
    new: &NewInvitation,
    by: By,
) -> Result<AddedInvitation, Error> {
    project_id(connection, slug)?;
    let Some(project) = owned(connection, slug, new.owner)? else {
        return Ok(AddedInvitation::NotOwner);
    };
    let invitation = &new.invitation;
    connection
        .prepare_cached("DELETE FROM invitations WHERE project = ?1 AND expires_at <= ?2")?
        .execute(params![project, invitation.created_at])?;
    let open: i64 = connection
        .prepare_cached("SELECT count(*) FROM invitations WHERE project = ?1")?
        .query_row([project], |row| row.get(0))?;
    if open >= count(new.most) {
        return Ok(AddedInvitation::TooMany);
    }
    let role = invitation.role.as_str();
    connection
        .prepare_cached(
            "INSERT INTO invitations (id, project, role, hash, created_at, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            invitation.id.as_bytes(),
            project,
            role,
            new.hash.0,
            invitation.created_at,
            invitation.expires_at
        ])?;
    let kind = AuditKind::InvitationCreated;
    audit::add_of_project(connection, kind, (slug, role), by, invitation.created_at)?;
    Ok(AddedInvitation::Done)
}

fn list_invitations(
    connection: &Connection,
    slug: &str,
    now: Millis,
) -> Result<Vec<Invitation>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT i.id, i.role, i.created_at, i.expires_at FROM invitations i
         JOIN projects p ON p.id = i.project
         WHERE p.slug = ?1 AND p.removed_at IS NULL AND i.expires_at > ?2
         ORDER BY i.created_at DESC, i.id DESC",
    )?;
    let mut rows = statement.query(params![slug, now])?;
    let mut invitations = Vec::new();
    while let Some(row) = rows.next()? {
        invitations.push(invitation(row)?);
    }
    Ok(invitations)
}

/// Returns an open invitation, and the row of its project.
fn find_invitation(
    connection: &Connection,
    hash: TokenHash,
    now: Millis,
) -> Result<Option<(i64, FoundInvitation)>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT p.slug, p.owner, p.created_at, i.id, i.role, i.created_at, i.expires_at, p.id
         FROM invitations i JOIN projects p ON p.id = i.project
         WHERE i.hash = ?1 AND i.expires_at > ?2
             AND p.removed_at IS NULL AND p.deleted_at IS NULL",
    )?;
    let mut rows = statement.query(params![hash.0, now])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let (id, name): (Vec<u8>, String) = (row.get(3)?, row.get(4)?);
    let found = FoundInvitation {
        invitation: Invitation {
            id: uuid(&id, "invitations", "id", String::new)?,
            role: read_role(&name, "invitations")?,
            created_at: row.get(5)?,
            expires_at: row.get(6)?,
        },
        project: project(row)?,
    };
    Ok(Some((row.get(7)?, found)))
}

fn withdraw_invitation(
    connection: &Connection,
    slug: &str,
    right: Right,
    id: Uuid,
    by: By,
    now: Millis,
) -> Result<WithdrawnInvitation, Error> {
    if !right.decides(audit::owner(connection, slug)?) {
        return Ok(WithdrawnInvitation::NotOwner);
    }
    let known = list_invitations(connection, slug, now)?;
    let Some(found) = known.into_iter().find(|one| one.id == id) else {
        return Ok(WithdrawnInvitation::Gone);
    };
    remove_invitation(connection, id)?;
    let kind = AuditKind::InvitationWithdrawn;
    audit::add_of_project(connection, kind, (slug, found.role.as_str()), by, now)?;
    Ok(WithdrawnInvitation::Done(found))
}

fn remove_invitation(connection: &Connection, id: Uuid) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM invitations WHERE id = ?1")?
        .execute([id.as_bytes()])?;
    Ok(())
}

fn accept_invitation(
    connection: &Connection,
    hash: TokenHash,
    player: Uuid,
    limits: PeopleLimits,
    by: By,
    now: Millis,
) -> Result<AcceptedInvitation, Error> {
    let Some((project, found)) = find_invitation(connection, hash, now)? else {
        return Ok(AcceptedInvitation::Gone);
    };
    let (slug, role) = (found.project.slug, found.invitation.role);
    if found.project.owner == Some(player) {
        return Ok(AcceptedInvitation::Already(slug, Role::Owner));
    }
    let before = member(connection, project, player)?.map(|member| member.role);
    match before {
        Some(before) if before >= role => return Ok(AcceptedInvitation::Already(slug, before)),
        Some(_) => {}
        None => {
            if let Some(refused) = refuse_member(connection, project, player, limits)? {
                return Ok(refused);
            }
        }
    }
    connection
        .prepare_cached(
            "INSERT INTO members (project, player, role, since) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (project, player) DO UPDATE SET role = excluded.role",
        )?
        .execute(params![project, player.as_bytes(), role.as_str(), now])?;
    remove_invitation(connection, found.invitation.id)?;
    let change = (player, before, Some(role));
    add_of_member(connection, &slug, change, &[], by, now)?;
    Ok(AcceptedInvitation::Done(slug, role))
}

/// Returns why the player cannot become a member, if so.
fn refuse_member(
    connection: &Connection,
    project: i64,
    player: Uuid,
    limits: PeopleLimits,
) -> Result<Option<AcceptedInvitation>, Error> {
    let found = player_rows::find_player(connection, player)?;
    let is_account = found.is_some_and(|found| found.state == PlayerState::Account);
    if !is_account {
        return Ok(Some(AcceptedInvitation::NotAnAccount));
    }
    let number = |sql: &str, values: &[&dyn rusqlite::ToSql]| -> Result<i64, Error> {
        let mut statement = connection.prepare_cached(sql)?;
        Ok(statement.query_row(values, |row| row.get(0))?)
    };
    let members = number(
        "SELECT count(*) FROM members WHERE project = ?1",
        &[&project],
    )?;
    // The owner is one of the people.
    if members.saturating_add(1) >= count(limits.people) {
        return Ok(Some(AcceptedInvitation::TooManyPeople));
    }
    let of_player = "SELECT count(*) FROM members WHERE player = ?1";
    if number(of_player, &[&player.as_bytes()])? >= count(limits.projects) {
        return Ok(Some(AcceptedInvitation::TooManyProjects));
    }
    Ok(None)
}

/// Writes that a member joined, has another role, or is gone, from the roles before and after, and what
/// the member has set that stays.
fn add_of_member(
    connection: &Connection,
    slug: &str,
    (player, before, after): (Uuid, Option<Role>, Option<Role>),
    left: &[Outlet],
    by: By,
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
    if let Some(owner) = audit::owner(connection, slug)? {
        event = event.player(owner);
    }
    audit::add(connection, &event)
}

fn change_role(
    connection: &Connection,
    slug: &str,
    owner: Uuid,
    (player, role): (Uuid, Role),
    by: &By,
    now: Millis,
) -> Result<ChangedMember, Error> {
    let Some(project) = owned(connection, slug, owner)? else {
        return Ok(ChangedMember::NotOwner);
    };
    let Some(mut person) = member(connection, project, player)? else {
        return Ok(ChangedMember::NotAMember);
    };
    let before = person.role;
    let (mut withdrawn, mut left) = (0, Vec::new());
    if before != role {
        connection
            .prepare_cached("UPDATE members SET role = ?3 WHERE project = ?1 AND player = ?2")?
            .execute(params![project, player.as_bytes(), role.as_str()])?;
        let change = (player, Some(before), Some(role));
        if role < Role::Developer {
            handovers::remove_to(connection, project, player)?;
            left = set_by(outlets::list(connection, slug)?, player);
        }
        add_of_member(connection, slug, change, &left, by.clone(), now)?;
        withdrawn = withdraw_after(connection, slug, (before, Some(role)), by, now)?;
    }
    person.role = role;
    Ok(ChangedMember::Done(MemberChange {
        person,
        withdrawn,
        left,
    }))
}

/// Withdraws the open invitations by which a member would get back what somebody else took.
fn withdraw_after(
    connection: &Connection,
    slug: &str,
    (before, after): (Role, Option<Role>),
    by: &By,
    now: Millis,
) -> Result<u32, Error> {
    let mut withdrawn = 0;
    let open = list_invitations(connection, slug, now)?;
    for role in regainable(before, after) {
        for invitation in open.iter().filter(|one| one.role == role) {
            remove_invitation(connection, invitation.id)?;
            let kind = AuditKind::InvitationWithdrawn;
            audit::add_of_project(connection, kind, (slug, role.as_str()), by.clone(), now)?;
            withdrawn += 1;
        }
    }
    Ok(withdrawn)
}

fn remove_member(
    connection: &Connection,
    slug: &str,
    right: Right,
    player: Uuid,
    by: &By,
    now: Millis,
) -> Result<ChangedMember, Error> {
    let project = match project_id(connection, slug) {
        Err(Error::Store(StoreError::Missing { .. })) => return Ok(ChangedMember::NotAMember),
        project => project?,
    };
    if !right.holds(audit::owner(connection, slug)?, player) {
        return Ok(ChangedMember::NotOwner);
    }
    let Some(person) = member(connection, project, player)? else {
        return Ok(ChangedMember::NotAMember);
    };
    remove(connection, project, player)?;
    handovers::remove_to(connection, project, player)?;
    let (before, leaves) = (person.role, right == Right::Member(player));
    let left = set_by(outlets::list(connection, slug)?, player);
    let change = (player, Some(before), None);
    add_of_member(connection, slug, change, &left, by.clone(), now)?;
    let withdrawn = if leaves {
        0
    } else {
        withdraw_after(connection, slug, (before, None), by, now)?
    };
    Ok(ChangedMember::Done(MemberChange {
        person,
        withdrawn,
        left,
    }))
}

/// Removes a member's row. Writes no event.
fn remove(connection: &Connection, project: i64, player: Uuid) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM members WHERE project = ?1 AND player = ?2")?
        .execute(params![project, player.as_bytes()])?;
    Ok(())
}

/// Removes the new owner of a project from its members, and ends the invitations and the offer that the
/// former owner made.
pub(super) fn new_owner(connection: &Connection, project: i64, owner: Uuid) -> Result<(), Error> {
    remove(connection, project, owner)?;
    connection
        .prepare_cached("DELETE FROM invitations WHERE project = ?1")?
        .execute([project])?;
    handovers::remove_of(connection, project)
}
