//! The settings of environments, and the test players of projects.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::environment_setting::EnvironmentSetting;
use platform_domain::people::Outlet;
use platform_domain::project::{BackendSettings, EnvironmentRecord, HostedEnvironment};
use platform_protocol::names::Environment;
use platform_store::stored_forms::{read_environment, read_frames, write_frames};
use platform_store::{EnvironmentStore, StoreError};
use serde_json::json;
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::Error;
use super::rows::get;
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{audit, outlets, projects, takedown};

#[async_trait]
impl EnvironmentStore for PostgresStore {
    async fn list_environments(&self) -> Result<Vec<EnvironmentRecord>, StoreError> {
        let rows = self.main.rows(&records(), &[]).await?;
        Ok(rows.iter().map(record).collect::<Result<_, _>>()?)
    }

    async fn list_hosted(&self, slug: Option<&str>) -> Result<Vec<HostedEnvironment>, StoreError> {
        let sql = hosted(slug.is_some());
        let rows = match &slug {
            Some(slug) => self.main.rows(&sql, &[slug]).await?,
            None => self.main.rows(&sql, &[]).await?,
        };
        let hosted = rows.iter().map(|row| {
            let record = record(row)?;
            let standing = takedown::read_standing(row, 8, &record.slug)?;
            Ok(HostedEnvironment { record, standing })
        });
        Ok(hosted.collect::<Result<_, Error>>()?)
    }

