//! Projects that are taken down.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::takedown::{Authority, Change, Changed, Deleted, Disabled, Standing};
use platform_store::{Removed, StoreError, TakedownStore};
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::deployments::remove_deployment;
use super::error::Error;
use super::handovers;
use super::projects::project_id;
use super::rows::uuid;
use super::store::SqliteStore;

#[async_trait]
impl TakedownStore for SqliteStore {
    async fn change_standing(
        &self,
        slug: &str,
        change: Change,
        by: By,
        now: Millis,
    ) -> Result<Changed, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| change_standing(connection, &slug, &change, by, now))
            .await
    }

    async fn find_standing(&self, slug: &str) -> Result<Option<Standing>, StoreError> {
        let found = self
            .main
            .read(|connection| find_standing(connection, slug))?;
        Ok(found.map(|(standing, _)| standing))
    }

    async fn list_standings(&self) -> Result<Vec<(String, Standing)>, StoreError> {
        self.main
            .read_much(|connection| list_standings(connection, None))
            .await
    }

    async fn remove_deleted(
        &self,
        deleted_before: Millis,
        now: Millis,
    ) -> Result<Option<Removed>, StoreError> {
        self.main
            .write(move |connection| remove_deleted(connection, deleted_before, now))
            .await
    }
}

/// A project's slug, state and owner, as [`standing`] reads them.
const STANDINGS: &str = "SELECT p.slug, p.disabled_at, p.disabled_by, p.disabled_reason,
        p.deleted_at, p.deleted_by, p.removed_at, p.forget_from, o.suspended_at, p.owner
    FROM projects p LEFT JOIN players o ON o.id = p.owner";

fn standing(row: &Row<'_>) -> Result<(String, Standing, Option<Uuid>), Error> {
    let slug: String = row.get(0)?;
    let authority = |index, column| -> Result<Authority, Error> {
        let name: Option<String> = row.get(index)?;
        let mut all = Authority::ALL.into_iter();
        all.find(|one| name.as_deref() == Some(one.as_str()))
            .ok_or_else(|| {
                StoreError::Corrupt {
                    table: "projects",
                    column,
                    row: slug.clone(),
                }
                .into()
            })
    };
    let disabled = match row.get(1)? {
        None => None,
        Some(at) => Some(Disabled {
            at,
            by: authority(2, "disabled_by")?,
            reason: row.get(3)?,
        }),
    };
    let deleted = match row.get(4)? {
        None => None,
        Some(at) => Some(Deleted {
            at,
            by: authority(5, "deleted_by")?,
        }),
    };
    let standing = Standing {
        disabled,
        deleted,
        removed_at: row.get(6)?,
        forget_from: row.get(7)?,
        owner_suspended_at: row.get(8)?,
    };
    let owner: Option<Vec<u8>> = row.get(9)?;
    let owner = owner
        .map(|bytes| uuid(&bytes, "projects", "owner", || slug.clone()))
        .transpose()?;
    Ok((slug, standing, owner))
}

/// The state and the owner of a project that was not removed.
fn find_standing(
    connection: &Connection,
    slug: &str,
) -> Result<Option<(Standing, Option<Uuid>)>, Error> {
    let sql = format!("{STANDINGS} WHERE p.slug = ?1 AND p.removed_at IS NULL");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([slug])?;
    let found = rows.next()?.map(standing).transpose()?;
    Ok(found.map(|(_, standing, owner)| (standing, owner)))
}

/// The standings of all projects that have one, or of one project.
pub(super) fn list_standings(
    connection: &Connection,
    slug: Option<&str>,
) -> Result<Vec<(String, Standing)>, Error> {
    let of_one = if slug.is_some() {
        "AND p.slug = ?1"
    } else {
        ""
    };
    let sql = format!(
        "{STANDINGS} WHERE (p.disabled_at IS NOT NULL OR p.deleted_at IS NOT NULL
             OR p.removed_at IS NOT NULL OR p.forget_from IS NOT NULL
             OR o.suspended_at IS NOT NULL) {of_one}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(slug))?;
    let mut standings = Vec::new();
    while let Some(row) = rows.next()? {
        let (slug, standing, _) = standing(row)?;
        standings.push((slug, standing));
    }
    Ok(standings)
}

