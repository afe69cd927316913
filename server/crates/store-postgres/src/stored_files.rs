//! Files in a file store that several nodes share.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_store::stored_forms::{read_sha256, write_sha256};
use platform_store::{CLAIM_HOLDS, StoreError, StoredFileStore, UNUSED_FILES_STAY};
use tokio_postgres::Row;

use super::error::Error;
use super::rows::{count, get};
use super::store::PostgresStore;

#[async_trait]
impl StoredFileStore for PostgresStore {
    async fn touch_files(
        &self,
        files: Vec<String>,
        now: Millis,
    ) -> Result<Vec<String>, StoreError> {
        // In one order, so that two deploys do not wait for each other.
        let touched = self
            .main
            .write(
                "INSERT INTO stored_files AS s (sha256, touched_at)
                 SELECT DISTINCT sha256, $2::bigint FROM unnest($1::bytea[]) AS new (sha256)
                 ORDER BY sha256
                 ON CONFLICT (sha256) DO UPDATE
                 SET touched_at = greatest(s.touched_at, excluded.touched_at), claimed_at = NULL
                 WHERE s.claimed_at IS NULL OR s.claimed_at <= $3
                 RETURNING sha256",
                &[&hashes(&files), &now, &(now - CLAIM_HOLDS)],
            )
            .await?;
        let touched: std::collections::HashSet<String> = names(&touched)?.into_iter().collect();
        let claimed = files
            .into_iter()
            .filter(|name| read_sha256(name).is_some() && !touched.contains(name));
        Ok(claimed.collect())
    }

    async fn adopt_files(&self, now: Millis) -> Result<u64, StoreError> {
        // Nearly always there is nothing to adopt, and finding that out may take a while.
        let adopted = self
            .main
            .rows_of_many(
                "INSERT INTO stored_files (sha256, touched_at)
                 SELECT DISTINCT f.sha256, $1::bigint FROM deployment_files f
                 WHERE NOT EXISTS (SELECT 1 FROM stored_files s WHERE s.sha256 = f.sha256)
                 ORDER BY 1 ON CONFLICT DO NOTHING RETURNING 1",
                &[&now],
            )
            .await?;
        Ok(adopted.len() as u64)
    }

    async fn claim_unused_files(
        &self,
        limit: usize,
        now: Millis,
    ) -> Result<Vec<String>, StoreError> {
        // A row that a deploy touches at this moment is looked at again once it is locked, and is
        // then young.
        let claimed = self
            .main
            .rows_of_many(
                "UPDATE stored_files SET claimed_at = $1 WHERE sha256 = ANY (ARRAY(
                     SELECT s.sha256 FROM stored_files s
                     WHERE s.touched_at <= $2 AND (s.claimed_at IS NULL OR s.claimed_at <= $3)
                         AND NOT EXISTS (
                             SELECT 1 FROM deployment_files f WHERE f.sha256 = s.sha256)
                     LIMIT $4 FOR UPDATE SKIP LOCKED))
                 RETURNING sha256",
                &[
                    &now,
                    &(now - UNUSED_FILES_STAY),
                    &(now - CLAIM_HOLDS),
                    &count(limit),
                ],
            )
            .await?;
        Ok(names(&claimed)?)
    }

    async fn forget_files(&self, files: Vec<String>, claimed_at: Millis) -> Result<(), StoreError> {
        self.main
            .write(
                "DELETE FROM stored_files WHERE sha256 = ANY ($1) AND claimed_at = $2",
                &[&hashes(&files), &claimed_at],
            )
            .await
            .map(drop)
    }
}

/// The hashes of these names, as columns have them.
fn hashes(names: &[String]) -> Vec<Vec<u8>> {
    let hashes = names.iter().filter_map(|name| read_sha256(name));
    hashes.map(Vec::from).collect()
}

/// The names of the hashes in the first column.
fn names(rows: &[Row]) -> Result<Vec<String>, Error> {
    let names = rows
        .iter()
        .map(|row| get::<&[u8]>(row, 0).map(write_sha256));
    names.collect()
}