    async fn find_environment(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Option<EnvironmentRecord>, StoreError> {
        let row = self
            .main
            .row(&one(), &[&slug, &environment.as_str()])
            .await?;
        Ok(row.as_ref().map(record).transpose()?)
    }

    async fn set_environment(
        &self,
        slug: &str,
        environment: Environment,
        setting: EnvironmentSetting,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        transact!(self.main, transaction =>
            set(&transaction, (slug, environment), &setting, &by, now))
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
        transact!(self.main, transaction =>
            ensure_test_player(&transaction, slug, (guest, number), fresh, (&by, now)))
    }
}

/// The columns that [`record`] reads.
const COLUMNS: &str = "p.slug, e.environment, c.deployment, s.backend_url, s.backend_paths,
        coalesce(s.isolated, false), s.frame_ancestors, coalesce(s.traced, false)";

/// Every project twice: a row of settings exists only once something is set.
const TABLES: &str = "projects p
    CROSS JOIN (VALUES ('dev' COLLATE \"C\"), ('prod' COLLATE \"C\")) AS e (environment)
    LEFT JOIN current_deployments c ON c.project = p.id AND c.environment = e.environment
    LEFT JOIN environment_settings s ON s.project = p.id AND s.environment = e.environment";

/// Returns the query for the settings of all environments.
fn records() -> String {
    format!("SELECT {COLUMNS} FROM {TABLES}")
}

/// Returns the query for the settings and the standing of all environments, or of those of the
/// project `$1`.
fn hosted(of_one: bool) -> String {
    let of_one = if of_one { "WHERE p.slug = $1" } else { "" };
    format!(
        "SELECT {COLUMNS}, {} FROM {TABLES} LEFT JOIN players o ON o.id = p.owner {of_one}",
        takedown::STANDING
    )
}

/// Returns the query for the settings of the environment `$2` of the project `$1`.
fn one() -> String {
    format!("{} WHERE p.slug = $1 AND e.environment = $2", records())
}

/// Changes a setting of an environment. Returns whether it had another value before.
async fn set(
    transaction: &Transaction,
    (slug, environment): (&str, Environment),
    setting: &EnvironmentSetting,
    by: &By,
    now: Millis,
) -> Result<bool, Error> {
    let project = projects::lock(transaction, slug).await?;
    let name = environment.as_str();
    let before = transaction.row(&one(), &[&slug, &name]).await?;
    let before = before.as_ref().map(record).transpose()?;
    let is_known = before.is_some_and(|before| setting.is_in(&before));
    if !is_known {
        write(transaction, (project, name), setting).await?;
    }
    // Whoever saves a backend answers for it, also if it was so before.
    if let EnvironmentSetting::Backend(_) = setting {
        let outlet = Outlet::Backend(environment);
        outlets::note(transaction, (project, slug), outlet, by).await?;
    }
    if is_known {
        return Ok(false);
    }
    let (kind, what) = setting.event();
    let detail = format!("{name} {what}");
    audit::add_of_project(transaction, kind, (slug, &detail), by, now).await?;
    Ok(true)
}

/// Writes a setting of an environment of the project in the row `project`, which is locked.
async fn write(
    transaction: &Transaction,
    (project, name): (i64, &str),
    setting: &EnvironmentSetting,
) -> Result<(), Error> {
    match setting {
        EnvironmentSetting::Backend(backend) => {
            let url = backend.as_ref().map(|backend| &backend.url);
            // A list of strings always has a JSON form.
            let paths = backend.as_ref();
            let paths = paths.map(|backend| json!(backend.paths).to_string());
            let sql = "INSERT INTO environment_settings
                     (project, environment, backend_url, backend_paths) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (project, environment) DO UPDATE SET
                     backend_url = excluded.backend_url, backend_paths = excluded.backend_paths";
            transaction
                .execute(sql, &[&project, &name, &url, &paths])
                .await?;
        }
        EnvironmentSetting::Isolated(isolated) => {
            let sql = "INSERT INTO environment_settings (project, environment, isolated)
                 VALUES ($1, $2, $3)
                 ON CONFLICT (project, environment) DO UPDATE SET isolated = excluded.isolated";
            transaction
                .execute(sql, &[&project, &name, isolated])
                .await?;
        }
        EnvironmentSetting::Frames(frames) => {
            let kept = write_frames(frames);
            let sql = "INSERT INTO environment_settings (project, environment, frame_ancestors)
                 VALUES ($1, $2, $3)
                 ON CONFLICT (project, environment) DO UPDATE
                 SET frame_ancestors = excluded.frame_ancestors";
            transaction.execute(sql, &[&project, &name, &kept]).await?;
        }
        EnvironmentSetting::Traced(traced) => {
            let sql = "INSERT INTO environment_settings (project, environment, traced)
                 VALUES ($1, $2, $3)
                 ON CONFLICT (project, environment) DO UPDATE SET traced = excluded.traced";
            transaction.execute(sql, &[&project, &name, traced]).await?;
        }
    }
    Ok(())
}

fn record(row: &Row) -> Result<EnvironmentRecord, Error> {
    let slug: String = get(row, 0)?;
    let url: Option<String> = get(row, 3)?;
    let paths: Option<&str> = get(row, 4)?;
    let backend = match (url, paths) {
        (Some(url), Some(paths)) => Some(BackendSettings {
            url,
            paths: serde_json::from_str(paths).map_err(|_| StoreError::Corrupt {
                table: "environment_settings",
                column: "backend_paths",
                row: slug.clone(),
            })?,
        }),
        _ => None,
    };
    Ok(EnvironmentRecord {
        environment: read_environment(get(row, 1)?, || slug.clone())?,
        deployment: get(row, 2)?,
        backend,
        isolated: get(row, 5)?,
        frames: read_frames(get(row, 6)?, &slug)?,
        traced: get(row, 7)?,
        slug,
    })
}

async fn ensure_test_player(
    transaction: &Transaction,
    slug: &str,
    (guest, number): (bool, u8),
    fresh: Uuid,
    (by, now): (&By, Millis),
) -> Result<Uuid, Error> {
    let project = projects::lock(transaction, slug).await?;
    let row = transaction
        .row(
            "SELECT EXISTS (SELECT 1 FROM current_deployments WHERE project = $1),
                 (SELECT id FROM test_players
                  WHERE project = $1 AND is_guest = $2 AND number = $3)",
            &[&project, &guest, &i16::from(number)],
        )
        .await?
        .ok_or(Error::Changed)?;
    if !get::<bool>(&row, 0)? {
        return Err(StoreError::Missing {
            table: "deployments",
        }
        .into());
    }
    let known: Option<Uuid> = get(&row, 1)?;
    if known.is_none() {
        transaction
            .execute(
                "INSERT INTO test_players (project, is_guest, number, id) VALUES ($1, $2, $3, $4)",
                &[&project, &guest, &i16::from(number), &fresh],
            )
            .await?;
    }
    let kind = if guest { "guest" } else { "user" };
    let detail = format!("test-{kind}-{number}");
    audit::add_given(transaction, (slug, &detail), by, now).await?;
    Ok(known.unwrap_or(fresh))
}
