//! Who set where data of projects goes.

use platform_domain::audit::By;
use platform_domain::people::{Outlet, SetOutlet, Setter};
use platform_protocol::names::Environment;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::audit;
use super::error::Error;
use super::rows::uuid;

/// Notes who set an outlet of the project in the row `project`, which is its present state.
pub(super) fn note(
    connection: &Connection,
    (project, slug): (i64, &str),
    outlet: Outlet,
    by: &By,
) -> Result<(), Error> {
    let person = by.person(audit::owner(connection, slug)?);
    let person = person.as_ref().map(Uuid::as_bytes);
    match outlet {
        Outlet::Webhook => connection
            .prepare_cached("UPDATE webhooks SET set_by = ?2 WHERE project = ?1")?
            .execute(params![project, person])?,
        Outlet::Backend(environment) => connection
            .prepare_cached(
                "UPDATE environment_settings SET backend_set_by = ?3
                 WHERE project = ?1 AND environment = ?2",
            )?
            .execute(params![project, environment.as_str(), person])?,
    };
    Ok(())
}

/// Lists the outlets of a project, with who set each.
pub(super) fn list(connection: &Connection, slug: &str) -> Result<Vec<SetOutlet>, Error> {
    let mut outlets = Vec::new();
    let webhook = "SELECT w.set_by, o.username FROM webhooks w
         JOIN projects p ON p.id = w.project LEFT JOIN players o ON o.id = w.set_by
         WHERE p.slug = ?1 AND p.removed_at IS NULL";
    outlets.extend(one(connection, webhook, &[&slug], Outlet::Webhook)?);
    for environment in Environment::ALL {
        let backend = "SELECT s.backend_set_by, o.username FROM environment_settings s
             JOIN projects p ON p.id = s.project LEFT JOIN players o ON o.id = s.backend_set_by
             WHERE p.slug = ?1 AND p.removed_at IS NULL
                 AND s.environment = ?2 AND s.backend_url IS NOT NULL";
        let values: [&dyn rusqlite::ToSql; 2] = [&slug, &environment.as_str()];
        let outlet = Outlet::Backend(environment);
        outlets.extend(one(connection, backend, &values, outlet)?);
    }
    Ok(outlets)
}

/// Reads an outlet from the columns player and name, if there is such a row.
fn one(
    connection: &Connection,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
    outlet: Outlet,
) -> Result<Option<SetOutlet>, Error> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let (player, username): (Option<Vec<u8>>, Option<String>) = (row.get(0)?, row.get(1)?);
    let player = player
        .map(|player| uuid(&player, "webhooks", "set_by", String::new))
        .transpose()?;
    let setter = player.zip(username);
    Ok(Some(SetOutlet {
        outlet,
        set_by: setter.map(|(player, username)| Setter { player, username }),
    }))
}
