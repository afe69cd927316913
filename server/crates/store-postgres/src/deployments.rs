//! Deployments and their files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::project::{Deployment, DeploymentSummary, FileEntry, Inspection, Made};
use platform_protocol::names::Environment;
use platform_store::stored_forms::{
    read_environment, read_inspection, read_sha256, write_inspection, write_sha256,
};
use platform_store::{DeploymentStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::Error;
use super::rows::get;
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{audit, projects};

#[async_trait]
impl DeploymentStore for PostgresStore {
    async fn add_deployment(&self, deployment: Deployment, by: By) -> Result<(), StoreError> {
        transact!(self.main, transaction => add_deployment(&transaction, &deployment, &by))
    }

    async fn find_current_deployment(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Option<Deployment>, StoreError> {
        let sql = format!(
            "{WHOLE} JOIN current_deployments c ON c.deployment = d.id
             WHERE p.slug = $1 AND c.environment = $2"
        );
        let row = self.main.row(&sql, &[&slug, &environment.as_str()]).await?;
        Ok(row.as_ref().map(deployment).transpose()?)
    }

    async fn find_deployment(&self, id: Uuid) -> Result<Option<Deployment>, StoreError> {
        let sql = format!("{WHOLE} WHERE d.id = $1");
        let row = self.main.row(&sql, &[&id]).await?;
        Ok(row.as_ref().map(deployment).transpose()?)
    }

    async fn describe_deployment(&self, id: Uuid) -> Result<Option<Deployment>, StoreError> {
        let sql = "SELECT p.slug, d.environment, d.created_at, d.deployed_by, d.client, d.network,
                d.message, d.revision, d.deploy_token, d.id, NULL::text[], NULL::bytea[],
                NULL::bigint[], d.inspection
            FROM deployments d JOIN projects p ON p.id = d.project WHERE d.id = $1";
        let row = self.main.row(sql, &[&id]).await?;
        Ok(row.as_ref().map(deployment).transpose()?)
    }

    async fn find_files(
        &self,
        deployment: Uuid,
        paths: Vec<String>,
    ) -> Result<BTreeMap<String, FileEntry>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT encode(sha256, 'hex'), size, path FROM deployment_files
                 WHERE deployment = $1 AND path = ANY($2)",
                &[&deployment, &paths],
            )
            .await?;
        let files = rows.iter().map(|row| Ok((get(row, 2)?, file_entry(row)?)));
        Ok(files.collect::<Result<_, Error>>()?)
    }

    async fn list_deployments(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Vec<DeploymentSummary>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT d.id, d.created_at, d.files, d.bytes, c.deployment IS NOT NULL,
                     d.deployed_by, d.client, d.network, d.message, d.revision, d.deploy_token
                 FROM projects p
                 JOIN deployments d
                     ON d.project = p.id AND d.environment = $2 AND d.preview IS NULL
                 LEFT JOIN current_deployments c
                     ON c.project = p.id AND c.environment = $2 AND c.deployment = d.id
                 WHERE p.slug = $1 ORDER BY d.created_at DESC, d.position DESC, d.id DESC",
                &[&slug, &environment.as_str()],
            )
            .await?;
        Ok(rows.iter().map(summary).collect::<Result<_, _>>()?)
    }

    async fn set_current_deployment(
        &self,
        slug: &str,
        environment: Environment,
        deployment: Uuid,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        transact!(self.main, transaction =>
            roll_back(&transaction, (slug, environment), deployment, &by, now))
    }

    async fn find_kept_file(
        &self,
        slug: &str,
        environment: Environment,
        path: &str,
    ) -> Result<Option<FileEntry>, StoreError> {
        let row = self
            .main
            .row(
                "SELECT array_agg(DISTINCT f.sha256), max(f.size) FROM projects p
                 JOIN deployments d
                     ON d.project = p.id AND d.environment = $2 AND d.preview IS NULL
                 JOIN deployment_files f ON f.deployment = d.id AND f.path = $3
                 WHERE p.slug = $1",
                &[&slug, &environment.as_str(), &path],
            )
            .await?;
        Ok(row.as_ref().map_or(Ok(None), kept_file)?)
    }

    async fn find_file_of(
        &self,
        slug: &str,
        environment: Environment,
        deployment: Uuid,
        path: &str,
    ) -> Result<Option<FileEntry>, StoreError> {
        let row = self
            .main
            .row(
                "SELECT encode(f.sha256, 'hex'), f.size FROM projects p
                 JOIN deployments d ON d.project = p.id AND d.environment = $2 AND d.id = $4
                 JOIN deployment_files f ON f.deployment = d.id AND f.path = $3
                 WHERE p.slug = $1",
                &[&slug, &environment.as_str(), &path, &deployment],
            )
            .await?;
        Ok(row.as_ref().map(file_entry).transpose()?)
    }

    async fn list_changed_paths(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Vec<String>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT f.path FROM projects p
                 JOIN deployments d
                     ON d.project = p.id AND d.environment = $2 AND d.preview IS NULL
                 JOIN deployment_files f ON f.deployment = d.id
                 WHERE p.slug = $1 GROUP BY f.path HAVING count(DISTINCT f.sha256) > 1
                 ORDER BY f.path",
                &[&slug, &environment.as_str()],
            )
            .await?;
        let paths = rows.iter().map(|row| get(row, 0));
        Ok(paths.collect::<Result<_, _>>()?)
    }

    async fn set_inspections(&self, found: Vec<(Uuid, Inspection)>) -> Result<(), StoreError> {
        let (ids, found): (Vec<Uuid>, Vec<String>) = found
            .iter()
            .map(|(id, found)| (*id, write_inspection(found)))
            .unzip();
        self.main
            .write(
                "UPDATE deployments d SET inspection = found.inspection
                 FROM unnest($1::uuid[], $2::text[]) AS found (id, inspection)
                 WHERE d.id = found.id AND d.inspection IS NULL",
                &[&ids, &found],
            )
            .await
            .map(drop)
    }

    async fn sweep_deployments(
        &self,
        slug: &str,
        environment: Environment,
        keep: usize,
    ) -> Result<usize, StoreError> {
        transact!(self.main, transaction => sweep(&transaction, (slug, environment), keep))
    }

    async fn list_unreferenced_files(
        &self,
        mut files: Vec<String>,
    ) -> Result<Vec<String>, StoreError> {
        // A name that is not a SHA-256 is not the name of a stored file, so it is not returned.
        files.retain(|name| read_sha256(name).is_some());
        let names: Vec<Vec<u8>> = files
            .iter()
            .filter_map(|name| read_sha256(name).map(Vec::from))
            .collect();
        let rows = self
            .main
            .rows(
                "SELECT asked.place FROM unnest($1::bytea[]) WITH ORDINALITY AS asked (sha256, place)
                 WHERE NOT EXISTS (
                     SELECT 1 FROM deployment_files f WHERE f.sha256 = asked.sha256)
                 ORDER BY asked.place",
                &[&names],
            )
            .await?;
        let mut unreferenced = Vec::with_capacity(rows.len());
        for row in &rows {
            let place: i64 = get(row, 0)?;
            let place = usize::try_from(place - 1).unwrap_or(usize::MAX);
            unreferenced.extend(files.get(place).cloned());
        }
        Ok(unreferenced)
    }
}

