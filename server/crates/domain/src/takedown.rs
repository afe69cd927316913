//! Disabling, deleting and restoring projects: states and transitions.
//!
//! A project is disabled or deleted by its owner or by the platform's administrators and operator,
//! and what the latter did, its owner cannot undo. A deleted project can be restored until
//! [`GRACE`] has passed; then it is removed. Its slug stays taken for ever, because players,
//! verifiers and installed service workers know it as this game.

use crate::audit::{Actor, AuditKind};
use crate::clock::Millis;

/// How long a deleted project can be restored: 7 days.
pub const GRACE: Millis = 7 * 24 * 3_600_000;
/// For how long browsers are told to delete what a game stored there, after it was taken down or
/// transferred: 30 days.
pub const FORGETTING: Millis = 30 * 24 * 3_600_000;

/// On whose authority a project was taken down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Authority {
    /// Its owner's.
    Owner,
    /// The platform's: administrators and the operator.
    Platform,
}

impl Authority {
    /// Every authority.
    pub const ALL: [Self; 2] = [Self::Owner, Self::Platform];

    /// The name in the store and in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Platform => "platform",
        }
    }
}

impl From<Actor> for Authority {
    fn from(actor: Actor) -> Self {
        match actor {
            Actor::Own | Actor::Member(_) => Self::Owner,
            Actor::Operator | Actor::Admin(_) => Self::Platform,
        }
    }
}

/// The state of a disabled project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disabled {
    /// When.
    pub at: Millis,
    /// By whom.
    pub by: Authority,
    /// The reason, for the owner.
    pub reason: Option<String>,
}

/// The state of a deleted project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// When.
    pub at: Millis,
    /// By whom.
    pub by: Authority,
}

/// Whether a project's game is shown, and if not, why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// It is disabled.
    pub disabled: Option<Disabled>,
    /// It is deleted and can be restored.
    pub deleted: Option<Deleted>,
    /// It was removed at this time, and only its slug is left.
    pub removed_at: Option<Millis>,
    /// Its owner has been suspended since this time.
    pub owner_suspended_at: Option<Millis>,
    /// Since when browsers are told to delete what the game stored.
    pub forget_from: Option<Millis>,
}

/// A requested change of a project's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Stop showing the game.
    Disable {
        /// The reason, for the owner.
        reason: Option<String>,
    },
    /// Show the game again.
    Enable,
    /// Stop showing the game, and remove it after [`GRACE`].
    Delete,
    /// Undo the deletion.
    Restore,
}

impl Change {
    /// The change's kind in the log of events.
    #[must_use]
    pub const fn kind(&self) -> AuditKind {
        match self {
            Self::Disable { .. } => AuditKind::ProjectDisabled,
            Self::Enable => AuditKind::ProjectEnabled,
            Self::Delete => AuditKind::ProjectDeleted,
            Self::Restore => AuditKind::ProjectRestored,
        }
    }
}

/// The result of a [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It was done.
    Done,
    /// It was already so.
    Already,
    /// There is no such project, or it is too late to restore it.
    NoProject,
    /// The platform took the project down, so its owner cannot put it up again.
    ByPlatform,
}

impl Standing {
    /// Whether the game is not shown.
    #[must_use]
    pub const fn is_down(&self) -> bool {
        self.disabled.is_some()
            || self.deleted.is_some()
            || self.removed_at.is_some()
            || self.owner_suspended_at.is_some()
    }

    /// Since when browsers are told to delete what the game stored.
    #[must_use]
    pub fn forgets_from(&self) -> Option<Millis> {
        self.forget_from.max(self.owner_suspended_at)
    }

    /// When a deleted project is removed.
    #[must_use]
    pub fn removal(&self) -> Option<Millis> {
        self.deleted.map(|deleted| deleted.at + GRACE)
    }

    /// Applies a change. Nothing has changed unless it returns [`Changed::Done`].
    pub fn change(&mut self, change: &Change, by: Authority, now: Millis) -> Changed {
        if self.removed_at.is_some() || self.removal().is_some_and(|removal| removal <= now) {
            return Changed::NoProject;
        }
        match change {
            Change::Disable { reason } => self.disable(reason.as_deref(), by, now),
            Change::Delete => self.delete(by, now),
            Change::Enable => match self.disabled.as_ref().map(|disabled| disabled.by) {
                None => Changed::Already,
                Some(wanted) if by < wanted => Changed::ByPlatform,
                Some(_) => {
                    self.disabled = None;
                    Changed::Done
                }
            },
            Change::Restore => match self.deleted.map(|deleted| deleted.by) {
                None => Changed::Already,
                Some(wanted) if by < wanted => Changed::ByPlatform,
                Some(_) => {
                    self.deleted = None;
                    Changed::Done
                }
            },
        }
    }

