//! Events about players, which webhooks are told that asked for it.

use crate::clock::Millis;
use crate::webhook::WebhookOutcome;

/// How long an event is kept, also after it was delivered: so long it can be sent again. It names a
/// player who does not exist any more.
pub const KEPT_MILLIS: Millis = 7 * 24 * 60 * 60 * 1_000;

/// The type of the event that a player was deleted.
pub const PLAYER_DELETED: &str = "player.deleted";

/// An event that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingPlayerEvent {
    /// Its number.
    pub id: i64,
    /// The project whose webhook gets it.
    pub slug: String,
    /// What it says, as JSON.
    pub data: String,
    /// When it happened.
    pub made_at: Millis,
    /// How often sending has failed.
    pub tries: u16,
}

/// An event as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerEvent {
    /// Its number.
    pub id: i64,
    /// When it happened.
    pub made_at: Millis,
    /// How often sending has failed.
    pub tries: u16,
    /// When it is sent next; `None` if it was delivered or given up.
    pub next_at: Option<Millis>,
    /// When it was delivered.
    pub delivered_at: Option<Millis>,
    /// What came of the last request.
    pub last: Option<WebhookOutcome>,
}

/// What became of sending an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentPlayerEvent {
    /// Its number.
    pub id: i64,
    /// What came of the request.
    pub outcome: WebhookOutcome,
    /// Whether the receiver has taken it.
    pub is_delivered: bool,
    /// When it is sent again; `None` if it is delivered or given up.
    pub next_at: Option<Millis>,
}
