//! Groups of errors.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::error_group::{
    self, CountedGroup, ErrorGroup, ErrorGroupFilter, ErrorGroupId, ErrorGroupPage,
    ErrorGroupQuery, ErrorState, GROUPS_KNOWN, GroupedErrors, HOURS_KNOWN, Held, Regrouped, Room,
    Ungrouped,
};
use platform_domain::log::LogId;
use platform_protocol::log::LogLevel;
use platform_protocol::names::Environment;
use platform_store::stored_groups::{GROUP_COLUMNS, StoredGroup, write_group_detail, write_number};
use platform_store::{ErrorGroupStore, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::alerts;
use super::error::Error;
use super::rows::{count, get, number};
use super::store::PostgresStore;
use super::transaction::Transaction;

#[async_trait]
impl ErrorGroupStore for PostgresStore {
    async fn list_ungrouped(&self, limit: usize) -> Result<Vec<Ungrouped>, StoreError> {
        let rows = self
            .logs
            .database
            .rows(
                "SELECT project, environment, grouped_id FROM log_environments
                 WHERE ungrouped ORDER BY grouped_id LIMIT $1",
                &[&count(limit)],
            )
            .await?;
        let found = rows.iter().map(|row| {
            let name: &str = get(row, 1)?;
            Ok(Ungrouped {
                slug: get(row, 0)?,
                environment: if name == Environment::Dev.as_str() {
                    Environment::Dev
                } else {
                    Environment::Prod
                },
                after: LogId(get(row, 2)?),
            })
        });
        Ok(found.collect::<Result<_, Error>>()?)
    }

    async fn add_to_error_groups(&self, errors: GroupedErrors) -> Result<bool, StoreError> {
        transact!(self.logs.database, transaction => add(&transaction, &errors))
    }

    async fn list_error_groups(
        &self,
        query: ErrorGroupQuery,
    ) -> Result<ErrorGroupPage, StoreError> {
        let transaction = self.logs.database.snapshot().await?;
        let page = list(&transaction, &query).await?;
        transaction.finish_reading().await?;
        Ok(page)
    }

    async fn find_error_group(
        &self,
        slug: &str,
        environment: Environment,
        id: ErrorGroupId,
        hours_from: Millis,
    ) -> Result<Option<CountedGroup>, StoreError> {
        let transaction = self.logs.database.snapshot().await?;
        let mut found = None;
        if let Some(environment) = find_environment(&transaction, slug, environment, "").await? {
            let groups = find(&transaction, environment, &[id]).await?;
            let counted = with_hours(&transaction, environment, groups, hours_from).await?;
            found = counted.into_iter().next();
        }
        transaction.finish_reading().await?;
        Ok(found)
    }

    async fn decide_error_group(
        &self,
        slug: &str,
        environment: Environment,
        id: ErrorGroupId,
        decision: (ErrorState, Option<Millis>, Millis),
    ) -> Result<bool, StoreError> {
        transact!(self.logs.database, transaction => decide(&transaction, (slug, environment), id, decision))
    }

    async fn remove_error_groups(&self, filter: ErrorGroupFilter) -> Result<usize, StoreError> {
        transact!(self.logs.database, transaction => remove_all(&transaction, &filter))
    }

    async fn sweep_error_groups(&self, now: Millis, limit: usize) -> Result<usize, StoreError> {
        transact!(self.logs.database, transaction => sweep(&transaction, now, limit))
    }
}

/// Returns the number of an environment. With `FOR UPDATE`, its row is locked, as by those who add
/// records.
async fn find_environment(
    transaction: &Transaction,
    slug: &str,
    environment: Environment,
    lock: &str,
) -> Result<Option<i64>, Error> {
    let sql =
        format!("SELECT id FROM log_environments WHERE project = $1 AND environment = $2 {lock}");
    let row = transaction
        .row(&sql, &[&slug, &environment.as_str()])
        .await?;
    row.as_ref().map(|row| get(row, 0)).transpose()
}

/// Adds errors to their groups, and notes how far that is done.
async fn add(transaction: &Transaction, errors: &GroupedErrors) -> Result<bool, Error> {
    let name = (errors.slug.as_str(), errors.environment);
    // The lock first: the next statement then sees all records that were added before it.
    let found = find_environment(transaction, name.0, name.1, "FOR UPDATE").await?;
    let Some(environment) = found else {
        return Ok(false);
    };
    let noted = transaction
        .execute(
            "UPDATE log_environments SET grouped_id = $3, ungrouped = EXISTS (
                 SELECT 1 FROM log_records r
                 WHERE r.environment = $1 AND r.level = $4 AND r.id > $3)
             WHERE id = $1 AND grouped_id = $2",
            &[
                &environment,
                &errors.after.0,
                &errors.upto.0,
                &(LogLevel::Error as i16),
            ],
        )
        .await?;
    if noted == 0 {
        return Ok(false);
    }
    if errors.groups.is_empty() {
        return Ok(true);
    }
    let mut ids: Vec<ErrorGroupId> = errors.groups.iter().map(|new| new.id).collect();
    ids.push(ErrorGroupId::OTHERS);
    let known = find(transaction, environment, &ids).await?;
    let room = room(transaction, environment, errors.groups.len()).await?;
    let mut regrouped = error_group::regroup(known, room, errors.groups.clone());
    remove(transaction, environment, &regrouped.removed).await?;
    if let Some(now) = errors.alert_at {
        alerts::add(transaction, environment, &mut regrouped, now).await?;
    }
    write(transaction, environment, &regrouped.groups).await?;
    write_hours(transaction, environment, &regrouped).await?;
    Ok(true)
}

