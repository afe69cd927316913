//! Deployments.

use std::collections::BTreeMap;

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::project::{Deployment, DeploymentSummary, FileEntry, Inspection, Made};
use platform_protocol::names::Environment;
use platform_store::stored_forms::{read_environment, read_inspection, write_inspection};
use platform_store::{DeploymentStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::audit;
use super::deployed_files;
use super::error::Error;
use super::projects::project_id;
use super::rows::uuid;
use super::store::SqliteStore;

#[async_trait]
impl DeploymentStore for SqliteStore {
    async fn add_deployment(&self, deployment: Deployment, by: By) -> Result<(), StoreError> {
        self.main
            .write(move |connection| add_deployment(connection, &deployment, by))
            .await
    }

    async fn find_current_deployment(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Option<Deployment>, StoreError> {
        let slug = slug.to_owned();
        self.main
            .read_much(move |connection| find_current_deployment(connection, &slug, environment))
            .await
    }

    async fn find_deployment(&self, id: Uuid) -> Result<Option<Deployment>, StoreError> {
        self.main
            .read_much(move |connection| find_deployment(connection, id))
            .await
    }

    async fn describe_deployment(&self, id: Uuid) -> Result<Option<Deployment>, StoreError> {
        self.main
            .read(|connection| describe_deployment(connection, id))
    }

    async fn find_files(
        &self,
        deployment: Uuid,
        paths: Vec<String>,
    ) -> Result<BTreeMap<String, FileEntry>, StoreError> {
        self.main
            .read(|connection| deployed_files::find_files(connection, deployment, paths))
    }

    async fn list_deployments(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Vec<DeploymentSummary>, StoreError> {
        self.main
            .read(|connection| list_deployments(connection, slug, environment))
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
                let before = set_current_deployment(connection, &slug, environment, deployment)?;
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
            .read(|connection| deployed_files::find_kept_file(connection, slug, environment, path))
    }

    async fn find_file_of(
        &self,
        slug: &str,
        environment: Environment,
        deployment: Uuid,
        path: &str,
    ) -> Result<Option<FileEntry>, StoreError> {
        self.main.read(|connection| {
            deployed_files::find_file_of(connection, slug, environment, deployment, path)
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
                deployed_files::list_changed_paths(connection, &slug, environment)
            })
            .await
    }

    async fn set_inspections(&self, found: Vec<(Uuid, Inspection)>) -> Result<(), StoreError> {
        self.main
            .write(move |connection| set_inspections(connection, &found))
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
            .write(move |connection| sweep_deployments(connection, &slug, environment, keep))
            .await
    }

    async fn list_unreferenced_files(&self, files: Vec<String>) -> Result<Vec<String>, StoreError> {
        self.main
            .read_much(move |connection| deployed_files::list_unreferenced_files(connection, files))
            .await
    }
}

pub(super) fn add_deployment(
    connection: &Connection,
    deployment: &Deployment,
    by: By,
) -> Result<(), Error> {
    let project = project_id(connection, &deployment.slug)?;
    insert_deployment(connection, project, deployment, None)?;
    show(connection, project, deployment.environment, deployment.id)?;
    let about = format!("{} {}", deployment.environment.as_str(), deployment.id);
    audit::add_of_project(
        connection,
        AuditKind::Deployed,
        (&deployment.slug, &about),
        by,
        deployment.created_at,
    )
}

/// Adds a deployment with its files; for a preview, if it has the name of one.
pub(super) fn insert_deployment(
    connection: &Connection,
    project: i64,
    deployment: &Deployment,
    preview: Option<&str>,
) -> Result<(), Error> {
    let id = deployment.id.as_bytes();
    let environment = deployment.environment.as_str();
    connection
        .prepare_cached(
            "INSERT INTO deployments (id, project, environment, created_at, files, bytes, position,
                 deployed_by, client, network, message, revision, inspection,
                 deploy_token, preview)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6,
                 (SELECT ifnull(max(position), 0) + 1 FROM deployments WHERE project = ?2),
                 ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute(params![
            id,
            project,
            environment,
            deployment.created_at,
            counted(deployment.files.len() as u64),
            counted(deployment.files.values().map(|file| file.size).sum()),
            deployment.made.by.as_ref().map(Uuid::as_bytes),
            deployment.made.client,
            deployment.made.network,
            deployment.made.message,
            deployment.made.revision,
            deployment.inspection.as_ref().map(write_inspection),
            deployment.made.deploy_token,
            preview,
        ])?;
    deployed_files::add(connection, deployment)
}

/// Makes a deployment the environment's current one.
fn show(
    connection: &Connection,
    project: i64,
    environment: Environment,
    deployment: Uuid,
) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT INTO current_deployments (project, environment, deployment)
             VALUES (?1, ?2, ?3)
             ON CONFLICT (project, environment) DO UPDATE SET deployment = excluded.deployment",
        )?
        .execute(params![
            project,
            environment.as_str(),
            deployment.as_bytes()
        ])?;
    Ok(())
}

/// Makes an earlier deployment current again. Returns the one that was current before.
pub(super) fn set_current_deployment(
    connection: &Connection,
    slug: &str,
    environment: Environment,
    deployment: Uuid,
) -> Result<Option<Uuid>, Error> {
    let project = project_id(connection, slug)?;
    let known = connection
        .prepare_cached(
            "SELECT 1 FROM deployments
             WHERE id = ?1 AND project = ?2 AND environment = ?3 AND preview IS NULL",
        )?
        .exists(params![
            deployment.as_bytes(),
            project,
            environment.as_str()
        ])?;
    if !known {
        return Err(StoreError::Missing {
            table: "deployments",
        }
        .into());
    }
    let before: Option<Vec<u8>> = connection
        .prepare_cached(
            "SELECT deployment FROM current_deployments WHERE project = ?1 AND environment = ?2",
        )?
        .query_row(params![project, environment.as_str()], |row| row.get(0))
        .optional()?;
    let before = before
        .map(|before| {
            uuid(&before, "current_deployments", "deployment", || {
                slug.to_owned()
            })
        })
        .transpose()?;
    if before != Some(deployment) {
        show(connection, project, environment, deployment)?;
    }
    Ok(before)
}

pub(super) fn find_deployment(
    connection: &Connection,
    id: Uuid,
) -> Result<Option<Deployment>, Error> {
    let transaction = connection.unchecked_transaction()?;
    let Some(found) = describe_deployment(&transaction, id)? else {
        return Ok(None);
    };
    Ok(Some(Deployment {
        files: deployed_files::list_files(&transaction, id)?,
        ..found
    }))
}

/// Returns a deployment without its files.
fn describe_deployment(connection: &Connection, id: Uuid) -> Result<Option<Deployment>, Error> {
    let found = connection
        .prepare_cached(
            "SELECT p.slug, d.environment, d.created_at, d.deployed_by, d.client, d.network,
                 d.message, d.revision, d.deploy_token, d.inspection
             FROM deployments d JOIN projects p ON p.id = d.project WHERE d.id = ?1",
        )?
        .query_row([id.as_bytes().as_slice()], |row| {
            let place = (row.get(0)?, row.get::<_, String>(1)?, row.get(2)?);
            Ok((place, made(row, 3), inspection(row, 9, &id)))
        })
        .optional()?;
    let Some(((slug, environment, created_at), made, inspection)) = found else {
        return Ok(None);
    };
    let (made, inspection) = (made?, inspection?);
    Ok(Some(Deployment {
        id,
        slug,
        environment: read_environment(&environment, || id.to_string())?,
        files: BTreeMap::new(),
        created_at,
        made,
        inspection,
    }))
}

pub(super) fn list_deployments(
    connection: &Connection,
    slug: &str,
    environment: Environment,
) -> Result<Vec<DeploymentSummary>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT d.id, d.created_at, d.files, d.bytes, c.deployment IS NOT NULL, d.deployed_by,
             d.client, d.network, d.message, d.revision, d.deploy_token
         FROM projects p
         JOIN deployments d ON d.project = p.id AND d.environment = ?2 AND d.preview IS NULL
         LEFT JOIN current_deployments c
             ON c.project = p.id AND c.environment = ?2 AND c.deployment = d.id
         WHERE p.slug = ?1 ORDER BY d.created_at DESC, d.position DESC, d.id DESC",
    )?;
    let mut rows = statement.query([slug, environment.as_str()])?;
    let mut deployments = Vec::new();
    while let Some(row) = rows.next()? {
        deployments.push(summary(row, slug)?);
    }
    Ok(deployments)
}

