//! `platform-server events`: the audit log.

use std::fmt::Write as _;
use std::time::Duration;

use platform_server::admin::views::EventView;
use platform_server::domain::audit::{ActorKind, AuditEvent, AuditKind, AuditQuery};
use platform_server::domain::errors::chain;
use platform_server::store::Store;
use uuid::Uuid;

use crate::Failure;
use crate::commands::player::{circumstances, date, player_id};

/// The interval of checking for new events.
const LOOK: Duration = Duration::from_millis(500);
/// The number of events per read.
const PAGE: usize = 500;

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
    /// The newest ones with the oldest first, and then those that come, until
    /// interrupted
    #[arg(long, conflicts_with = "before")]
    follow: bool,
    /// Print each event as one line of JSON, as the API has it
    #[arg(long)]
    json: bool,
}

fn kind(text: &str) -> Result<AuditKind, String> {
    AuditKind::from_name(text).ok_or_else(|| {
        let kinds = AuditKind::ALL.map(AuditKind::as_str);
        format!("an event is one of {}", kinds.join(", "))
    })
}

fn actor(text: &str) -> Result<ActorKind, String> {
    ActorKind::from_name(text).ok_or_else(|| "self, operator, admin or member".to_owned())
}

impl EventsCommand {
    /// Whether it continues until it is interrupted.
    pub(crate) const fn follows(&self) -> bool {
        self.follow
    }

    /// Returns the events, newest first, one per line.
    pub(crate) async fn run(self, store: &dyn Store) -> Result<String, Failure> {
        let events = list(store, self.query()).await?;
        self.lines(events)
    }

    /// Passes the newest events to `print`, the oldest of them first, and then new events, as long
    /// as `print` returns true.
    pub(crate) async fn follow(
        self,
        store: &dyn Store,
        print: impl Fn(&str) -> bool,
    ) -> Result<(), Failure> {
        // Read first: an event that happens in between is then in the list below.
        let newest = list(store, AuditQuery::newest(1)).await?;
        let mut last = newest.first().map_or(0, |event| event.id);
        let mut events = list(store, self.query()).await?;
        events.reverse();
        let mut looks = tokio::time::interval(LOOK);
        loop {
            if let Some(event) = events.last() {
                last = last.max(event.id);
            }
            if !events.is_empty() && !print(&self.lines(events)?) {
                return Ok(());
            }
            let query = AuditQuery {
                after: Some(last),
                limit: PAGE,
                ..self.query()
            };
            events = list(store, query).await?;
            if events.is_empty() {
                looks.tick().await;
            }
        }
    }

    const fn query(&self) -> AuditQuery {
        AuditQuery {
            player: self.player,
            kind: self.kind,
            actor: self.actor,
            before: self.before,
            after: None,
            limit: self.limit,
        }
    }

    fn lines(&self, events: Vec<AuditEvent>) -> Result<String, Failure> {
        if !self.json {
            return Ok(events.iter().map(line).collect());
        }
        let mut lines = String::new();
        for event in events {
            let json = serde_json::to_string(&EventView::from(event));
            let json = json.map_err(|error| format!("an event cannot be written: {error}"))?;
            lines.push_str(&json);
            lines.push('\n');
        }
        Ok(lines)
    }
}

async fn list(store: &dyn Store, query: AuditQuery) -> Result<Vec<AuditEvent>, Failure> {
    let events = store.list_audit_events(query).await;
    events.map_err(|error| chain(&error))
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
