//! The command line's grammar and its help.

mod dev;
mod domains;
mod errors;
mod people;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use platform_protocol::deploy_token::{DEFAULT_DAYS, MAX_DAYS, Scope};
use platform_protocol::names::Environment;

pub(crate) use self::dev::DevOptions;
pub(crate) use self::domains::DomainsCommand;
pub(crate) use self::errors::{ErrorsCommand, ErrorsOptions, GroupArguments};
pub(crate) use self::people::{PeopleCommand, RoleName};

const EXAMPLES: &str = "\
Examples:
  platform login                     sign in, by a code in any browser
  platform init my-game              a new game from the template
  platform dev -- npm run dev        the game on this machine, with test players
  platform projects create my-game   a project of your own on the platform
  platform deploy                    the built game to its dev address
  platform deploy --env prod         the built game to its players

Settings come from options, then from PLATFORM_ORIGIN, PLATFORM_PROJECT and
PLATFORM_TOKEN, then from the nearest platform.toml (slug, origin, dist). The
default origin is that of the last sign-in, otherwise that of the platform
whose installer was used.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 not signed in.";

/// Make, test and deploy games on the platform.
#[derive(Debug, Parser)]
#[command(name = "platform", version, about, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct GlobalOptions {
    /// The platform's origin, such as https://games.example
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) origin: Option<String>,
    /// The project's slug
    #[arg(long, short, global = true, value_name = "SLUG")]
    pub(crate) project: Option<String>,
    /// Act on another player's project, as an administrator
    #[arg(long, global = true)]
    pub(crate) as_administrator: bool,
    /// How long a request may take
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

impl GlobalOptions {
    /// The longest time to wait for the platform.
    pub(crate) const fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sign in, by a code that is entered in any browser
    #[command(after_help = "\
Examples:
  platform login
  platform login --no-browser   on a machine without a screen

The address and the code are printed first, so that any device can be used.
If no browser can be opened, open the address yourself. Later commands use the
same origin by default.")]
    Login {
        /// Print the address and the code only
        #[arg(long)]
        no_browser: bool,
    },
    /// Sign out, and revoke the stored tokens
    Logout,
    /// Print who is signed in
    #[command(after_help = "Example:\n  platform whoami --json")]
    Whoami {
        /// Print JSON: origin, sub, username
        #[arg(long)]
        json: bool,
    },
    /// Print your token for the project API
    #[command(after_help = "\
Example:
  curl -H \"Authorization: Bearer $(platform token)\" https://games.example/api/projects

Anybody who has the token can create and change your games for 5 minutes, or
until you sign out. It is not a player's token; use `platform test-token` for
that.")]
    Token,
    /// Deploy tokens, with which a pipeline deploys a project
    #[command(after_help = "\
Examples:
  platform tokens create 'GitHub Actions' --scope deploy-dev --scope deploy-prod
  platform tokens list
  platform tokens revoke 'GitHub Actions'

A pipeline sets PLATFORM_TOKEN to the token and PLATFORM_ORIGIN to the platform. It
then needs no sign-in, and no file is read or written for one.")]
    Tokens {
        /// What to do with them.
        #[command(subcommand)]
        command: TokensCommand,
    },
    /// Who may do what with a project
    #[command(after_help = "\
Examples:
  platform people list
  platform people invite developer
  platform people role ada viewer
  platform people hand-on ada

A viewer reads everything and changes nothing. A developer deploys and changes
settings. The owner invites, and decides who may do what. A project that is handed
on gets its new owner when the developer accepts it.")]
    People {
        /// What to do about them.
        #[command(subcommand)]
        command: PeopleCommand,
    },
    /// Make a new game from the template
    #[command(after_help = "\
Examples:
  platform init my-game
  platform init . --project my-game --force

The slug in platform.toml is the folder's name, unless --project says another.")]
    Init {
        /// The game's folder; it is created if it does not exist
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Copy into a folder that is not empty, over files of the same name
        #[arg(long)]
        force: bool,
    },
    /// Your projects
    Projects {
        /// What to do with them.
        #[command(subcommand)]
        command: ProjectsCommand,
    },
    /// Deploy a built game
    #[command(after_help = "\
Examples:
  platform deploy                        the folder `dist` of platform.toml, to dev
  platform deploy my-game                the folder that my-game/platform.toml names
  platform deploy build/web --env prod   asks first
  platform deploy --env prod --yes       in a script
  platform deploy --preview              at an address for this branch of git
  platform deploy --preview new-rings    at new-rings--<project>.<platform>

A preview has the backend, the settings and the test players of the dev environment.
It is removed after 14 days in which nobody deploys or opens it.

Not deployed: names that begin with a dot (except .well-known), and
platform.toml and node_modules at the top of the folder.")]
    Deploy {
        /// The built game [default: `dist` of platform.toml, otherwise the folder
        /// dist, or this folder if nothing builds the game]
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
        /// The environment
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Deploy a preview, at an address of its own [default name: the branch of git]
        #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "",
              conflicts_with = "environment")]
        preview: Option<String>,
        /// A description in one line, for the list of deployments
        #[arg(long, short)]
        message: Option<String>,
        /// Do not ask before a deploy to production
        #[arg(long, short)]
        yes: bool,
        /// Print the platform's answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// Previews, which `platform deploy --preview` creates
    #[command(after_help = "\