/// Returns the room that an environment has for `new` groups.
async fn room(transaction: &Transaction, environment: i64, new: usize) -> Result<Room, Error> {
    let others = ErrorGroupId::OTHERS.0.as_slice();
    let sizes = transaction
        .row(
            "SELECT count(*), count(*) FILTER (WHERE of_stranger) FROM log_error_groups
             WHERE environment = $1 AND fingerprint <> $2",
            &[&environment, &others],
        )
        .await?
        .ok_or(Error::Changed)?;
    let size = |index| -> Result<usize, Error> {
        Ok(usize::try_from(get::<i64>(&sizes, index)?).unwrap_or(usize::MAX))
    };
    let mut room = Room::from((size(0)?, size(1)?));
    if !Room::is_short(room.all, room.of_strangers, new) {
        return Ok(room);
    }
    let rows = transaction
        .rows(
            "SELECT fingerprint, reach, last_at, count, of_stranger, begun_by
             FROM log_error_groups
             WHERE environment = $1 AND fingerprint <> $2 AND state = 'open'",
            &[&environment, &others],
        )
        .await?;
    for row in &rows {
        let id: &[u8] = get(row, 0)?;
        let Ok(id) = id.try_into() else { continue };
        room.open.push(Held {
            id: ErrorGroupId(id),
            reach: get::<i64>(row, 1)?.unsigned_abs(),
            last_at: get(row, 2)?,
            count: get::<i64>(row, 3)?.unsigned_abs(),
            of_stranger: get(row, 4)?,
            begun_by: get(row, 5)?,
        });
    }
    Ok(room)
}

async fn remove(
    transaction: &Transaction,
    environment: i64,
    ids: &[ErrorGroupId],
) -> Result<(), Error> {
    if ids.is_empty() {
        return Ok(());
    }
    let ids: Vec<&[u8]> = ids.iter().map(|id| id.0.as_slice()).collect();
    transaction
        .execute(
            "DELETE FROM log_error_hours WHERE environment = $1 AND fingerprint = ANY($2)",
            &[&environment, &ids],
        )
        .await?;
    transaction
        .execute(
            "DELETE FROM log_error_groups WHERE environment = $1 AND fingerprint = ANY($2)",
            &[&environment, &ids],
        )
        .await
        .map(drop)
}

async fn remove_all(transaction: &Transaction, filter: &ErrorGroupFilter) -> Result<usize, Error> {
    let name = (filter.slug.as_str(), filter.environment);
    // The lock keeps errors from being added meanwhile.
    let found = find_environment(transaction, name.0, name.1, "FOR UPDATE").await?;
    let Some(environment) = found else {
        return Ok(0);
    };
    let id = filter.id.as_ref().map(|id| id.0.as_slice());
    let state = filter.state.map(ErrorState::as_str);
    let text = filter.text.as_ref().map(|text| text.to_lowercase());
    let rows = transaction
        .rows(
            "SELECT fingerprint FROM log_error_groups
             WHERE environment = $1 AND ($2::bytea IS NULL OR fingerprint = $2)
                 AND ($3::text IS NULL OR state = $3)
                 AND ($4::text IS NULL OR position($4 IN search) > 0)",
            &[&environment, &id, &state, &text],
        )
        .await?;
    let ids: Vec<ErrorGroupId> = rows
        .iter()
        .map(|row| Ok(get::<&[u8]>(row, 0)?.try_into().map(ErrorGroupId).ok()))
        .filter_map(Result::transpose)
        .collect::<Result<_, Error>>()?;
    remove(transaction, environment, &ids).await?;
    Ok(ids.len())
}

