//! Groups of errors.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::error_group::{
    self, CountedGroup, ErrorGroup, ErrorGroupFilter, ErrorGroupId, ErrorGroupPage,
    ErrorGroupQuery, ErrorState, GROUPS_KNOWN, GroupedErrors, HOURS_KNOWN, Held, Room, Ungrouped,
};
use platform_domain::log::LogId;
use platform_protocol::log::LogLevel;
use platform_protocol::names::Environment;
use platform_store::stored_groups::{GROUP_COLUMNS, StoredGroup, write_group_detail, write_number};
use platform_store::{ErrorGroupStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::alerts;
use super::error::Error;
use super::log_rows::find_environment;
use super::rows::count;
use super::store::SqliteStore;

#[async_trait]
impl ErrorGroupStore for SqliteStore {
    async fn list_ungrouped(&self, limit: usize) -> Result<Vec<Ungrouped>, StoreError> {
        self.logs
            .read_much(move |connection| list_ungrouped(connection, limit))
            .await
    }

    async fn add_to_error_groups(&self, errors: GroupedErrors) -> Result<bool, StoreError> {
        self.logs
            .write(move |connection| add(connection, errors))
            .await
    }

    async fn list_error_groups(
        &self,
        query: ErrorGroupQuery,
    ) -> Result<ErrorGroupPage, StoreError> {
        self.logs
            .read_much(move |connection| list(connection, &query))
            .await
    }

    async fn find_error_group(
        &self,
        slug: &str,
        environment: Environment,
        id: ErrorGroupId,
        hours_from: Millis,
    ) -> Result<Option<CountedGroup>, StoreError> {
        let slug = slug.to_owned();
        self.logs
            .read_much(move |connection| {
                let transaction = connection.unchecked_transaction()?;
                let Some(environment) = find_environment(&transaction, &slug, environment)? else {
                    return Ok(None);
                };
                let Some(group) = find(&transaction, environment, id)? else {
                    return Ok(None);
                };
                let hours = hours(&transaction, environment, id, hours_from)?;
                Ok(Some(CountedGroup { group, hours }))
            })
            .await
    }

    async fn decide_error_group(
        &self,
        slug: &str,
        environment: Environment,
        id: ErrorGroupId,
        (state, deployed_at, now): (ErrorState, Option<Millis>, Millis),
    ) -> Result<bool, StoreError> {
        let slug = slug.to_owned();
        self.logs
            .write(move |connection| {
                let Some(environment) = find_environment(connection, &slug, environment)? else {
                    return Ok(false);
                };
                let Some(mut group) = find(connection, environment, id)? else {
                    return Ok(false);
                };
                group.decide(state, deployed_at, now);
                write(connection, environment, &group)?;
                Ok(true)
            })
            .await
    }

    async fn remove_error_groups(&self, filter: ErrorGroupFilter) -> Result<usize, StoreError> {
        self.logs
            .write(move |connection| remove_all(connection, &filter))
            .await
    }

    async fn sweep_error_groups(&self, now: Millis, limit: usize) -> Result<usize, StoreError> {
        self.logs
            .write(move |connection| sweep(connection, now, limit))
            .await
    }
}

fn list_ungrouped(connection: &Connection, limit: usize) -> Result<Vec<Ungrouped>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT project, environment, grouped_id FROM log_environments
         WHERE ungrouped = 1 ORDER BY grouped_id LIMIT ?1",
    )?;
    let mut rows = statement.query([count(limit)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(1)?;
        found.push(Ungrouped {
            slug: row.get(0)?,
            environment: if name == Environment::Dev.as_str() {
                Environment::Dev
            } else {
                Environment::Prod
            },
            after: LogId(row.get(2)?),
        });
    }
    Ok(found)
}

