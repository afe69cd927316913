//! The settings of environments, and the test players of projects.

use std::collections::HashMap;

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::environment_setting::EnvironmentSetting;
use platform_domain::people::Outlet;
use platform_domain::project::{BackendSettings, EnvironmentRecord, HostedEnvironment};
use platform_domain::takedown::Standing;
use platform_protocol::names::Environment;
use platform_store::stored_forms::{read_environment, read_frames, write_frames};
use platform_store::{EnvironmentStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params, params_from_iter};
use serde_json::json;
use uuid::Uuid;

use super::error::Error;
use super::projects::project_id;
use super::rows::uuid;
use super::store::SqliteStore;
use super::takedown::list_standings;
use super::{audit, outlets};

#[async_trait]
impl EnvironmentStore for SqliteStore {
    async fn list_environments(&self) -> Result<Vec<EnvironmentRecord>, StoreError> {
        self.main.read_much(list_environments).await
    }

    async fn list_hosted(&self, slug: Option<&str>) -> Result<Vec<HostedEnvironment>, StoreError> {
        let slug = slug.map(str::to_owned);
        self.main
            .read_much(move |connection| list_hosted(connection, slug.as_deref()))
            .await
    }

    async fn find_environment(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Option<EnvironmentRecord>, StoreError> {
        self.main
            .read(|connection| find_environment(connection, slug, environment))
    }

    async fn set_environment(
        &self,
        slug: &str,
        environment: Environment,
        setting: EnvironmentSetting,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| set(connection, (&slug, environment), &setting, by, now))
            .await
    }

    async fn ensure_test_player(
        &self,
        slug: &str,
        guest: bool,
        number: u8,
        fresh: Uuid,
        by: By,
        now: Millis,
    ) -> Result<Uuid, StoreError> {
        let slug = slug.to_owned();
        self.main
            .write(move |connection| {
                let id = ensure_test_player(connection, &slug, guest, number, fresh)?;
                let kind = if guest { "guest" } else { "user" };
                let detail = format!("test-{kind}-{number}");
                audit::add_given(connection, (&slug, &detail), by, now)?;
                Ok(id)
            })
            .await
    }
}

/// Every project twice: a row of settings exists only once something is set.
const RECORDS: &str = "SELECT p.slug, e.environment, c.deployment, s.backend_url, s.backend_paths,
        coalesce(s.isolated, 0), s.frame_ancestors, coalesce(s.traced, 0)
    FROM projects p
    JOIN (SELECT 'dev' AS environment UNION ALL SELECT 'prod') e
    LEFT JOIN current_deployments c ON c.project = p.id AND c.environment = e.environment
    LEFT JOIN environment_settings s ON s.project = p.id AND s.environment = e.environment";

pub(super) fn list_environments(connection: &Connection) -> Result<Vec<EnvironmentRecord>, Error> {
    let mut statement = connection.prepare_cached(RECORDS)?;
    let mut rows = statement.query([])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(record(row)?);
    }
    Ok(records)
}

fn list_hosted(
    connection: &Connection,
    slug: Option<&str>,
) -> Result<Vec<HostedEnvironment>, Error> {
    // One transaction, so that all of it is of one moment.
    let transaction = connection.unchecked_transaction()?;
    let standings = list_standings(&transaction, slug)?;
    let standings: HashMap<String, Standing> = standings.into_iter().collect();
    let of_one = format!("{RECORDS} WHERE p.slug = ?1");
    let sql = if slug.is_some() { &of_one } else { RECORDS };
    let mut statement = transaction.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(slug))?;
    let mut hosted = Vec::new();
    while let Some(row) = rows.next()? {
        let record = record(row)?;
        let standing = standings.get(&record.slug).cloned().unwrap_or_default();
        hosted.push(HostedEnvironment { record, standing });
    }
    Ok(hosted)
}