fn read(row: &Row) -> Result<ErrorGroup, Error> {
    let stored = StoredGroup {
        fingerprint: get(row, 0)?,
        state: get(row, 1)?,
        first_at: get(row, 2)?,
        last_at: get(row, 3)?,
        count: get(row, 4)?,
        of_stranger: get(row, 5)?,
        begun_by: get(row, 6)?,
        players: get(row, 7)?,
        detail: get(row, 8)?,
    };
    Ok(stored.read()?)
}

/// Returns the groups of these ids, the one with the latest error first.
async fn find(
    transaction: &Transaction,
    environment: i64,
    ids: &[ErrorGroupId],
) -> Result<Vec<ErrorGroup>, Error> {
    let ids: Vec<&[u8]> = ids.iter().map(|id| id.0.as_slice()).collect();
    let sql = format!(
        "SELECT {GROUP_COLUMNS} FROM log_error_groups
         WHERE environment = $1 AND fingerprint = ANY($2)
         ORDER BY last_at DESC, fingerprint DESC"
    );
    let rows = transaction.rows(&sql, &[&environment, &ids]).await?;
    rows.iter().map(read).collect()
}

async fn write(
    transaction: &Transaction,
    environment: i64,
    groups: &[ErrorGroup],
) -> Result<(), Error> {
    let ids: Vec<&[u8]> = groups.iter().map(|group| group.id.0.as_slice()).collect();
    let states: Vec<&str> = groups.iter().map(|group| group.state.as_str()).collect();
    let firsts: Vec<i64> = groups.iter().map(|group| group.first_at).collect();
    let lasts: Vec<i64> = groups.iter().map(|group| group.last_at).collect();
    let counts: Vec<i64> = groups
        .iter()
        .map(|group| write_number(group.count))
        .collect();
    let strangers: Vec<bool> = groups.iter().map(|group| group.of_stranger).collect();
    let players: Vec<Vec<u8>> = groups
        .iter()
        .map(|group| group.players.to_bytes())
        .collect();
    let search: Vec<String> = groups.iter().map(ErrorGroup::search_text).collect();
    let details = groups.iter().map(|group| write_group_detail(&group.detail));
    let details: Vec<String> = details.collect();
    let reaches = groups
        .iter()
        .map(|group| write_number(group.players.count()));
    let reaches: Vec<i64> = reaches.collect();
    let begun_by: Vec<Option<Uuid>> = groups.iter().map(|group| group.begun_by).collect();
    transaction
        .execute(
            "INSERT INTO log_error_groups (environment, fingerprint, state, first_at, last_at,
                 count, of_stranger, players, search, detail, reach, begun_by)
             SELECT $1, * FROM unnest($2::bytea[], $3::text[], $4::bigint[], $5::bigint[],
                 $6::bigint[], $7::boolean[], $8::bytea[], $9::text[], $10::text[],
                 $11::bigint[], $12::uuid[])
             ON CONFLICT (environment, fingerprint) DO UPDATE SET state = excluded.state,
                 first_at = excluded.first_at, last_at = excluded.last_at, count = excluded.count,
                 players = excluded.players, search = excluded.search, detail = excluded.detail,
                 reach = excluded.reach",
            &[
                &environment,
                &ids,
                &states,
                &firsts,
                &lasts,
                &counts,
                &strangers,
                &players,
                &search,
                &details,
                &reaches,
                &begun_by,
            ],
        )
        .await
        .map(drop)
}

async fn write_hours(
    transaction: &Transaction,
    environment: i64,
    regrouped: &Regrouped,
) -> Result<(), Error> {
    let hours = &regrouped.hours;
    let ids: Vec<&[u8]> = hours.iter().map(|hour| hour.0.0.as_slice()).collect();
    let starts: Vec<i64> = hours.iter().map(|hour| hour.1).collect();
    let counts: Vec<i64> = hours.iter().map(|hour| write_number(hour.2)).collect();
    transaction
        .execute(
            "INSERT INTO log_error_hours AS known (environment, fingerprint, hour, count)
             SELECT $1, * FROM unnest($2::bytea[], $3::bigint[], $4::bigint[])
             ON CONFLICT (environment, fingerprint, hour) DO UPDATE SET
                 count = known.count + excluded.count",
            &[&environment, &ids, &starts, &counts],
        )
        .await
        .map(drop)
}