/// Adds errors to their groups, and notes how far that is done.
fn add(connection: &Connection, errors: GroupedErrors) -> Result<bool, Error> {
    let Some(environment) = find_environment(connection, &errors.slug, errors.environment)? else {
        return Ok(false);
    };
    let noted = connection
        .prepare_cached(
            "UPDATE log_environments SET grouped_id = ?3, ungrouped = EXISTS (
                 SELECT 1 FROM log_records
                 WHERE environment = ?1 AND level = ?4 AND id > ?3)
             WHERE id = ?1 AND grouped_id = ?2",
        )?
        .execute(params![
            environment,
            errors.after.0,
            errors.upto.0,
            LogLevel::Error as i64
        ])?;
    if noted == 0 {
        return Ok(false);
    }
    if errors.groups.is_empty() {
        return Ok(true);
    }
    let mut known = Vec::new();
    let others = [ErrorGroupId::OTHERS];
    for id in errors.groups.iter().map(|new| &new.id).chain(&others) {
        known.extend(find(connection, environment, *id)?);
    }
    let room = room(connection, environment, errors.groups.len())?;
    let mut regrouped = error_group::regroup(known, room, errors.groups);
    for id in &regrouped.removed {
        remove(connection, environment, *id)?;
    }
    if let Some(now) = errors.alert_at {
        alerts::add(connection, environment, &mut regrouped, now)?;
    }
    for group in &regrouped.groups {
        write(connection, environment, group)?;
    }
    let mut add = connection.prepare_cached(
        "INSERT INTO log_error_hours (environment, fingerprint, hour, count)
         VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (environment, fingerprint, hour) DO UPDATE SET count = count + excluded.count",
    )?;
    for (id, hour, number) in &regrouped.hours {
        add.execute(params![environment, id.0, hour, write_number(*number)])?;
    }
    Ok(true)
}

