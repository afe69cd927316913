//! Who set where data of projects goes.

use platform_domain::audit::By;
use platform_domain::people::{Outlet, SetOutlet, Setter};
use platform_protocol::names::Environment;
use tokio_postgres::Row;
use uuid::Uuid;

use super::audit;
use super::error::Error;
use super::rows::get;
use super::transaction::Transaction;

/// The outlets of the project `$1`: a name, the player who set it and the player's name.
pub(super) const LIST: &str = "SELECT 'webhook' AS outlet, w.set_by, o.username FROM webhooks w
        JOIN projects p ON p.id = w.project LEFT JOIN players o ON o.id = w.set_by
        WHERE p.slug = $1 AND p.removed_at IS NULL
    UNION ALL
    SELECT s.environment, s.backend_set_by, o.username FROM environment_settings s
        JOIN projects p ON p.id = s.project LEFT JOIN players o ON o.id = s.backend_set_by
        WHERE p.slug = $1 AND p.removed_at IS NULL AND s.backend_url IS NOT NULL";

/// Notes who set an outlet of the project in the row `project`, which is locked.
pub(super) async fn note(
    transaction: &Transaction,
    (project, slug): (i64, &str),
    outlet: Outlet,
    by: &By,
) -> Result<(), Error> {
    let person = by.person(audit::owner(transaction, slug).await?);
    let noted = match outlet {
        Outlet::Webhook => {
            let sql = "UPDATE webhooks SET set_by = $2 WHERE project = $1";
            transaction.execute(sql, &[&project, &person]).await
        }
        Outlet::Backend(environment) => {
            let sql = "UPDATE environment_settings SET backend_set_by = $3
                 WHERE project = $1 AND environment = $2";
            let name = environment.as_str();
            transaction.execute(sql, &[&project, &name, &person]).await
        }
    };
    noted.map(drop)
}

/// Reads the rows of [`LIST`], the webhook first.
pub(super) fn read(rows: &[Row]) -> Result<Vec<SetOutlet>, Error> {
    let known = [
        ("webhook", Outlet::Webhook),
        (Environment::Dev.as_str(), Outlet::Backend(Environment::Dev)),
        (
            Environment::Prod.as_str(),
            Outlet::Backend(Environment::Prod),
        ),
    ];
    let mut outlets = Vec::new();
    for (name, outlet) in known {
        for row in rows {
            if get::<&str>(row, 0)? != name {
                continue;
            }
            let (player, username): (Option<Uuid>, Option<String>) = (get(row, 1)?, get(row, 2)?);
            let setter = player.zip(username);
            outlets.push(SetOutlet {
                outlet,
                set_by: setter.map(|(player, username)| Setter { player, username }),
            });
        }
    }
    Ok(outlets)
}
