//! `platform-server project …`: the games and whose they are.

use std::fmt::Write as _;

use clap::Subcommand;
use platform_server::clock::Millis;
use platform_server::domain::administration::Transferred;
use platform_server::domain::audit::Actor;
use platform_server::http::refusal::chain;
use platform_server::store::{Store, StoreError};
use uuid::Uuid;

use crate::player_command::{date, player_id};
use crate::{Failure, Settings};

#[derive(Subcommand)]
pub(crate) enum ProjectCommand {
    /// List the projects and their owners
    List {
        #[command(flatten)]
        settings: Settings,
    },
    /// Give a project to another player
    Transfer {
        /// The project
        slug: String,
        /// The new owner's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
        #[command(flatten)]
        settings: Settings,
    },
}

impl ProjectCommand {
    /// Where the settings are.
    pub(crate) const fn settings(&self) -> &Settings {
        match self {
            Self::List { settings } | Self::Transfer { settings, .. } => settings,
        }
    }

    /// Does it; what to tell the operator.
    pub(crate) async fn run(self, store: &dyn Store, now: Millis) -> Result<String, Failure> {
        let failed = |error: StoreError| chain(&error);
        match self {
            Self::List { .. } => {
                let mut text = String::new();
                for project in store.list_projects().await.map_err(failed)? {
                    let owner = match project.owner {
                        Some(owner) => owner.to_string(),
                        None => "the platform".to_owned(),
                    };
                    let made = date(project.created_at);
                    let _ = writeln!(text, "{}  {owner}, since {made}", project.slug);
                }
                Ok(text)
            }
            Self::Transfer { slug, sub, .. } => {
                let done = store.transfer_project(&slug, sub, Actor::Operator.into(), now);
                match done.await.map_err(failed)? {
                    Transferred::Done => Ok(format!("{slug} belongs to {sub}\n")),
                    Transferred::Already => Ok(format!("{slug} belonged to {sub} before\n")),
                    Transferred::NoProject => Err(format!(
                        "there is no project {}; `project list` names them",
                        slug.escape_default()
                    )),
                    Transferred::NoPlayer => Err(format!(
                        "there is no player {sub}; the id is `sub` in the player's tokens"
                    )),
                    Transferred::NotAnAccount => Err(format!(
                        "{sub} is a guest, or was merged away: an owner has to have signed in"
                    )),
                }
            }
        }
    }
}
