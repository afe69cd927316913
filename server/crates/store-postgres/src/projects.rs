//! Projects and their owners.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::project::Project;
use platform_store::{ProjectStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::players;
use super::rows::get;
use super::store::PostgresStore;
use super::transaction::Transaction;

#[async_trait]
impl ProjectStore for PostgresStore {
    async fn add_project(&self, project: Project) -> Result<(), StoreError> {
        transact!(self.main, transaction => add_project(&transaction, &project))
    }

    async fn add_project_within(
        &self,
        project: Project,
        most: u32,
        by: By,
    ) -> Result<(), StoreError> {
        transact!(self.main, transaction => add_project_within(&transaction, &project, most, &by))
    }

    async fn list_projects(&self) -> Result<Vec<Project>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT slug, owner, created_at FROM projects WHERE removed_at IS NULL
                 ORDER BY slug",
                &[],
            )
            .await?;
        Ok(rows.iter().map(project).collect::<Result<_, _>>()?)
    }

    async fn find_project(&self, slug: &str) -> Result<Option<Project>, StoreError> {
        let row = self
            .main
            .row(
                "SELECT slug, owner, created_at FROM projects
                 WHERE slug = $1 AND removed_at IS NULL",
                &[&slug],
            )
            .await?;
        Ok(row.as_ref().map(project).transpose()?)
    }

    async fn list_projects_of(&self, owner: Uuid) -> Result<Vec<Project>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT slug, owner, created_at FROM projects WHERE owner = $1 ORDER BY slug",
                &[&owner],
            )
            .await?;
        Ok(rows.iter().map(project).collect::<Result<_, _>>()?)
    }
}

pub(super) fn project(row: &Row) -> Result<Project, Error> {
    Ok(Project {
        slug: get(row, 0)?,
        owner: get(row, 1)?,
        created_at: get(row, 2)?,
    })
}

async fn add_project(transaction: &Transaction, project: &Project) -> Result<(), Error> {
    if let Some(owner) = project.owner {
        let sql = "SELECT 1 FROM players WHERE id = $1";
        if transaction.row(sql, &[&owner]).await?.is_none() {
            return Err(StoreError::Missing { table: "players" }.into());
        }
    }
    transaction
        .execute(
            "INSERT INTO projects (slug, owner, created_at) VALUES ($1, $2, $3)",
            &[&project.slug, &project.owner, &project.created_at],
        )
        .await
        .map(drop)
}

async fn add_project_within(
    transaction: &Transaction,
    project: &Project,
    most: u32,
    by: &By,
) -> Result<(), Error> {
    if let Some(owner) = project.owner {
        // An operation that counts an owner's projects and adds one locks the owner's row.
        players::lock_one(transaction, owner).await?;
    }
    let row = transaction
        .row(
            "SELECT count(*) FROM projects WHERE owner = $1 AND removed_at IS NULL",
            &[&project.owner],
        )
        .await?;
    let owned: i64 = row.as_ref().map_or(Ok(0), |row| get(row, 0))?;
    if owned >= i64::from(most) {
        return Err(StoreError::ProjectCap.into());
    }
    add_project(transaction, project).await?;
    let mut event = Entry::of(AuditKind::ProjectCreated, project.created_at)
        .subject(&project.slug)
        .by(by);
    if let Some(owner) = project.owner {
        event = event.player(owner);
    }
    audit::add(transaction, &event).await
}

/// Locks a project until the transaction ends, and returns its id. Every operation that changes a
/// part of a project locks its row.
///
/// # Errors
/// [`StoreError::Missing`] if there is no such project.
pub(super) async fn lock(transaction: &Transaction, slug: &str) -> Result<i64, Error> {
    let row = transaction
        .row(
            "SELECT id FROM projects WHERE slug = $1 AND removed_at IS NULL FOR NO KEY UPDATE",
            &[&slug],
        )
        .await?;
    found(row.as_ref())
}

/// Reads the id in a project's row.
///
/// # Errors
/// [`StoreError::Missing`] if there is no row.
pub(super) fn found(row: Option<&Row>) -> Result<i64, Error> {
    row.map_or_else(
        || Err(StoreError::Missing { table: "projects" }.into()),
        |row| get(row, 0),
    )
}

/// Selects the id of a project, for operations that only read.
pub(super) const NUMBER: &str = "SELECT id FROM projects WHERE slug = $1 AND removed_at IS NULL";
