//! `platform deployments`: the current deployment of an environment and the earlier ones.

use platform_protocol::names::Environment;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Context;
use super::deploy::Answered;
use crate::clock;
use crate::failure::Failure;
use crate::terminal::{self, Line};

/// The deployments of an environment.
#[derive(Debug, Deserialize)]
pub(super) struct View {
    /// The game's address.
    pub(super) url: String,
    /// The kept deployments, newest first.
    pub(super) deployments: Vec<Deployment>,
    /// The warnings of the deployment that is shown.
    #[serde(default)]
    pub(super) warnings: Vec<Answered>,
}

/// One deployment.
#[derive(Debug, Deserialize)]
pub(super) struct Deployment {
    /// Its id.
    pub(super) id: String,
    /// The first characters of the id, for people. An older platform does not send it.
    #[serde(default)]
    short_id: String,
    /// When it was deployed (RFC 3339).
    pub(super) created_at: String,
    files: u64,
    bytes: u64,
    /// Whether it is the current deployment of the environment.
    #[serde(default)]
    pub(super) current: bool,
    deployed_by: Option<Deployer>,
    client: Option<String>,
    network: Option<String>,
    message: Option<String>,
    revision: Option<String>,
    /// The name of the deploy token that it was sent with. An older platform does not send it.
    deploy_token: Option<String>,
}

/// Who made a deployment.
#[derive(Debug, Deserialize)]
struct Deployer {
    sub: String,
    username: Option<String>,
}

/// The path of an environment in the project API.
pub(super) fn path(slug: &str, environment: Environment) -> String {
    format!("/api/projects/{slug}/environments/{}", environment.as_str())
}

/// Prints the deployments of an environment.
pub(super) async fn run(
    context: &Context<'_>,
    environment: Environment,
    json: bool,
) -> Result<(), Failure> {
    let settings = context.settings()?;
    let slug = settings.project()?;
    let path = path(slug, environment);
    let session = context.session(&settings)?;
    session.look_whose(slug).await?;
    let answer = session.get(&path).await?;
    if json {
        let mut value: Value = answer.json()?;
        let list = json!({ "deployments": value["deployments"].take() });
        return terminal::print_json(&list);
    }
    let view: View = answer.json()?;
    if view.deployments.is_empty() {
        terminal::note(format_args!(
            "{} has no deployment yet: create one with `platform deploy`.",
            view.url
        ));
        return Ok(());
    }
    terminal::print_all(&table(&view.deployments, clock::now()))
}

impl Deployment {
    /// The short id, for people.
    pub(super) fn name(&self) -> String {
        let short = if self.short_id.is_empty() {
            &self.id
        } else {
            &self.short_id
        };
        short.to_owned()
    }

    /// What there is to say about it: id, time, message and revision.
    pub(super) fn told(&self, now: i64) -> String {
        let time = terminal::when(&self.created_at, now);
        let words = match self.words() {
            words if words.is_empty() => words,
            words => format!(", {words}"),
        };
        format!("{}, deployed {time}{words}", self.name())
    }

    /// Who deployed it, and from which network.
    fn maker(&self) -> String {
        let who = self
            .deployed_by
            .as_ref()
            .map_or("-", |by| by.username.as_deref().unwrap_or(&by.sub));
        let token = self.deploy_token.as_ref();
        let token = token.map(|name| format!("deploy token {name}"));
        let from = [
            token.as_deref(),
            self.client.as_deref(),
            self.network.as_deref(),
        ];
        let from: Vec<&str> = from.into_iter().flatten().collect();
        if from.is_empty() {
            who.to_owned()
        } else {
            format!("{} ({})", who, from.join(", "))
        }
    }

    /// Its message and revision.
    fn words(&self) -> String {
        let message = self.message.clone();
        let revision = self.revision.as_deref().map(short_revision);
        let words: Vec<String> = [message, revision].into_iter().flatten().collect();
        words.join(", ")
    }

    /// Its size, such as `4 files (2.10 MB)`.
    pub(super) fn content(&self) -> String {
        format!(
            "{} ({})",
            terminal::counted(self.files, "file"),
            terminal::bytes(self.bytes)
        )
    }
}

/// A revision short enough for a table: the first characters of a long hash, with the mark for
/// changed files.
fn short_revision(revision: &str) -> String {
    let (hash, mark) = match revision.split_once('-') {
        Some((hash, mark)) => (hash, format!("-{mark}")),
        None => (revision, String::new()),
    };
    let is_hash = hash.len() >= 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let short = hash.get(..8).filter(|_| is_hash);
    short.map_or_else(|| revision.to_owned(), |short| format!("{short}{mark}"))
}

fn table(deployments: &[Deployment], now: i64) -> Vec<Line> {
    let head = ["DEPLOYMENT", "TIME", "BY", "FILES", "SIZE", "", "MESSAGE"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(deployments.iter().map(|one| {
        let current = if one.current { "current" } else { "" };
        [
            one.name(),
            terminal::when(&one.created_at, now),
            one.maker(),
            one.files.to_string(),
            terminal::bytes(one.bytes),
            current.to_owned(),
            one.words(),
        ]
    }));
    terminal::table(&rows, &[3, 4])
}
