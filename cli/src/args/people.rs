//! The options of `platform people`.

use clap::{Subcommand, ValueEnum};
use platform_protocol::people::Role;

/// What to do about the people of a project.
#[derive(Debug, Subcommand)]
pub(crate) enum PeopleCommand {
    /// List the owner, the developers and the viewers
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a link with which one account can join, for seven days
    #[command(after_help = "\
Examples:
  platform people invite developer
  platform people invite viewer --json

Whoever has the link can use it, once. Only the project's owner can invite. The
platform keeps a hash of the link's secret, so it cannot show it again.")]
    Invite {
        /// What whoever accepts it may do
        role: RoleName,
        /// Print JSON: link, id, role, created_at, expires_at
        #[arg(long)]
        json: bool,
    },
    /// List the open invitations, without their links
    Invitations {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Withdraw an open invitation: its link leads nowhere from then on
    Withdraw {
        /// The invitation's id
        id: String,
    },
    /// Give a member another role
    #[command(after_help = "Example:\n  platform people role ada viewer")]
    Role {
        /// The member's name, or id
        #[arg(value_name = "NAME")]
        person: String,
        /// What the member may do
        role: RoleName,
    },
    /// Remove a member
    Remove {
        /// The member's name, or id
        #[arg(value_name = "NAME")]
        person: String,
    },
    /// Leave a project of somebody else
    Leave,
    /// Offer the project to one of the developers, who owns it after accepting; asks first
    #[command(after_help = "\
Example:
  platform people hand-on ada

The developer accepts with `platform people take-on`, or on the project's page, within
seven days. You are a developer then. Deploy tokens, the webhook and open invitations
of the project end, because you made them.")]
    HandOn {
        /// The developer's name, or id
        #[arg(value_name = "NAME")]
        person: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Accept the project that its owner offers you; asks first
    TakeOn {
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Withdraw your offer of the project, or decline one to you
    #[command(visible_alias = "decline")]
    EndOffer,
}

impl PeopleCommand {
    /// Whether the command prints JSON.
    pub(super) const fn prints_json(&self) -> bool {
        match self {
            Self::List { json } | Self::Invite { json, .. } | Self::Invitations { json } => *json,
            _ => false,
        }
    }
}

/// The role of a member, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleName {
    /// Reads everything, and changes nothing
    Viewer,
    /// Deploys, rolls back, changes settings, and plays as test players
    Developer,
}

impl RoleName {
    /// The name in the project API.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => Role::Viewer.as_str(),
            Self::Developer => Role::Developer.as_str(),
        }
    }
}