/// Returns the room that an environment has for `new` groups.
fn room(connection: &Connection, environment: i64, new: usize) -> Result<Room, Error> {
    let others = ErrorGroupId::OTHERS.0;
    let (all, of_strangers): (i64, i64) = connection
        .prepare_cached(
            "SELECT count(*), coalesce(sum(of_stranger), 0) FROM log_error_groups
             WHERE environment = ?1 AND fingerprint <> ?2",
        )?
        .query_row(params![environment, others], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let size = |size| usize::try_from(size).unwrap_or(usize::MAX);
    let mut room = Room::from((size(all), size(of_strangers)));
    if !Room::is_short(room.all, room.of_strangers, new) {
        return Ok(room);
    }
    let mut statement = connection.prepare_cached(
        "SELECT fingerprint, reach, last_at, count, of_stranger, begun_by FROM log_error_groups
         WHERE environment = ?1 AND fingerprint <> ?2 AND state = 'open'",
    )?;
    let mut rows = statement.query(params![environment, others])?;
    while let Some(row) = rows.next()? {
        room.open.push(Held {
            id: ErrorGroupId(row.get(0)?),
            reach: row.get::<_, i64>(1)?.unsigned_abs(),
            last_at: row.get(2)?,
            count: row.get::<_, i64>(3)?.unsigned_abs(),
            of_stranger: row.get(4)?,
            begun_by: row.get::<_, Option<[u8; 16]>>(5)?.map(Uuid::from_bytes),
        });
    }
    Ok(room)
}

fn remove(connection: &Connection, environment: i64, id: ErrorGroupId) -> Result<(), Error> {
    for table in ["log_error_hours", "log_error_groups"] {
        let sql = format!("DELETE FROM {table} WHERE environment = ?1 AND fingerprint = ?2");
        connection
            .prepare_cached(&sql)?
            .execute(params![environment, id.0])?;
    }
    Ok(())
}

fn remove_all(connection: &Connection, filter: &ErrorGroupFilter) -> Result<usize, Error> {
    let Some(environment) = find_environment(connection, &filter.slug, filter.environment)? else {
        return Ok(0);
    };
    let ids: Vec<[u8; 16]> = connection
        .prepare_cached(
            "SELECT fingerprint FROM log_error_groups
             WHERE environment = ?1 AND (?2 IS NULL OR fingerprint = ?2)
                 AND (?3 IS NULL OR state = ?3) AND (?4 IS NULL OR instr(search, ?4) > 0)",
        )?
        .query_map(
            params![
                environment,
                filter.id.map(|id| id.0),
                filter.state.map(ErrorState::as_str),
                filter.text.as_ref().map(|text| text.to_lowercase())
            ],
            |row| row.get(0),
        )?
        .collect::<Result<_, _>>()?;
    for id in &ids {
        remove(connection, environment, ErrorGroupId(*id))?;
    }
    Ok(ids.len())
}

fn read(row: &Row<'_>, from: usize) -> Result<ErrorGroup, Error> {
    let stored = StoredGroup {
        fingerprint: row.get(from)?,
        state: row.get(from + 1)?,
        first_at: row.get(from + 2)?,
        last_at: row.get(from + 3)?,
        count: row.get(from + 4)?,
        of_stranger: row.get(from + 5)?,
        begun_by: row
            .get::<_, Option<[u8; 16]>>(from + 6)?
            .map(Uuid::from_bytes),
        players: row.get(from + 7)?,
        detail: row.get(from + 8)?,
    };
    Ok(stored.read()?)
}

fn find(
    connection: &Connection,
    environment: i64,
    id: ErrorGroupId,
) -> Result<Option<ErrorGroup>, Error> {
    let sql = format!(
        "SELECT {GROUP_COLUMNS} FROM log_error_groups WHERE environment = ?1 AND fingerprint = ?2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let row = statement
        .query_row(params![environment, id.0], |row| Ok(read(row, 0)))
        .optional()?;
    row.transpose()
}

fn write(connection: &Connection, environment: i64, group: &ErrorGroup) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT INTO log_error_groups (environment, fingerprint, state, first_at, last_at,
                 count, of_stranger, players, search, detail, reach, begun_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (environment, fingerprint) DO UPDATE SET state = excluded.state,
                 first_at = excluded.first_at, last_at = excluded.last_at, count = excluded.count,
                 players = excluded.players, search = excluded.search, detail = excluded.detail,
                 reach = excluded.reach",
        )?
        .execute(params![
            environment,
            group.id.0,
            group.state.as_str(),
            group.first_at,
            group.last_at,
            write_number(group.count),
            group.of_stranger,
            group.players.to_bytes(),
            group.search_text(),
            write_group_detail(&group.detail),
            write_number(group.players.count()),
            group.begun_by.map(Uuid::into_bytes)
        ])?;
    Ok(())
}

fn hours(
    connection: &Connection,
    environment: i64,
    id: ErrorGroupId,
    from: Millis,
) -> Result<Vec<(Millis, u64)>, Error> {
    Ok(connection
        .prepare_cached(
            "SELECT hour, count FROM log_error_hours
             WHERE environment = ?1 AND fingerprint = ?2 AND hour >= ?3 ORDER BY hour",
        )?
        .query_map(params![environment, id.0, from], |row| {
            let count: i64 = row.get(1)?;
            Ok((row.get(0)?, count.unsigned_abs()))
        })?
        .collect::<Result<_, _>>()?)
}

fn list(connection: &Connection, query: &ErrorGroupQuery) -> Result<ErrorGroupPage, Error> {
    let transaction = connection.unchecked_transaction()?;
    let Some(environment) = find_environment(&transaction, &query.slug, query.environment)? else {
        return Ok(ErrorGroupPage::default());
    };
    // An environment has a limited number of groups, so this reads few rows. The texts are read for
    // those of the page alone.
    let mut statement = transaction.prepare_cached(
        "SELECT last_at, fingerprint FROM log_error_groups
         WHERE environment = ?1 AND (?2 IS NULL OR state = ?2)
             AND (?3 IS NULL OR instr(search, ?3) > 0)
             AND (?4 IS NULL OR (last_at, fingerprint) < (?4, ?5))
         ORDER BY last_at DESC, fingerprint DESC LIMIT ?6",
    )?;
    let text = query.text.as_ref().map(|text| text.to_lowercase());
    let (at, id) = query.before.unzip();
    let found: Vec<(Millis, [u8; 16])> = statement
        .query_map(
            params![
                environment,
                query.state.map(ErrorState::as_str),
                text,
                at,
                id.map(|id| id.0),
                count(query.limit.saturating_add(1))
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?
        .collect::<Result<_, _>>()?;
    let mut page = ErrorGroupPage::default();
    for (at, id) in found.iter().take(query.limit) {
        let id = ErrorGroupId(*id);
        let group = find(&transaction, environment, id)?;
        let hours = hours(&transaction, environment, id, query.hours_from)?;
        page.groups
            .extend(group.map(|group| CountedGroup { group, hours }));
        page.next = (found.len() > query.limit).then_some((*at, id));
    }
    Ok(page)
}

fn sweep(connection: &Connection, now: Millis, limit: usize) -> Result<usize, Error> {
    let hours = connection
        .prepare_cached(
            "DELETE FROM log_error_hours WHERE (environment, fingerprint, hour) IN (
                 SELECT environment, fingerprint, hour FROM log_error_hours
                 WHERE hour < ?1 LIMIT ?2)",
        )?
        .execute([now - HOURS_KNOWN, count(limit)])?;
    let groups = connection
        .prepare_cached(
            "DELETE FROM log_error_groups WHERE (environment, fingerprint) IN (
                 SELECT environment, fingerprint FROM log_error_groups
                 WHERE last_at < ?1 LIMIT ?2)",
        )?
        .execute([now - GROUPS_KNOWN, count(limit)])?;
    Ok(hours + groups)
}
