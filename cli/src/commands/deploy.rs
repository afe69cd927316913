//! `platform deploy`: packs a folder and sends it at the same time.

mod upload;

use std::path::Path;

use platform_checks::folder::Advice;
use platform_protocol::names::Environment;
use platform_protocol::preview::{self, UNUSED_DAYS};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Context;
use super::check::{of_files, page};
use super::{deployments, maps, previews};
use crate::archive::Folder;
use crate::failure::Failure;
use crate::origin::PlatformOrigin;
use crate::revision;
use crate::terminal::{self, Line, STRONG};

/// The arguments of a deploy.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    /// The built game, if it was named.
    pub(super) directory: Option<&'a Path>,
    /// The target environment.
    pub(super) environment: Environment,
    /// The name of the preview to deploy instead; empty for that of the branch.
    pub(super) preview: Option<&'a str>,
    /// The developer's description of the deployment.
    pub(super) message: Option<&'a str>,
    /// Whether to skip the confirmation for production.
    pub(super) yes: bool,
    /// Whether a program reads the result.
    pub(super) json: bool,
}

/// The platform's response.
#[derive(Debug, Deserialize, Serialize)]
struct Deployed {
    url: String,
    #[serde(default)]
    short_id: String,
    #[serde(default)]
    warnings: Vec<Answered>,
}

/// A warning in an answer of the platform.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Answered {
    code: String,
    message: String,
}

impl Answered {
    /// Prints the warning to standard error.
    pub(super) fn note(&self) {
        let (message, code) = (&self.message, &self.code);
        terminal::warn(format_args!("{message} ({code})"));
    }
}

/// Deploys a folder.
pub(super) async fn run(context: &Context<'_>, wanted: &Wanted<'_>) -> Result<(), Failure> {
    let settings = context.settings_of(wanted.directory)?;
    let slug = settings.project()?;
    let asks = wanted.environment == Environment::Prod && !wanted.yes;
    if asks && !terminal::can_ask() {
        return Err(Failure::usage(
            "A deploy to production needs a confirmation, and this is not an interactive terminal: \
             add --yes.",
        ));
    }
    let directory = settings.deployed(wanted.directory)?;
    let preview = wanted.preview.map(|given| {
        let environment = context.environment;
        previews::name(given, slug, &directory, environment)
    });
    let preview = preview.transpose()?;
    let session = context.session(&settings)?;
    session.look_whose(slug).await?;
    let folder = Folder::of_game(&directory)?;
    let before = of_files(&directory, &folder, &page(&directory)?);
    for Advice { code, message } in &before {
        terminal::warn(format_args!("{} ({code})", message));
    }
    let games = session.http().games_origin().await;
    let target = Target::new(&games, slug, preview.as_deref(), wanted.environment);
    // A caller who may not deploy there gets the refusal before any progress is shown. A deploy
    // token only allows the upload itself, and is refused before the platform reads it.
    if !session.is_deploy_token() {
        session.get(&target.seen).await?;
    }
    let game = &target.game;
    let content = format!(
        "{} ({}) of {}",
        terminal::counted(folder.files(), "file"),
        terminal::bytes(folder.bytes()),
        folder.root().display()
    );
    if asks {
        let anyway = if before.is_empty() {
            ""
        } else {
            ", despite the warnings"
        };
        let question = Line::new()
            .push(format_args!("Deploy {content} to production, "))
            .styled(STRONG, game)
            .push(format_args!("{anyway}?"));
        if !terminal::ask(question) {
            return Err(Failure::failed("Nothing was deployed."));
        }
    }
    terminal::note(format_args!("Deploying {content} to {game}"));
    let revision = revision::of(&directory);
    let without_maps = maps::missing(&folder);
    let said = said(wanted.message, revision.as_deref());
    let address = format!("{}{}{said}", settings.origin, target.path);
    let answer = upload::run(&session, &address, folder).await?;
    let value: Value = answer.json()?;
    let deployed: Deployed = serde_json::from_value(value.clone()).map_err(|_| {
        Failure::failed("The game was deployed, but the platform's response was not understood.")
    })?;
    tell(&deployed, &before, revision, preview.is_some());
    if wanted.json {
        terminal::print_json(&value)?;
    } else {
        terminal::print(&deployed.url)?;
    }
    maps::tell(without_maps.as_ref());
    Ok(())
}

/// Where a folder is deployed.
struct Target {
    /// The path of what is read first, to learn whether the caller may do this.
    seen: String,
    /// The path of the upload.
    path: String,
    /// The address of the game.
    game: String,
}

impl Target {
    fn new(
        games: &PlatformOrigin,
        slug: &str,
        preview: Option<&str>,
        environment: Environment,
    ) -> Self {
        match preview {
            Some(name) => {
                let seen = previews::path(slug);
                Self {
                    path: format!("{seen}/{name}"),
                    seen,
                    game: games.sub_domain(&preview::label(name, slug)),
                }
            }
            None => {
                let seen = deployments::path(slug, environment);
                Self {
                    path: format!("{seen}/deployment"),
                    seen,
                    game: games.game_url(slug, environment),
                }
            }
        }
    }
}

/// Tells what the platform said about a deployment, without the warnings that were told before.
fn tell(deployed: &Deployed, before: &[Advice], revision: Option<String>, is_preview: bool) {
    let said = |code: &str| before.iter().any(|warning| warning.code == code);
    let new = deployed.warnings.iter();
    for warning in new.filter(|warning| !said(&warning.code)) {
        warning.note();
    }
    if !deployed.short_id.is_empty() {
        let of = revision.map_or_else(String::new, |revision| format!(", of revision {revision}"));
        let id = &deployed.short_id;
        terminal::note(format_args!("It is the deployment {id}{of}."));
    }
    if is_preview {
        terminal::note(format_args!(
            "The preview is removed after {UNUSED_DAYS} days in which nobody deploys or opens it."
        ));
    }
}

/// The query with the archive's message and revision.
fn said(message: Option<&str>, revision: Option<&str>) -> String {
    let given = [("message", message), ("revision", revision)];
    let given: Vec<_> = given
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    if given.is_empty() {
        return String::new();
    }
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    format!("?{}", query.extend_pairs(given).finish())
}
