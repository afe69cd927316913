//! Nodes: servers that share one store. What they keep in memory is followed by topics: whoever
//! changes a topic in the store raises its version in the same transaction, and every node reads
//! again what has a newer version.

use uuid::Uuid;

use crate::audit::AuditKind;
use crate::clock::Millis;

/// A node that reported longer ago than this does not count as live: nobody waits for it.
pub const LIVE_MILLIS: Millis = 5_000;
/// How long a lease lasts without being renewed.
pub const LEASE_MILLIS: Millis = 15_000;
/// How long a node that reported last is listed.
pub const LISTED_MILLIS: Millis = 60 * 60 * 1_000;

/// What a node that starts says that it has applied: it reads everything before it serves anybody, so
/// no other node waits for it.
pub const STARTING: i64 = i64::MAX;

/// Something that nodes keep in memory and read again after a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// The signing keys.
    Keys,
    /// A project (by slug): its games, their settings, deployments and previews, and whether they are taken
    /// down.
    Project(String),
    /// Sessions that were ended, except where the same player has a new one at once.
    Sessions,
    /// Whether a player is suspended, and with it the player's projects.
    Suspension(Uuid),
}

impl Topic {
    /// Returns the topic of an event of the audit log, if nodes keep something of it in memory.
    /// `subject` and `player` are those of the event. Stores call this for every event that they
    /// write, so no change is forgotten.
    #[must_use]
    pub fn of(kind: AuditKind, player: Option<Uuid>, subject: Option<&str>) -> Option<Self> {
        match kind {
            AuditKind::KeyAdded | AuditKind::KeyRevoked => Some(Self::Keys),
            AuditKind::SessionsEnded
            | AuditKind::DeletionAsked
            | AuditKind::SignedOut
            | AuditKind::Merged
            | AuditKind::GuestRestored => Some(Self::Sessions),
            AuditKind::Suspended | AuditKind::Unsuspended => player.map(Self::Suspension),
            AuditKind::ProjectCreated
            | AuditKind::ProjectTransferred
            | AuditKind::ProjectHandedOn
            | AuditKind::Deployed
            | AuditKind::RolledBack
            | AuditKind::PreviewDeployed
            | AuditKind::PreviewRemoved
            | AuditKind::DomainActivated
            | AuditKind::DomainFailing
            | AuditKind::DomainTakenOff
            | AuditKind::DomainRemoved
            | AuditKind::DomainCanonical
            | AuditKind::BackendChanged
            | AuditKind::SettingChanged
            | AuditKind::ProjectDisabled
            | AuditKind::ProjectEnabled
            | AuditKind::ProjectDeleted
            | AuditKind::ProjectRestored
            | AuditKind::ProjectRemoved => subject.map(|slug| Self::Project(slug.to_owned())),
            // Sessions, names, devices, deploy tokens, members, offers and administrators are read from the store whenever they
            // are needed; the rest changes nothing.
            AuditKind::Linked
            | AuditKind::DeletionTakenBack
            | AuditKind::PlayerDeleted
            | AuditKind::SignedIn
            | AuditKind::Created
            | AuditKind::Renamed
            | AuditKind::SignInFailed
            | AuditKind::DeviceApproved
            | AuditKind::DeviceDenied
            | AuditKind::DeviceRevoked
            | AuditKind::DeviceTokenReused
            | AuditKind::AdminGranted
            | AuditKind::AdminRevoked
            | AuditKind::AdministrationRefused
            | AuditKind::EventsLeftOut
            | AuditKind::TestTokenGiven
            | AuditKind::DeployTokenCreated
            | AuditKind::DeployTokenRevoked
            | AuditKind::WebhookSet
            | AuditKind::WebhookRemoved
            | AuditKind::WebhookTurnedOff
            | AuditKind::InvitationCreated
            | AuditKind::InvitationWithdrawn
            | AuditKind::MemberJoined
            | AuditKind::MemberRoleChanged
            | AuditKind::MemberRemoved
            | AuditKind::ErrorDecided
            | AuditKind::ErrorsDeleted
            | AuditKind::DomainAdded
            | AuditKind::HandoverOffered
            | AuditKind::HandoverWithdrawn
            | AuditKind::HandoverDeclined
            | AuditKind::ProjectAdministered => None,
        }
    }