Examples:
  platform previews list
  platform previews delete new-rings")]
    Previews {
        /// What to do with them.
        #[command(subcommand)]
        command: PreviewsCommand,
    },
    /// List what was deployed to an environment, the newest first
    #[command(after_help = "Example:\n  platform deployments --env prod")]
    Deployments {
        /// Which environment's
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Print JSON: deployments, each of id, short_id, created_at, files, bytes, current,
        /// deployed_by, client, network, message, revision, deploy_token
        #[arg(long)]
        json: bool,
    },
    /// Roll back to an earlier deployment
    #[command(after_help = "\
Examples:
  platform rollback                    the one before that which dev shows
  platform rollback --env prod         asks first
  platform rollback 3f2a9c1b --env prod --yes

`platform deployments` lists the ids.")]
    Rollback {
        /// Its id, or how it begins [default: that of the one before the current]
        #[arg(value_name = "DEPLOYMENT")]
        deployment: Option<String>,
        /// Where
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Do not ask before production is changed
        #[arg(long, short)]
        yes: bool,
    },
    /// The game's own backend
    #[command(after_help = "\
Examples:
  platform backend variables > .env
  platform backend set http://127.0.0.1:8788 --env dev")]
    Backend {
        /// What to do about it.
        #[command(subcommand)]
        command: BackendCommand,
    },
    /// Which sites may show the game in a frame
    #[command(after_help = "\
Examples:
  platform frames show --env prod
  platform frames set --allow https://portal.example --env prod")]
    Frames {
        /// What to do about it.
        #[command(subcommand)]
        command: FramesCommand,
    },
    /// Domains of the game's own
    #[command(after_help = domains::EXAMPLES)]
    Domains {
        /// What to do with them.
        #[command(subcommand)]
        command: DomainsCommand,
    },
    /// Run the game on this machine, with test players
    #[command(after_help = dev::EXAMPLES)]
    Dev(DevOptions),
    /// Print the runtime script of the game's dev address
    #[command(after_help = "Example:\n  platform runtime > public/runtime.js")]
    Runtime,
    /// Print a token of one of the project's test players
    #[command(after_help = "\
Examples:
  platform test-token 3
  platform test-token 3 --guest --json
  curl -H \"Authorization: Bearer $(platform test-token 3)\" <dev address>/api/me

A token is valid for 30 minutes, and only the dev environment accepts it.")]
    TestToken {
        /// Which test player
        #[arg(value_name = "1-10", default_value_t = 1,
              value_parser = clap::value_parser!(u8).range(1..=10))]
        number: u8,
        /// The test guest of that number, not the test user
        #[arg(long)]
        guest: bool,
        /// Print JSON: access_token, token_type, expires_in, sub, username
        #[arg(long)]
        json: bool,
    },
    /// Print the log records of players' pages
    #[command(after_help = "\
