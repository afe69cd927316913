//! `platform-server player …`: the operator and one player.

use std::fmt::Write as _;

use clap::Subcommand;
use platform_server::clock::Millis;
use platform_server::domain::audit::{AuditEvent, AuditQuery};
use platform_server::domain::player::{Player, PlayerState};
use platform_server::http::refusal::chain;
use platform_server::store::{Store, StoreError};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::{Failure, Settings};

/// Characters of a suspension's reason, at most: it is a sentence on a page.
const REASON: usize = 500;
/// Events that are shown, at most.
const EVENTS: usize = 50;

#[derive(Subcommand)]
pub(crate) enum PlayerCommand {
    /// Show who a player is: state, identities, sessions, events
    Show {
        /// The player's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
        #[command(flatten)]
        settings: Settings,
    },
    /// Suspend a player: no token, no sign-in, until it is lifted
    Suspend {
        /// The player's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
        /// What the player is told, a sentence
        #[arg(long, value_parser = reason)]
        reason: Option<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Lift a suspension
    Unsuspend {
        /// The player's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
        #[command(flatten)]
        settings: Settings,
    },
    /// End every session of a player. An account has to sign in again, and a
    /// guest is gone for good
    EndSessions {
        /// The player's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
        #[command(flatten)]
        settings: Settings,
    },
}

/// A player's id, or what to look for in its place.
fn player_id(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| {
        "a player is named by an id such as 0190b3c4-…, which is `sub` in the player's tokens and \
         in what the game's backend keeps"
            .to_owned()
    })
}

/// A sentence that a player can be shown.
fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("write a sentence for the player, or leave --reason out".to_owned());
    }
    if text.chars().count() > REASON || text.chars().any(char::is_control) {
        return Err(format!(
            "write one line of at most {REASON} characters: the player reads it"
        ));
    }
    Ok(text.to_owned())
}

impl PlayerCommand {
    /// Where the settings are.
    pub(crate) const fn settings(&self) -> &Settings {
        match self {
            Self::Show { settings, .. }
            | Self::Suspend { settings, .. }
            | Self::Unsuspend { settings, .. }
            | Self::EndSessions { settings, .. } => settings,
        }
    }

    /// Does it; what to tell the operator.
    pub(crate) async fn run(self, store: &dyn Store, now: Millis) -> Result<String, Failure> {
        let failed = |error: StoreError| chain(&error);
        match self {
            Self::Show { sub, .. } => show(store, sub, now).await,
            Self::Suspend { sub, reason, .. } => {
                let player = find(store, sub).await?;
                if let PlayerState::Merged { into } = player.state {
                    return Err(format!(
                        "{sub} was merged into {into} and can play no more; suspend that one"
                    ));
                }
                store
                    .suspend_player(sub, reason.as_deref(), now)
                    .await
                    .map_err(failed)?;
                Ok(format!("{} ({sub}) is suspended\n", player.username))
            }
            Self::Unsuspend { sub, .. } => {
                let player = find(store, sub).await?;
                let lifted = store.unsuspend_player(sub, now).await.map_err(failed)?;
                let now_or_still = if lifted {
                    "may play again"
                } else {
                    "was not suspended"
                };
                Ok(format!("{} ({sub}) {now_or_still}\n", player.username))
            }
            Self::EndSessions { sub, .. } => {
                let player = find(store, sub).await?;
                let ended = store
                    .end_other_sessions(sub, None, now)
                    .await
                    .map_err(failed)?;
                let sessions = if ended == 1 { "session" } else { "sessions" };
                Ok(format!(
                    "{ended} {sessions} of {} ({sub}) ended; tokens that are out live on for as \
                     long as they say\n",
                    player.username
                ))
            }
        }
    }
}

async fn find(store: &dyn Store, sub: Uuid) -> Result<Player, Failure> {
    store
        .find_player(sub)
        .await
        .map_err(|error| chain(&error))?
        .ok_or_else(|| format!("there is no player {sub}; the id is `sub` in the player's tokens"))
}

async fn show(store: &dyn Store, sub: Uuid, now: Millis) -> Result<String, Failure> {
    let failed = |error: StoreError| chain(&error);
    let player = find(store, sub).await?;
    let identities = store.list_identities(sub).await.map_err(failed)?;
    let sessions = store.list_sessions(sub, now).await.map_err(failed)?;
    let query = AuditQuery {
        player: Some(sub),
        before: None,
        limit: EVENTS,
    };
    let events = store.list_audit_events(query).await.map_err(failed)?;

    let state = match &player.state {
        PlayerState::Guest => "guest".to_owned(),
        PlayerState::Account => "account".to_owned(),
        PlayerState::Merged { into } => format!("merged into {into}"),
        PlayerState::Suspended { reason, linked } => {
            let kind = if *linked { "account" } else { "guest" };
            let reason = reason
                .as_deref()
                .map_or(String::new(), |reason| format!(": {reason}"));
            format!("suspended {kind}{reason}")
        }
    };
    let mut text = format!(
        "sub       {sub}\nusername  {}\nstate     {state}\ncreated   {}\nsessions  {}\n",
        player.username,
        date(player.created_at),
        sessions.len()
    );
    for identity in identities {
        // Eight digits tell a player's few identities apart.
        let short = identity.key.0.iter().take(4);
        let short = short.fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let _ = writeln!(
            text,
            "identity  {} {short}…, linked {}",
            identity.provider,
            date(identity.linked_at)
        );
    }
    for event in events {
        let _ = writeln!(text, "event     {}  {}", date(event.at), told(&event, sub));
    }
    Ok(text)
}

/// An event as it looks from one of the players in it.
fn told(event: &AuditEvent, sub: Uuid) -> String {
    let mut text = event.kind.as_str().to_owned();
    match (event.player, event.other) {
        (Some(guest), Some(account)) if account == sub => {
            let _ = write!(text, ", guest {guest}");
        }
        (_, Some(account)) => {
            let _ = write!(text, " into {account}");
        }
        _ => {}
    }
    if let Some(subject) = &event.subject {
        let _ = write!(text, ", by {subject}");
    }
    text
}

fn date(millis: Millis) -> String {
    OffsetDateTime::from_unix_timestamp(millis.div_euclid(1_000))
        .ok()
        .and_then(|date| date.format(&Rfc3339).ok())
        .unwrap_or_else(|| millis.to_string())
}
