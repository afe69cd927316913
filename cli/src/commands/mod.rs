//! The commands, one per file.

mod backend;
mod check;
mod completions;
mod deploy;
mod deployments;
mod dev;
mod domains;
mod errors;
mod frames;
mod init;
mod login;
mod logout;
mod logs;
mod maps;
mod people;
mod previews;
mod projects;
mod rollback;
mod runtime;
mod test_token;
mod token;
mod tokens;
mod whoami;

use std::path::Path;

use crate::args::{Arguments, Command, GlobalOptions};
use crate::client::Http;
use crate::credentials::Credentials;
use crate::environment::ProcessEnvironment;
use crate::failure::Failure;
use crate::newer::HandedOut;
use crate::session::Session;
use crate::settings::Settings;

/// The options and environment of a command.
#[derive(Debug)]
struct Context<'a> {
    options: &'a GlobalOptions,
    environment: &'a ProcessEnvironment,
    handed_out: &'a HandedOut,
}

impl Context<'_> {
    /// The settings for the current folder.
    fn settings(&self) -> Result<Settings, Failure> {
        Settings::settle(self.options, self.environment, &[Path::new(".")])
    }

    /// The settings for the given folder, else for the current one.
    fn settings_of(&self, folder: Option<&Path>) -> Result<Settings, Failure> {
        let here = Path::new(".");
        Settings::settle(
            self.options,
            self.environment,
            &[folder.unwrap_or(here), here],
        )
    }

    /// A client for the platform.
    fn http(&self, settings: &Settings) -> Result<Http, Failure> {
        Http::new(&settings.origin, settings.timeout, self.handed_out.clone())
    }

    /// The session at the platform.
    fn session(&self, settings: &Settings) -> Result<Session, Failure> {
        let credentials = Credentials::locate(self.environment)?;
        Session::new(self.http(settings)?, settings, credentials)
    }
}

/// Runs the given command. Notes the version of this program that the platform hands out.
///
/// # Errors
/// Why it failed.
pub(crate) async fn run(
    arguments: Arguments,
    environment: &ProcessEnvironment,
    handed_out: &HandedOut,
) -> Result<(), Failure> {
    let context = Context {
        options: &arguments.global,
        environment,
        handed_out,
    };
    match arguments.command {
        Command::Login { no_browser } => login::run(&context, no_browser).await,
        Command::Logout => logout::run(&context).await,
        Command::Whoami { json } => whoami::run(&context, json).await,
        Command::Token => token::run(&context).await,
        Command::Tokens { command } => tokens::run(&context, command).await,
        Command::People { command } => people::run(&context, command).await,
        Command::Init { directory, force } => init::run(&context, &directory, force),
        Command::Projects { command } => projects::run(&context, command).await,
        Command::Deploy {
            directory,
            environment,
            preview,
            message,
            yes,
            json,
        } => {
            let wanted = deploy::Wanted {
                directory: directory.as_deref(),
                environment: environment.into(),
                preview: preview.as_deref(),
                message: message.as_deref(),
                yes,
                json,
            };
            deploy::run(&context, &wanted).await
        }
        Command::Previews { command } => previews::run(&context, command).await,
        Command::Deployments { environment, json } => {
            deployments::run(&context, environment.into(), json).await
        }
        Command::Rollback {
            deployment,
            environment,
            yes,
        } => rollback::run(&context, deployment.as_deref(), environment.into(), yes).await,
        Command::Backend { command } => backend::run(&context, command).await,
        Command::Frames { command } => frames::run(&context, command).await,
        Command::Domains { command } => domains::run(&context, command).await,
        Command::Dev(options) => dev::run(&context, &options).await,
        Command::Runtime => runtime::run(&context).await,
        Command::TestToken {
            number,
            guest,
            json,
        } => test_token::run(&context, number, guest, json).await,
        Command::Logs(options) => logs::run(&context, &options).await,
        Command::Errors(options) => errors::run(&context, options).await,
        Command::Check {
            directory,
            strict,
            json,
        } => check::run(&context, directory.as_deref(), strict, json),
        Command::Completions { shell } => completions::run(shell),
    }
}