Examples:
  platform logs --env prod --level error
  platform logs --follow
  platform logs --json | jq .message")]
    Logs(LogsOptions),
    /// List errors, those with one cause as one group
    #[command(after_help = errors::EXAMPLES)]
    Errors(ErrorsOptions),
    /// Show the warnings that a deploy would print
    #[command(after_help = "Examples:\n  platform check\n  platform check build/web --strict")]
    Check {
        /// The built game [default: `dist` of platform.toml, otherwise the folder
        /// dist, or this folder if nothing builds the game]
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
        /// Fail if there is a warning
        #[arg(long)]
        strict: bool,
        /// Print JSON: warnings, each of code and message
        #[arg(long)]
        json: bool,
    },
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  platform completions bash > ~/.local/share/bash-completion/completions/platform
  platform completions zsh > ~/.zfunc/_platform
  platform completions fish > ~/.config/fish/completions/platform.fish")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether a program reads the results; failures are then JSON as well.
    pub(crate) const fn wants_json(&self) -> bool {
        match self {
            Self::Whoami { json }
            | Self::Deploy { json, .. }
            | Self::Deployments { json, .. }
            | Self::TestToken { json, .. }
            | Self::Check { json, .. }
            | Self::Logs(LogsOptions { json, .. })
            | Self::Errors(ErrorsOptions {
                command: Some(ErrorsCommand::Show { json, .. }),
                ..
            })
            | Self::Errors(ErrorsOptions {
                command: None,
                json,
                ..
            })
            | Self::Backend {
                command: BackendCommand::Show { json, .. } | BackendCommand::Variables { json, .. },
            }
            | Self::Frames {
                command: FramesCommand::Show { json, .. },
            }
            | Self::Previews {
                command: PreviewsCommand::List { json } | PreviewsCommand::Delete { json, .. },
            }
            | Self::Tokens {
                command: TokensCommand::Create { json, .. } | TokensCommand::List { json },
            }
            | Self::Projects {
                command: ProjectsCommand::Create { json, .. } | ProjectsCommand::List { json },
            } => *json,
            Self::People { command } => command.prints_json(),
            Self::Domains { command } => command.prints_json(),
            _ => false,
        }
    }
}

/// The backend's path prefix by default.
pub(crate) const DEFAULT_PATH: &str = "/api/";

/// What to do about the backend.
#[derive(Debug, Subcommand)]
pub(crate) enum BackendCommand {
    /// Send the game's requests under some paths to a backend
    #[command(after_help = "\
Examples:
  platform backend set http://127.0.0.1:8788
  platform backend set http://rings.internal:80 --env prod --path /api/ --path /ws")]
    Set {
        /// Its address: scheme, host and port
        #[arg(value_name = "URL")]
        url: String,
        /// Paths that begin with this go to it; may be repeated
        #[arg(long = "path", value_name = "PATH", default_value = DEFAULT_PATH)]
        paths: Vec<String>,
        /// Which environment's; prod asks first
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Send no requests to a backend any more
    Remove {
        /// Which environment's; prod asks first
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Print the backend's address, and the paths that it gets
    Show {
        /// Which environment's
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Print JSON: url, paths; null where there is none
        #[arg(long)]
        json: bool,
    },
    /// Print the variables that the backend verifies players by
    #[command(after_help = "\
Examples:
  platform backend variables --env prod > .env.prod
  env $(platform backend variables) npm run backend")]
    Variables {
        /// Which environment's
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// What to do about frames.
#[derive(Debug, Subcommand)]
pub(crate) enum FramesCommand {
    /// Set whose pages may show the game in a frame, in place of who might before
    #[command(
        after_help = "\
Examples:
  platform frames set --allow https://portal.example
  platform frames set --allow https://a.example --allow https://b.example --env prod
  platform frames set --none

The platform's own pages always may, for the preview.",
        group = clap::ArgGroup::new("who").required(true).multiple(true)
    )]
    Set {
        /// Pages of this site may: https and host; may be repeated
        #[arg(long, value_name = "ORIGIN", group = "who", conflicts_with_all = ["any", "none"])]
        allow: Vec<String>,
        /// Pages of every site may, which is so where nothing is set
        #[arg(long, group = "who", conflicts_with = "none")]
        any: bool,
        /// Pages of no other site may
        #[arg(long, group = "who")]
        none: bool,
        /// Which environment's; prod asks first
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Print whose pages may
    Show {
        /// Which environment's
        #[arg(long = "env", value_name = "ENV", default_value = "dev")]
        environment: EnvironmentName,
        /// Print JSON: "any", "platform" or a list of origins
        #[arg(long)]
        json: bool,
    },
}

/// What to do with previews.
#[derive(Debug, Subcommand)]
pub(crate) enum PreviewsCommand {
    /// List the previews and their addresses
    List {
        /// Print JSON: previews, each of name, url, deployment, created_at, used_on, expires_at
        #[arg(long)]
        json: bool,
    },
    /// Remove a preview
    #[command(after_help = "Example:\n  platform previews delete new-rings")]
    Delete {
        /// Its name
        name: String,
        /// Print the removed preview as JSON
        #[arg(long)]
        json: bool,
    },
}

/// What to do with deploy tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokensCommand {
    /// Create a deploy token and print it, for the only time
    #[command(after_help = "\
Examples:
  platform tokens create 'GitHub Actions' --scope deploy-dev
  platform tokens create ci --scope deploy-prod --days 30 | gh secret set PLATFORM_TOKEN

Only the project's owner can create tokens. A project can have 20 that are valid.
The platform keeps a hash of the token, so it cannot show it again.")]
    Create {
        /// A name that says what it is for
        name: String,
        /// What it allows on this project; may be repeated
        #[arg(long = "scope", value_name = "SCOPE", required = true)]
        scopes: Vec<ScopeName>,
        /// For how many days it is valid
        #[arg(long, value_name = "DAYS", default_value_t = DEFAULT_DAYS,
              value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_DAYS)))]
        days: u16,
        /// Print JSON: secret, id, name, scopes, created_at, expires_at, expired, used_on
        #[arg(long)]
        json: bool,
    },
    /// List the deploy tokens, without their texts
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a deploy token: the next request with it is refused
    #[command(after_help = "Example:\n  platform tokens revoke 'GitHub Actions'")]
    Revoke {
        /// Its name, or its id
        #[arg(value_name = "NAME")]
        token: String,
    },
}

