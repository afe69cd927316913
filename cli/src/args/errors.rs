//! The arguments of `platform errors`.

use clap::{Args, Subcommand, ValueEnum};

use super::EnvironmentName;

/// Examples, for the help.
pub(super) const EXAMPLES: &str = "\
Examples:
  platform errors --env prod
  platform errors --env prod --search score --state all
  platform errors show 3f2a9c1b --env prod
  platform errors resolve 3f2a9c1b --env prod

Errors with one cause are one group. The game's source maps, if they are deployed with it, say
which have one cause, and where in the sources it is.";

/// Which groups of errors, or what to do with one.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ErrorsOptions {
    /// What to do with a group; without it, the groups are listed.
    #[command(subcommand)]
    pub(crate) command: Option<ErrorsCommand>,
    /// Which environment's
    #[arg(long = "env", value_name = "ENV", default_value = "dev")]
    pub(crate) environment: EnvironmentName,
    /// Only groups with this state
    #[arg(long, default_value = "open")]
    pub(crate) state: StateFilter,
    /// Only groups with this text in type, message or place
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// How many, at most
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 50,
          value_parser = clap::value_parser!(u16).range(1..=1001))]
    pub(crate) limit: u16,
    /// Print each group as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to do with a group.
#[derive(Debug, Subcommand)]
pub(crate) enum ErrorsCommand {
    /// Print everything that is known about a group
    Show {
        /// The group, and its environment.
        #[command(flatten)]
        group: GroupArguments,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say that it is fixed: a later deployment that has it again opens it again
    Resolve {
        /// The group, and its environment.
        #[command(flatten)]
        group: GroupArguments,
    },
    /// Leave it out from now on
    Ignore {
        /// The group, and its environment.
        #[command(flatten)]
        group: GroupArguments,
    },
    /// Remove it with its counts: an error that happens again begins a new one
    Delete {
        /// The group, and its environment.
        #[command(flatten)]
        group: GroupArguments,
    },
    /// Take back that it was resolved or ignored
    Reopen {
        /// The group, and its environment.
        #[command(flatten)]
        group: GroupArguments,
    },
}

/// A group of errors.
#[derive(Debug, Args)]
pub(crate) struct GroupArguments {
    /// Its id, or how it begins
    #[arg(value_name = "ERROR")]
    pub(crate) id: String,
    /// Which environment's
    #[arg(long = "env", value_name = "ENV", default_value = "dev")]
    pub(crate) environment: EnvironmentName,
}

/// States, as they are typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateFilter {
    /// Those that nobody has decided about
    Open,
    /// Those that are fixed
    Resolved,
    /// Those that nobody wants to see
    Ignored,
    /// Every group
    All,
}

impl StateFilter {
    /// The name in the project API; `None` for every state.
    pub(crate) const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Open => Some("open"),
            Self::Resolved => Some("resolved"),
            Self::Ignored => Some("ignored"),
            Self::All => None,
        }
    }
}
