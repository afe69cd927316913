//! `platform-server project …`: the projects and their owners.

use std::collections::HashMap;
use std::fmt::Write as _;

use clap::Subcommand;
use platform_protocol::deploy_token::DEFAULT_DAYS;
use platform_protocol::names::check_slug;
use platform_server::clock::Millis;
use platform_server::config::Config;
use platform_server::domain::administration::Transferred;
use platform_server::domain::audit::Actor;
use platform_server::domain::errors::chain;
use platform_server::domain::player::{REASON_CHARS, parse_reason};
use platform_server::domain::project::Project;
use platform_server::domain::takedown::{Authority, Change, Changed, GRACE, Standing};
use platform_server::entropy::Entropy;
use platform_server::origin::PlatformOrigin;
use platform_server::store::{Store, StoreError};
use uuid::Uuid;

use crate::Failure;
use crate::commands::deploy_token::{self, Making, TokenCommand, no_project};
use crate::commands::player::{date, player_id};

#[derive(Subcommand)]
pub(crate) enum ProjectCommand {
    /// List the projects and their owners
    List,
    /// Create a project that belongs to the platform, also where nobody can sign in yet
    Create {
        /// The project: 3 to 40 lower-case letters, digits or hyphens, a part of the game's address
        #[arg(value_parser = new_slug)]
        slug: String,
        /// Create a deploy token as well, named `operator`, and print it for the only time
        #[arg(long)]
        deploy_token: bool,
    },
    /// The deploy tokens of a project
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Give a project to another player
    Transfer {
        /// The project
        slug: String,
        /// The new owner's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
    },
    /// Show a project's game no more; its owner cannot undo it
    Disable {
        /// The project
        slug: String,
        /// What the owner is told: one line
        #[arg(long, value_parser = reason)]
        reason: Option<String>,
    },
    /// Show a disabled project's game again
    Enable {
        /// The project
        slug: String,
    },
    /// Delete a project: it can be restored for seven days, and its slug stays taken
    Delete {
        /// The project
        slug: String,
    },
    /// Restore a deleted project
    Restore {
        /// The project
        slug: String,
    },
}

/// The name of the deploy token that is created together with its project.
const TOKEN_NAME: &str = "operator";

fn new_slug(text: &str) -> Result<String, String> {
    match check_slug(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(error.sentence().to_owned()),
    }
}

fn reason(text: &str) -> Result<String, String> {
    parse_reason(text).map(str::to_owned).ok_or_else(|| {
        format!(
            "a reason must be one line of at most {REASON_CHARS} characters, which the owner can \
             read"
        )
    })
}

impl ProjectCommand {
    /// Runs the command and returns its output.
    pub(crate) async fn run(
        self,
        store: &dyn Store,
        config: &Config,
        entropy: &dyn Entropy,
        now: Millis,
    ) -> Result<String, Failure> {
        let failed = |error: StoreError| chain(&error);
        let origin = config.origin.clone();
        let origin = origin.unwrap_or_else(|| PlatformOrigin::local(config.listen.port()));
        let making = Making {
            store,
            entropy,
            origin: &origin,
            now,
        };
        match self {
            Self::Create { slug, deploy_token } => create(&making, slug, deploy_token).await,
            Self::Token { command } => command.run(&making).await,
            Self::List => {
                let standings = store.list_standings().await.map_err(failed)?;
                let standings: HashMap<String, Standing> = standings.into_iter().collect();
                let mut text = String::new();
                for project in store.list_projects().await.map_err(failed)? {
                    let owner = match project.owner {
                        Some(owner) => owner.to_string(),
                        None => "the platform".to_owned(),
                    };
                    let made = date(project.created_at);
                    let standing = standings.get(&project.slug).map(told).unwrap_or_default();
                    let _ = writeln!(text, "{}  {owner}, since {made}{standing}", project.slug);
                }
                Ok(text)
            }
            Self::Disable { slug, reason } => {
                change(store, &slug, Change::Disable { reason }, now).await
            }
            Self::Enable { slug } => change(store, &slug, Change::Enable, now).await,
            Self::Delete { slug } => change(store, &slug, Change::Delete, now).await,
            Self::Restore { slug } => change(store, &slug, Change::Restore, now).await,
            Self::Transfer { slug, sub } => {
                let done = store.transfer_project(&slug, sub, Actor::Operator.into(), now);
                match done.await.map_err(failed)? {
                    Transferred::Done => Ok(format!(
                        "{slug} belongs to {sub}; the deploy tokens that it had are revoked\n"
                    )),
                    Transferred::Already => Ok(format!("{slug} belonged to {sub} before\n")),
                    Transferred::NoProject => Err(no_project(&slug)),
                    Transferred::NoPlayer => Err(format!(
                        "there is no player {sub}; the id is `sub` in the player's tokens"
                    )),
                    Transferred::NotAnAccount => Err(format!(
                        "{sub} is a guest, or was merged into an account: only a player who has \
                         signed in can own a project"
                    )),
                }
            }
        }
    }
}