/// A scope of a deploy token, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeName {
    /// Deploying to the dev environment
    DeployDev,
    /// Deploying to the production environment
    DeployProd,
    /// Reading logs and errors
    Logs,
}

impl ScopeName {
    /// The name in the project API.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::DeployDev => Scope::DeployDev.as_str(),
            Self::DeployProd => Scope::DeployProd.as_str(),
            Self::Logs => Scope::Logs.as_str(),
        }
    }
}

/// What to do with projects.
#[derive(Debug, Subcommand)]
pub(crate) enum ProjectsCommand {
    /// Create a project
    #[command(after_help = "Example:\n  platform projects create my-game")]
    Create {
        /// Its slug: 3 to 40 lower-case letters, digits or hyphens
        slug: String,
        /// Print the project as JSON
        #[arg(long)]
        json: bool,
    },
    /// List your projects and their addresses
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a game offline; its address says so
    #[command(after_help = "\
Browsers that open the game are told to forget what it stored in them.

Example:
  platform projects disable my-game --reason 'A bug eats progress.'")]
    Disable {
        /// The project
        slug: String,
        /// Why, for whoever owns it: one line
        #[arg(long)]
        reason: Option<String>,
    },
    /// Put a disabled game online again
    Enable {
        /// The project
        slug: String,
    },
    /// Delete a project: it can be restored for seven days
    #[command(after_help = "\
Its game is not shown from then on. After seven days its deployments, settings, logs and numbers
are removed permanently. Nobody gets its slug again.

Example:
  platform projects delete my-game")]
    Delete {
        /// The project
        slug: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Restore a deleted project
    Restore {
        /// The project
        slug: String,
    },
}

/// Which log records, and how.
#[derive(Debug, Args)]
pub(crate) struct LogsOptions {
    /// Go on with what comes, until interrupted
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Which environment's
    #[arg(long = "env", value_name = "ENV", default_value = "dev")]
    pub(crate) environment: EnvironmentName,
    /// Only records as grave as this, or graver
    #[arg(long, default_value = "debug")]
    pub(crate) level: Level,
    /// How many of the newest records
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 100,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Print each record as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// An environment, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnvironmentName {
    /// The game's dev address
    Dev,
    /// The game's production address
    Prod,
}

impl From<EnvironmentName> for Environment {
    fn from(name: EnvironmentName) -> Self {
        match name {
            EnvironmentName::Dev => Self::Dev,
            EnvironmentName::Prod => Self::Prod,
        }
    }
}

/// A level, as it is typed, from the least grave on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Level {
    /// `console.debug`
    Debug,
    /// `console.log`, `console.info`
    Info,
    /// `console.warn`
    Warn,
    /// `console.error`, and uncaught errors
    Error,
}

impl Level {
    /// The level as it is written in addresses and records.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}
