//! The responses of administration.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::administration::MergedGuest;
use crate::domain::audit::{Actor, ActorKind, AuditEvent};
use crate::domain::date::rfc3339;
use crate::domain::deletion::Deletion;
use crate::domain::device::Device;
use crate::domain::identity::LinkedIdentity;
use crate::domain::player::{Player, PlayerState};
use crate::domain::session::SessionSummary;

/// Names by players' ids.
pub type PlayerNames = BTreeMap<String, String>;

/// A player, in short.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Player)]
pub struct PlayerView {
    /// The player's id.
    pub sub: String,
    /// The player's current name.
    pub username: String,
    /// `guest`, `account`, `merged` or `suspended`.
    pub state: &'static str,
    /// Whether an identity is linked to the player.
    pub linked: bool,
    /// The sentence that a suspended player sees; null if none was given.
    pub reason: Option<String>,
    /// The account that a guest was merged into.
    pub merged_into: Option<String>,
    /// When the player was created (RFC 3339).
    pub created_at: String,
    /// The last use of a guest (RFC 3339), approximately.
    pub seen_at: String,
}

/// A list of players.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FoundPlayers)]
pub struct PlayersView {
    /// Sorted by name.
    pub players: Vec<PlayerView>,
}

/// All data about a player.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PlayerDetails)]
pub struct PlayerDetailsView {
    /// The player.
    #[serde(flatten)]
    pub player: PlayerView,
    /// Whether the player is an administrator.
    pub is_admin: bool,
    /// The player's deletion, which can still be taken back; null if nobody asked for it.
    pub deletion: Option<DeletionView>,
    /// Signed-in browsers, last used first.
    pub sessions: Vec<SessionView>,
    /// Signed-in devices, last used first.
    pub devices: Vec<DeviceView>,
    /// Linked identities, oldest first.
    pub identities: Vec<IdentityView>,
    /// Guests that were merged into this account, newest first, at most 100.
    pub merged_from: Vec<MergedGuestView>,
    /// The slugs of the projects that the player owns.
    pub projects: Vec<String>,
    /// The player's latest events, newest first, at most 50.
    pub events: Vec<EventView>,
    /// The current names of the players in these events, by their ids.
    pub names: PlayerNames,
}

/// A deletion that is still to come.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Deletion)]
pub struct DeletionView {
    /// When it was asked for (RFC 3339).
    pub asked_at: String,
    /// When the player is removed, unless it is taken back (RFC 3339).
    pub at: String,
}

/// A signed-in browser.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionView {
    /// When it began (RFC 3339).
    pub created_at: String,
    /// Its last use (RFC 3339), to the day.
    pub renewed_at: String,
}

/// A device that is signed in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Device)]
pub struct DeviceView {
    /// Its id.
    pub id: String,
    /// The name of the program.
    pub client: String,
    /// The network address (IPv4, or IPv6 /64) that it signed in from.
    pub network: String,
    /// When it signed in (RFC 3339).
    pub signed_in_at: String,
    /// When it last got a token (RFC 3339).
    pub used_at: String,
}

/// An identity, as the platform stores it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Identity)]
pub struct IdentityView {
    /// The provider's id in the settings.
    pub provider: String,
    /// The provider's issuer; null if the settings no longer contain the provider.
    pub issuer: Option<String>,
    /// SHA-256 of issuer and subject, in hex. The subject itself is not stored.
    pub hash: String,
    /// When it was linked (RFC 3339).
    pub linked_at: String,
}

/// A guest that was merged into an account.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MergedGuest)]
pub struct MergedGuestView {
    /// The guest's id.
    pub sub: String,
    /// When it happened (RFC 3339).
    pub merged_at: Option<String>,
}