/// Adds the errors by hour to groups.
async fn with_hours(
    transaction: &Transaction,
    environment: i64,
    groups: Vec<ErrorGroup>,
    from: Millis,
) -> Result<Vec<CountedGroup>, Error> {
    let ids: Vec<&[u8]> = groups.iter().map(|group| group.id.0.as_slice()).collect();
    let rows = transaction
        .rows(
            "SELECT fingerprint, hour, count FROM log_error_hours
             WHERE environment = $1 AND fingerprint = ANY($2) AND hour >= $3 ORDER BY hour",
            &[&environment, &ids, &from],
        )
        .await?;
    let mut counted: Vec<CountedGroup> = groups
        .into_iter()
        .map(|group| CountedGroup {
            group,
            hours: Vec::new(),
        })
        .collect();
    for row in &rows {
        let id: &[u8] = get(row, 0)?;
        let group = counted.iter_mut().find(|known| known.group.id.0 == id);
        if let Some(group) = group {
            group
                .hours
                .push((get(row, 1)?, get::<i64>(row, 2)?.unsigned_abs()));
        }
    }
    Ok(counted)
}

async fn list(transaction: &Transaction, query: &ErrorGroupQuery) -> Result<ErrorGroupPage, Error> {
    let name = (query.slug.as_str(), query.environment);
    let Some(environment) = find_environment(transaction, name.0, name.1, "").await? else {
        return Ok(ErrorGroupPage::default());
    };
    // An environment has a limited number of groups, so this reads few rows. The texts are read for
    // those of the page alone.
    let text = query.text.as_ref().map(|text| text.to_lowercase());
    let (at, id) = query.before.unzip();
    let rows = transaction
        .rows(
            "SELECT fingerprint, last_at FROM log_error_groups
             WHERE environment = $1 AND ($2::text IS NULL OR state = $2)
                 AND ($3::text IS NULL OR position($3 IN search) > 0)
                 AND ($4::bigint IS NULL OR (last_at, fingerprint) < ($4, $5::bytea))
             ORDER BY last_at DESC, fingerprint DESC LIMIT $6",
            &[
                &environment,
                &query.state.map(ErrorState::as_str),
                &text,
                &at,
                &id.as_ref().map(|id| id.0.as_slice()),
                &count(query.limit.saturating_add(1)),
            ],
        )
        .await?;
    let mut ids = Vec::new();
    let mut next = None;
    for row in rows.iter().take(query.limit) {
        let id: &[u8] = get(row, 0)?;
        let id = ErrorGroupId(id.try_into().map_err(|_| Error::Changed)?);
        ids.push(id);
        next = (rows.len() > query.limit).then_some((get(row, 1)?, id));
    }
    let groups = find(transaction, environment, &ids).await?;
    Ok(ErrorGroupPage {
        groups: with_hours(transaction, environment, groups, query.hours_from).await?,
        next,
    })
}

async fn decide(
    transaction: &Transaction,
    (slug, environment): (&str, Environment),
    id: ErrorGroupId,
    (state, deployed_at, now): (ErrorState, Option<Millis>, Millis),
) -> Result<bool, Error> {
    let found = find_environment(transaction, slug, environment, "FOR UPDATE").await?;
    let Some(environment) = found else {
        return Ok(false);
    };
    let mut groups = find(transaction, environment, &[id]).await?;
    for group in &mut groups {
        group.decide(state, deployed_at, now);
    }
    write(transaction, environment, &groups).await?;
    Ok(!groups.is_empty())
}

async fn sweep(transaction: &Transaction, now: Millis, limit: usize) -> Result<usize, Error> {
    let hours = transaction
        .execute(
            "DELETE FROM log_error_hours WHERE ctid IN (
                 SELECT ctid FROM log_error_hours WHERE hour < $1 LIMIT $2)",
            &[&(now - HOURS_KNOWN), &count(limit)],
        )
        .await?;
    let groups = transaction
        .execute(
            "DELETE FROM log_error_groups WHERE ctid IN (
                 SELECT ctid FROM log_error_groups WHERE last_at < $1 LIMIT $2)",
            &[&(now - GROUPS_KNOWN), &count(limit)],
        )
        .await?;
    Ok(number(hours + groups))
}
