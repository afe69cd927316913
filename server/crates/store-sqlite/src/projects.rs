//! Projects and their owners.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::project::{
    BackendSettings, Deployment, DeploymentSummary, EnvironmentRecord, FileEntry, Frames, Project,
};
use platform_protocol::names::Environment;
use platform_store::{ProjectStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::error::Error;
use super::{SqliteStore, deployments, environments, uuid};

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

    async fn add_deployment(&self, deployment: Deployment, by: By) -> Result<(), StoreError> {
        self.main
            .write(move |connection| deployments::add_deployment(connection, &deployment, by))
            .await
    }

    async fn find_current_deployment(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Option<Deployment>, StoreError> {
        let slug = slug.to_owned();
        self.main
            .read_much(move |connection| {
                deployments::find_current_deployment(connection, &slug, environment)
            })
            .await
    }

    async fn list_projects_of(&self, owner: Uuid) -> Result<Vec<Project>, StoreError> {
        self.main
            .read_much(move |connection| list_projects_of(connection, owner))
            .await
    }

    async fn list_environments(&self) -> Result<Vec<EnvironmentRecord>, StoreError> {
        self.main.read_much(environments::list_environments).await
    }

    async fn find_environment(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Option<EnvironmentRecord>, StoreError> {
        self.main
            .read(|connection| environments::find_environment(connection, slug, environment))
    }

    async fn find_deployment(&self, id: Uuid) -> Result<Option<Deployment>, StoreError> {
        self.main
            .read_much(move |connection| deployments::find_deployment(connection, id))
            .await
    }

    async fn list_deployments(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Vec<DeploymentSummary>, StoreError> {
        self.main
            .read(|connection| deployments::list_deployments(connection, slug, environment))
    }

    async fn set_current_deployment(
        &self,
        slug: &str,
        environment: Environment,
        deployment: Uuid,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| {
                let before = deployments::set_current_deployment(
                    connection,
                    &slug,
                    environment,
                    deployment,
                )?;
                if before == Some(deployment) {
                    return Ok(false);
                }
                let mut detail = format!("{} {deployment}", environment.as_str());
                if let Some(before) = before {
                    detail.push_str(&format!(" in place of {before}"));
                }
                let kind = AuditKind::RolledBack;
                audit::add_of_project(connection, kind, (&slug, &detail), by, now)?;
                Ok(true)
            })
            .await
    }

    async fn find_kept_file(
        &self,
        slug: &str,
        environment: Environment,
        path: &str,
    ) -> Result<Option<FileEntry>, StoreError> {
        self.main
            .read(|connection| deployments::find_kept_file(connection, slug, environment, path))
    }

    async fn find_file_of(
        &self,
        slug: &str,
        environment: Environment,
        deployment: Uuid,
        path: &str,
    ) -> Result<Option<FileEntry>, StoreError> {
        self.main.read(|connection| {
            deployments::find_file_of(connection, slug, environment, deployment, path)
        })
    }

    async fn list_changed_paths(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Vec<String>, StoreError> {
        let slug = slug.to_owned();
        self.main
            .read_much(move |connection| {
                deployments::list_changed_paths(connection, &slug, environment)
            })
            .await
    }

    async fn sweep_deployments(
        &self,
        slug: &str,
        environment: Environment,
        keep: usize,
    ) -> Result<usize, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| {
                deployments::sweep_deployments(connection, &slug, environment, keep)
            })
            .await
    }

    async fn list_unreferenced_files(&self, files: Vec<String>) -> Result<Vec<String>, StoreError> {
        self.main
            .read_much(move |connection| deployments::list_unreferenced_files(connection, files))
            .await
    }

    async fn set_backend(
        &self,
        slug: &str,
        environment: Environment,
        backend: Option<BackendSettings>,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| {
                if !environments::set_backend(connection, &slug, environment, backend.as_ref())? {
                    return Ok(false);
                }
                let url = backend.map_or_else(|| "none".to_owned(), |backend| backend.url);
                let detail = format!("{} {url}", environment.as_str());
                let kind = AuditKind::BackendChanged;
                audit::add_of_project(connection, kind, (&slug, &detail), by, now)?;
                Ok(true)
            })
            .await
    }

    async fn set_isolated(
        &self,
        slug: &str,
        environment: Environment,
        isolated: bool,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| {
                if !environments::set_isolated(connection, &slug, environment, isolated)? {
                    return Ok(false);
                }
                let state = if isolated { "on" } else { "off" };
                let detail = format!("{} isolation {state}", environment.as_str());
                let kind = AuditKind::SettingChanged;
                audit::add_of_project(connection, kind, (&slug, &detail), by, now)?;
                Ok(true)
            })
            .await
    }

    async fn set_frames(
        &self,
        slug: &str,
        environment: Environment,
        frames: Frames,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| {
                if !environments::set_frames(connection, &slug, environment, &frames)? {
                    return Ok(false);
                }
                let detail = format!("{} frames {}", environment.as_str(), frames.word());
                let kind = AuditKind::SettingChanged;
                audit::add_of_project(connection, kind, (&slug, &detail), by, now)?;
                Ok(true)
            })
            .await
    }

    async fn ensure_test_player(
        &self,
        slug: &str,
        guest: bool,
        number: u8,
        fresh: Uuid,
        by: By,
        now: Millis,
    ) -> Result<Uuid, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| {
                let id = environments::ensure_test_player(connection, &slug, guest, number, fresh)?;
                let kind = if guest { "guest" } else { "user" };
                let detail = format!("test-{kind}-{number}");
                audit::add_given(connection, (&slug, &detail), by, now)?;
                Ok(id)
            })
            .await
    }
}

pub(super) fn add_project(connection: &Connection, project: &Project) -> Result<(), Error> {
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

pub(super) fn add_project_within(
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

pub(super) fn find_project(connection: &Connection, slug: &str) -> Result<Option<Project>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT slug, owner, created_at FROM projects WHERE slug = ?1 AND removed_at IS NULL",
    )?;
    let mut rows = statement.query([slug])?;
    rows.next()?.map(project).transpose()
}

fn project(row: &Row<'_>) -> Result<Project, Error> {
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