/// Reads a deployment with its files in one statement: a deploy between two statements would mix
/// two deployments.
const WHOLE: &str =
    "SELECT p.slug, d.environment, d.created_at, d.deployed_by, d.client, d.network,
        d.message, d.revision, d.deploy_token, d.id, f.paths, f.hashes, f.sizes, d.inspection
    FROM deployments d JOIN projects p ON p.id = d.project
    CROSS JOIN LATERAL (
        SELECT array_agg(path) AS paths, array_agg(sha256) AS hashes, array_agg(size) AS sizes
        FROM deployment_files WHERE deployment = d.id) AS f";

fn deployment(row: &Row) -> Result<Deployment, Error> {
    let id: Uuid = get(row, 9)?;
    Ok(Deployment {
        id,
        slug: get(row, 0)?,
        environment: read_environment(get(row, 1)?, || id.to_string())?,
        files: files(row, id)?,
        created_at: get(row, 2)?,
        made: made(row, 3)?,
        inspection: read_inspection(get(row, 13)?, &id)?,
    })
}

/// Reads a file from its hash in hex and its size.
fn file_entry(row: &Row) -> Result<FileEntry, Error> {
    Ok(FileEntry {
        sha256: get(row, 0)?,
        size: get::<i64>(row, 1)?.unsigned_abs(),
    })
}