    /// Returns the name in the store.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Keys => "keys".to_owned(),
            Self::Project(slug) => format!("project:{slug}"),
            Self::Sessions => "sessions".to_owned(),
            Self::Suspension(player) => format!("suspension:{player}"),
        }
    }

    /// Returns the topic with this name; `None` if only a newer program knows it, which this one
    /// keeps nothing of.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name.split_once(':') {
            None if name == "keys" => Some(Self::Keys),
            None if name == "sessions" => Some(Self::Sessions),
            Some(("project", slug)) => Some(Self::Project(slug.to_owned())),
            Some(("suspension", player)) => player.parse().ok().map(Self::Suspension),
            _ => None,
        }
    }
}

/// What changed after some version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The newest version of any topic; everything up to it is committed.
    pub newest: i64,
    /// The topics that changed, in the order of their last changes.
    pub topics: Vec<Topic>,
}

/// What a node says about itself, once a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// Its id, made at its start.
    pub id: Uuid,
    /// The name of its machine and the socket on which it listens.
    pub address: String,
    /// The version of its program.
    pub binary: String,
    /// Its settings that must be the same on every node, as JSON, without secrets. They are only
    /// read from its first report.
    pub settings: String,
    /// The newest version that it has applied; [`STARTING`] before it serves anybody.
    pub applied: i64,
    /// How far its clock is ahead of the database's; `None` if that is not known yet.
    pub clock_offset: Option<Millis>,
    /// The names of what works less well on it.
    pub degraded: Vec<String>,
}

/// The answer to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The database's time.
    pub at: Millis,
    /// The newest version of any topic.
    pub newest: i64,
    /// Whether the database acknowledges a write only once another machine has it; `None` if the
    /// store has no such setting.
    pub waits_for_standby: Option<bool>,
}

/// A node as the store knows it. All times are the database's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its last report.
    pub report: NodeReport,
    /// The time of its first report.
    pub started_at: Millis,
    /// Milliseconds since its last report.
    pub silent: Millis,
}

impl Node {
    /// Whether the node has reported lately.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.silent <= LIVE_MILLIS
    }
}

/// A lease: only its holder does the work that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The name of the work.
    pub name: String,
    /// The node that holds it.
    pub holder: Uuid,
    /// Milliseconds until it ends, if it is not renewed; negative if it has ended.
    pub left: Millis,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_comes_back_from_its_name() {
        let topics = [
            Topic::Keys,
            Topic::Sessions,
            Topic::Project("my-game".to_owned()),
            Topic::Suspension(Uuid::from_u128(7)),
        ];
        for topic in topics {
            assert_eq!(Topic::from_name(&topic.name()), Some(topic));
        }
        for unknown in ["", "key", "suspension:me", "later:x", "project"] {
            assert_eq!(Topic::from_name(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn every_event_of_a_project_that_changes_it_has_the_projects_topic() {
        let project = Some(Topic::Project("my-game".to_owned()));
        let unchanged = [AuditKind::ProjectAdministered, AuditKind::TestTokenGiven];
        for kind in AuditKind::ALL {
            let is_project = kind.as_str().starts_with("project-");
            if is_project && !unchanged.contains(&kind) {
                assert_eq!(Topic::of(kind, None, Some("my-game")), project, "{kind:?}");
            }
        }
        for kind in [
            AuditKind::Deployed,
            AuditKind::RolledBack,
            AuditKind::PreviewDeployed,
            AuditKind::PreviewRemoved,
        ] {
            assert_eq!(Topic::of(kind, None, Some("my-game")), project);
        }
        for kind in unchanged {
            assert_eq!(Topic::of(kind, None, Some("my-game")), None);
        }
    }

    #[test]
    fn a_suspension_is_a_change_of_its_player() {
        let player = Uuid::from_u128(7);
        let kind = AuditKind::Suspended;
        let topic = Topic::of(kind, Some(player), Some("the reason"));
        assert_eq!(topic, Some(Topic::Suspension(player)));
    }
}
