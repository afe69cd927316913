//! The storage that deployments use.

use std::collections::BTreeMap;

use async_trait::async_trait;
use platform_domain::project::FileEntry;
use platform_domain::room::{BLOCK, Measured, ROW, content_bytes, listing_bytes};
use platform_store::stored_forms::read_sha256;
use platform_store::{RoomStore, StoreError};
use uuid::Uuid;

use super::deployments::remove_deployment;
use super::error::Error;
use super::projects;
use super::rows::get;
use super::store::PostgresStore;
use super::transaction::Transaction;

#[async_trait]
impl RoomStore for PostgresStore {
    async fn measure_room(
        &self,
        slug: &str,
        files: BTreeMap<String, FileEntry>,
    ) -> Result<Measured, StoreError> {
        // One transaction, so that all numbers are from the same moment.
        let snapshot = self.main.snapshot().await?;
        let measured = measure_room(&snapshot, slug, &files).await?;
        snapshot.finish_reading().await?;
        Ok(measured)
    }

    async fn count_room(&self, slug: &str) -> Result<u64, StoreError> {
        let snapshot = self.main.snapshot().await?;
        let row = snapshot.row(projects::NUMBER, &[&slug]).await?;
        let project = projects::found(row.as_ref())?;
        let counted = taken(&snapshot, project, Kept::All).await?;
        snapshot.finish_reading().await?;
        let kept = i64::try_from(counted).unwrap_or(i64::MAX);
        self.main
            .write(
                "UPDATE projects SET kept_bytes = $2 WHERE slug = $1",
                &[&slug, &kept],
            )
            .await?;
        Ok(counted)
    }

    async fn find_room(&self, slug: &str) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(kept_bytes, 0) FROM projects WHERE slug = $1";
        let row = self.main.row(sql, &[&slug]).await?;
        let found: i64 = row.as_ref().map_or(Ok(0), |row| get(row, 0))?;
        Ok(found.unsigned_abs())
    }

    async fn total_room(&self) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(sum(kept_bytes), 0)::bigint FROM projects
             WHERE removed_at IS NULL";
        let row = self.main.row(sql, &[]).await?;
        let total: i64 = row.as_ref().map_or(Ok(0), |row| get(row, 0))?;
        Ok(total.unsigned_abs())
    }

    async fn list_uncounted_projects(&self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT slug FROM projects WHERE kept_bytes IS NULL AND removed_at IS NULL";
        let rows = self.main.rows(sql, &[]).await?;
        let slugs = rows.iter().map(|row| get(row, 0));
        Ok(slugs.collect::<Result<_, _>>()?)
    }

    async fn remove_oldest_deployment(&self, slug: &str) -> Result<bool, StoreError> {
        transact!(self.main, transaction => remove_oldest_deployment(&transaction, slug))
    }
}

/// Which deployments of a project count.
#[derive(Clone, Copy)]
enum Kept {
    All,
    Shown,
}

impl Kept {
    /// Returns the SQL for their ids, for the project `$1`.
    const fn ids(self) -> &'static str {
        match self {
            Self::All => "SELECT id FROM deployments WHERE project = $1",
            Self::Shown => {
                "SELECT deployment FROM current_deployments WHERE project = $1
                 UNION ALL SELECT deployment FROM previews WHERE project = $1"
            }
        }
    }
}

/// Returns the storage of a project's deployments: each content once, and every entry.
async fn taken(transaction: &Transaction, project: i64, kept: Kept) -> Result<u64, Error> {
    let ids = kept.ids();
    let sql = format!(
        "SELECT (SELECT coalesce(sum((size + {BLOCK} - 1) / {BLOCK} * {BLOCK}), 0)::bigint FROM (
                 SELECT DISTINCT sha256, size FROM deployment_files
                 WHERE deployment IN ({ids})) AS contents),
             (SELECT coalesce(sum(octet_length(path) * 2 + {ROW}), 0)::bigint
              FROM deployment_files WHERE deployment IN ({ids}))"
    );
    let row = transaction
        .row(&sql, &[&project])
        .await?
        .ok_or(Error::Changed)?;
    let (contents, entries): (i64, i64) = (get(&row, 0)?, get(&row, 1)?);
    Ok(contents
        .unsigned_abs()
        .saturating_add(entries.unsigned_abs()))
}

/// Returns the storage of those contents that none of these deployments has.
async fn added(
    transaction: &Transaction,
    project: i64,
    kept: Kept,
    contents: &BTreeMap<&str, u64>,
) -> Result<u64, Error> {
    let wanted: Vec<Vec<u8>> = contents
        .keys()
        .filter_map(|sha256| read_sha256(sha256).map(Vec::from))
        .collect();
    let sql = format!(
        "SELECT DISTINCT encode(sha256, 'hex') FROM deployment_files
         WHERE sha256 = ANY($2) AND deployment IN ({})",
        kept.ids()
    );
    let rows = transaction.rows(&sql, &[&project, &wanted]).await?;
    let known: std::collections::BTreeSet<&str> = rows
        .iter()
        .map(|row| get(row, 0))
        .collect::<Result<_, _>>()?;
    let new = contents
        .iter()
        .filter(|(sha256, _)| !known.contains(**sha256));
    Ok(new.fold(0_u64, |bytes, (_, size)| {
        bytes.saturating_add(content_bytes(*size))
    }))
}

async fn measure_room(
    transaction: &Transaction,
    slug: &str,
    files: &BTreeMap<String, FileEntry>,
) -> Result<Measured, Error> {
    let row = transaction.row(projects::NUMBER, &[&slug]).await?;
    let project = projects::found(row.as_ref())?;
    let entries = listing_bytes(files.iter());
    let contents: BTreeMap<&str, u64> = files
        .values()
        .map(|file| (file.sha256.as_str(), file.size))
        .collect();
    let with = async |kept| -> Result<u64, Error> {
        let taken = taken(transaction, project, kept).await?;
        let added = added(transaction, project, kept, &contents).await?;
        Ok(taken.saturating_add(added).saturating_add(entries))
    };
    let (with_all, with_shown) = (with(Kept::All).await?, with(Kept::Shown).await?);
    let row = transaction
        .row(
            "SELECT coalesce(sum(kept_bytes), 0)::bigint FROM projects
             WHERE owner = (SELECT owner FROM projects WHERE id = $1) AND id <> $1
                 AND removed_at IS NULL",
            &[&project],
        )
        .await?;
    let others: i64 = row.as_ref().map_or(Ok(0), |row| get(row, 0))?;
    Ok(Measured {
        with_all,
        with_shown,
        others: others.unsigned_abs(),
    })
}

async fn remove_oldest_deployment(transaction: &Transaction, slug: &str) -> Result<bool, Error> {
    let project = projects::lock(transaction, slug).await?;
    let oldest = transaction
        .row(
            "SELECT id FROM deployments WHERE project = $1 AND preview IS NULL AND id NOT IN (
                 SELECT deployment FROM current_deployments WHERE project = $1)
             ORDER BY created_at, position, id LIMIT 1",
            &[&project],
        )
        .await?;
    let Some(oldest) = oldest else {
        return Ok(false);
    };
    let oldest: Uuid = get(&oldest, 0)?;
    remove_deployment(transaction, oldest).await?;
    Ok(true)
}
