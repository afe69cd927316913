//! The command line of the platform: parse, run, exit.
//!
//! | module | holds |
//! |---|---|
//! | [`args`] | the grammar and its help |
//! | [`commands`] | one command per file |
//! | [`settings`], [`environment`] | the settings of a call |
//! | [`session`], [`credentials`] | the account |
//! | [`client`] | requests and responses |
//! | [`archive`], [`sources`] | a folder to be deployed, and whether it holds sources |
//! | [`newer`] | says when the platform hands out a newer version |
//! | [`failure`], [`terminal`] | output and failures |

mod archive;
mod args;
mod browser;
mod client;
mod clock;
mod commands;
mod credentials;
mod environment;
mod failure;
mod installed;
mod manifest;
mod newer;
mod origin;
mod revision;
mod secret;
mod session;
mod settings;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

use args::Arguments;
use environment::ProcessEnvironment;
use failure::{Exit, Failure};
use newer::HandedOut;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // The message contains arguments, so it is made of those that may be shown.
            let shown = std::env::args_os().map(|argument| terminal::shown_argument(&argument));
            let error = Arguments::try_parse_from(shown).err().unwrap_or(error);
            terminal::parsed(&error);
            let is_usage = error.use_stderr();
            return ExitCode::from(if is_usage { Exit::Usage.code() } else { 0 });
        }
    };
    let wants_json = arguments.command.wants_json();
    match run(arguments) {
        Ok(()) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(Failure::Told(told)) => {
            // A program finds the problem where it expects the result.
            if wants_json
                && told.exit != Exit::Usage
                && let Some(problem) = &told.problem
            {
                let _ = terminal::print_json(problem);
            }
            terminal::error(&told);
            ExitCode::from(told.exit.code())
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let wants_json = arguments.command.wants_json();
    let environment = ProcessEnvironment::read();
    let handed_out = HandedOut::default();
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("The program cannot start: {error}.")))?
        .block_on(commands::run(arguments, &environment, &handed_out));
    // A program that reads JSON may show its user all of standard error.
    if !wants_json && let Some(folder) = environment.cache_folder() {
        handed_out.tell(&folder, clock::now());
    }
    outcome
}
