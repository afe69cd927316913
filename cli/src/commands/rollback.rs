//! `platform rollback`: shows an earlier deployment again.

use http::{Request, header};
use platform_protocol::names::Environment;
use serde_json::json;

use super::Context;
use super::deployments::{Deployment, View, path};
use crate::client::json as json_body;
use crate::clock;
use crate::failure::Failure;
use crate::terminal::{self, Line, STRONG};

/// The minimum number of characters with which an id can be abbreviated.
const BEGINNING: usize = 4;

/// Makes the given deployment current, else the one before the current.
pub(super) async fn run(
    context: &Context<'_>,
    deployment: Option<&str>,
    environment: Environment,
    yes: bool,
) -> Result<(), Failure> {
    let settings = context.settings()?;
    let slug = settings.project()?;
    let path = path(slug, environment);
    let asks = environment == Environment::Prod && !yes;
    if asks && !terminal::can_ask() {
        return Err(Failure::usage(
            "A rollback of production needs a confirmation, and this is not an interactive \
             terminal: add --yes.",
        ));
    }
    let session = context.session(&settings)?;
    session.look_whose(slug).await?;
    let view: View = session.get(&path).await?.json()?;
    let wanted = choose(&view, deployment)?;
    let game = &view.url;
    let now = clock::now();
    let what = wanted.told(now);
    let current = view.deployments.iter().find(|one| one.current);
    let before = current.map_or_else(String::new, |current| {
        format!(", in place of {}", current.told(now))
    });
    if asks {
        let question = Line::new()
            .push(format_args!(
                "Show {what} ({}), in production, ",
                wanted.content()
            ))
            .styled(STRONG, game)
            .push(format_args!("{before}?"));
        if !terminal::ask(question) {
            return Err(Failure::failed("Nothing was changed."));
        }
    }
    let address = format!("{}{path}/rollback", settings.origin);
    let body = json!({ "deployment": wanted.id });
    let answer = session
        .ask(|| {
            let request = Request::post(&address).header(header::CONTENT_TYPE, "application/json");
            Ok((request, json_body(&body)?))
        })
        .await?;
    let view: View = answer.json()?;
    for warning in &view.warnings {
        warning.note();
    }
    terminal::note(format_args!("Showing {what}{before}."));
    terminal::print(&view.url)
}

/// Finds the deployment to go back to.
fn choose<'a>(view: &'a View, wanted: Option<&str>) -> Result<&'a Deployment, Failure> {
    let game = &view.url;
    let list = "`platform deployments` lists the stored ones";
    let mut kept = view.deployments.iter();
    if let Some(wanted) = wanted {
        let found: Vec<_> = kept.filter(|one| is_named(one, wanted)).collect();
        return match found[..] {
            [one] => Ok(one),
            [] => Err(Failure::failed(format!(
                "{game} has no stored deployment {wanted}: {list}."
            ))),
            _ => Err(Failure::failed(format!(
                "{game} has several stored deployments whose ids begin with {wanted}: write more \
                 of the id; {list}."
            ))),
        };
    }
    if !kept.any(|one| one.current) {
        return Err(Failure::failed(format!(
            "{game} has no current deployment, so there is no earlier one: {list}."
        )));
    }
    // The deployment after the current one in the list is the next older.
    kept.next().ok_or_else(|| {
        Failure::failed(format!(
            "{game} has no stored deployment from before the current one: {list}."
        ))
    })
}

/// Whether `wanted` names this deployment: its id, or the beginning of it.
fn is_named(one: &Deployment, wanted: &str) -> bool {
    one.id == wanted || (wanted.len() >= BEGINNING && one.id.starts_with(wanted))
}
