//! Projects, and what is deployed in their environments.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use platform_protocol::names::Environment;
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use super::uuid;
use crate::domain::project::{Deployment, FileEntry, Project};
use crate::store::StoreError;

pub(super) fn add_project(connection: &Connection, project: &Project) -> Result<(), StoreError> {
    let owner = project.owner.as_ref().map(Uuid::as_bytes);
    if let Some(owner) = owner {
        let known = connection
            .prepare_cached("SELECT 1 FROM players WHERE id = ?1")?
            .exists([owner.as_slice()])?;
        if !known {
            return Err(StoreError::Missing { table: "players" });
        }
    }
    connection
        .prepare_cached("INSERT INTO projects (slug, owner, created_at) VALUES (?1, ?2, ?3)")?
        .execute(params![project.slug, owner, project.created_at])?;
    Ok(())
}

pub(super) fn list_projects(connection: &Connection) -> Result<Vec<Project>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT slug, owner, created_at FROM projects ORDER BY slug")?;
    let mut rows = statement.query([])?;
    let mut projects = Vec::new();
    while let Some(row) = rows.next()? {
        projects.push(project(row)?);
    }
    Ok(projects)
}

pub(super) fn find_project(
    connection: &Connection,
    slug: &str,
) -> Result<Option<Project>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT slug, owner, created_at FROM projects WHERE slug = ?1")?;
    let mut rows = statement.query([slug])?;
    rows.next()?.map(project).transpose()
}

fn project(row: &Row<'_>) -> Result<Project, StoreError> {
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

pub(super) fn add_deployment(
    connection: &Connection,
    deployment: &Deployment,
) -> Result<(), StoreError> {
    let project: i64 = connection
        .prepare_cached("SELECT id FROM projects WHERE slug = ?1")?
        .query_row([&deployment.slug], |row| row.get(0))
        .optional()?
        .ok_or(StoreError::Missing { table: "projects" })?;
    let id = deployment.id.as_bytes();
    let environment = deployment.environment.as_str();
    connection
        .prepare_cached(
            "INSERT INTO deployments (id, project, environment, created_at)
             VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![id, project, environment, deployment.created_at])?;
    let mut add = connection.prepare_cached(
        "INSERT INTO deployment_files (deployment, path, sha256, size) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (path, file) in &deployment.files {
        let wrong = |column| StoreError::Corrupt {
            table: "deployment_files",
            column,
            row: format!("{}/{path}", deployment.id),
        };
        let sha256 = from_hex(&file.sha256).ok_or_else(|| wrong("sha256"))?;
        let size = i64::try_from(file.size).map_err(|_| wrong("size"))?;
        add.execute(params![id, path, sha256, size])?;
    }
    connection
        .prepare_cached(
            "INSERT INTO current_deployments (project, environment, deployment)
             VALUES (?1, ?2, ?3)
             ON CONFLICT (project, environment) DO UPDATE SET deployment = excluded.deployment",
        )?
        .execute(params![project, environment, id])?;
    Ok(())
}

pub(super) fn find_current_deployment(
    connection: &Connection,
    slug: &str,
    environment: Environment,
) -> Result<Option<Deployment>, StoreError> {
    // One transaction: a deploy between the two reads may not mix two sites.
    let transaction = connection.unchecked_transaction()?;
    let found = transaction
        .prepare_cached(
            "SELECT d.id, d.created_at FROM projects p
             JOIN current_deployments c ON c.project = p.id AND c.environment = ?2
             JOIN deployments d ON d.id = c.deployment WHERE p.slug = ?1",
        )?
        .query_row([slug, environment.as_str()], |row| {
            Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((id, created_at)) = found else {
        return Ok(None);
    };
    let id = uuid(&id, "deployments", "id", || slug.to_owned())?;
    let files = list_files(&transaction, id)?;
    Ok(Some(Deployment {
        id,
        slug: slug.to_owned(),
        environment,
        files,
        created_at,
    }))
}

fn list_files(
    connection: &Connection,
    deployment: Uuid,
) -> Result<BTreeMap<String, FileEntry>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT path, sha256, size FROM deployment_files WHERE deployment = ?1")?;
    let mut rows = statement.query([deployment.as_bytes().as_slice()])?;
    let mut files = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let path: String = row.get(0)?;
        let sha256 = to_hex(row.get_ref(1)?.as_blob().unwrap_or_default());
        let size: i64 = row.get(2)?;
        let size = u64::try_from(size).map_err(|_| StoreError::Corrupt {
            table: "deployment_files",
            column: "size",
            row: format!("{deployment}/{path}"),
        })?;
        files.insert(path, FileEntry { sha256, size });
    }
    Ok(files)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
            // Writing into a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

fn from_hex(hex: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}
