//! The people of a project: their roles, and the limits.

use serde::{Deserialize, Serialize};

/// How many people a project may have, with its owner.
pub const PER_PROJECT: usize = 50;
/// In how many projects of others an account may be.
pub const PROJECTS_OF_OTHERS: usize = 100;
/// How many invitations of a project may be open.
pub const OPEN_INVITATIONS: usize = 20;
/// How long an invitation is valid, in days.
pub const INVITATION_DAYS: u16 = 7;
/// How long the offer of a project is valid, in days.
pub const HANDOVER_DAYS: u16 = 7;
/// What the secret of every invitation begins with, so that people and programs recognise one.
pub const INVITATION_PREFIX: &str = "platform_in_";

/// What somebody may do with a project. A later role may do all that an earlier one may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Reads everything of the project, and changes nothing.
    Viewer,
    /// Deploys, rolls back, changes the game's settings, and plays as test players.
    Developer,
    /// Decides besides who else may do what, and whether the game is online.
    Owner,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Developer, Self::Owner];

    /// The name, as in the API and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Developer => "developer",
            Self::Owner => "owner",
        }
    }

    /// Returns the role with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_the_same_name_everywhere() {
        for role in Role::ALL {
            assert_eq!(Role::from_name(role.as_str()), Some(role));
            let json = serde_json::to_string(&role).unwrap();
            assert_eq!(json, format!("\"{}\"", role.as_str()));
        }
        assert_eq!(Role::from_name("Owner"), None);
    }

    #[test]
    fn a_later_role_may_do_more() {
        assert!(Role::Viewer < Role::Developer && Role::Developer < Role::Owner);
    }
}
