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
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::audit::{self, Entry};
use super::connection::TIDY_LOG;
use super::error::Error;
use super::rows::{count, uuid};
use super::store::SqliteStore;
use super::{devices, log_quota, player_events, sessions};

#[async_trait]
impl DeletionStore for SqliteStore {
    async fn export_player(
        &self,
        player: Uuid,
    ) -> Result<Option<Vec<ExportedSection>>, StoreError> {
        let main = self.main.read_much(move |connection| {
            // One transaction, so that all rows are from the same moment.
            let transaction = connection.unchecked_transaction()?;
            export(&transaction, Place::Main, player)
        });
        let mut sections = main.await?;
        if sections.first().is_none_or(|first| first.rows.is_empty()) {
            return Ok(None);
        }
        let logs = self
            .logs
            .read_much(move |connection| export(connection, Place::Logs, player));
        sections.extend(logs.await?);
        Ok(Some(sections))
    }

    async fn ask_for_deletion(&self, ask: AskDeletion) -> Result<DeletionAsked, StoreError> {
        self.main
            .write(move |connection| ask_for(connection, &ask))
            .await
    }

    async fn take_deletion_back(
        &self,
        player: Uuid,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        self.main
            .write(move |connection| take_back(connection, player, by, now))
            .await
    }

    async fn find_deletion(&self, player: Uuid) -> Result<Option<Deletion>, StoreError> {
        self.main.read(|connection| find(connection, player))
    }

    async fn list_due_deletions(
        &self,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<DueDeletion>, StoreError> {
        self.main
            .read_much(move |connection| list_due(connection, now, limit))
            .await
    }

    async fn forget_log_records(
        &self,
        players: Vec<Uuid>,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.logs
            .write(move |connection| forget_log_records(connection, &players, limit))
            .await
    }

    async fn delete_player(&self, player: Uuid, now: Millis) -> Result<bool, StoreError> {
        self.main
            .write(move |connection| delete(connection, player, now))
            .await
    }

    async fn overwrite_removed(&self) -> Result<bool, StoreError> {
        let main = self.main.read_much(truncate_log).await?;
        let logs = self.logs.read_much(truncate_log).await?;
        Ok(main && logs)
    }
}

fn export(
    connection: &Connection,
    place: Place,
    player: Uuid,
) -> Result<Vec<ExportedSection>, Error> {
    let of_place = SECTIONS.iter().filter(|section| section.place == place);
    of_place
        .map(|section| {
            let mut statement = connection.prepare(&numbered(&section.sql()))?;
            let mut found = statement.query([player.as_bytes()])?;
            let mut rows = Vec::new();
            while let Some(row) = found.next()? {
                rows.push(section.row(cells(section, row)?));
            }
            Ok(section.with(rows))
        })
        .collect()
}

/// SQLite numbers its parameters as in `?1`.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

fn cells(section: &Section, row: &Row<'_>) -> Result<Vec<Option<Cell>>, Error> {
    let fields = section.fields.iter().enumerate();
    fields
        .map(|(index, (_, _, form))| {
            Ok(match form {
                Form::Text => row.get::<_, Option<String>>(index)?.map(Cell::Text),
                Form::Number | Form::Time => row.get::<_, Option<i64>>(index)?.map(Cell::Number),
                Form::Truth => row.get::<_, Option<bool>>(index)?.map(Cell::Truth),
                Form::Id => row
                    .get::<_, Option<[u8; 16]>>(index)?
                    .map(|bytes| Cell::Id(Uuid::from_bytes(bytes))),
            })
        })
        .collect()
}

fn ask_for(connection: &Connection, ask: &AskDeletion) -> Result<DeletionAsked, Error> {
    let player = ask.player.as_bytes();
    let owned: Vec<String> = connection
        .prepare_cached(
            "SELECT slug FROM projects
             WHERE owner = ?1 AND deleted_at IS NULL AND removed_at IS NULL ORDER BY slug",
        )?
        .query_map([player], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    if !owned.is_empty() {
        return Ok(DeletionAsked::Owns(owned));
    }
    let at: Option<Millis> = connection
        .prepare_cached(
            "UPDATE players SET deletion_asked_at = ifnull(deletion_asked_at, ?2),
                 deletion_at = min(ifnull(deletion_at, ?3), ?3)
             WHERE id = ?1 AND merged_into IS NULL RETURNING deletion_at",
        )?
        .query_row(params![player, ask.now, ask.at], |row| row.get(0))
        .optional()?;
    let Some(at) = at else {
        return Ok(DeletionAsked::Unknown);
    };
    if let Some((held, next)) = &ask.browser {
        connection
            .prepare_cached(
                "INSERT INTO sessions
                     (hash, player, created_at, renewed_at, authenticated_at, browser)
                 SELECT ?3, player, ?4, ?4, authenticated_at, browser FROM sessions
                 WHERE hash = ?2 AND player = ?1",
            )?
            .execute(params![
                player,
                held.0.as_slice(),
                next.0.as_slice(),
                ask.now
            ])?;
    }
    let kept = ask.browser.as_ref().map(|(_, next)| next);
    sessions::end_all(connection, ask.player, kept, ask.now)?;
    devices::end_all(connection, ask.player)?;
    let day = Date::of(at).machine;
    let event = Entry::of(AuditKind::DeletionAsked, ask.now)
        .player(ask.player)
        .detail(&day)
        .by(ask.by.clone());
    audit::add(connection, &event)?;
    Ok(DeletionAsked::At(at))
}

fn take_back(connection: &Connection, player: Uuid, by: By, now: Millis) -> Result<bool, Error> {
    let kept = connection
        .prepare_cached(
            "UPDATE players SET deletion_asked_at = NULL, deletion_at = NULL
             WHERE id = ?1 AND deletion_at IS NOT NULL",
        )?
        .execute([player.as_bytes()])?;
    if kept == 0 {
        return Ok(false);
    }
    let event = Entry::of(AuditKind::DeletionTakenBack, now)
        .player(player)
        .by(by);
    audit::add(connection, &event)?;
    Ok(true)
}

/// Returns the deletion of a player that was asked for.
pub(super) fn find(connection: &Connection, player: Uuid) -> Result<Option<Deletion>, Error> {
    Ok(connection
        .prepare_cached(
            "SELECT deletion_asked_at, deletion_at FROM players
             WHERE id = ?1 AND deletion_at IS NOT NULL",
        )?
        .query_row([player.as_bytes()], |row| {
            Ok(Deletion {
                asked_at: row.get(0)?,
                at: row.get(1)?,
            })
        })
        .optional()?)
}

/// Which players are due at `?1`.
const DUE: &str = "deletion_at <= ?1 AND merged_into IS NULL
     AND (suspended_at IS NULL OR suspended_at < deletion_asked_at)
     AND NOT EXISTS (SELECT 1 FROM projects WHERE owner = players.id
                     AND deleted_at IS NULL AND removed_at IS NULL)";

fn list_due(connection: &Connection, now: Millis, limit: usize) -> Result<Vec<DueDeletion>, Error> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id FROM players WHERE {DUE} ORDER BY deletion_at LIMIT ?2"
    ))?;
    let mut rows = statement.query([now, count(limit)])?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        let player = row.get_ref(0)?.as_blob().unwrap_or_default();
        let player = uuid(player, "players", "id", String::new)?;
        let guests = guests_of(connection, player)?;
        due.push(DueDeletion { player, guests });
    }
    Ok(due)
}