/// Reads a deployment of a project's list, in the first eleven columns.
pub(super) fn summary(row: &Row<'_>, slug: &str) -> Result<DeploymentSummary, Error> {
    let id: Vec<u8> = row.get(0)?;
    Ok(DeploymentSummary {
        id: uuid(&id, "deployments", "id", || slug.to_owned())?,
        created_at: row.get(1)?,
        files: row.get::<_, i64>(2)?.unsigned_abs(),
        bytes: row.get::<_, i64>(3)?.unsigned_abs(),
        current: row.get(4)?,
        made: made(row, 5)?,
    })
}

/// Reads who made a deployment, from the column `first` on.
fn made(row: &Row<'_>, first: usize) -> Result<Made, Error> {
    let by: Option<Vec<u8>> = row.get(first)?;
    Ok(Made {
        by: by
            .map(|by| uuid(&by, "deployments", "deployed_by", String::new))
            .transpose()?,
        client: row.get(first + 1)?,
        network: row.get(first + 2)?,
        message: row.get(first + 3)?,
        revision: row.get(first + 4)?,
        deploy_token: row.get(first + 5)?,
    })
}

/// The inspection in a column, if there is one.
fn inspection(
    row: &Row<'_>,
    column: usize,
    key: &dyn std::fmt::Display,
) -> Result<Option<Inspection>, Error> {
    let kept: Option<String> = row.get(column)?;
    Ok(read_inspection(kept.as_deref(), key)?)
}

