//! `platform projects`: creates, lists, disables, enables, deletes and restores projects.

use http::{Method, Request, header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Context;
use crate::args::ProjectsCommand;
use crate::client::answer::Answer;
use crate::client::{empty, json as json_body};
use crate::failure::Failure;
use crate::session::Session;
use crate::settings::usable_slug;
use crate::terminal::{self, Line, STRONG};

#[derive(Debug, Deserialize)]
struct Projects {
    projects: Vec<Project>,
}

#[derive(Debug, Deserialize)]
struct Project {
    slug: String,
    environments: Environments,
    #[serde(default)]
    standing: Standing,
}

/// Whether a project's game is shown. An older platform does not send it.
#[derive(Debug, Default, Deserialize)]
struct Standing {
    #[serde(default)]
    state: String,
    by: Option<String>,
    reason: Option<String>,
    removed_at: Option<String>,
}

impl Standing {
    /// A note about the state; `None` if the game is shown.
    fn told(&self) -> Option<String> {
        match self.state.as_str() {
            "" | "live" => return None,
            "owner-suspended" => return Some("down: its owner is suspended".to_owned()),
            _ => {}
        }
        let mut told = self.state.clone();
        if self.by.as_deref() == Some("platform") {
            told.push_str(" by the platform's operators");
        }
        if let Some(removed_at) = &self.removed_at {
            told.push_str(&format!(
                ", and will be removed at {}",
                terminal::to_the_minute(removed_at)
            ));
        }
        if let Some(reason) = &self.reason {
            told.push_str(&format!(": {}", reason));
        }
        Some(told)
    }
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
    /// None if the platform does not know it now.
    players: Option<u64>,
}

/// Runs a command about projects.
pub(super) async fn run(context: &Context<'_>, command: ProjectsCommand) -> Result<(), Failure> {
    match command {
        ProjectsCommand::Create { slug, json } => create(context, &slug, json).await,
        ProjectsCommand::List { json } => list(context, json).await,
        ProjectsCommand::Disable { slug, reason } => {
            let body = json!({ "reason": reason });
            let known = Known::look_up(context, &slug).await?;
            known.change(Method::POST, "/disable", Some(&body)).await
        }
        ProjectsCommand::Enable { slug } => {
            let known = Known::look_up(context, &slug).await?;
            known.change(Method::POST, "/enable", None).await
        }
        ProjectsCommand::Delete { slug, yes } => delete(context, &slug, yes).await,
        ProjectsCommand::Restore { slug } => {
            let known = Known::look_up(context, &slug).await?;
            known.change(Method::POST, "/restore", None).await
        }
    }
}

/// Deletes a project, after a confirmation.
async fn delete(context: &Context<'_>, slug: &str, yes: bool) -> Result<(), Failure> {
    if !yes && !terminal::can_ask() {
        return Err(Failure::usage(
            "Deleting a project needs a confirmation, and this is not an interactive terminal: add \
             --yes.",
        ));
    }
    let known = Known::look_up(context, slug).await?;
    let question = Line::from("Delete the project ")
        .styled(STRONG, slug)
        .push("? Its game is no longer shown, and after seven days it is permanently removed.");
    if !yes && !terminal::ask(question) {
        return Err(Failure::failed("Nothing was deleted."));
    }
    known.change(Method::DELETE, "", None).await
}

/// A project whose owner was checked: it is the caller's own, or the caller chose to act on another
/// account's.
struct Known<'a> {
    slug: &'a str,
    address: String,
    session: Session,
}

impl<'a> Known<'a> {
    /// Checks the owner if the caller may act on other accounts' projects.
    ///
    /// # Errors
    /// Those of [`Session::look_whose`]; or the text is not a valid slug.
    async fn look_up(context: &Context<'_>, slug: &'a str) -> Result<Self, Failure> {
        usable_slug(slug)
            .map_err(|why| Failure::usage(format!("{slug} is not a valid slug: {why}")))?;
        let settings = context.settings()?;
        let session = context.session(&settings)?;
        session.look_whose(slug).await?;
        Ok(Self {
            slug,
            address: format!("{}/api/projects/{slug}", settings.origin),
            session,
        })
    }

    /// Changes a project's state, and reports the new state.
    async fn change(
        &self,
        method: Method,
        what: &str,
        body: Option<&Value>,
    ) -> Result<(), Failure> {
        let (slug, address) = (self.slug, format!("{}{what}", self.address));
        let answer = self
            .session
            .ask(|| {
                let request = Request::builder().method(method.clone()).uri(&address);
                Ok(match body {
                    Some(body) => (
                        request.header(header::CONTENT_TYPE, "application/json"),
                        json_body(body)?,
                    ),
                    None => (request, empty()),
                })
            })
            .await?;
        let project: Project = answer.json()?;
        let told = match project.standing.told() {
            Some(told) => format!("{slug} is {told}."),
            None => format!("{slug} is live: its game is shown."),
        };
        terminal::note(told);
        Ok(())
    }
}

async fn create(context: &Context<'_>, slug: &str, json: bool) -> Result<(), Failure> {
    usable_slug(slug)
        .map_err(|why| Failure::usage(format!("{slug} is not a valid slug: {why}")))?;
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
    terminal::note(format_args!("Created the project {slug}."));
    terminal::print_all(&table(&[project]))
}

async fn list(context: &Context<'_>, json: bool) -> Result<(), Failure> {
    let settings = context.settings()?;
    let answer = context.session(&settings)?.get("/api/projects").await?;
    if json {
        return relay(answer);
    }
    let Projects { projects } = answer.json()?;
    if projects.is_empty() {
        terminal::note("There are no projects yet: create one with `platform projects create`.");
        return Ok(());
    }
    terminal::print_all(&table(&projects))
}

/// Prints the platform's JSON on one line.
fn relay(answer: Answer) -> Result<(), Failure> {
    let value: Value = answer.json()?;
    terminal::print_json(&value)
}

fn table(projects: &[Project]) -> Vec<Line> {
    let mut rows = vec![["PROJECT", "ENV", "PLAYERS", "ADDRESS"].map(str::to_owned)];
    for project in projects {
        let environments = &project.environments;
        for (name, environment) in [("dev", &environments.dev), ("prod", &environments.prod)] {
            let address = match (project.standing.told(), &environment.deployment) {
                (Some(told), _) => format!("{} ({told})", environment.url),
                (None, Some(_)) => environment.url.clone(),
                (None, None) => format!("{} (not deployed)", environment.url),
            };
            let players = environment.players;
            let players = players.map_or_else(|| "?".to_owned(), |players| players.to_string());
            rows.push([project.slug.clone(), name.to_owned(), players, address]);
        }
    }
    terminal::table(&rows, &[2])
}