/// Returns the guests that were merged into a player.
fn guests_of(connection: &Connection, player: Uuid) -> Result<Vec<Uuid>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM players WHERE merged_into = ?1")?;
    let mut rows = statement.query([player.as_bytes()])?;
    let mut guests = Vec::new();
    while let Some(row) = rows.next()? {
        let guest = row.get_ref(0)?.as_blob().unwrap_or_default();
        guests.push(uuid(guest, "players", "id", String::new)?);
    }
    Ok(guests)
}

fn delete(connection: &Connection, player: Uuid, now: Millis) -> Result<bool, Error> {
    let is_due: bool = connection
        .prepare_cached(&format!(
            "SELECT EXISTS (SELECT 1 FROM players WHERE id = ?2 AND {DUE})"
        ))?
        .query_row(params![now, player.as_bytes()], |row| row.get(0))?;
    if !is_due {
        return Ok(false);
    }
    let guests = guests_of(connection, player)?;
    player_events::add_deleted(connection, player, &guests, now)?;
    for guest in &guests {
        remove(connection, *guest)?;
    }
    remove(connection, player)?;
    let event = Entry::of(AuditKind::PlayerDeleted, now).by(Actor::Own);
    audit::add(connection, &event)?;
    Ok(true)
}

/// Removes one id from every table of the main database.
fn remove(connection: &Connection, player: Uuid) -> Result<(), Error> {
    // Every node has learnt of it long ago.
    let topic = Topic::Suspension(player).name();
    connection.execute("DELETE FROM changes WHERE topic = ?1", [topic])?;
    let player = player.as_bytes();
    for sql in FORGET_SOURCES {
        connection.execute(&numbered(sql), [player])?;
    }
    for trace in TRACES.iter().filter(|trace| trace.place == Place::Main) {
        let sql = numbered(&trace.sql());
        match trace.fate {
            Fate::Replace => connection.execute(&sql, [player, DELETED_PLAYER.as_bytes()])?,
            Fate::Remove | Fate::Clear(_) => connection.execute(&sql, [player])?,
        };
    }
    Ok(())
}

fn forget_log_records(
    connection: &Connection,
    players: &[Uuid],
    limit: usize,
) -> Result<usize, Error> {
    let environments: Vec<i64> = connection
        .prepare_cached("SELECT id FROM log_environments")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut ids: Vec<i64> = Vec::new();
    let mut select = connection.prepare_cached(
        "SELECT id FROM log_records WHERE environment = ?1 AND player = ?2 LIMIT ?3",
    )?;
    for player in players {
        for environment in &environments {
            let left = count(limit.saturating_sub(ids.len()));
            let found = select.query_map(params![environment, player.as_bytes(), left], |row| {
                row.get(0)
            })?;
            for id in found {
                ids.push(id?);
            }
        }
    }
    // What is removed is overwritten now, not when its room is used again.
    connection.pragma_update(None, "secure_delete", "ON")?;
    let removed = log_quota::remove_all(connection, &ids);
    let begun = players.iter().try_for_each(|player| {
        connection
            .prepare_cached("UPDATE log_error_groups SET begun_by = NULL WHERE begun_by = ?1")?
            .execute([player.as_bytes()])
            .map(drop)
    });
    connection.pragma_update(None, "secure_delete", "FAST")?;
    begun?;
    removed
}

/// Moves the write-ahead log into the database and empties it, since it still has earlier versions
/// of pages. Returns whether nobody was reading or writing, which prevents that.
fn truncate_log(connection: &Connection) -> Result<bool, Error> {
    let Some(path) = connection.path() else {
        return Ok(true);
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let writing = Connection::open_with_flags(path, flags)?;
    writing.busy_timeout(TIDY_LOG)?;
    let is_busy: bool =
        writing.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(!is_busy)
}
