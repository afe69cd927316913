//! `platform-server events`: the log of security events.

use std::fmt::Write as _;

use platform_server::domain::audit::{ActorKind, AuditEvent, AuditKind, AuditQuery};
use platform_server::http::refusal::chain;
use platform_server::store::Store;
use uuid::Uuid;

use crate::player_command::{circumstances, date, player_id};
use crate::{Failure, Settings};

/// Which events.
#[derive(clap::Args)]
pub(crate) struct EventsCommand {
    /// Only those in which this player had a part, also as an administrator
    #[arg(long, value_name = "SUB", value_parser = player_id)]
    player: Option<Uuid>,
    /// Only those of this kind, such as suspended
    #[arg(long, value_parser = kind)]
    kind: Option<AuditKind>,
    /// Only what was done by self (the player, or the platform), operator or
    /// admin
    #[arg(long, value_parser = actor)]
    actor: Option<ActorKind>,
    /// Only those before the one of this number
    #[arg(long)]
    before: Option<i64>,
    /// How many, at most
    #[arg(long, default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    settings: Settings,
}

fn kind(text: &str) -> Result<AuditKind, String> {
    AuditKind::from_name(text).ok_or_else(|| {
        let kinds = AuditKind::ALL.map(AuditKind::as_str);
        format!("an event is one of {}", kinds.join(", "))
    })
}

fn actor(text: &str) -> Result<ActorKind, String> {
    ActorKind::from_name(text).ok_or_else(|| "self, operator or admin".to_owned())
}

impl EventsCommand {
    /// Where the settings are.
    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The events, newest first, in a line each.
    pub(crate) async fn run(self, store: &dyn Store) -> Result<String, Failure> {
        let query = AuditQuery {
            player: self.player,
            kind: self.kind,
            actor: self.actor,
            before: self.before,
            limit: self.limit,
        };
        let events = store.list_audit_events(query).await;
        let events = events.map_err(|error| chain(&error))?;
        Ok(events.iter().map(line).collect())
    }
}

fn line(event: &AuditEvent) -> String {
    let mut text = format!("{}  {}  {}", event.id, date(event.at), event.kind.as_str());
    for (word, player) in [("player", event.player), ("other", event.other)] {
        if let Some(player) = player {
            let _ = write!(text, ", {word} {player}");
        }
    }
    text.push_str(&circumstances(event));
    text.push('\n');
    text
}
