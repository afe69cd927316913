//! `platform-server player …`: commands about players.

use std::fmt::Write as _;

use clap::Subcommand;
use platform_server::auth::exports;
use platform_server::clock::Millis;
use platform_server::config::Config;
use platform_server::domain::audit::{Actor, AuditEvent, AuditKind, AuditQuery};
use platform_server::domain::date::rfc3339_seconds;
use platform_server::domain::deletion::{AskDeletion, DeletionAsked, OPERATORS_MILLIS};
use platform_server::domain::errors::chain;
use platform_server::domain::player::{Player, PlayerState, REASON_CHARS, parse_reason};
use platform_server::domain::username::{MAX_CHARS, MIN_CHARS};
use platform_server::store::{Store, StoreError};
use platform_server::web::client_address::Network;
use uuid::Uuid;

use super::output;
use crate::Failure;

/// The maximum number of events in the output.
const EVENTS: usize = 50;
/// The maximum number of players in the output.
const PLAYERS: usize = 100;
/// The maximum number of addresses, or of an address's guests, in the output.
const ADDRESSES: usize = 1_000;

#[derive(Subcommand)]
pub(crate) enum PlayerCommand {
    /// Show who a player is: state, identities, sessions, events
    Show {
        /// The player's id, `sub` in tokens, or name
        #[arg(value_name = "SUB|NAME", value_parser = who)]
        who: Who,
    },
    /// List players by how their names begin
    Find {
        /// How the name begins, without regard to case
        #[arg(value_parser = start)]
        name: String,
    },
    /// List the addresses that hold most guests, or the guests of one
    Guests {
        /// An IPv4 or IPv6 address, or an IPv6 /64
        address: Option<Network>,
    },
    /// Suspend a player: no token, no sign-in, until it is lifted
    Suspend {
        /// The player's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
        /// What the player is told, a sentence
        #[arg(long, value_parser = reason)]
        reason: Option<String>,
    },
    /// Lift a suspension
    Unsuspend {
        /// The player's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
    },
    /// Print everything that the store has of a player, as the JSON file that the player may download
    Export {
        /// The player's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
    },
    /// Delete a player: signed out at once, and removed by the server an hour later
    Delete {
        /// The player's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
    },
    /// Take the deletion of a player back, whoever asked for it
    Keep {
        /// The player's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
    },
    /// End every session of a player, on devices too. An account has to sign in
    /// again, and a guest is gone for good
    EndSessions {
        /// The player's id, `sub` in tokens
        #[arg(value_parser = player_id)]
        sub: Uuid,
    },
}

/// The player that a command is about.
#[derive(Clone, Debug)]
pub(crate) enum Who {
    /// The player with this id.
    Id(Uuid),
    /// The player with this name.
    Name(String),
}

/// Parses a player's id or name.
fn who(text: &str) -> Result<Who, String> {
    if let Ok(id) = text.parse() {
        return Ok(Who::Id(id));
    }
    // Names that the platform generates are accepted as well, so only the length is checked.
    if (MIN_CHARS..=MAX_CHARS).contains(&text.chars().count()) {
        return Ok(Who::Name(text.to_owned()));
    }
    Err(format!(
        "name a player by id, such as 0190b3c4-…, or by a name of {MIN_CHARS} to {MAX_CHARS} \
         characters"
    ))
}

/// Parses the start of a name.
fn start(text: &str) -> Result<String, String> {
    let text = text.trim();
    if (1..=MAX_CHARS).contains(&text.chars().count()) {
        return Ok(text.to_owned());
    }
    Err(format!("a name begins with 1 to {MAX_CHARS} characters"))
}

/// Parses a player's id; the error says how to find it.
pub(crate) fn player_id(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| {
        "name a player by id, such as 0190b3c4-…: it is `sub` in the player's tokens and in the \
         data of the game's backend, and `player find <name>` prints it"
            .to_owned()
    })
}

/// Parses a sentence that is shown to a player.
fn reason(text: &str) -> Result<String, String> {
    parse_reason(text).map(str::to_owned).ok_or_else(|| {
        format!(
            "write one line of at most {REASON_CHARS} characters, which the player can read, or \
             leave --reason out"
        )
    })
}

