//! `platform-server project …`: the projects and their owners.

use std::collections::HashMap;
use std::fmt::Write as _;

use clap::Subcommand;
use platform_server::clock::Millis;
use platform_server::domain::administration::Transferred;
use platform_server::domain::audit::Actor;
use platform_server::domain::errors::chain;
use platform_server::domain::player::{REASON_CHARS, parse_reason};
use platform_server::domain::takedown::{Authority, Change, Changed, GRACE, Standing};
use platform_server::store::{Store, StoreError};
use uuid::Uuid;

use crate::Failure;
use crate::commands::player::{date, player_id};

#[derive(Subcommand)]
pub(crate) enum ProjectCommand {
    /// List the projects and their owners
    List,
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
    pub(crate) async fn run(self, store: &dyn Store, now: Millis) -> Result<String, Failure> {
        let failed = |error: StoreError| chain(&error);
        match self {
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
                    Transferred::Done => Ok(format!("{slug} belongs to {sub}\n")),
                    Transferred::Already => Ok(format!("{slug} belonged to {sub} before\n")),
                    Transferred::NoProject => Err(format!(
                        "there is no project {}; `project list` shows all projects",
                        slug.escape_default()
                    )),
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