fn files(row: &Row, id: Uuid) -> Result<BTreeMap<String, FileEntry>, Error> {
    // All three are null if there is no file.
    let paths: Option<Vec<String>> = get(row, 10)?;
    let hashes: Option<Vec<&[u8]>> = get(row, 11)?;
    let sizes: Option<Vec<i64>> = get(row, 12)?;
    let mut files = BTreeMap::new();
    let hashes = hashes.unwrap_or_default();
    let entries = hashes.into_iter().zip(sizes.unwrap_or_default());
    for (path, (sha256, size)) in paths.unwrap_or_default().into_iter().zip(entries) {
        let size = u64::try_from(size).map_err(|_| StoreError::Corrupt {
            table: "deployment_files",
            column: "size",
            row: format!("{id}/{path}"),
        })?;
        let sha256 = write_sha256(sha256);
        files.insert(path, FileEntry { sha256, size });
    }
    Ok(files)
}

/// Reads a deployment of a project's list, in the first eleven columns.
pub(super) fn summary(row: &Row) -> Result<DeploymentSummary, Error> {
    Ok(DeploymentSummary {
        id: get(row, 0)?,
        created_at: get(row, 1)?,
        files: get::<i64>(row, 2)?.unsigned_abs(),
        bytes: get::<i64>(row, 3)?.unsigned_abs(),
        current: get(row, 4)?,
        made: made(row, 5)?,
    })
}

/// Reads who made a deployment, from the column `first` on.
fn made(row: &Row, first: usize) -> Result<Made, Error> {
    Ok(Made {
        by: get(row, first)?,
        client: get(row, first + 1)?,
        network: get(row, first + 2)?,
        message: get(row, first + 3)?,
        revision: get(row, first + 4)?,
        deploy_token: get(row, first + 5)?,
    })
}

async fn add_deployment(
    transaction: &Transaction,
    deployment: &Deployment,
    by: &By,
) -> Result<(), Error> {
    let project = projects::lock(transaction, &deployment.slug).await?;
    insert_deployment(transaction, project, deployment, None).await?;
    let (environment, id) = (deployment.environment, deployment.id);
    show(transaction, project, environment, id).await?;
    let about = format!("{} {id}", environment.as_str());
    let about = (&*deployment.slug, &*about);
    let kind = AuditKind::Deployed;
    audit::add_of_project(transaction, kind, about, by, deployment.created_at).await
}

/// Adds a deployment with its files; for a preview, if it has the name of one. The caller has
/// locked the project.
pub(super) async fn insert_deployment(
    transaction: &Transaction,
    project: i64,
    deployment: &Deployment,
    preview: Option<&str>,
) -> Result<(), Error> {
    let environment = deployment.environment.as_str();
    let made = &deployment.made;
    transaction
        .execute(
            "INSERT INTO deployments (id, project, environment, created_at, files, bytes, position,
                 deployed_by, client, network, message, revision, inspection,
                 deploy_token, preview)
             VALUES ($1, $2, $3, $4, $5, $6,
                 (SELECT coalesce(max(position), 0) + 1 FROM deployments WHERE project = $2),
                 $7, $8, $9, $10, $11, $12, $13, $14)",
            &[
                &deployment.id,
                &project,
                &environment,
                &deployment.created_at,
                &counted(deployment.files.len() as u64),
                &counted(deployment.files.values().map(|file| file.size).sum()),
                &made.by,
                &made.client,
                &made.network,
                &made.message,
                &made.revision,
                &deployment.inspection.as_ref().map(write_inspection),
                &made.deploy_token,
                &preview,
            ],
        )
        .await?;
    add_files(transaction, deployment).await
}