impl PlayerCommand {
    /// Runs the command and returns its output.
    pub(crate) async fn run(
        self,
        store: &dyn Store,
        config: &Config,
        now: Millis,
    ) -> Result<String, Failure> {
        let failed = |error: StoreError| chain(&error);
        match self {
            Self::Show { who } => show(store, &who, now).await,
            Self::Find { name } => find_by_name(store, &name).await,
            Self::Guests { address } => guests(store, address, now - config.guest_idle()).await,
            Self::Suspend { sub, reason } => {
                let player = find(store, sub).await?;
                if let PlayerState::Merged { into } = player.state {
                    return Err(format!(
                        "{sub} was merged into {into} and cannot play any more; suspend that \
                         player instead"
                    ));
                }
                store
                    .suspend_player(sub, reason.as_deref(), Actor::Operator.into(), now)
                    .await
                    .map_err(failed)?;
                Ok(format!("{} ({sub}) is suspended\n", player.username))
            }
            Self::Unsuspend { sub } => {
                let player = find(store, sub).await?;
                let lifted = store
                    .unsuspend_player(sub, Actor::Operator.into(), now)
                    .await
                    .map_err(failed)?;
                let now_or_still = if lifted {
                    "may play again"
                } else {
                    "was not suspended"
                };
                Ok(format!("{} ({sub}) {now_or_still}\n", player.username))
            }
            Self::Export { sub } => {
                let file = exports::file(store, sub, now).await.map_err(failed)?;
                file.ok_or_else(|| no_player(sub))
            }
            Self::Delete { sub } => delete(store, sub, now).await,
            Self::Keep { sub } => {
                let player = find(store, sub).await?;
                let kept = store
                    .take_deletion_back(sub, Actor::Operator.into(), now)
                    .await
                    .map_err(failed)?;
                let kept = if kept {
                    match player.state {
                        PlayerState::Guest => {
                            "is kept; as a guest without a session, nobody can play as this player any more"
                        }
                        _ => "is kept, and can sign in again",
                    }
                } else {
                    "was not to be deleted"
                };
                Ok(format!("{} ({sub}) {kept}\n", player.username))
            }
            Self::EndSessions { sub } => {
                let player = find(store, sub).await?;
                let ended = store
                    .end_other_sessions(sub, None, Actor::Operator.into(), now)
                    .await
                    .map_err(failed)?;
                let sessions = if ended == 1 { "session" } else { "sessions" };
                Ok(format!(
                    "{ended} {sessions} of {} ({sub}) ended, in browsers and on devices; issued \
                     tokens stay valid until they expire\n",
                    player.username
                ))
            }
        }
    }
}

/// Formats players, one per line.
fn list(players: &[Player]) -> String {
    players.iter().fold(String::new(), |mut text, player| {
        let (sub, name) = (player.id, &player.username);
        let _ = writeln!(text, "{sub}  {name}, {}", state(player));
        text
    })
}

/// Lists the addresses with guests that were seen since then, or the guests of one address.
async fn guests(
    store: &dyn Store,
    address: Option<Network>,
    since: Millis,
) -> Result<String, Failure> {
    let failed = |error: StoreError| chain(&error);
    let mut text = String::new();
    let Some(address) = address else {
        let holding = store.list_holding_addresses(since, ADDRESSES).await;
        for holding in holding.map_err(failed)? {
            let (address, guests) = (holding.address, holding.guests);
            let word = if guests == 1 { "guest" } else { "guests" };
            let seen = date(holding.seen_at);
            let _ = writeln!(text, "{address}  {guests} {word}, the last at {seen}");
        }
        if text.is_empty() {
            text.push_str("no address holds guests\n");
        }
        return Ok(text);
    };
    let address = address.to_string();
    let held = store.list_held_guests(&address, since, ADDRESSES).await;
    for guest in held.map_err(failed)? {
        let (sub, name, seen) = (guest.id, guest.username, date(guest.seen_at));
        let _ = writeln!(text, "{sub}  {name}, last here {seen}");
    }
    if text.is_empty() {
        let _ = writeln!(text, "{address} holds no guests");
    }
    Ok(text)
}

async fn find(store: &dyn Store, sub: Uuid) -> Result<Player, Failure> {
    store
        .find_player(sub)
        .await
        .map_err(|error| chain(&error))?
        .ok_or_else(|| no_player(sub))
}

fn no_player(sub: Uuid) -> Failure {
    format!("there is no player {sub}; the id is `sub` in the player's tokens")
}

/// Asks for the deletion of a player, after the last of their tokens has expired.
async fn delete(store: &dyn Store, sub: Uuid, now: Millis) -> Result<String, Failure> {
    let player = find(store, sub).await?;
    if let PlayerState::Merged { into } = player.state {
        return Err(format!(
            "{sub} was merged into {into}; delete that player, and this one goes with it"
        ));
    }
    let ask = AskDeletion {
        player: sub,
        browser: None,
        at: now + OPERATORS_MILLIS,
        by: Actor::Operator.into(),
        now,
    };
    let asked = store.ask_for_deletion(ask).await;
    match asked.map_err(|error| chain(&error))? {
        DeletionAsked::At(at) if matches!(player.state, PlayerState::Guest) => Ok(format!(
            "{} ({sub}) is signed out, and will be removed by the server after {}; this guest cannot come \
             back, since nobody has a session of theirs any more\n",
            player.username,
            date(at)
        )),
        DeletionAsked::At(at) => Ok(format!(
            "{} ({sub}) is signed out, and will be removed by the server after {}; until then \
             `player keep {sub}` takes it back\n",
            player.username,
            date(at)
        )),
        DeletionAsked::Owns(slugs) => Err(format!(
            "{sub} owns {}; give it to somebody else with `project transfer`, or delete it with \
             `project delete`, and try again",
            slugs.join(", ")
        )),
        DeletionAsked::Unknown => Err(no_player(sub)),
    }
}

