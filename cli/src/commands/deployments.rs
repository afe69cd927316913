//! `platform deployments`: what an environment shows, and what it showed before.

use std::fmt::Write as _;

use platform_protocol::names::Environment;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Context;
use crate::failure::Failure;
use crate::terminal::{self, plain};

/// An environment, as far as its deployments go.
#[derive(Debug, Deserialize)]
pub(super) struct View {
    /// Where the game is.
    pub(super) url: String,
    /// Those that are kept, the newest first.
    pub(super) deployments: Vec<Deployment>,
}

/// One deployment.
#[derive(Debug, Deserialize)]
pub(super) struct Deployment {
    /// Its id.
    pub(super) id: String,
    /// When it was deployed (RFC 3339).
    pub(super) created_at: String,
    files: u64,
    bytes: u64,
    /// Whether the environment shows it.
    #[serde(default)]
    pub(super) current: bool,
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
        return terminal::print(&format!("{list}\n"));
    }
    let view: View = answer.json()?;
    if view.deployments.is_empty() {
        terminal::note(format_args!(
            "{} has no deployment yet: `platform deploy` makes one.",
            plain(&view.url)
        ));
        return Ok(());
    }
    terminal::print(&table(&view.deployments))
}

impl Deployment {
    /// How much it is, such as `4 files (2.10 MB)`.
    pub(super) fn content(&self) -> String {
        format!(
            "{} ({})",
            terminal::counted(self.files, "file"),
            terminal::bytes(self.bytes)
        )
    }
}

fn table(deployments: &[Deployment]) -> String {
    let mut rows = vec![["DEPLOYMENT", "TIME", "FILES", "SIZE", ""].map(str::to_owned)];
    rows.extend(deployments.iter().map(|one| {
        let current = if one.current { "current" } else { "" };
        [
            plain(&one.id),
            plain(&one.created_at),
            one.files.to_string(),
            terminal::bytes(one.bytes),
            current.to_owned(),
        ]
    }));
    let width = |column: usize| {
        let lengths = rows.iter().map(|row| row[column].chars().count());
        lengths.max().unwrap_or_default()
    };
    let widths = [0, 1, 2, 3].map(width);
    let mut text = String::new();
    for [id, time, files, size, current] in &rows {
        let line = format!(
            "{id:0$}  {time:1$}  {files:>2$}  {size:>3$}  {current}",
            widths[0], widths[1], widths[2], widths[3]
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
