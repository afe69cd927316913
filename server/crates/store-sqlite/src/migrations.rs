//! The history of the schemas, and upgrading a database.

use platform_domain::username;
use platform_store::{ConnectError, SchemaPolicy};
use refinery_core::{Migration, Runner};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;

use super::connection::not_opened;

/// The history of one file's schema: every migration with its name and text, oldest first. A
/// released migration is never edited; a new one changes its result.
#[derive(Debug)]
pub(super) struct Schema(&'static [(&'static str, &'static str)]);

/// Players, sessions, keys, projects.
pub(super) const MAIN: Schema = Schema(&[
    (
        "V1__players_keys_projects",
        include_str!("../migrations/0001_players_keys_projects.sql"),
    ),
    (
        "V2__accounts",
        include_str!("../migrations/0002_accounts.sql"),
    ),
    (
        "V3__environments",
        include_str!("../migrations/0003_environments.sql"),
    ),
    (
        "V4__devices",
        include_str!("../migrations/0004_devices.sql"),
    ),
    (
        "V5__counting",
        include_str!("../migrations/0005_counting.sql"),
    ),
    (
        "V6__administration",
        include_str!("../migrations/0006_administration.sql"),
    ),
    (
        "V7__sketches",
        include_str!("../migrations/0007_sketches.sql"),
    ),
    ("V8__events", include_str!("../migrations/0008_events.sql")),
    (
        "V9__audit_sources",
        include_str!("../migrations/0009_audit_sources.sql"),
    ),
    (
        "V10__fresh_sign_ins",
        include_str!("../migrations/0010_fresh_sign_ins.sql"),
    ),
    (
        "V11__browsers",
        include_str!("../migrations/0011_browsers.sql"),
    ),
    (
        "V12__awaited_guests",
        include_str!("../migrations/0012_awaited_guests.sql"),
    ),
    (
        "V13__left_guests",
        include_str!("../migrations/0013_left_guests.sql"),
    ),
    (
        "V14__takedown",
        include_str!("../migrations/0014_takedown.sql"),
    ),
    (
        "V15__deployments",
        include_str!("../migrations/0015_deployments.sql"),
    ),
    (
        "V16__kept_bytes",
        include_str!("../migrations/0016_kept_bytes.sql"),
    ),
    (
        "V17__keys_and_frames",
        include_str!("../migrations/0017_keys_and_frames.sql"),
    ),
    (
        "V18__given_tokens",
        include_str!("../migrations/0018_given_tokens.sql"),
    ),
    (
        "V19__ended_sessions",
        include_str!("../migrations/0019_ended_sessions.sql"),
    ),
    (
        "V20__inspections",
        include_str!("../migrations/0020_inspections.sql"),
    ),
    (
        "V21__stored_files",
        include_str!("../migrations/0021_stored_files.sql"),
    ),
    ("V22__nodes", include_str!("../migrations/0022_nodes.sql")),
    (
        "V23__shared_secrets",
        include_str!("../migrations/0023_shared_secrets.sql"),
    ),
    (
        "V24__deploy_tokens",
        include_str!("../migrations/0024_deploy_tokens.sql"),
    ),
    ("V25__people", include_str!("../migrations/0025_people.sql")),
    (
        "V26__previews",
        include_str!("../migrations/0026_previews.sql"),
    ),
    (
        "V27__listings",
        include_str!("../migrations/0027_listings.sql"),
    ),
    (
        "V28__webhooks",
        include_str!("../migrations/0028_webhooks.sql"),
    ),
    (
        "V29__player_games",
        include_str!("../migrations/0029_player_games.sql"),
    ),
    (
        "V30__setters",
        include_str!("../migrations/0030_setters.sql"),
    ),
    (
        "V31__handovers",
        include_str!("../migrations/0031_handovers.sql"),
    ),
    (
        "V32__deletions",
        include_str!("../migrations/0032_deletions.sql"),
    ),
    (
        "V33__retention",
        include_str!("../migrations/0033_retention.sql"),
    ),
    (
        "V34__player_events",
        include_str!("../migrations/0034_player_events.sql"),
    ),
    (
        "V35__game_sessions",
        include_str!("../migrations/0035_game_sessions.sql"),
    ),
    (
        "V36__certificates",
        include_str!("../migrations/0036_certificates.sql"),
    ),
    (
        "V37__domains",
        include_str!("../migrations/0037_domains.sql"),
    ),
    ("V38__traced", include_str!("../migrations/0038_traced.sql")),
]);

/// Frontend log records.
pub(super) const LOGS: Schema = Schema(&[
    (
        "V1__log_records",
        include_str!("../migrations/logs/0001_log_records.sql"),
    ),
    (
        "V2__quota_and_search",
        include_str!("../migrations/logs/0002_quota_and_search.sql"),
    ),
    (
        "V3__error_counts",
        include_str!("../migrations/logs/0003_error_counts.sql"),
    ),
    (
        "V4__strangers",
        include_str!("../migrations/logs/0004_strangers.sql"),
    ),
    (
        "V5__error_groups",
        include_str!("../migrations/logs/0005_error_groups.sql"),
    ),
    (
        "V6__error_alerts",
        include_str!("../migrations/logs/0006_error_alerts.sql"),
    ),
    (
        "V7__error_group_room",
        include_str!("../migrations/logs/0007_error_group_room.sql"),
    ),
]);

/// The table in which the migration library records the applied migrations.
const HISTORY: &str = "refinery_schema_history";

impl Schema {
    /// Returns the newest version that this program knows.
    pub(super) fn newest(&self) -> i32 {
        self.0
            .iter()
            .map(|(name, _)| version(name))
            .max()
            .unwrap_or(0)
    }

    /// Returns the version of the schema of a database; `None` if it is not one of this platform.
    pub(super) fn version_of(&self, connection: &Connection) -> rusqlite::Result<Option<i32>> {
        if !connection.table_exists(None, HISTORY)? {
            return Ok(None);
        }
        // The first migration tells the files apart.
        let first = self.0.first().map_or("", |(name, _)| *name);
        let first = first.split_once("__").map_or("", |(_, name)| name);
        let sql = format!(
            "SELECT max(version) FROM {HISTORY}
             WHERE EXISTS (SELECT 1 FROM {HISTORY} WHERE version = 1 AND name = ?1)"
        );
        connection.query_row(&sql, [first], |row| row.get(0))
    }

    /// Applies missing migrations, if that is allowed; a new database always gets all. They are one
    /// transaction together with their records in the history, so an interrupted start leaves a complete
    /// schema, old or new.
    pub(super) fn bring_up_to_date(
        &self,
        connection: &mut Connection,
        schema: SchemaPolicy,
    ) -> Result<(), ConnectError> {
        let migrations = self
            .0
            .iter()
            .map(|(name, sql)| Migration::unapplied(name, sql))
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        let known = migrations.iter().map(Migration::version).max().unwrap_or(0);
        add_functions(connection).map_err(not_opened)?;
        // Without groups, a migration and its record in the history are two transactions.
        let mut runner = Runner::new(&migrations).set_grouped(true);
        runner.set_migration_table_name(HISTORY);
        let found = if connection.table_exists(None, HISTORY).map_err(not_opened)? {
            runner
                .get_last_applied_migration(connection)
                .map_err(failed)?
        } else {
            None
        };
        let found = found.map_or(0, |migration| migration.version());
        if found > known {
            return Err(ConnectError::TooNew { found, known });
        }
        if found < known && found > 0 && schema == SchemaPolicy::Refuse {
            return Err(ConnectError::TooOld { found, known });
        }
        if found < known {
            runner.run(connection).map_err(failed)?;
        }
        Ok(())
    }
}

/// Returns the version of a migration, which its name begins with.
fn version(name: &str) -> i32 {
    let number = name
        .strip_prefix('V')
        .and_then(|rest| rest.split_once("__"));
    number
        .and_then(|(number, _)| number.parse().ok())
        .unwrap_or(0)
}

/// SQL functions for migrations: values that the program computes for rows written under an older
/// rule.
fn add_functions(connection: &Connection) -> rusqlite::Result<()> {
    connection.create_scalar_function(
        "unique_key",
        1,
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC,
        |context| Ok(username::unique_key(context.get_raw(0).as_str()?)),
    )
}

fn failed(error: refinery_core::Error) -> ConnectError {
    ConnectError::Migration(Box::new(error))
}

#[cfg(test)]
mod tests {
    use platform_protocol::log::LogLevel;
    use platform_protocol::names::Environment;
    use uuid::Uuid;

    use super::*;
    use crate::SqliteStore;
    use platform_domain::counting::HOUR;
    use platform_domain::log::{ErrorQuery, LogQuery, LogSearch};
    use platform_domain::project::Inspection;
    use platform_store::{DeploymentStore as _, LogStore as _};

    /// The start of an hour.
    const FIRST: i64 = 500_000 * HOUR;
    /// The distance between ids of records that arrived an hour apart.
    const LATER: i64 = HOUR << 20;

    /// Number, environment, level, deployment, message, stack and count.
    type Row<'a> = (i64, i64, u8, &'a [u8], &'a str, Option<&'a str>, i64);

    /// Environment, hour, deployment, errors, warnings, and the time of the last one.
    type Counted = (i64, i64, Vec<u8>, i64, i64, i64);

    #[test]
    fn the_history_has_no_gap() {
        for schema in [&MAIN, &LOGS] {
            for (index, (name, _)) in schema.0.iter().enumerate() {
                let start = format!("V{}__", index + 1);
                assert!(name.starts_with(&start), "{name}");
            }
        }
    }

    #[test]
    fn the_newest_version_is_that_of_the_last_migration() {
        for schema in [&MAIN, &LOGS] {
            assert_eq!(schema.newest(), i32::try_from(schema.0.len()).unwrap());
        }
    }

    /// A file of log records as the first version made it, with records.
    fn logs_of_before(connection: &mut Connection) {
        let before = Schema(LOGS.0.get(..1).unwrap());
        before
            .bring_up_to_date(connection, SchemaPolicy::Upgrade)
            .unwrap();
        connection
            .execute_batch(
                "INSERT INTO log_environments (project, environment)
                     VALUES ('a', 'dev'), ('a', 'prod'), ('b', 'dev')",
            )
            .unwrap();
        let (one, other) = ([1_u8; 16], [2_u8; 16]);
        let rows: [Row<'_>; 8] = [
            (0, 1, 0, &one, "ä", None, 1),
            (1, 1, 3, &one, "broken", Some("at a.js:1"), 2),
            (2, 1, 3, &one, "broken", None, 5),
            (3, 1, 2, &one, "odd", None, 4),
            (4, 1, 3, &other, "broken", None, 1),
            (LATER, 1, 3, &one, "broken", None, 1),
            (LATER + 1, 1, 2, &[], "odd", None, 3),
            (LATER + 2, 2, 3, &one, "elsewhere", None, 7),
        ];
        for (number, environment, level, deployment, message, stack, count) in rows {
            connection
                .execute(
                    "INSERT INTO log_records (id, environment, level, source, deployment, player,
                         page, time, message, stack, count)
                     VALUES (?1, ?2, ?3, 'console', nullif(?4, x''), ?5, ?5, 0, ?6, ?7, ?8)",
                    rusqlite::params![
                        (FIRST << 20) + number,
                        environment,
                        level,
                        deployment,
                        one,
                        message,
                        stack,
                        count
                    ],
                )
                .unwrap();
        }
    }

    #[test]
    fn errors_and_the_room_of_records_of_before_are_counted() {
        let mut connection = Connection::open_in_memory().unwrap();
        logs_of_before(&mut connection);
        LOGS.bring_up_to_date(&mut connection, SchemaPolicy::Upgrade)
            .unwrap();
        let mut bytes = connection
            .prepare("SELECT bytes FROM log_environments ORDER BY id")
            .unwrap();
        let bytes = bytes.query_map([], |row| row.get(0)).unwrap();
        let bytes: Vec<i64> = bytes.collect::<Result<_, _>>().unwrap();
        assert_eq!(bytes, [1_161, 169, 0]);
        let mut counts = connection
            .prepare(
                "SELECT environment, hour, deployment, errors, warnings, last_at
                 FROM log_error_counts ORDER BY environment, hour, deployment",
            )
            .unwrap();
        let counts = counts.query_map([], |row| Counted::try_from(row)).unwrap();
        let counts: Vec<Counted> = counts.collect::<Result<_, _>>().unwrap();
        let (one, other, none) = (vec![1; 16], vec![2; 16], Vec::new());
        let next = FIRST + HOUR;
        assert_eq!(
            counts,
            [
                (1, FIRST, one.clone(), 7, 4, FIRST),
                (1, FIRST, other, 1, 0, FIRST),
                (1, next, none, 0, 3, next),
                (1, next, one.clone(), 1, 0, next),
                (2, next, one, 7, 0, next),
            ]
        );
    }

    #[tokio::test]
    async fn a_store_of_before_answers_of_its_log_records_as_of_new_ones() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("platform.db");
        let mut connection = Connection::open(directory.path().join("logs.db")).unwrap();
        logs_of_before(&mut connection);
        connection.close().unwrap();

        let refused = SqliteStore::open(&file, SchemaPolicy::Refuse).await;
        assert!(
            matches!(refused, Err(ConnectError::TooOld { found: 1, .. })),
            "{refused:?}"
        );
        let store = SqliteStore::open(&file, SchemaPolicy::Upgrade)
            .await
            .unwrap();
        let (slug, environment) = ("a".to_owned(), Environment::Dev);
        let query = LogQuery {
            slug: slug.clone(),
            environment,
            level: LogLevel::Debug,
            before: None,
            limit: 100,
            bytes: usize::MAX,
        };
        let page = store.list_log_records(query).await.unwrap();
        let told = page.records.iter();
        let told: Vec<_> = told
            .map(|record| (record.entry.message.as_str(), record.entry.count))
            .collect();
        let expected = [
            ("odd", 3),
            ("broken", 1),
            ("broken", 1),
            ("odd", 4),
            ("broken", 5),
            ("broken", 2),
            ("ä", 1),
        ];
        assert_eq!(told, expected);
        let search = LogSearch {
            player: Some(Uuid::from_bytes([1; 16])),
            text: Some("A.JS".into()),
            ..LogSearch::all(slug.clone(), environment, 100, usize::MAX)
        };
        let found = store.search_log_records(search).await.unwrap();
        assert_eq!(found.records.len(), 1);
        let errors = ErrorQuery {
            slug,
            environment,
            from: FIRST,
            to: FIRST + HOUR,
            limit: 10,
        };
        let errors = store.count_errors(errors).await.unwrap();
        let mut errors: Vec<_> = errors
            .into_iter()
            .map(|count| (count.deployment, count.errors, count.warnings))
            .collect();
        errors.sort_unstable();
        let deployment = |letter| Some(Uuid::from_bytes([letter; 16]));
        assert_eq!(errors, [(deployment(1), 7, 4), (deployment(2), 1, 0)]);
        assert_eq!(store.log_bytes("a").await.unwrap(), 1_161 + 169);

        // Removed records are subtracted from the counts.
        let swept = store.sweep_log_records(FIRST + 1, 100).await.unwrap();
        assert_eq!(swept, 5);
        assert_eq!(store.log_bytes("a").await.unwrap(), 329 + 169);
    }

    #[tokio::test]
    async fn a_deployment_of_an_older_version_can_be_read_and_is_inspected_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("platform.db");
        let mut connection = Connection::open(&file).unwrap();
        let before = Schema(MAIN.0.get(..19).unwrap());
        before
            .bring_up_to_date(&mut connection, SchemaPolicy::Upgrade)
            .unwrap();
        let id = Uuid::from_bytes([1; 16]);
        connection
            .execute_batch(
                "INSERT INTO projects (slug, created_at) VALUES ('a', 1);
                 INSERT INTO deployments (id, project, environment, created_at)
                     VALUES (x'01010101010101010101010101010101', 1, 'prod', 1)",
            )
            .unwrap();
        connection.close().unwrap();
        let store = SqliteStore::open(&file, SchemaPolicy::Upgrade)
            .await
            .unwrap();
        let inspection = async || {
            let found = store.find_deployment(id).await.unwrap();
            found.unwrap().inspection
        };
        assert_eq!(inspection().await, None);
        let found = |title: &str| Inspection {
            title: Some(title.to_owned()),
            ..Inspection::default()
        };
        for title in ["one", "other"] {
            let set = store.set_inspections(vec![(id, found(title))]);
            set.await.unwrap();
            assert_eq!(inspection().await, Some(found("one")));
        }
    }

    #[test]
    fn events_of_before_name_the_operator_where_nobody_else_could() {
        let mut connection = Connection::open_in_memory().unwrap();
        let before = Schema(MAIN.0.get(..5).unwrap());
        before
            .bring_up_to_date(&mut connection, SchemaPolicy::Upgrade)
            .unwrap();
        connection
            .execute_batch(
                "INSERT INTO audit_events (at, kind) VALUES (1, 'suspended'), (2, 'sessions-ended')",
            )
            .unwrap();
        let refused = MAIN.bring_up_to_date(&mut connection, SchemaPolicy::Refuse);
        let known = i32::try_from(MAIN.0.len()).unwrap();
        assert!(
            matches!(refused, Err(ConnectError::TooOld { found: 5, known: new }) if new == known),
            "{refused:?}"
        );
        MAIN.bring_up_to_date(&mut connection, SchemaPolicy::Upgrade)
            .unwrap();
        MAIN.bring_up_to_date(&mut connection, SchemaPolicy::Refuse)
            .unwrap();
        let mut statement = connection
            .prepare("SELECT actor, admin FROM audit_events ORDER BY id")
            .unwrap();
        let actors: Vec<(Option<String>, Option<Vec<u8>>)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(actors, [(Some("operator".to_owned()), None), (None, None)]);
        // Exactly the events of an administrator name one.
        for wrong in ["actor = 'admin'", "admin = x'01'", "actor = 'somebody'"] {
            let set = format!("UPDATE audit_events SET {wrong} WHERE id = 2");
            assert!(connection.execute(&set, []).is_err(), "{wrong}");
        }
    }
}