/// A security event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub struct EventView {
    /// Its number; later events have higher numbers.
    pub id: i64,
    /// When it happened (RFC 3339).
    pub at: String,
    /// The kind of event, such as `merged` or `suspended`.
    pub kind: &'static str,
    /// The player who is concerned; null for the platform itself.
    pub player: Option<String>,
    /// The other player who was involved.
    pub other: Option<String>,
    /// The provider, the client, the key, the project, or the reason of a suspension; null if there
    /// is none.
    pub subject: Option<String>,
    /// Details besides the subject: the environment and the deployment of a project, or why a
    /// sign-in failed; null if there are none.
    pub detail: Option<String>,
    /// Who caused it: `self` (the player, or the platform), `operator`, `admin` or `member` (of the
    /// project).
    pub actor: &'static str,
    /// The administrator's id.
    pub admin: Option<String>,
    /// The id of the member of the project, who is not its owner.
    pub member: Option<String>,
    /// The client's network address (IPv4, or IPv6 /64); null if there was no request, or if the
    /// address is no longer stored.
    pub network: Option<String>,
    /// The id of the request, as in the server's log.
    pub request: Option<String>,
}

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Events)]
pub struct EventsView {
    /// Newest first.
    pub events: Vec<EventView>,
    /// The value of `before` for the next page; null on the last page.
    pub before: Option<i64>,
    /// The current names of the players in these events, by their ids.
    pub names: PlayerNames,
}

impl From<Player> for PlayerView {
    fn from(player: Player) -> Self {
        let linked = !player.is_anonymous() && !matches!(player.state, PlayerState::Merged { .. });
        let (state, reason, merged_into) = match player.state {
            PlayerState::Guest => ("guest", None, None),
            PlayerState::Account => ("account", None, None),
            PlayerState::Merged { into } => ("merged", None, Some(into.to_string())),
            PlayerState::Suspended { reason, .. } => ("suspended", reason, None),
        };
        Self {
            sub: player.id.to_string(),
            username: player.username,
            state,
            linked,
            reason,
            merged_into,
            created_at: rfc3339(player.created_at),
            seen_at: rfc3339(player.seen_at),
        }
    }
}

impl From<Deletion> for DeletionView {
    fn from(deletion: Deletion) -> Self {
        Self {
            asked_at: rfc3339(deletion.asked_at),
            at: rfc3339(deletion.at),
        }
    }
}

impl From<SessionSummary> for SessionView {
    fn from(session: SessionSummary) -> Self {
        Self {
            created_at: rfc3339(session.created_at),
            renewed_at: rfc3339(session.renewed_at),
        }
    }
}

impl From<Device> for DeviceView {
    fn from(device: Device) -> Self {
        Self {
            id: device.id.to_string(),
            client: device.client,
            network: device.network,
            signed_in_at: rfc3339(device.signed_in_at),
            used_at: rfc3339(device.used_at),
        }
    }
}

impl IdentityView {
    /// Creates the view of an identity of the provider with this issuer.
    #[must_use]
    pub fn new(identity: LinkedIdentity, issuer: Option<String>) -> Self {
        Self {
            provider: identity.provider,
            issuer,
            hash: base16ct::lower::encode_string(&identity.key.0),
            linked_at: rfc3339(identity.linked_at),
        }
    }
}

impl From<MergedGuest> for MergedGuestView {
    fn from(merged: MergedGuest) -> Self {
        Self {
            sub: merged.guest.to_string(),
            merged_at: merged.merged_at.map(rfc3339),
        }
    }
}

impl From<AuditEvent> for EventView {
    fn from(event: AuditEvent) -> Self {
        let (admin, member) = match event.actor {
            Actor::Admin(admin) => (Some(admin.to_string()), None),
            Actor::Member(member) => (None, Some(member.to_string())),
            Actor::Own | Actor::Operator => (None, None),
        };
        Self {
            id: event.id,
            at: rfc3339(event.at),
            kind: event.kind.as_str(),
            player: event.player.map(|player| player.to_string()),
            other: event.other.map(|other| other.to_string()),
            subject: event.subject,
            detail: event.detail,
            actor: ActorKind::from(event.actor).as_str(),
            admin,
            member,
            network: event.network,
            request: event.request,
        }
    }
}
