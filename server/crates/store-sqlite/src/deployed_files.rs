//! The files of deployments.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use platform_domain::project::{Deployment, FileEntry};
use platform_protocol::names::Environment;
use platform_store::StoreError;
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
        let sha256 = from_hex(&file.sha256).ok_or_else(|| wrong("sha256"))?;
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

pub(super) fn find_kept_file(
    connection: &Connection,
    slug: &str,
    environment: Environment,
    path: &str,
) -> Result<Option<FileEntry>, Error> {
    let found = connection
        .prepare_cached(
            "SELECT min(f.sha256), max(f.size) FROM projects p
             JOIN deployments d ON d.project = p.id AND d.environment = ?2
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
         JOIN deployments d ON d.project = p.id AND d.environment = ?2
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
        let Some(sha256) = from_hex(name) else {
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
        sha256: to_hex(&row.get::<_, Vec<u8>>(0)?),
        size: row.get::<_, i64>(1)?.unsigned_abs(),
    })
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

pub(super) fn from_hex(hex: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}
