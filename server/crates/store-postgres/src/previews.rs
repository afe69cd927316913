//! Previews.

use async_trait::async_trait;
use platform_domain::audit::{Actor, AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::preview::{AddedPreview, HostedPreview, NewPreview, Preview, day_of};
use platform_store::{PreviewStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::deployments::{insert_deployment, remove_deployment, summary};
use super::error::Error;
use super::rows::{count, get};
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{audit, projects};

#[async_trait]
impl PreviewStore for PostgresStore {
    async fn put_preview(&self, new: NewPreview, by: By) -> Result<AddedPreview, StoreError> {
        transact!(self.main, transaction => put(&transaction, &new, &by))
    }

    async fn list_previews(&self, slug: &str) -> Result<Vec<Preview>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT d.id, d.created_at, d.files, d.bytes, true, d.deployed_by, d.client,
                     d.network, d.message, d.revision, d.deploy_token,
                     v.name, v.created_at, v.used_at
                 FROM projects p JOIN previews v ON v.project = p.id
                 JOIN deployments d ON d.id = v.deployment
                 WHERE p.slug = $1 ORDER BY d.created_at DESC, v.name",
                &[&slug],
            )
            .await?;
        Ok(rows.iter().map(preview).collect::<Result<_, _>>()?)
    }

    async fn list_hosted_previews(
        &self,
        slug: Option<&str>,
    ) -> Result<Vec<HostedPreview>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT p.slug, v.name, v.deployment, v.used_at
                 FROM previews v JOIN projects p ON p.id = v.project
                 WHERE $1::text IS NULL OR p.slug = $1",
                &[&slug],
            )
            .await?;
        Ok(rows.iter().map(hosted).collect::<Result<_, _>>()?)
    }

    async fn note_preview_use(
        &self,
        slug: &str,
        name: &str,
        day: Millis,
    ) -> Result<(), StoreError> {
        self.main
            .write(
                "UPDATE previews SET used_at = $3 WHERE name = $2 AND used_at < $3
                     AND project = (SELECT id FROM projects WHERE slug = $1)",
                &[&slug, &name, &day],
            )
            .await
            .map(drop)
    }

    async fn remove_preview(
        &self,
        slug: &str,
        name: &str,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        transact!(self.main, transaction => remove(&transaction, (slug, name), &by, now))
    }

    async fn remove_unused_preview(
        &self,
        used_at: Millis,
        now: Millis,
    ) -> Result<Option<String>, StoreError> {
        transact!(self.main, transaction => remove_unused(&transaction, used_at, now))
    }
}

fn preview(row: &Row) -> Result<Preview, Error> {
    Ok(Preview {
        deployment: summary(row)?,
        name: get(row, 11)?,
        created_at: get(row, 12)?,
        used_at: get(row, 13)?,
    })
}

fn hosted(row: &Row) -> Result<HostedPreview, Error> {
    Ok(HostedPreview {
        slug: get(row, 0)?,
        name: get(row, 1)?,
        deployment: get(row, 2)?,
        used_at: get(row, 3)?,
    })
}

/// Finds what a preview shows.
async fn find(transaction: &Transaction, project: i64, name: &str) -> Result<Option<Uuid>, Error> {
    let row = transaction
        .row(
            "SELECT deployment FROM previews WHERE project = $1 AND name = $2",
            &[&project, &name],
        )
        .await?;
    row.as_ref().map(|row| get(row, 0)).transpose()
}

async fn put(transaction: &Transaction, new: &NewPreview, by: &By) -> Result<AddedPreview, Error> {
    let (deployment, name) = (&new.deployment, &new.name);
    let (slug, at) = (&deployment.slug, deployment.created_at);
    // An operation that counts a project's previews and adds one locks the project.
    let project = projects::lock(transaction, slug).await?;
    let before = find(transaction, project, name).await?;
    if before.is_none()
        && let Some(full) = full(transaction, project, new.most).await?
    {
        return Ok(full);
    }
    insert_deployment(transaction, project, deployment, Some(name)).await?;
    transaction
        .execute(
            "INSERT INTO previews AS v (project, name, deployment, created_at, used_at)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (project, name) DO UPDATE SET deployment = excluded.deployment,
                 used_at = greatest(v.used_at, excluded.used_at)",
            &[&project, name, &deployment.id, &at, &day_of(at)],
        )
        .await?;
    if let Some(before) = before {
        remove_deployment(transaction, before).await?;
    }
    let detail = format!("{name} {}", deployment.id);
    let kind = AuditKind::PreviewDeployed;
    audit::add_of_project(transaction, kind, (slug, &detail), by, at).await?;
    Ok(AddedPreview::Done)
}

/// Returns that the project has `most` previews, if so.
async fn full(
    transaction: &Transaction,
    project: i64,
    most: usize,
) -> Result<Option<AddedPreview>, Error> {
    let row = transaction
        .row(
            "SELECT name, used_at, count(*) OVER () FROM previews WHERE project = $1
             ORDER BY used_at, created_at, name LIMIT 1",
            &[&project],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let full = get::<i64>(&row, 2)? >= count(most);
    let (oldest, used_at) = (get(&row, 0)?, get(&row, 1)?);
    Ok(full.then_some(AddedPreview::TooMany { oldest, used_at }))
}

async fn remove(
    transaction: &Transaction,
    (slug, name): (&str, &str),
    by: &By,
    now: Millis,
) -> Result<bool, Error> {
    let project = match projects::lock(transaction, slug).await {
        Err(Error::Store(StoreError::Missing { .. })) => return Ok(false),
        project => project?,
    };
    let Some(deployment) = find(transaction, project, name).await? else {
        return Ok(false);
    };
    transaction
        .execute(
            "DELETE FROM previews WHERE project = $1 AND name = $2",
            &[&project, &name],
        )
        .await?;
    remove_deployment(transaction, deployment).await?;
    audit::add_of_project(
        transaction,
        AuditKind::PreviewRemoved,
        (slug, name),
        by,
        now,
    )
    .await?;
    Ok(true)
}

async fn remove_unused(
    transaction: &Transaction,
    used_at: Millis,
    now: Millis,
) -> Result<Option<String>, Error> {
    let row = transaction
        .row(
            "SELECT p.slug, v.name FROM previews v JOIN projects p ON p.id = v.project
             WHERE v.used_at <= $1 AND p.removed_at IS NULL
             ORDER BY v.used_at LIMIT 1 FOR NO KEY UPDATE OF p, v SKIP LOCKED",
            &[&used_at],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let (slug, name): (String, String) = (get(&row, 0)?, get(&row, 1)?);
    remove(transaction, (&slug, &name), &Actor::Own.into(), now).await?;
    Ok(Some(slug))
}
