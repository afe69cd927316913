//! The files of deployments.

use std::collections::BTreeMap;

use platform_domain::project::{Deployment, FileEntry};
use platform_protocol::names::Environment;
use platform_store::StoreError;
use platform_store::stored_forms::{read_sha256, write_sha256};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::error::Error;

/// Adds the files of a deployment.
pub(super) fn add(connection: &Connection, deployment: &Deployment) -> Result<(), Error> {
    let id = deployment.id.as_bytes();
    let mut add = connection.prepare_cached(
        "INSERT INTO deployment_files (deployment, path, sha256, size) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (path, file) in &deployment.files {
        let wrong = |column| StoreError::Corrupt {
            table: "deployment_files",
            column,
            row: format!("{}/{path}", deployment.id),
        };
        let sha256 = read_sha256(&file.sha256).ok_or_else(|| wrong("sha256"))?;
        let size = i64::try_from(file.size).map_err(|_| wrong("size"))?;
        add.execute(params![id, path, sha256, size])?;
    }
    Ok(())
}

pub(super) fn list_files(
    connection: &Connection,
    deployment: Uuid,
) -> Result<BTreeMap<String, FileEntry>, Error> {
    let mut statement = connection
        .prepare_cached("SELECT path, sha256, size FROM deployment_files WHERE deployment = ?1")?;
    let mut rows = statement.query([deployment.as_bytes().as_slice()])?;
    let mut files = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let path: String = row.get(0)?;
        let sha256 = write_sha256(row.get_ref(1)?.as_blob().unwrap_or_default());
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

pub(super) fn find_files(
    connection: &Connection,
    deployment: Uuid,
    paths: Vec<String>,
) -> Result<BTreeMap<String, FileEntry>, Error> {
    let mut find = connection.prepare_cached(
        "SELECT sha256, size FROM deployment_files WHERE deployment = ?1 AND path = ?2",
    )?;
    let mut files = BTreeMap::new();
    for path in paths {
        let found = find.query_row(params![deployment.as_bytes(), path], file_entry);
        if let Some(entry) = found.optional()? {
            files.insert(path, entry);
        }
    }
    Ok(files)
}

pub(super) fn find_kept_file(
    connection: &Connection,
    slug: &str,
    environment: Environment,
    path: &str,
) -> Result<Option<FileEntry>, Error> {
    let found = connection
        .prepare_cached(
            "SELECT min(f.sha256), max(f.size) FROM projects p
             JOIN deployments d ON d.project = p.id AND d.environment = ?2 AND d.preview IS NULL
             JOIN deployment_files f ON f.deployment = d.id AND f.path = ?3
             WHERE p.slug = ?1 HAVING min(f.sha256) = max(f.sha256)",
        )?
        .query_row([slug, environment.as_str(), path], file_entry)
        .optional()?;
    Ok(found)
}

pub(super) fn find_file_of(
    connection: &Connection,
    slug: &str,
    environment: Environment,
    deployment: Uuid,
    path: &str,
) -> Result<Option<FileEntry>, Error> {
    let id = deployment.as_bytes();
    let found = connection
        .prepare_cached(
            "SELECT f.sha256, f.size FROM projects p
             JOIN deployments d ON d.project = p.id AND d.environment = ?2 AND d.id = ?4
             JOIN deployment_files f ON f.deployment = d.id AND f.path = ?3
             WHERE p.slug = ?1",
        )?
        .query_row(params![slug, environment.as_str(), path, id], file_entry)
        .optional()?;
    Ok(found)
}

pub(super) fn list_changed_paths(
    connection: &Connection,
    slug: &str,
    environment: Environment,
) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT f.path FROM projects p
         JOIN deployments d ON d.project = p.id AND d.environment = ?2 AND d.preview IS NULL
         JOIN deployment_files f ON f.deployment = d.id
         WHERE p.slug = ?1 GROUP BY f.path HAVING min(f.sha256) < max(f.sha256)
         ORDER BY f.path",
    )?;
    let paths = statement.query_map([slug, environment.as_str()], |row| row.get(0))?;
    Ok(paths.collect::<Result<_, _>>()?)
}

pub(super) fn list_unreferenced_files(
    connection: &Connection,
    mut files: Vec<String>,
) -> Result<Vec<String>, Error> {
    let mut find =
        connection.prepare_cached("SELECT 1 FROM deployment_files WHERE sha256 = ?1 LIMIT 1")?;
    let mut failed = None;
    files.retain(|name| {
        // A name that is not a SHA-256 is not the name of a stored file, so it is not returned.
        let Some(sha256) = read_sha256(name) else {
            return false;
        };
        match find.exists([sha256.as_slice()]) {
            Ok(referenced) => !referenced,
            Err(error) => {
                failed.get_or_insert(error);
                false
            }
        }
    });
    failed.map_or(Ok(files), |error| Err(error.into()))
}

fn file_entry(row: &Row<'_>) -> rusqlite::Result<FileEntry> {
    Ok(FileEntry {
        sha256: write_sha256(&row.get::<_, Vec<u8>>(0)?),
        size: row.get::<_, i64>(1)?.unsigned_abs(),
    })
}
