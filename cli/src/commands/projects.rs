//! `platform projects`: makes and lists projects.

use std::fmt::Write as _;

use http::{Request, header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Context;
use crate::args::ProjectsCommand;
use crate::client::answer::Answer;
use crate::client::json as json_body;
use crate::failure::Failure;
use crate::settings::usable_slug;
use crate::terminal::{self, plain};

#[derive(Debug, Deserialize)]
struct Projects {
    projects: Vec<Project>,
}

#[derive(Debug, Deserialize)]
struct Project {
    slug: String,
    environments: Environments,
}

#[derive(Debug, Deserialize)]
struct Environments {
    dev: Environment,
    prod: Environment,
}

#[derive(Debug, Deserialize)]
struct Environment {
    url: String,
    deployment: Option<Value>,
    #[serde(default)]
    players: u64,
}

/// Makes a project, or lists those that there are.
pub(super) async fn run(context: &Context<'_>, command: ProjectsCommand) -> Result<(), Failure> {
    match command {
        ProjectsCommand::Create { slug, json } => create(context, &slug, json).await,
        ProjectsCommand::List { json } => list(context, json).await,
    }
}

async fn create(context: &Context<'_>, slug: &str, json: bool) -> Result<(), Failure> {
    usable_slug(slug).map_err(|why| Failure::usage(format!("{slug} is no slug: {why}")))?;
    let settings = context.settings()?;
    let address = format!("{}/api/projects", settings.origin);
    let session = context.session(&settings)?;
    let answer = session
        .ask(|| {
            let request = Request::post(&address).header(header::CONTENT_TYPE, "application/json");
            Ok((request, json_body(&json!({"slug": slug}))?))
        })
        .await?;
    if json {
        return relay(answer);
    }
    let project: Project = answer.json()?;
    terminal::note(format_args!("Made the project {slug}."));
    terminal::print(&table(&[project]))
}

async fn list(context: &Context<'_>, json: bool) -> Result<(), Failure> {
    let settings = context.settings()?;
    let answer = context.session(&settings)?.get("/api/projects").await?;
    if json {
        return relay(answer);
    }
    let Projects { projects } = answer.json()?;
    if projects.is_empty() {
        terminal::note("There are no projects yet: make one with `platform projects create`.");
        return Ok(());
    }
    terminal::print(&table(&projects))
}

/// Prints the platform's JSON on one line.
fn relay(answer: Answer) -> Result<(), Failure> {
    let value: Value = answer.json()?;
    terminal::print(&format!("{value}\n"))
}

fn table(projects: &[Project]) -> String {
    let mut rows = vec![["PROJECT", "ENV", "PLAYERS", "ADDRESS"].map(str::to_owned)];
    for project in projects {
        let environments = &project.environments;
        for (name, environment) in [("dev", &environments.dev), ("prod", &environments.prod)] {
            let address = match environment.deployment {
                Some(_) => plain(&environment.url),
                None => format!("{} (not deployed)", plain(&environment.url)),
            };
            let players = environment.players.to_string();
            rows.push([plain(&project.slug), name.to_owned(), players, address]);
        }
    }
    let width = |column: usize| {
        let lengths = rows.iter().map(|row| row[column].chars().count());
        lengths.max().unwrap_or_default()
    };
    let (first, second, third) = (width(0), width(1), width(2));
    let mut text = String::new();
    for [project, environment, players, address] in &rows {
        let _ = writeln!(
            text,
            "{project:first$}  {environment:second$}  {players:>third$}  {address}"
        );
    }
    text
}
