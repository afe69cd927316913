//! Projects that are taken down.

use async_trait::async_trait;
use platform_domain::audit::{AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::takedown::{Authority, Change, Changed, Deleted, Disabled, Standing};
use platform_store::{Removed, StoreError, TakedownStore};
use tokio_postgres::Row;
use uuid::Uuid;

use super::audit::{self, Entry};
use super::database::Database;
use super::deployments::remove_deployment;
use super::error::Error;
use super::handovers;
use super::rows::get;
use super::store::PostgresStore;
use super::transaction::Transaction;

#[async_trait]
impl TakedownStore for PostgresStore {
    async fn change_standing(
        &self,
        slug: &str,
        change: Change,
        by: By,
        now: Millis,
    ) -> Result<Changed, StoreError> {
        transact!(self.main, transaction => change_standing(&transaction, slug, &change, &by, now))
    }

    async fn find_standing(&self, slug: &str) -> Result<Option<Standing>, StoreError> {
        let row = self.main.row(&one(), &[&slug]).await?;
        let found = row.as_ref().map(standing).transpose()?;
        Ok(found.map(|(_, standing, _)| standing))
    }

    async fn list_standings(&self) -> Result<Vec<(String, Standing)>, StoreError> {
        let sql = format!(
            "{STANDINGS} WHERE p.disabled_at IS NOT NULL OR p.deleted_at IS NOT NULL
                 OR p.removed_at IS NOT NULL OR p.forget_from IS NOT NULL
                 OR o.suspended_at IS NOT NULL ORDER BY p.id"
        );
        let rows = self.main.rows(&sql, &[]).await?;
        let standings = rows.iter().map(|row| {
            let (slug, standing, _) = standing(row)?;
            Ok((slug, standing))
        });
        Ok(standings.collect::<Result<_, Error>>()?)
    }

    async fn remove_deleted(
        &self,
        deleted_before: Millis,
        now: Millis,
    ) -> Result<Option<Removed>, StoreError> {
        transact!(self.main, transaction => remove_deleted(&transaction, deleted_before, now))
    }
}

/// A project's slug, standing and owner, as [`standing`] reads them.
const STANDINGS: &str = "SELECT p.slug, p.disabled_at, p.disabled_by, p.disabled_reason,
        p.deleted_at, p.deleted_by, p.removed_at, p.forget_from, o.suspended_at, p.owner
    FROM projects p LEFT JOIN players o ON o.id = p.owner";

/// Returns the query for the standing of one project that was not removed.
fn one() -> String {
    format!("{STANDINGS} WHERE p.slug = $1 AND p.removed_at IS NULL")
}

fn standing(row: &Row) -> Result<(String, Standing, Option<Uuid>), Error> {
    let slug: String = get(row, 0)?;
    let standing = read_standing(row, 1, &slug)?;
    Ok((slug, standing, get(row, 9)?))
}

/// The columns of a project's standing, as [`read_standing`] reads them; `p` is the project and `o`
/// its owner.
pub(super) const STANDING: &str = "p.disabled_at, p.disabled_by, p.disabled_reason,
        p.deleted_at, p.deleted_by, p.removed_at, p.forget_from, o.suspended_at";

/// Reads the standing in a row's columns, from `first` on.
pub(super) fn read_standing(row: &Row, first: usize, slug: &str) -> Result<Standing, Error> {
    let authority = |index, column| -> Result<Authority, Error> {
        let name: Option<&str> = get(row, index)?;
        let mut all = Authority::ALL.into_iter();
        all.find(|one| name == Some(one.as_str())).ok_or_else(|| {
            StoreError::Corrupt {
                table: "projects",
                column,
                row: slug.to_owned(),
            }
            .into()
        })
    };
    let disabled = match get(row, first)? {
        None => None,
        Some(at) => Some(Disabled {
            at,
            by: authority(first + 1, "disabled_by")?,
            reason: get(row, first + 2)?,
        }),
    };
    let deleted = match get(row, first + 3)? {
        None => None,
        Some(at) => Some(Deleted {
            at,
            by: authority(first + 4, "deleted_by")?,
        }),
    };
    Ok(Standing {
        disabled,
        deleted,
        removed_at: get(row, first + 5)?,
        forget_from: get(row, first + 6)?,
        owner_suspended_at: get(row, first + 7)?,
    })
}

/// Returns the first of these projects that was permanently removed.
pub(super) async fn find_removed(
    database: &Database,
    slugs: &[String],
) -> Result<Option<String>, StoreError> {
    let row = database
        .row(
            "SELECT slug FROM projects WHERE slug = ANY($1) AND removed_at IS NOT NULL
             ORDER BY slug LIMIT 1",
            &[&slugs],
        )
        .await?;
    Ok(row.as_ref().map(|row| get(row, 0)).transpose()?)
}

async fn change_standing(
    transaction: &Transaction,
    slug: &str,
    change: &Change,
    by: &By,
    now: Millis,
) -> Result<Changed, Error> {
    let sql = format!("{} FOR NO KEY UPDATE OF p", one());
    let row = transaction.row(&sql, &[&slug]).await?;
    let Some((_, mut standing, owner)) = row.as_ref().map(standing).transpose()? else {
        return Ok(Changed::NoProject);
    };
    let changed = standing.change(change, by.actor.into(), now);
    if changed != Changed::Done {
        return Ok(changed);
    }
    let (disabled, deleted) = (&standing.disabled, &standing.deleted);
    let row = transaction
        .row(
            "UPDATE projects SET disabled_at = $2, disabled_by = $3, disabled_reason = $4,
                 deleted_at = $5, deleted_by = $6, forget_from = $7 WHERE slug = $1
             RETURNING id",
            &[
                &slug,
                &disabled.as_ref().map(|one| one.at),
                &disabled.as_ref().map(|one| one.by.as_str()),
                &disabled.as_ref().and_then(|one| one.reason.as_deref()),
                &deleted.as_ref().map(|one| one.at),
                &deleted.as_ref().map(|one| one.by.as_str()),
                &standing.forget_from,
            ],
        )
        .await?;
    if let Some(row) = row.filter(|_| deleted.is_some()) {
        // After a restoration its owner offers it anew.
        handovers::remove_of(transaction, get(&row, 0)?).await?;
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
    audit::add(transaction, &event).await?;
    Ok(Changed::Done)
}

async fn remove_deleted(
    transaction: &Transaction,
    deleted_before: Millis,
    now: Millis,
) -> Result<Option<Removed>, Error> {
    let row = transaction
        .row(
            "SELECT id, slug FROM projects WHERE deleted_at <= $1 AND removed_at IS NULL
             ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED",
            &[&deleted_before],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let (project, slug): (i64, String) = (get(&row, 0)?, get(&row, 1)?);
    for sql in [
        "DELETE FROM current_deployments WHERE project = $1",
        "DELETE FROM previews WHERE project = $1",
    ] {
        transaction.execute(sql, &[&project]).await?;
    }
    let deployment = transaction
        .row(
            "SELECT id FROM deployments WHERE project = $1 LIMIT 1",
            &[&project],
        )
        .await?;
    if let Some(deployment) = deployment {
        remove_deployment(transaction, get(&deployment, 0)?).await?;
        return Ok(Some(Removed::Part(slug)));
    }
    // Rows about play time that are kept only for a day are removed by themselves.
    for sql in [
        "DELETE FROM environment_settings WHERE project = $1",
        "DELETE FROM listings WHERE project = $1",
        "DELETE FROM domains WHERE project = $1",
        "DELETE FROM player_games WHERE project = $1",
        "DELETE FROM test_players WHERE project = $1",
        "DELETE FROM deploy_tokens WHERE project = $1",
        "DELETE FROM webhooks WHERE project = $1",
        "DELETE FROM player_events WHERE project = $1",
        "DELETE FROM members WHERE project = $1",
        "DELETE FROM invitations WHERE project = $1",
        "DELETE FROM handovers WHERE project = $1",
        "DELETE FROM player_counts WHERE project = $1",
        "DELETE FROM distinct_players WHERE project = $1",
    ] {
        transaction.execute(sql, &[&project]).await?;
    }
    transaction
        .execute(
            "UPDATE projects SET removed_at = $2, owner = NULL, disabled_at = NULL,
                 disabled_by = NULL, disabled_reason = NULL WHERE id = $1",
            &[&project, &now],
        )
        .await?;
    let event = Entry::of(AuditKind::ProjectRemoved, now).subject(&slug);
    audit::add(transaction, &event).await?;
    Ok(Some(Removed::Whole(slug)))
}
