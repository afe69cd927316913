//! Deleting players.

use async_trait::async_trait;
use platform_domain::audit::{Actor, AuditKind, By};
use platform_domain::clock::Millis;
use platform_domain::date::Date;
use platform_domain::deletion::{
    AskDeletion, DELETED_PLAYER, Deletion, DeletionAsked, DueDeletion,
};
use platform_domain::node::Topic;
use platform_store::exports::{Cell, ExportedSection, Form, SECTIONS, Section};
use platform_store::tables::Place;
use platform_store::traces::{FORGET_SOURCES, Fate, TRACES};
use platform_store::{DeletionStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::audit::{self, Entry};
use super::database::Database;
use super::error::Error;
use super::rows::{count, get};
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{devices, log_quota, player_events, players, sessions};

#[async_trait]
impl DeletionStore for PostgresStore {
    async fn export_player(
        &self,
        player: Uuid,
    ) -> Result<Option<Vec<ExportedSection>>, StoreError> {
        let mut sections = export(&self.main, Place::Main, player).await?;
        if sections.first().is_none_or(|first| first.rows.is_empty()) {
            return Ok(None);
        }
        sections.extend(export(&self.logs.database, Place::Logs, player).await?);
        Ok(Some(sections))
    }

    async fn ask_for_deletion(&self, ask: AskDeletion) -> Result<DeletionAsked, StoreError> {
        transact!(self.main, transaction => ask_for(&transaction, &ask))
    }

    async fn take_deletion_back(
        &self,
        player: Uuid,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        transact!(self.main, transaction => take_back(&transaction, player, &by, now))
    }

    async fn find_deletion(&self, player: Uuid) -> Result<Option<Deletion>, StoreError> {
        let row = self
            .main
            .row(
                "SELECT deletion_asked_at, deletion_at FROM players
                 WHERE id = $1 AND deletion_at IS NOT NULL",
                &[&player],
            )
            .await?;
        let found = row.map(|row| {
            Ok::<_, Error>(Deletion {
                asked_at: get(&row, 0)?,
                at: get(&row, 1)?,
            })
        });
        Ok(found.transpose()?)
    }

    async fn list_due_deletions(
        &self,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<DueDeletion>, StoreError> {
        let sql = format!(
            "SELECT id, ARRAY(SELECT g.id FROM players g WHERE g.merged_into = players.id)
             FROM players WHERE {DUE} ORDER BY deletion_at LIMIT $2"
        );
        let rows = self.main.rows(&sql, &[&now, &count(limit)]).await?;
        let due = rows.iter().map(|row| {
            Ok(DueDeletion {
                player: get(row, 0)?,
                guests: get(row, 1)?,
            })
        });
        Ok(due.collect::<Result<_, Error>>()?)
    }

    async fn forget_log_records(
        &self,
        players: Vec<Uuid>,
        limit: usize,
    ) -> Result<usize, StoreError> {
        log_quota::forget(&self.logs.database, &players, limit).await
    }

    async fn delete_player(&self, player: Uuid, now: Millis) -> Result<bool, StoreError> {
        transact!(self.main, transaction => delete(&transaction, player, now))
    }

    async fn overwrite_removed(&self) -> Result<bool, StoreError> {
        // The server's own vacuum makes their room free, and its own log is its operator's.
        Ok(true)
    }
}

async fn export(
    database: &Database,
    place: Place,
    player: Uuid,
) -> Result<Vec<ExportedSection>, StoreError> {
    let mut sections = Vec::new();
    for section in SECTIONS.iter().filter(|section| section.place == place) {
        let rows = database.rows_of_many(&section.sql(), &[&player]).await?;
        let rows = rows.iter().map(|row| Ok(section.row(cells(section, row)?)));
        sections.push(section.with(rows.collect::<Result<_, Error>>()?));
    }
    Ok(sections)
}

fn cells(section: &Section, row: &Row) -> Result<Vec<Option<Cell>>, Error> {
    let fields = section.fields.iter().enumerate();
    fields
        .map(|(index, (_, _, form))| {
            Ok(match form {
                Form::Text => get::<Option<String>>(row, index)?.map(Cell::Text),
                Form::Number | Form::Time => get::<Option<i64>>(row, index)?.map(Cell::Number),
                Form::Truth => get::<Option<bool>>(row, index)?.map(Cell::Truth),
                Form::Id => get::<Option<Uuid>>(row, index)?.map(Cell::Id),
            })
        })
        .collect()
}

async fn ask_for(transaction: &Transaction, ask: &AskDeletion) -> Result<DeletionAsked, Error> {
    players::lock_one(transaction, ask.player).await?;
    let owned = transaction
        .rows(
            "SELECT slug FROM projects
             WHERE owner = $1 AND deleted_at IS NULL AND removed_at IS NULL ORDER BY slug",
            &[&ask.player],
        )
        .await?;
    if !owned.is_empty() {
        let slugs = owned.iter().map(|row| get(row, 0));
        return Ok(DeletionAsked::Owns(slugs.collect::<Result<_, Error>>()?));
    }
    let row = transaction
        .row(
            "UPDATE players SET deletion_asked_at = coalesce(deletion_asked_at, $2),
                 deletion_at = least(deletion_at, $3)
             WHERE id = $1 AND merged_into IS NULL RETURNING deletion_at",
            &[&ask.player, &ask.now, &ask.at],
        )
        .await?;
    let Some(row) = row else {
        return Ok(DeletionAsked::Unknown);
    };
    let at = get(&row, 0)?;
    if let Some((held, next)) = &ask.browser {
        transaction
            .execute(
                "INSERT INTO sessions
                     (hash, player, created_at, renewed_at, authenticated_at, browser)
                 SELECT $3, player, $4, $4, authenticated_at, browser FROM sessions
                 WHERE hash = $2 AND player = $1",
                &[
                    &ask.player,
                    &held.0.as_slice(),
                    &next.0.as_slice(),
                    &ask.now,
                ],
            )
            .await?;
    }
    let kept = ask.browser.as_ref().map(|(_, next)| next);
    sessions::end_all(transaction, ask.player, kept, ask.now).await?;
    devices::end_all(transaction, ask.player).await?;
    let day = Date::of(at).machine;
    let event = Entry::of(AuditKind::DeletionAsked, ask.now)
        .player(ask.player)
        .detail(&day)
        .by(&ask.by);
    audit::add(transaction, &event).await?;
    Ok(DeletionAsked::At(at))
}

/// Returns whether the deletion of a player was asked for.
pub(super) async fn is_asked(transaction: &Transaction, player: Uuid) -> Result<bool, Error> {
    let row = transaction
        .row(
            "SELECT 1 FROM players WHERE id = $1 AND deletion_at IS NOT NULL",
            &[&player],
        )
        .await?;
    Ok(row.is_some())
}

async fn take_back(
    transaction: &Transaction,
    player: Uuid,
    by: &By,
    now: Millis,
) -> Result<bool, Error> {
    let kept = transaction
        .execute(
            "UPDATE players SET deletion_asked_at = NULL, deletion_at = NULL
             WHERE id = $1 AND deletion_at IS NOT NULL",
            &[&player],
        )
        .await?;
    if kept == 0 {
        return Ok(false);
    }
    let event = Entry::of(AuditKind::DeletionTakenBack, now)
        .player(player)
        .by(by);
    audit::add(transaction, &event).await?;
    Ok(true)
}

/// Which players are due at `$1`.
const DUE: &str = "deletion_at <= $1 AND merged_into IS NULL
     AND (suspended_at IS NULL OR suspended_at < deletion_asked_at)
     AND NOT EXISTS (SELECT 1 FROM projects WHERE owner = players.id
                     AND deleted_at IS NULL AND removed_at IS NULL)";

async fn delete(transaction: &Transaction, player: Uuid, now: Millis) -> Result<bool, Error> {
    // For update: rows that refer to the player cannot be added meanwhile.
    let ids = transaction
        .rows(
            "SELECT id FROM players WHERE id = $1 OR merged_into = $1 ORDER BY id FOR UPDATE",
            &[&player],
        )
        .await?;
    let sql = format!("SELECT 1 FROM players WHERE {DUE} AND id = $2");
    if transaction.row(&sql, &[&now, &player]).await?.is_none() {
        return Ok(false);
    }
    let mut ids: Vec<Uuid> = ids
        .iter()
        .map(|row| get(row, 0))
        .collect::<Result<_, Error>>()?;
    // The account comes last: its guests refer to it.
    ids.sort_by_key(|id| *id == player);
    let guests: Vec<Uuid> = ids.iter().copied().filter(|id| *id != player).collect();
    player_events::add_deleted(transaction, player, &guests, now).await?;
    for id in &ids {
        remove(transaction, *id).await?;
    }
    let event = Entry::of(AuditKind::PlayerDeleted, now).by(&Actor::Own.into());
    audit::add(transaction, &event).await?;
    Ok(true)
}

/// Removes one id from every table of the main database.
async fn remove(transaction: &Transaction, player: Uuid) -> Result<(), Error> {
    // Every node has learnt of it long ago.
    let topic = Topic::Suspension(player).name();
    transaction
        .execute("DELETE FROM changes WHERE topic = $1", &[&topic])
        .await?;
    for sql in FORGET_SOURCES {
        transaction.execute(sql, &[&player]).await?;
    }
    for trace in TRACES.iter().filter(|trace| trace.place == Place::Main) {
        let sql = trace.sql();
        match trace.fate {
            Fate::Replace => {
                let values: [super::database::Value<'_>; 2] = [&player, &DELETED_PLAYER];
                transaction.execute(&sql, &values).await?
            }
            Fate::Remove | Fate::Clear(_) => transaction.execute(&sql, &[&player]).await?,
        };
    }
    Ok(())
}
