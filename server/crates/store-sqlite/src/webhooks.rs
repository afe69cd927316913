//! Webhooks of projects.

use async_trait::async_trait;
use platform_domain::audit::{Actor, AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::people::Outlet;
use platform_domain::webhook::{NewWebhook, Webhook, WebhookOutcome, origin};
use platform_store::stored_alerts::{StoredWebhook, WEBHOOK_COLUMNS, write_status};
use platform_store::{StoreError, WebhookStore};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::error::Error;
use super::projects::project_id;
use super::store::SqliteStore;
use super::{audit, outlets};

#[async_trait]
impl WebhookStore for SqliteStore {
    async fn find_webhook(&self, slug: &str) -> Result<Option<Webhook>, StoreError> {
        self.main.read(|connection| find(connection, slug))
    }

    async fn set_webhook(
        &self,
        slug: &str,
        new: NewWebhook,
        by: By,
        now: Millis,
    ) -> Result<Webhook, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| set(connection, &slug, &new, by, now))
            .await
    }

    async fn remove_webhook(&self, slug: &str, by: By, now: Millis) -> Result<bool, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| remove(connection, &slug, by, now))
            .await
    }

    async fn note_webhook_outcome(
        &self,
        slug: &str,
        url: &str,
        outcome: WebhookOutcome,
        gone: bool,
    ) -> Result<(), StoreError> {
        let (slug, url) = (slug.to_owned(), url.to_owned());
        self.main
            .write(move |connection| note(connection, (&slug, &url), &outcome, gone))
            .await
    }
}

fn find(connection: &Connection, slug: &str) -> Result<Option<Webhook>, Error> {
    let sql = format!(
        "SELECT {WEBHOOK_COLUMNS} FROM webhooks w JOIN projects p ON p.id = w.project
         WHERE p.slug = ?1 AND p.removed_at IS NULL"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement
        .query_row([slug], |row| {
            Ok(StoredWebhook {
                url: row.get(0)?,
                secret: row.get(1)?,
                created_at: row.get(2)?,
                off_at: row.get(3)?,
                last_at: row.get(4)?,
                last_status: row.get(5)?,
                last_error: row.get(6)?,
                wants_errors: row.get(7)?,
                wants_players: row.get(8)?,
            })
        })
        .optional()?;
    Ok(found.map(|stored| stored.read(slug)).transpose()?)
}

fn set(
    connection: &Connection,
    slug: &str,
    new: &NewWebhook,
    by: By,
    now: Millis,
) -> Result<Webhook, Error> {
    let project = project_id(connection, slug)?;
    let before = find(connection, slug)?;
    connection
        .prepare_cached(
            "INSERT INTO webhooks (project, url, secret, created_at, wants_errors, wants_players)
             VALUES (?1, ?2, ?3, ?4, ifnull(?6, 1), ifnull(?7, 0))
             ON CONFLICT (project) DO UPDATE SET url = excluded.url, off_at = NULL,
                 secret = CASE WHEN ?5 THEN excluded.secret ELSE secret END,
                 wants_errors = ifnull(?6, wants_errors),
                 wants_players = ifnull(?7, wants_players)",
        )?
        .execute(params![
            project,
            new.url,
            new.secret.expose(),
            now,
            new.rotate,
            new.wants.map(|wants| wants.errors),
            new.wants.map(|wants| wants.players)
        ])?;
    outlets::note(connection, (project, slug), Outlet::Webhook, &by)?;
    let detail = new.detail(before.is_none());
    audit::add_of_project(connection, AuditKind::WebhookSet, (slug, &detail), by, now)?;
    let missing = StoreError::Missing { table: "webhooks" };
    find(connection, slug)?.ok_or_else(|| missing.into())
}

fn remove(connection: &Connection, slug: &str, by: By, now: Millis) -> Result<bool, Error> {
    let Some(webhook) = find(connection, slug)? else {
        return Ok(false);
    };
    remove_of(connection, project_id(connection, slug)?)?;
    let detail = webhook.origin();
    let kind = AuditKind::WebhookRemoved;
    audit::add_of_project(connection, kind, (slug, &detail), by, now)?;
    Ok(true)
}

/// Removes the webhook of a project, and what it was told about players. Writes no event.
pub(super) fn remove_of(connection: &Connection, project: i64) -> Result<(), Error> {
    for sql in [
        "DELETE FROM webhooks WHERE project = ?1",
        "DELETE FROM player_events WHERE project = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([project])?;
    }
    Ok(())
}

fn note(
    connection: &Connection,
    (slug, url): (&str, &str),
    outcome: &WebhookOutcome,
    gone: bool,
) -> Result<(), Error> {
    let noted = connection
        .prepare_cached(
            "UPDATE webhooks SET last_at = ?3, last_status = ?4, last_error = ?5,
                 off_at = CASE WHEN ?6 THEN coalesce(off_at, ?3) ELSE off_at END
             WHERE url = ?2 AND project =
                 (SELECT id FROM projects WHERE slug = ?1 AND removed_at IS NULL)",
        )?
        .execute(params![
            slug,
            url,
            outcome.at,
            write_status(outcome.status),
            outcome.error,
            gone
        ])?;
    if gone && noted > 0 {
        let kind = AuditKind::WebhookTurnedOff;
        let by = By::from(Actor::Own);
        audit::add_of_project(connection, kind, (slug, &origin(url)), by, outcome.at)?;
    }
    Ok(())
}