/// Lists the players with names that begin with this.
async fn find_by_name(store: &dyn Store, name: &str) -> Result<String, Failure> {
    let found = store.list_players_by_name(name, PLAYERS).await;
    let found = found.map_err(|error| chain(&error))?;
    if found.is_empty() {
        // This is not part of the output, which is empty.
        output::tell(&format!(
            "no player's name begins with {}",
            name.escape_default()
        ));
    }
    Ok(list(&found))
}

async fn show(store: &dyn Store, who: &Who, now: Millis) -> Result<String, Failure> {
    let failed = |error: StoreError| chain(&error);
    let player = match who {
        Who::Id(sub) => find(store, *sub).await?,
        Who::Name(name) => store
            .find_player_by_name(name)
            .await
            .map_err(failed)?
            .ok_or_else(|| format!("no player is named {}", name.escape_default()))?,
    };
    let sub = player.id;
    let is_admin = store.is_admin(sub).await.map_err(failed)?;
    let identities = store.list_identities(sub).await.map_err(failed)?;
    let sessions = store.list_sessions(sub, now).await.map_err(failed)?;
    let devices = store.list_devices(sub, now).await.map_err(failed)?;
    let query = AuditQuery::of(sub, EVENTS);
    let events = store.list_audit_events(query).await.map_err(failed)?;

    let state = state(&player);
    let mut text = format!(
        "sub       {sub}\nusername  {}\nstate     {state}\ncreated   {}\nsessions  {}\ndevices   {}\n",
        player.username,
        date(player.created_at),
        sessions.len(),
        devices.len()
    );
    if is_admin {
        text.push_str("admin     yes\n");
    }
    if let Some(deletion) = store.find_deletion(sub).await.map_err(failed)? {
        let (asked, at) = (date(deletion.asked_at), date(deletion.at));
        let _ = writeln!(text, "deletion  after {at}, asked for at {asked}");
    }
    for identity in identities {
        // Eight digits are enough to distinguish a player's few identities.
        let short = base16ct::lower::encode_string(&identity.key.0[..4]);
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

/// Describes the state of a player.
fn state(player: &Player) -> String {
    match &player.state {
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
    }
}

/// Describes an event from the perspective of one of its players.
fn told(event: &AuditEvent, sub: Uuid) -> String {
    let mut text = event.kind.as_str().to_owned();
    let about = match (event.kind, event.player, event.other) {
        (AuditKind::Merged, Some(guest), Some(account)) if account == sub => {
            format!(", guest {guest}")
        }
        (AuditKind::Merged, _, Some(account)) => format!(" into {account}"),
        (AuditKind::ProjectTransferred, Some(to), _) if to != sub => format!(", to {to}"),
        (AuditKind::ProjectTransferred, _, Some(from)) => format!(", from {from}"),
        // An act of an administrator on another player.
        (_, Some(player), _) if player != sub => format!(", player {player}"),
        _ => String::new(),
    };
    text.push_str(&about);
    text.push_str(&circumstances(event));
    text
}

/// Describes the subject, the actor and the reason of an event.
pub(crate) fn circumstances(event: &AuditEvent) -> String {
    let subject = event.subject.as_deref();
    let (with, why) = match event.kind {
        AuditKind::Suspended => (None, subject),
        _ => (subject, None),
    };
    let mut text = with.map_or(String::new(), |subject| format!(", {subject}"));
    match event.actor {
        Actor::Own => {}
        Actor::Operator => text.push_str(", by the operator"),
        Actor::Admin(actor) | Actor::Member(actor) => {
            let _ = write!(text, ", by {actor}");
        }
    }
    if let Some(detail) = &event.detail {
        let _ = write!(text, ", {detail}");
    }
    for (word, place) in [("from", &event.network), ("request", &event.request)] {
        if let Some(place) = place {
            let _ = write!(text, ", {word} {place}");
        }
    }
    if let Some(reason) = why {
        let _ = write!(text, ": {reason}");
    }
    text
}

/// Formats a time in UTC (RFC 3339).
pub(crate) fn date(millis: Millis) -> String {
    rfc3339_seconds(millis).unwrap_or_else(|| millis.to_string())
}