async fn add_files(transaction: &Transaction, deployment: &Deployment) -> Result<(), Error> {
    let (mut paths, mut hashes, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for (path, file) in &deployment.files {
        let wrong = |column| StoreError::Corrupt {
            table: "deployment_files",
            column,
            row: format!("{}/{path}", deployment.id),
        };
        paths.push(path.as_str());
        hashes.push(Vec::from(
            read_sha256(&file.sha256).ok_or_else(|| wrong("sha256"))?,
        ));
        sizes.push(i64::try_from(file.size).map_err(|_| wrong("size"))?);
    }
    transaction
        .execute(
            "INSERT INTO deployment_files (deployment, path, sha256, size)
             SELECT $1, path, sha256, size
             FROM unnest($2::text[], $3::bytea[], $4::bigint[]) AS new (path, sha256, size)",
            &[&deployment.id, &paths, &hashes, &sizes],
        )
        .await
        .map(drop)
}

/// Makes a deployment the environment's current one.
async fn show(
    transaction: &Transaction,
    project: i64,
    environment: Environment,
    deployment: Uuid,
) -> Result<(), Error> {
    transaction
        .execute(
            "INSERT INTO current_deployments (project, environment, deployment)
             VALUES ($1, $2, $3)
             ON CONFLICT (project, environment) DO UPDATE SET deployment = excluded.deployment",
            &[&project, &environment.as_str(), &deployment],
        )
        .await
        .map(drop)
}

/// Makes an earlier deployment current again. Returns whether another one was current before.
async fn roll_back(
    transaction: &Transaction,
    (slug, environment): (&str, Environment),
    deployment: Uuid,
    by: &By,
    now: Millis,
) -> Result<bool, Error> {
    let project = projects::lock(transaction, slug).await?;
    let name = environment.as_str();
    let row = transaction
        .row(
            "SELECT (SELECT deployment FROM current_deployments
                     WHERE project = $2 AND environment = $3)
             FROM deployments
             WHERE id = $1 AND project = $2 AND environment = $3 AND preview IS NULL",
            &[&deployment, &project, &name],
        )
        .await?
        .ok_or(StoreError::Missing {
            table: "deployments",
        })?;
    let before: Option<Uuid> = get(&row, 0)?;
    if before == Some(deployment) {
        return Ok(false);
    }
    show(transaction, project, environment, deployment).await?;
    let mut detail = format!("{name} {deployment}");
    if let Some(before) = before {
        // Writing into a string cannot fail.
        let _ = write!(detail, " in place of {before}");
    }
    let kind = AuditKind::RolledBack;
    audit::add_of_project(transaction, kind, (slug, &detail), by, now).await?;
    Ok(true)
}

async fn sweep(
    transaction: &Transaction,
    (slug, environment): (&str, Environment),
    keep: usize,
) -> Result<usize, Error> {
    let row = transaction
        .row(
            "SELECT id FROM projects WHERE slug = $1 FOR NO KEY UPDATE",
            &[&slug],
        )
        .await?;
    let Some(row) = row else { return Ok(0) };
    let project: i64 = get(&row, 0)?;
    let rows = transaction
        .rows(
            "SELECT kept.id FROM (
                 SELECT id FROM deployments
                 WHERE project = $1 AND environment = $2 AND preview IS NULL
                 ORDER BY created_at DESC, position DESC, id DESC OFFSET $3) AS kept
             WHERE NOT EXISTS (SELECT 1 FROM current_deployments c WHERE c.deployment = kept.id)",
            &[&project, &environment.as_str(), &super::rows::count(keep)],
        )
        .await?;
    for row in &rows {
        remove_deployment(transaction, get(row, 0)?).await?;
    }
    Ok(rows.len())
}

/// Removes a deployment that is not current in any environment. The caller has locked its project.
pub(super) async fn remove_deployment(transaction: &Transaction, id: Uuid) -> Result<(), Error> {
    for sql in [
        "DELETE FROM deployment_files WHERE deployment = $1",
        "DELETE FROM deployments WHERE id = $1",
    ] {
        transaction.execute(sql, &[&id]).await?;
    }
    Ok(())
}

/// Returns the file of a path, if it has the same content in all deployments that contain it.
fn kept_file(row: &Row) -> Result<Option<FileEntry>, Error> {
    let hashes: Option<Vec<&[u8]>> = get(row, 0)?;
    let size: Option<i64> = get(row, 1)?;
    let (Some(hashes), Some(size)) = (hashes, size) else {
        return Ok(None);
    };
    let [sha256] = hashes.as_slice() else {
        return Ok(None);
    };
    Ok(Some(FileEntry {
        sha256: write_sha256(sha256),
        size: size.unsigned_abs(),
    }))
}

/// PostgreSQL's integers are signed; the numbers here are far below 2^63.
fn counted(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
