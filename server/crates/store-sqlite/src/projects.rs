//! Projects and their owners.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::project::Project;
use platform_store::{ProjectStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::rows::uuid;
use super::store::SqliteStore;

#[async_trait]
impl ProjectStore for SqliteStore {
    async fn add_project(&self, project: Project) -> Result<(), StoreError> {
        self.main
            .write(move |connection| add_project(connection, &project))
            .await
    }

    async fn add_project_within(
        &self,
        project: Project,
        most: u32,
        by: By,
    ) -> Result<(), StoreError> {
        self.main
            .write(move |connection| add_project_within(connection, &project, most, by))
            .await
    }

    async fn list_projects(&self) -> Result<Vec<Project>, StoreError> {
        self.main.read_much(list_projects).await
    }

    async fn find_project(&self, slug: &str) -> Result<Option<Project>, StoreError> {
        self.main.read(|connection| find_project(connection, slug))
    }

    async fn list_projects_of(&self, owner: Uuid) -> Result<Vec<Project>, StoreError> {
        self.main
            .read_much(move |connection| list_projects_of(connection, owner))
            .await
    }
}

fn add_project(connection: &Connection, project: &Project) -> Result<(), Error> {
    let owner = project.owner.as_ref().map(Uuid::as_bytes);
    if let Some(owner) = owner {
        let known = connection
            .prepare_cached("SELECT 1 FROM players WHERE id = ?1")?
            .exists([owner.as_slice()])?;
        if !known {
            return Err(StoreError::Missing { table: "players" }.into());
        }
    }
    connection
        .prepare_cached("INSERT INTO projects (slug, owner, created_at) VALUES (?1, ?2, ?3)")?
        .execute(params![project.slug, owner, project.created_at])?;
    Ok(())
}

fn add_project_within(
    connection: &Connection,
    project: &Project,
    most: u32,
    by: By,
) -> Result<(), Error> {
    let owner = project.owner.as_ref().map(Uuid::as_bytes);
    let owned: u32 = connection
        .prepare_cached("SELECT count(*) FROM projects WHERE owner = ?1 AND removed_at IS NULL")?
        .query_row([owner], |row| row.get(0))?;
    if owned >= most {
        return Err(StoreError::ProjectCap.into());
    }
    add_project(connection, project)?;
    let mut event = Entry::of(AuditKind::ProjectCreated, project.created_at)
        .subject(&project.slug)
        .by(by);
    if let Some(owner) = project.owner {
        event = event.player(owner);
    }
    audit::add(connection, &event)
}

pub(super) fn list_projects(connection: &Connection) -> Result<Vec<Project>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT slug, owner, created_at FROM projects WHERE removed_at IS NULL ORDER BY slug",
    )?;
    let mut rows = statement.query([])?;
    let mut projects = Vec::new();
    while let Some(row) = rows.next()? {
        projects.push(project(row)?);
    }
    Ok(projects)
}

fn find_project(connection: &Connection, slug: &str) -> Result<Option<Project>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT slug, owner, created_at FROM projects WHERE slug = ?1 AND removed_at IS NULL",
    )?;
    let mut rows = statement.query([slug])?;
    rows.next()?.map(project).transpose()
}

pub(super) fn project(row: &Row<'_>) -> Result<Project, Error> {
    let slug: String = row.get(0)?;
    let owner: Option<Vec<u8>> = row.get(1)?;
    let owner = owner
        .map(|bytes| uuid(&bytes, "projects", "owner", || slug.clone()))
        .transpose()?;
    Ok(Project {
        slug,
        owner,
        created_at: row.get(2)?,
    })
}

/// The row of a project.
///
/// # Errors
/// [`StoreError::Missing`] if there is no such project.
pub(super) fn project_id(connection: &Connection, slug: &str) -> Result<i64, Error> {
    connection
        .prepare_cached("SELECT id FROM projects WHERE slug = ?1 AND removed_at IS NULL")?
        .query_row([slug], |row| row.get(0))
        .optional()?
        .ok_or_else(|| StoreError::Missing { table: "projects" }.into())
}

pub(super) fn list_projects_of(
    connection: &Connection,
    owner: Uuid,
) -> Result<Vec<Project>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT slug, owner, created_at FROM projects WHERE owner = ?1 ORDER BY slug",
    )?;
    let mut rows = statement.query([owner.as_bytes().as_slice()])?;
    let mut projects = Vec::new();
    while let Some(row) = rows.next()? {
        projects.push(project(row)?);
    }
    Ok(projects)
}
