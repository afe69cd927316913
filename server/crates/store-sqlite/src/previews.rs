//! Previews.

use async_trait::async_trait;
use platform_domain::audit::{Actor, AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::preview::{AddedPreview, HostedPreview, NewPreview, Preview, day_of};
use platform_store::{PreviewStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};

use super::audit;
use super::deployments::{insert_deployment, remove_deployment, summary};
use super::error::Error;
use super::projects::project_id;
use super::rows::{count, uuid};
use super::store::SqliteStore;

#[async_trait]
impl PreviewStore for SqliteStore {
    async fn put_preview(&self, new: NewPreview, by: By) -> Result<AddedPreview, StoreError> {
        self.main
            .write(move |connection| put(connection, &new, by))
            .await
    }

    async fn list_previews(&self, slug: &str) -> Result<Vec<Preview>, StoreError> {
        self.main.read(|connection| list(connection, slug))
    }

    async fn list_hosted_previews(
        &self,
        slug: Option<&str>,
    ) -> Result<Vec<HostedPreview>, StoreError> {
        let slug = slug.map(str::to_owned);
        self.main
            .read_much(move |connection| list_hosted(connection, slug.as_deref()))
            .await
    }

    async fn note_preview_use(
        &self,
        slug: &str,
        name: &str,
        day: Millis,
    ) -> Result<(), StoreError> {
        let (slug, name) = (slug.to_owned(), name.to_owned());
        self.main
            .write(move |connection| {
                connection
                    .prepare_cached(
                        "UPDATE previews SET used_at = ?3 WHERE name = ?2 AND used_at < ?3
                             AND project = (SELECT id FROM projects WHERE slug = ?1)",
                    )?
                    .execute(params![slug, name, day])?;
                Ok(())
            })
            .await
    }

    async fn remove_preview(
        &self,
        slug: &str,
        name: &str,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let (slug, name) = (slug.to_owned(), name.to_owned());
        self.main
            .write(move |connection| remove(connection, (&slug, &name), by, now))
            .await
    }

    async fn remove_unused_preview(
        &self,
        used_at: Millis,
        now: Millis,
    ) -> Result<Option<String>, StoreError> {
        self.main
            .write(move |connection| remove_unused(connection, used_at, now))
            .await
    }
}

/// Finds what a preview shows.
fn find(connection: &Connection, project: i64, name: &str) -> Result<Option<Vec<u8>>, Error> {
    let found = connection
        .prepare_cached("SELECT deployment FROM previews WHERE project = ?1 AND name = ?2")?
        .query_row(params![project, name], |row| row.get(0))
        .optional()?;
    Ok(found)
}

fn put(connection: &Connection, new: &NewPreview, by: By) -> Result<AddedPreview, Error> {
    let (deployment, name) = (&new.deployment, &new.name);
    let (slug, at) = (&deployment.slug, deployment.created_at);
    let project = project_id(connection, slug)?;
    let before = find(connection, project, name)?;
    if before.is_none()
        && let Some(full) = full(connection, project, new.most)?
    {
        return Ok(full);
    }
    insert_deployment(connection, project, deployment, Some(name))?;
    connection
        .prepare_cached(
            "INSERT INTO previews (project, name, deployment, created_at, used_at)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (project, name) DO UPDATE SET deployment = excluded.deployment,
                 used_at = max(used_at, excluded.used_at)",
        )?
        .execute(params![
            project,
            name,
            deployment.id.as_bytes(),
            at,
            day_of(at)
        ])?;
    if let Some(before) = before {
        remove_deployment(connection, &before)?;
    }
    let detail = format!("{name} {}", deployment.id);
    let kind = AuditKind::PreviewDeployed;
    audit::add_of_project(connection, kind, (slug, &detail), by, at)?;
    Ok(AddedPreview::Done)
}

/// Returns that the project has `most` previews, if so.
fn full(connection: &Connection, project: i64, most: usize) -> Result<Option<AddedPreview>, Error> {
    let (known, oldest): (i64, Option<i64>) = connection
        .prepare_cached("SELECT count(*), min(used_at) FROM previews WHERE project = ?1")?
        .query_row([project], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some(used_at) = oldest.filter(|_| known >= count(most)) else {
        return Ok(None);
    };
    let oldest = connection
        .prepare_cached(
            "SELECT name FROM previews WHERE project = ?1 AND used_at = ?2
             ORDER BY created_at, name LIMIT 1",
        )?
        .query_row([project, used_at], |row| row.get(0))?;
    Ok(Some(AddedPreview::TooMany { oldest, used_at }))
}

fn list(connection: &Connection, slug: &str) -> Result<Vec<Preview>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT d.id, d.created_at, d.files, d.bytes, 1, d.deployed_by, d.client, d.network,
             d.message, d.revision, d.deploy_token, v.name, v.created_at, v.used_at
         FROM projects p JOIN previews v ON v.project = p.id
         JOIN deployments d ON d.id = v.deployment
         WHERE p.slug = ?1 ORDER BY d.created_at DESC, v.name",
    )?;
    let mut rows = statement.query([slug])?;
    let mut previews = Vec::new();
    while let Some(row) = rows.next()? {
        previews.push(Preview {
            deployment: summary(row, slug)?,
            name: row.get(11)?,
            created_at: row.get(12)?,
            used_at: row.get(13)?,
        });
    }
    Ok(previews)
}

fn list_hosted(connection: &Connection, slug: Option<&str>) -> Result<Vec<HostedPreview>, Error> {
    let of_one = if slug.is_some() {
        "WHERE p.slug = ?1"
    } else {
        ""
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT p.slug, v.name, v.deployment, v.used_at
         FROM previews v JOIN projects p ON p.id = v.project {of_one}"
    ))?;
    let mut rows = statement.query(params_from_iter(slug))?;
    let mut hosted = Vec::new();
    while let Some(row) = rows.next()? {
        let (slug, deployment): (String, Vec<u8>) = (row.get(0)?, row.get(2)?);
        hosted.push(HostedPreview {
            deployment: uuid(&deployment, "previews", "deployment", || slug.clone())?,
            slug,
            name: row.get(1)?,
            used_at: row.get(3)?,
        });
    }
    Ok(hosted)
}

fn remove(
    connection: &Connection,
    (slug, name): (&str, &str),
    by: By,
    now: Millis,
) -> Result<bool, Error> {
    let project = match project_id(connection, slug) {
        Err(Error::Store(StoreError::Missing { .. })) => return Ok(false),
        project => project?,
    };
    let Some(deployment) = find(connection, project, name)? else {
        return Ok(false);
    };
    connection
        .prepare_cached("DELETE FROM previews WHERE project = ?1 AND name = ?2")?
        .execute(params![project, name])?;
    remove_deployment(connection, &deployment)?;
    audit::add_of_project(connection, AuditKind::PreviewRemoved, (slug, name), by, now)?;
    Ok(true)
}

fn remove_unused(
    connection: &Connection,
    used_at: Millis,
    now: Millis,
) -> Result<Option<String>, Error> {
    let found: Option<(String, String)> = connection
        .prepare_cached(
            "SELECT p.slug, v.name FROM previews v JOIN projects p ON p.id = v.project
             WHERE v.used_at <= ?1 AND p.removed_at IS NULL ORDER BY v.used_at LIMIT 1",
        )?
        .query_row([used_at], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((slug, name)) = found else {
        return Ok(None);
    };
    remove(connection, (&slug, &name), Actor::Own.into(), now)?;
    Ok(Some(slug))
}