    fn disable(&mut self, reason: Option<&str>, by: Authority, now: Millis) -> Changed {
        if let Some(before) = &self.disabled
            && (by < before.by || (by == before.by && reason == before.reason.as_deref()))
        {
            // An owner cannot replace what the platform did.
            return Changed::Already;
        }
        self.disabled = Some(Disabled {
            at: now,
            by,
            reason: reason.map(str::to_owned),
        });
        self.forget_from = Some(now);
        Changed::Done
    }

    fn delete(&mut self, by: Authority, now: Millis) -> Changed {
        match &mut self.deleted {
            Some(before) if by <= before.by => Changed::Already,
            Some(before) => {
                // The days of grace still count from the first deletion.
                before.by = by;
                Changed::Done
            }
            None => {
                self.deleted = Some(Deleted { at: now, by });
                self.forget_from = Some(now);
                Changed::Done
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_800_000_000_000;

    fn disable(reason: Option<&str>) -> Change {
        Change::Disable {
            reason: reason.map(str::to_owned),
        }
    }

    #[test]
    fn an_owner_puts_up_again_what_they_took_down() {
        let mut standing = Standing::default();
        assert!(!standing.is_down());
        for (down, up) in [
            (disable(None), Change::Enable),
            (Change::Delete, Change::Restore),
        ] {
            assert_eq!(
                standing.change(&up, Authority::Owner, NOW),
                Changed::Already
            );
            assert_eq!(standing.change(&down, Authority::Owner, NOW), Changed::Done);
            assert!(standing.is_down());
            assert_eq!(
                standing.change(&down, Authority::Owner, NOW),
                Changed::Already
            );
            assert_eq!(standing.change(&up, Authority::Owner, NOW), Changed::Done);
            assert!(!standing.is_down());
        }
        assert_eq!(standing.forgets_from(), Some(NOW));
    }

    #[test]
    fn an_owner_does_not_undo_or_weaken_what_the_platform_did() {
        for (down, up) in [
            (disable(Some("Why.")), Change::Enable),
            (Change::Delete, Change::Restore),
        ] {
            let mut standing = Standing::default();
            assert_eq!(standing.change(&down, Authority::Owner, NOW), Changed::Done);
            assert_eq!(
                standing.change(&down, Authority::Platform, NOW + 1),
                Changed::Done
            );
            let before = standing.clone();
            assert_eq!(
                standing.change(&down, Authority::Owner, NOW + 2),
                Changed::Already
            );
            assert_eq!(
                standing.change(&up, Authority::Owner, NOW + 2),
                Changed::ByPlatform
            );
            assert_eq!(standing, before);
            assert_eq!(
                standing.change(&up, Authority::Platform, NOW + 3),
                Changed::Done
            );
            assert!(!standing.is_down());
        }
    }

    #[test]
    fn a_restored_project_stays_disabled_if_it_was() {
        let mut standing = Standing::default();
        standing.change(&disable(None), Authority::Platform, NOW);
        standing.change(&Change::Delete, Authority::Owner, NOW);
        let restored = standing.change(&Change::Restore, Authority::Owner, NOW + 1);
        assert_eq!(restored, Changed::Done);
        assert!(standing.is_down());
    }

    #[test]
    fn what_was_deleted_is_restored_within_seven_days_and_not_later() {
        let mut standing = Standing::default();
        standing.change(&Change::Delete, Authority::Owner, NOW);
        assert_eq!(standing.removal(), Some(NOW + 7 * 24 * 3_600_000));
        let mut late = standing.clone();
        let at = NOW + GRACE;
        assert_eq!(
            late.change(&Change::Restore, Authority::Platform, at),
            Changed::NoProject
        );
        assert_eq!(
            standing.change(&Change::Restore, Authority::Owner, at - 1),
            Changed::Done
        );
    }
}