fn set_inspections(connection: &Connection, found: &[(Uuid, Inspection)]) -> Result<(), Error> {
    let mut set = connection.prepare_cached(
        "UPDATE deployments SET inspection = ?2 WHERE id = ?1 AND inspection IS NULL",
    )?;
    for (id, inspection) in found {
        set.execute(params![id.as_bytes(), write_inspection(inspection)])?;
    }
    Ok(())
}

pub(super) fn sweep_deployments(
    connection: &Connection,
    slug: &str,
    environment: Environment,
    keep: usize,
) -> Result<usize, Error> {
    let kept = list_deployments(connection, slug, environment)?;
    let mut swept = 0;
    for old in kept.iter().skip(keep).filter(|old| !old.current) {
        remove_deployment(connection, old.id.as_bytes())?;
        swept += 1;
    }
    Ok(swept)
}

/// Removes a deployment that is not current in any environment.
pub(super) fn remove_deployment(connection: &Connection, id: &[u8]) -> Result<(), Error> {
    for sql in [
        "DELETE FROM deployment_files WHERE deployment = ?1",
        "DELETE FROM deployments WHERE id = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([id])?;
    }
    Ok(())
}

/// SQLite's integers are signed; the numbers here are far below 2^63.
fn counted(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn find_current_deployment(
    connection: &Connection,
    slug: &str,
    environment: Environment,
) -> Result<Option<Deployment>, Error> {
    // One transaction: a deploy between the two reads must not mix two deployments.
    let transaction = connection.unchecked_transaction()?;
    let found = transaction
        .prepare_cached(
            "SELECT d.id, d.created_at, d.deployed_by, d.client, d.network, d.message, d.revision,
                 d.deploy_token, d.inspection
             FROM projects p
             JOIN current_deployments c ON c.project = p.id AND c.environment = ?2
             JOIN deployments d ON d.id = c.deployment WHERE p.slug = ?1",
        )?
        .query_row([slug, environment.as_str()], |row| {
            let inspection = inspection(row, 8, &slug);
            Ok((
                row.get::<_, Vec<u8>>(0)?,
                row.get(1)?,
                made(row, 2),
                inspection,
            ))
        })
        .optional()?;
    let Some((id, created_at, made, inspection)) = found else {
        return Ok(None);
    };
    let (made, inspection) = (made?, inspection?);
    let id = uuid(&id, "deployments", "id", || slug.to_owned())?;
    let files = deployed_files::list_files(&transaction, id)?;
    Ok(Some(Deployment {
        id,
        slug: slug.to_owned(),
        environment,
        files,
        created_at,
        made,
        inspection,
    }))
}