/// The first of these projects that was permanently removed.
pub(super) fn find_removed(
    connection: &Connection,
    slugs: &[String],
) -> Result<Option<String>, Error> {
    let mut removed = connection
        .prepare_cached("SELECT 1 FROM projects WHERE slug = ?1 AND removed_at IS NOT NULL")?;
    for slug in slugs {
        if removed.exists([slug])? {
            return Ok(Some(slug.clone()));
        }
    }
    Ok(None)
}

fn change_standing(
    connection: &Connection,
    slug: &str,
    change: &Change,
    by: By,
    now: Millis,
) -> Result<Changed, Error> {
    let Some((mut standing, owner)) = find_standing(connection, slug)? else {
        return Ok(Changed::NoProject);
    };
    let changed = standing.change(change, by.actor.into(), now);
    if changed != Changed::Done {
        return Ok(changed);
    }
    let (disabled, deleted) = (&standing.disabled, &standing.deleted);
    connection
        .prepare_cached(
            "UPDATE projects SET disabled_at = ?2, disabled_by = ?3, disabled_reason = ?4,
                 deleted_at = ?5, deleted_by = ?6, forget_from = ?7 WHERE slug = ?1",
        )?
        .execute(params![
            slug,
            disabled.as_ref().map(|one| one.at),
            disabled.as_ref().map(|one| one.by.as_str()),
            disabled.as_ref().and_then(|one| one.reason.as_deref()),
            deleted.as_ref().map(|one| one.at),
            deleted.as_ref().map(|one| one.by.as_str()),
            standing.forget_from,
        ])?;
    if deleted.is_some() {
        // After a restoration its owner offers it anew.
        handovers::remove_of(connection, project_id(connection, slug)?)?;
    }
    let mut event = Entry::of(change.kind(), now).subject(slug).by(by);
    if let Some(owner) = owner {
        event = event.player(owner);
    }
    if let Change::Disable {
        reason: Some(reason),
    } = change
    {
        event = event.detail(reason);
    }
    audit::add(connection, &event)?;
    Ok(Changed::Done)
}

fn remove_deleted(
    connection: &Connection,
    deleted_before: Millis,
    now: Millis,
) -> Result<Option<Removed>, Error> {
    let found: Option<(i64, String)> = connection
        .prepare_cached(
            "SELECT id, slug FROM projects
             WHERE deleted_at <= ?1 AND removed_at IS NULL ORDER BY id LIMIT 1",
        )?
        .query_row([deleted_before], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((project, slug)) = found else {
        return Ok(None);
    };
    for sql in [
        "DELETE FROM current_deployments WHERE project = ?1",
        "DELETE FROM previews WHERE project = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([project])?;
    }
    let deployment: Option<Vec<u8>> = connection
        .prepare_cached("SELECT id FROM deployments WHERE project = ?1 LIMIT 1")?
        .query_row([project], |row| row.get(0))
        .optional()?;
    if let Some(deployment) = deployment {
        remove_deployment(connection, &deployment)?;
        return Ok(Some(Removed::Part(slug)));
    }
    // Rows about play time that are kept only for a day are removed by themselves.
    for sql in [
        "DELETE FROM environment_settings WHERE project = ?1",
        "DELETE FROM listings WHERE project = ?1",
        "DELETE FROM domains WHERE project = ?1",
        "DELETE FROM player_games WHERE project = ?1",
        "DELETE FROM test_players WHERE project = ?1",
        "DELETE FROM deploy_tokens WHERE project = ?1",
        "DELETE FROM webhooks WHERE project = ?1",
        "DELETE FROM player_events WHERE project = ?1",
        "DELETE FROM members WHERE project = ?1",
        "DELETE FROM invitations WHERE project = ?1",
        "DELETE FROM handovers WHERE project = ?1",
        "DELETE FROM player_counts WHERE project = ?1",
        "DELETE FROM distinct_players WHERE project = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([project])?;
    }
    connection
        .prepare_cached(
            "UPDATE projects SET removed_at = ?2, owner = NULL, disabled_at = NULL,
                 disabled_by = NULL, disabled_reason = NULL WHERE id = ?1",
        )?
        .execute([project, now])?;
    let event = Entry::of(AuditKind::ProjectRemoved, now).subject(&slug);
    audit::add(connection, &event)?;
    Ok(Some(Removed::Whole(slug)))
}
