//! Files in a file store that several nodes share.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_store::stored_forms::{read_sha256, write_sha256};
use platform_store::{CLAIM_HOLDS, StoreError, StoredFileStore, UNUSED_FILES_STAY};
use rusqlite::params;

use super::store::SqliteStore;

#[async_trait]
impl StoredFileStore for SqliteStore {
    async fn touch_files(
        &self,
        mut files: Vec<String>,
        now: Millis,
    ) -> Result<Vec<String>, StoreError> {
        let write = self.main.write(move |connection| {
            let mut touch = connection.prepare_cached(
                "INSERT INTO stored_files (sha256, touched_at) VALUES (?1, ?2)
                 ON CONFLICT (sha256) DO UPDATE
                 SET touched_at = max(touched_at, excluded.touched_at), claimed_at = NULL
                 WHERE claimed_at IS NULL OR claimed_at <= ?3",
            )?;
            let mut failed = None;
            files.retain(|name| {
                let Some(sha256) = read_sha256(name) else {
                    return false;
                };
                match touch.execute(params![sha256, now, now - CLAIM_HOLDS]) {
                    Ok(changed) => changed == 0,
                    Err(error) => {
                        failed.get_or_insert(error);
                        false
                    }
                }
            });
            failed.map_or(Ok(files), |error| Err(error.into()))
        });
        write.await
    }

    async fn adopt_files(&self, now: Millis) -> Result<u64, StoreError> {
        let write = self.main.write(move |connection| {
            let adopted = connection
                .prepare_cached(
                    "INSERT INTO stored_files (sha256, touched_at)
                     SELECT DISTINCT f.sha256, ?1 FROM deployment_files f
                     WHERE NOT EXISTS (SELECT 1 FROM stored_files s WHERE s.sha256 = f.sha256)",
                )?
                .execute([now])?;
            Ok(adopted as u64)
        });
        write.await
    }

    async fn claim_unused_files(
        &self,
        limit: usize,
        now: Millis,
    ) -> Result<Vec<String>, StoreError> {
        let write = self.main.write(move |connection| {
            let mut claim = connection.prepare_cached(
                "UPDATE stored_files SET claimed_at = ?1 WHERE sha256 IN (
                     SELECT s.sha256 FROM stored_files s
                     WHERE s.touched_at <= ?2 AND (s.claimed_at IS NULL OR s.claimed_at <= ?3)
                         AND NOT EXISTS (
                             SELECT 1 FROM deployment_files f WHERE f.sha256 = s.sha256)
                     LIMIT ?4)
                 RETURNING sha256",
            )?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let values = params![now, now - UNUSED_FILES_STAY, now - CLAIM_HOLDS, limit];
            let mut rows = claim.query(values)?;
            let mut claimed = Vec::new();
            while let Some(row) = rows.next()? {
                claimed.push(write_sha256(row.get_ref(0)?.as_blob().unwrap_or_default()));
            }
            Ok(claimed)
        });
        write.await
    }

    async fn forget_files(&self, files: Vec<String>, claimed_at: Millis) -> Result<(), StoreError> {
        let write = self.main.write(move |connection| {
            let mut forget = connection
                .prepare_cached("DELETE FROM stored_files WHERE sha256 = ?1 AND claimed_at = ?2")?;
            for sha256 in files.iter().filter_map(|name| read_sha256(name)) {
                forget.execute(params![sha256, claimed_at])?;
            }
            Ok(())
        });
        write.await
    }
}
