//! The grammar of `platform domains`.

use clap::Subcommand;

use super::EnvironmentName;

pub(super) const EXAMPLES: &str = "\
Examples:
  platform domains add play.my-game.example --env prod
  platform domains verify play.my-game.example --env prod
  platform domains canonical play.my-game.example --env prod

A domain needs two DNS records, which `add` and `list` print: one that proves that it is
yours, and one that leads to the platform. Both must stay.";

/// What to do with domains.
#[derive(Debug, Subcommand)]
pub(crate) enum DomainsCommand {
    /// Claim a domain, and print the records to create
    #[command(after_help = "Example:\n  platform domains add play.my-game.example --env prod")]
    Add {
        /// The domain, such as play.my-game.example
        domain: String,
        /// Which environment answers at it
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Print the domain as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the domains with their states and records
    List {
        /// Which environment's
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Print JSON: domains, each of domain, url, state, detail, canonical, record, target,
        /// created_at, since, looked_at
        #[arg(long)]
        json: bool,
    },
    /// Look at a domain's records now; the game answers there once they are in order
    #[command(after_help = "\
Fails while they are not in order, and says what was found.

Example:
  platform domains verify play.my-game.example --env prod")]
    Verify {
        /// The domain
        domain: String,
        /// Which environment's
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Print the domain as JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a domain the canonical address: the environment's other addresses redirect to it
    #[command(after_help = "\
Examples:
  platform domains canonical play.my-game.example --env prod
  platform domains canonical play.my-game.example --env prod --off")]
    Canonical {
        /// The domain, which must be active
        domain: String,
        /// The other addresses redirect to it no longer
        #[arg(long)]
        off: bool,
        /// Which environment's; prod asks first
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        /// Print the domain as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a domain: the game no longer answers there
    #[command(after_help = "Example:\n  platform domains remove play.my-game.example --env prod")]
    Remove {
        /// The domain
        domain: String,
        /// Which environment's; prod asks first
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

impl DomainsCommand {
    /// Whether a program reads the results.
    pub(super) const fn prints_json(&self) -> bool {
        match self {
            Self::Add { json, .. }
            | Self::List { json, .. }
            | Self::Verify { json, .. }
            | Self::Canonical { json, .. } => *json,
            Self::Remove { .. } => false,
        }
    }
}