/// Creates a project without an owner, and returns the output.
async fn create(making: &Making<'_>, slug: String, with_token: bool) -> Result<String, Failure> {
    let project = Project {
        slug: slug.clone(),
        owner: None,
        created_at: making.now,
    };
    let by = Actor::Operator.into();
    let added = making.store.add_project_within(project, u32::MAX, by);
    match added.await {
        Ok(()) => {}
        Err(StoreError::Conflict { .. }) => {
            return Err(format!(
                "the name {slug} is taken; `project token create {slug} <name>` makes a deploy token, if it is the \
                 project that you mean"
            ));
        }
        Err(error) => return Err(chain(&error)),
    }
    let created = format!(
        "{slug} is a project, which belongs to the platform until `project transfer` gives it to a player\n"
    );
    if !with_token {
        return Ok(format!(
            "{created}`project token create {slug} <name>` makes a deploy token, with which its game is deployed\n"
        ));
    }
    let token = deploy_token::create(
        making,
        &slug,
        (TOKEN_NAME, deploy_token::SCOPES.into()),
        DEFAULT_DAYS,
    )
    .await?;
    Ok(created + &token)
}

/// Describes why a project is not shown.
fn told(standing: &Standing) -> String {
    let since = |state: &str, at| format!(", {state} since {}", date(at));
    if let Some(deleted) = &standing.deleted {
        let removal = deleted.at + GRACE;
        return format!(
            "{}, removed on {}",
            since("deleted", deleted.at),
            date(removal)
        );
    }
    if let Some(disabled) = &standing.disabled {
        let by = match disabled.by {
            Authority::Owner => "its owner",
            Authority::Platform => "the platform",
        };
        return format!("{} by {by}", since("disabled", disabled.at));
    }
    let suspended = standing.owner_suspended_at;
    suspended.map_or_else(String::new, |at| since("owner suspended", at))
}

/// Takes a project down or shows it again, and returns the output.
async fn change(
    store: &dyn Store,
    slug: &str,
    change: Change,
    now: Millis,
) -> Result<String, Failure> {
    let (done, already) = match change {
        Change::Disable { .. } => ("is disabled", "was disabled before"),
        Change::Enable => ("is enabled", "was not disabled"),
        Change::Delete => (
            "is deleted; `project restore` brings it back for seven days",
            "was deleted before",
        ),
        Change::Restore => ("is restored", "was not deleted"),
    };
    let changed = store.change_standing(slug, change, Actor::Operator.into(), now);
    match changed.await.map_err(|error| chain(&error))? {
        Changed::Done => Ok(format!("{slug} {done}\n")),
        Changed::Already => Ok(format!("{slug} {already}\n")),
        // The operator may undo every takedown, so the last case does not happen.
        Changed::NoProject | Changed::ByPlatform => Err(format!(
            "there is no project {}, or it was deleted more than seven days ago; `project list` \
             shows all projects",
            slug.escape_default()
        )),
    }
}
