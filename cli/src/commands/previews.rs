//! `platform previews`: lists and removes a project's previews. `platform deploy --preview` creates
//! them.

use std::path::Path;

use http::Request;
use platform_protocol::preview::{check_name, name_of};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Context;
use crate::args::PreviewsCommand;
use crate::client::empty;
use crate::clock;
use crate::environment::ProcessEnvironment;
use crate::failure::Failure;
use crate::revision;
use crate::session::Session;
use crate::terminal::{self, Line};

/// The previews of a project.
#[derive(Debug, Deserialize)]
struct Previews {
    previews: Vec<Preview>,
}

/// A preview.
#[derive(Debug, Deserialize)]
struct Preview {
    name: String,
    url: String,
    deployment: Deployment,
    used_on: String,
    expires_at: String,
}

/// What a preview shows.
#[derive(Debug, Deserialize)]
struct Deployment {
    created_at: String,
}

/// The path of a project's previews in the project API.
pub(super) fn path(slug: &str) -> String {
    format!("/api/projects/{slug}/previews")
}

/// Returns the name of the preview to deploy: the given one or, if none is given, that of the
/// branch.
///
/// # Errors
/// The name is not possible, or there is no branch.
pub(super) fn name(
    given: &str,
    slug: &str,
    directory: &Path,
    environment: &ProcessEnvironment,
) -> Result<String, Failure> {
    if given.is_empty() {
        // A pipeline often checks out a commit, without its branch.
        let branch = revision::branch(directory).or_else(|| environment.branch.clone());
        let name = branch.and_then(|branch| name_of(&branch, slug));
        return name.ok_or_else(|| {
            Failure::usage(
                "There is no branch of git after which the preview could be named: name it with \
                 --preview NAME.",
            )
        });
    }
    check_name(given, slug).map_err(|error| {
        let possible = name_of(given, slug);
        let possible = possible.map(|name| format!(" Possible would be: {name}"));
        Failure::usage(format!("{error}{}", possible.unwrap_or_default()))
    })?;
    Ok(given.to_owned())
}

/// Runs a command about previews.
pub(super) async fn run(context: &Context<'_>, command: PreviewsCommand) -> Result<(), Failure> {
    let settings = context.settings()?;
    let slug = settings.project()?;
    let session = context.session(&settings)?;
    session.look_whose(slug).await?;
    match command {
        PreviewsCommand::List { json } => list(&session, slug, json).await,
        PreviewsCommand::Delete { name, json } => {
            // Whatever is typed, it stays one segment of the path.
            check_name(&name, slug).map_err(|error| Failure::usage(error.to_string()))?;
            let address = format!("{}{}/{name}", settings.origin, path(slug));
            let request = || Ok((Request::delete(&address), empty()));
            let removed: Value = session.ask(request).await?.json()?;
            terminal::note(format_args!("Removed the preview {name} of {slug}."));
            if json {
                return terminal::print_json(&removed);
            }
            Ok(())
        }
    }
}

async fn list(session: &Session, slug: &str, json: bool) -> Result<(), Failure> {
    let answer = session.get(&path(slug)).await?;
    if json {
        let mut value: Value = answer.json()?;
        let list = json!({ "previews": value["previews"].take() });
        return terminal::print_json(&list);
    }
    let Previews { previews } = answer.json()?;
    if previews.is_empty() {
        terminal::note(format_args!(
            "{slug} has no previews: create one with `platform deploy --preview`."
        ));
        return Ok(());
    }
    terminal::print_all(&table(&previews, clock::now()))
}

fn table(previews: &[Preview], now: i64) -> Vec<Line> {
    let head = ["NAME", "DEPLOYED", "LAST USED", "ENDS", "ADDRESS"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(previews.iter().map(|preview| {
        [
            preview.name.clone(),
            terminal::when(&preview.deployment.created_at, now),
            preview.used_on.clone(),
            terminal::when(&preview.expires_at, now),
            preview.url.clone(),
        ]
    }));
    terminal::table(&rows, &[])
}