pub(super) fn find_environment(
    connection: &Connection,
    slug: &str,
    environment: Environment,
) -> Result<Option<EnvironmentRecord>, Error> {
    let sql = format!("{RECORDS} WHERE p.slug = ?1 AND e.environment = ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([slug, environment.as_str()])?;
    rows.next()?.map(record).transpose()
}

fn record(row: &Row<'_>) -> Result<EnvironmentRecord, Error> {
    let slug: String = row.get(0)?;
    let name: String = row.get(1)?;
    let deployment: Option<Vec<u8>> = row.get(2)?;
    let url: Option<String> = row.get(3)?;
    let paths: Option<String> = row.get(4)?;
    let backend = match (url, paths) {
        (Some(url), Some(paths)) => Some(BackendSettings {
            url,
            paths: serde_json::from_str(&paths).map_err(|_| StoreError::Corrupt {
                table: "environment_settings",
                column: "backend_paths",
                row: slug.clone(),
            })?,
        }),
        _ => None,
    };
    Ok(EnvironmentRecord {
        environment: read_environment(&name, || slug.clone())?,
        deployment: deployment
            .map(|id| uuid(&id, "current_deployments", "deployment", || slug.clone()))
            .transpose()?,
        backend,
        isolated: row.get(5)?,
        frames: read_frames(row.get::<_, Option<String>>(6)?.as_deref(), &slug)?,
        traced: row.get(7)?,
        slug,
    })
}

/// Sets one of the settings of an environment. Returns whether that is a change.
fn set(
    connection: &Connection,
    (slug, environment): (&str, Environment),
    setting: &EnvironmentSetting,
    by: By,
    now: Millis,
) -> Result<bool, Error> {
    let project = project_id(connection, slug)?;
    let name = environment.as_str();
    let before = find_environment(connection, slug, environment)?;
    let is_known = before.is_some_and(|before| setting.is_in(&before));
    if !is_known {
        write(connection, (project, name), setting)?;
    }
    // Whoever saves a backend answers for it, also if it was so before.
    if let EnvironmentSetting::Backend(_) = setting {
        let outlet = Outlet::Backend(environment);
        outlets::note(connection, (project, slug), outlet, &by)?;
    }
    if is_known {
        return Ok(false);
    }
    let (kind, what) = setting.event();
    let detail = format!("{name} {what}");
    audit::add_of_project(connection, kind, (slug, &detail), by, now)?;
    Ok(true)
}

/// Writes a setting of an environment of the project in the row `project`.
fn write(
    connection: &Connection,
    (project, name): (i64, &str),
    setting: &EnvironmentSetting,
) -> Result<(), Error> {
    let write = |sql, values: &[&dyn ToSql]| {
        let values = [&[&project as &dyn ToSql, &name][..], values].concat();
        connection.prepare_cached(sql)?.execute(&*values)
    };
    match setting {
        EnvironmentSetting::Backend(backend) => {
            let url = backend.as_ref().map(|backend| &backend.url);
            // A list of strings always has a JSON form.
            let paths = backend.as_ref();
            let paths = paths.map(|backend| json!(backend.paths).to_string());
            write(
                "INSERT INTO environment_settings (project, environment, backend_url, backend_paths)
                 VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (project, environment) DO UPDATE
                 SET backend_url = excluded.backend_url, backend_paths = excluded.backend_paths",
                &[&url, &paths],
            )
        }
        EnvironmentSetting::Isolated(isolated) => write(
            "INSERT INTO environment_settings (project, environment, isolated)
             VALUES (?1, ?2, ?3)
             ON CONFLICT (project, environment) DO UPDATE SET isolated = excluded.isolated",
            &[isolated],
        ),
        EnvironmentSetting::Frames(frames) => write(
            "INSERT INTO environment_settings (project, environment, frame_ancestors)
             VALUES (?1, ?2, ?3)
             ON CONFLICT (project, environment) DO UPDATE
             SET frame_ancestors = excluded.frame_ancestors",
            &[&write_frames(frames)],
        ),
        EnvironmentSetting::Traced(traced) => write(
            "INSERT INTO environment_settings (project, environment, traced)
             VALUES (?1, ?2, ?3)
             ON CONFLICT (project, environment) DO UPDATE SET traced = excluded.traced",
            &[traced],
        ),
    }?;
    Ok(())
}

pub(super) fn ensure_test_player(
    connection: &Connection,
    slug: &str,
    guest: bool,
    number: u8,
    fresh: Uuid,
) -> Result<Uuid, Error> {
    let project = project_id(connection, slug)?;
    let deployed = connection
        .prepare_cached("SELECT 1 FROM current_deployments WHERE project = ?1")?
        .exists([project])?;
    if !deployed {
        return Err(StoreError::Missing {
            table: "deployments",
        }
        .into());
    }
    let known: Option<Vec<u8>> = connection
        .prepare_cached(
            "SELECT id FROM test_players WHERE project = ?1 AND is_guest = ?2 AND number = ?3",
        )?
        .query_row(params![project, guest, number], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return uuid(&id, "test_players", "id", || slug.to_owned());
    }
    connection
        .prepare_cached(
            "INSERT INTO test_players (project, is_guest, number, id) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![project, guest, number, fresh.as_bytes()])?;
    Ok(fresh)
}
