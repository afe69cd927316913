//! `platform-server admin …`: administrators, in addition to those that the setting
//! `PLATFORM_ADMINS` names.

use std::fmt::Write as _;

use clap::Subcommand;
use platform_server::clock::Millis;
use platform_server::config::Config;
use platform_server::domain::administration::Granted;
use platform_server::domain::audit::Actor;
use platform_server::domain::errors::chain;
use platform_server::store::{Store, StoreError};
use uuid::Uuid;

use crate::Failure;
use crate::commands::player::{date, player_id};

#[derive(Subcommand)]
pub(crate) enum AdminCommand {
    /// Make a player an administrator
    Grant {
        /// The player's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
    },
    /// Make a player an administrator no longer
    Revoke {
        /// The player's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
    },
    /// List the administrators
    List,
}

impl AdminCommand {
    /// Runs the command and returns its output.
    pub(crate) async fn run(
        self,
        store: &dyn Store,
        config: &Config,
        now: Millis,
    ) -> Result<String, Failure> {
        let failed = |error: StoreError| chain(&error);
        match self {
            Self::Grant { sub } => {
                let granted = store.grant_admin(sub, Actor::Operator.into(), now).await;
                match granted.map_err(failed)? {
                    Granted::Done => Ok(format!("{sub} is an administrator\n")),
                    Granted::Already => Ok(format!("{sub} was already an administrator\n")),
                    Granted::NoPlayer => Err(format!(
                        "there is no player {sub}; the id is `sub` in the player's tokens"
                    )),
                    Granted::NotAnAccount => Err(format!(
                        "{sub} is a guest, or was merged into an account: only a player who has \
                         signed in can be an administrator"
                    )),
                }
            }
            Self::Revoke { sub } => {
                let revoked = store.revoke_admin(sub, Actor::Operator.into(), now).await;
                let revoked = revoked.map_err(failed)?;
                if config.admins.contains(&sub) {
                    return Err(format!(
                        "PLATFORM_ADMINS names {sub}, who stays an administrator until you remove \
                         the id there"
                    ));
                }
                Ok(if revoked {
                    format!("{sub} is no longer an administrator\n")
                } else {
                    format!("{sub} was not an administrator\n")
                })
            }
            Self::List => {
                let mut text = String::new();
                for admin in store.list_admins().await.map_err(failed)? {
                    let (sub, since) = (admin.player, date(admin.granted_at));
                    let _ = writeln!(text, "{sub}  {}, since {since}", admin.username);
                }
                for sub in &config.admins {
                    let _ = writeln!(text, "{sub}  by PLATFORM_ADMINS");
                }
                if text.is_empty() {
                    text.push_str("nobody is an administrator; `admin grant <id>` makes one\n");
                }
                Ok(text)
            }
        }
    }
}
