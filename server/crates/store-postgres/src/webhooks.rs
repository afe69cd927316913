//! Webhooks of projects.

use async_trait::async_trait;
use platform_domain::audit::{Actor, AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::people::Outlet;
use platform_domain::webhook::{NewWebhook, Webhook, WebhookOutcome, origin};
use platform_store::stored_alerts::{StoredWebhook, WEBHOOK_COLUMNS, write_status};
use platform_store::{StoreError, WebhookStore};
use tokio_postgres::Row;

use super::error::Error;
use super::rows::get;
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{audit, outlets, projects};

#[async_trait]
impl WebhookStore for PostgresStore {
    async fn find_webhook(&self, slug: &str) -> Result<Option<Webhook>, StoreError> {
        let sql = format!(
            "SELECT {WEBHOOK_COLUMNS} FROM webhooks w JOIN projects p ON p.id = w.project
             WHERE p.slug = $1 AND p.removed_at IS NULL"
        );
        let row = self.main.row(&sql, &[&slug]).await?;
        Ok(row.as_ref().map(|row| read(row, slug)).transpose()?)
    }

    async fn set_webhook(
        &self,
        slug: &str,
        new: NewWebhook,
        by: By,
        now: Millis,
    ) -> Result<Webhook, StoreError> {
        transact!(self.main, transaction => set(&transaction, slug, &new, &by, now))
    }

    async fn remove_webhook(&self, slug: &str, by: By, now: Millis) -> Result<bool, StoreError> {
        transact!(self.main, transaction => remove(&transaction, slug, &by, now))
    }

    async fn note_webhook_outcome(
        &self,
        slug: &str,
        url: &str,
        outcome: WebhookOutcome,
        gone: bool,
    ) -> Result<(), StoreError> {
        transact!(self.main, transaction => note(&transaction, (slug, url), &outcome, gone))
    }
}

fn read(row: &Row, slug: &str) -> Result<Webhook, Error> {
    let stored = StoredWebhook {
        url: get(row, 0)?,
        secret: get(row, 1)?,
        created_at: get(row, 2)?,
        off_at: get(row, 3)?,
        last_at: get(row, 4)?,
        last_status: get(row, 5)?,
        last_error: get(row, 6)?,
        wants_errors: get(row, 7)?,
        wants_players: get(row, 8)?,
    };
    Ok(stored.read(slug)?)
}

async fn set(
    transaction: &Transaction,
    slug: &str,
    new: &NewWebhook,
    by: &By,
    now: Millis,
) -> Result<Webhook, Error> {
    // An operation that looks whether there is a webhook and sets it locks the project.
    let project = projects::lock(transaction, slug).await?;
    let before = transaction
        .row("SELECT 1 FROM webhooks WHERE project = $1", &[&project])
        .await?;
    let sql = format!(
        "INSERT INTO webhooks AS w (project, url, secret, created_at, wants_errors, wants_players)
         VALUES ($1, $2, $3, $4, coalesce($6, true), coalesce($7, false))
         ON CONFLICT (project) DO UPDATE SET url = excluded.url, off_at = NULL,
             secret = CASE WHEN $5 THEN excluded.secret ELSE w.secret END,
             wants_errors = coalesce($6, w.wants_errors),
             wants_players = coalesce($7, w.wants_players)
         RETURNING {WEBHOOK_COLUMNS}"
    );
    let secret = new.secret.expose();
    let errors = new.wants.map(|wants| wants.errors);
    let players = new.wants.map(|wants| wants.players);
    let row = transaction
        .row(
            &sql,
            &[
                &project,
                &new.url,
                &secret,
                &now,
                &new.rotate,
                &errors,
                &players,
            ],
        )
        .await?
        .ok_or(Error::Changed)?;
    outlets::note(transaction, (project, slug), Outlet::Webhook, by).await?;
    let detail = new.detail(before.is_none());
    audit::add_of_project(transaction, AuditKind::WebhookSet, (slug, &detail), by, now).await?;
    read(&row, slug)
}

async fn remove(
    transaction: &Transaction,
    slug: &str,
    by: &By,
    now: Millis,
) -> Result<bool, Error> {
    let project = match projects::lock(transaction, slug).await {
        Err(Error::Store(StoreError::Missing { .. })) => return Ok(false),
        project => project?,
    };
    let sql = "DELETE FROM webhooks WHERE project = $1 RETURNING url";
    let Some(row) = transaction.row(sql, &[&project]).await? else {
        return Ok(false);
    };
    forget_events(transaction, project).await?;
    let detail = origin(get(&row, 0)?);
    let kind = AuditKind::WebhookRemoved;
    audit::add_of_project(transaction, kind, (slug, &detail), by, now).await?;
    Ok(true)
}

/// Removes the webhook of a project. Writes no event. The caller has locked the project.
pub(super) async fn remove_of(transaction: &Transaction, project: i64) -> Result<(), Error> {
    transaction
        .execute("DELETE FROM webhooks WHERE project = $1", &[&project])
        .await?;
    forget_events(transaction, project).await
}

/// Removes what the webhook of a project was told about players.
async fn forget_events(transaction: &Transaction, project: i64) -> Result<(), Error> {
    transaction
        .execute("DELETE FROM player_events WHERE project = $1", &[&project])
        .await
        .map(drop)
}

async fn note(
    transaction: &Transaction,
    (slug, url): (&str, &str),
    outcome: &WebhookOutcome,
    gone: bool,
) -> Result<(), Error> {
    let noted = transaction
        .execute(
            "UPDATE webhooks SET last_at = $3, last_status = $4, last_error = $5,
                 off_at = CASE WHEN $6 THEN coalesce(off_at, $3) ELSE off_at END
             WHERE url = $2 AND project =
                 (SELECT id FROM projects WHERE slug = $1 AND removed_at IS NULL)",
            &[
                &slug,
                &url,
                &outcome.at,
                &write_status(outcome.status),
                &outcome.error,
                &gone,
            ],
        )
        .await?;
    if gone && noted > 0 {
        let kind = AuditKind::WebhookTurnedOff;
        let by = By::from(Actor::Own);
        let detail = origin(url);
        audit::add_of_project(transaction, kind, (slug, &detail), &by, outcome.at).await?;
    }
    Ok(())
}
