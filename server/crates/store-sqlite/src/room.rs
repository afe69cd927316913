//! The storage that deployments use.

use std::collections::BTreeMap;

use async_trait::async_trait;
use platform_domain::project::FileEntry;
use platform_domain::room::{BLOCK, Measured, ROW, content_bytes, listing_bytes};
use platform_store::stored_forms::read_sha256;
use platform_store::{RoomStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::deployments::remove_deployment;
use super::error::Error;
use super::projects::project_id;
use super::store::SqliteStore;

#[async_trait]
impl RoomStore for SqliteStore {
    async fn measure_room(
        &self,
        slug: &str,
        files: BTreeMap<String, FileEntry>,
    ) -> Result<Measured, StoreError> {
        let slug = slug.to_owned();
        self.main
            .read_much(move |connection| measure_room(connection, &slug, &files))
            .await
    }

    async fn count_room(&self, slug: &str) -> Result<u64, StoreError> {
        // Counting may take a while, and only storing the number is a write.
        let of = slug.to_owned();
        let counted = self
            .main
            .read_much(move |connection| {
                let project = project_id(connection, &of)?;
                taken(connection, project, Kept::All)
            })
            .await?;
        let of = slug.to_owned();
        self.main
            .write(move |connection| {
                connection
                    .prepare_cached("UPDATE projects SET kept_bytes = ?2 WHERE slug = ?1")?
                    .execute(params![of, i64::try_from(counted).unwrap_or(i64::MAX)])?;
                Ok(())
            })
            .await?;
        Ok(counted)
    }

    async fn find_room(&self, slug: &str) -> Result<u64, StoreError> {
        self.main.read(|connection| {
            let found: Option<i64> = connection
                .prepare_cached("SELECT ifnull(kept_bytes, 0) FROM projects WHERE slug = ?1")?
                .query_row([slug], |row| row.get(0))
                .optional()?;
            Ok(found.unwrap_or(0).unsigned_abs())
        })
    }

    async fn total_room(&self) -> Result<u64, StoreError> {
        self.main
            .read_much(|connection| {
                let total: i64 = connection
                    .prepare_cached(
                        "SELECT ifnull(sum(kept_bytes), 0) FROM projects
                         WHERE removed_at IS NULL",
                    )?
                    .query_row([], |row| row.get(0))?;
                Ok(total.unsigned_abs())
            })
            .await
    }

    async fn list_uncounted_projects(&self) -> Result<Vec<String>, StoreError> {
        self.main
            .read_much(|connection| {
                let mut statement = connection.prepare_cached(
                    "SELECT slug FROM projects WHERE kept_bytes IS NULL AND removed_at IS NULL",
                )?;
                let slugs = statement.query_map([], |row| row.get(0))?;
                Ok(slugs.collect::<Result<_, _>>()?)
            })
            .await
    }

    async fn remove_oldest_deployment(&self, slug: &str) -> Result<bool, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| remove_oldest_deployment(connection, &slug))
            .await
    }
}

/// Which deployments of a project count.
#[derive(Clone, Copy)]
enum Kept {
    All,
    Shown,
}

impl Kept {
    /// The SQL for their ids, for the project `?1`.
    const fn ids(self) -> &'static str {
        match self {
            Self::All => "SELECT id FROM deployments WHERE project = ?1",
            Self::Shown => {
                "SELECT deployment FROM current_deployments WHERE project = ?1
                 UNION ALL SELECT deployment FROM previews WHERE project = ?1"
            }
        }
    }
}

/// The storage of a project's deployments: each content once, and every entry.
fn taken(connection: &Connection, project: i64, kept: Kept) -> Result<u64, Error> {
    let ids = kept.ids();
    let contents: i64 = connection
        .prepare_cached(&format!(
            "SELECT ifnull(sum((size + {BLOCK} - 1) / {BLOCK} * {BLOCK}), 0) FROM (
                 SELECT DISTINCT sha256, size FROM deployment_files WHERE deployment IN ({ids}))"
        ))?
        .query_row([project], |row| row.get(0))?;
    let entries: i64 = connection
        .prepare_cached(&format!(
            "SELECT ifnull(sum(length(CAST(path AS BLOB)) * 2 + {ROW}), 0) FROM deployment_files
             WHERE deployment IN ({ids})"
        ))?
        .query_row([project], |row| row.get(0))?;
    Ok(contents
        .unsigned_abs()
        .saturating_add(entries.unsigned_abs()))
}

/// The storage of those contents that none of these deployments has.
fn added(
    connection: &Connection,
    project: i64,
    kept: Kept,
    contents: &BTreeMap<&str, u64>,
) -> Result<u64, Error> {
    let mut find = connection.prepare_cached(&format!(
        "SELECT 1 FROM deployment_files WHERE sha256 = ?2 AND deployment IN ({}) LIMIT 1",
        kept.ids()
    ))?;
    let mut bytes = 0_u64;
    for (sha256, size) in contents {
        let known = match read_sha256(sha256) {
            Some(sha256) => find.exists(params![project, sha256.as_slice()])?,
            None => false,
        };
        if !known {
            bytes = bytes.saturating_add(content_bytes(*size));
        }
    }
    Ok(bytes)
}

fn measure_room(
    connection: &Connection,
    slug: &str,
    files: &BTreeMap<String, FileEntry>,
) -> Result<Measured, Error> {
    // One transaction, so that all numbers are from the same moment.
    let transaction = connection.unchecked_transaction()?;
    let project = project_id(&transaction, slug)?;
    let entries = listing_bytes(files.iter());
    let contents: BTreeMap<&str, u64> = files
        .values()
        .map(|file| (file.sha256.as_str(), file.size))
        .collect();
    let with = |kept| -> Result<u64, Error> {
        let taken = taken(&transaction, project, kept)?;
        let added = added(&transaction, project, kept, &contents)?;
        Ok(taken.saturating_add(added).saturating_add(entries))
    };
    let others: i64 = transaction
        .prepare_cached(
            "SELECT ifnull(sum(kept_bytes), 0) FROM projects
             WHERE owner = (SELECT owner FROM projects WHERE id = ?1) AND id <> ?1
                 AND removed_at IS NULL",
        )?
        .query_row([project], |row| row.get(0))?;
    Ok(Measured {
        with_all: with(Kept::All)?,
        with_shown: with(Kept::Shown)?,
        others: others.unsigned_abs(),
    })
}

fn remove_oldest_deployment(connection: &Connection, slug: &str) -> Result<bool, Error> {
    let project = project_id(connection, slug)?;
    let oldest: Option<Vec<u8>> = connection
        .prepare_cached(
            "SELECT id FROM deployments WHERE project = ?1 AND preview IS NULL AND id NOT IN (
                 SELECT deployment FROM current_deployments WHERE project = ?1)
             ORDER BY created_at, position, id LIMIT 1",
        )?
        .query_row([project], |row| row.get(0))
        .optional()?;
    match oldest {
        Some(oldest) => remove_deployment(connection, &oldest).map(|()| true),
        None => Ok(false),
    }
}
