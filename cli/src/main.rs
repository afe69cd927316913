//! The command line of the platform: parse, run, exit.
//!
//! | module | holds |
//! |---|---|
//! | [`args`] | the grammar and its help |
//! | [`commands`] | one command a file |
//! | [`settings`], [`environment`] | what a call goes by |
//! | [`session`], [`credentials`] | who asks |
//! | [`client`] | requests and answers |
//! | [`archive`], [`sources`] | a folder as what is deployed, or should not be |
//! | [`failure`], [`terminal`] | what is said, and where |

mod archive;
mod args;
mod client;
mod clock;
mod commands;
mod credentials;
mod environment;
mod failure;
mod manifest;
mod origin;
mod revision;
mod secret;
mod session;
mod settings;
mod sources;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

use args::Arguments;
use environment::ProcessEnvironment;
use failure::{Exit, Failure};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help is a result, and that nobody reads it is no failure.
            let _ = error.print();
            let is_usage = error.use_stderr();
            return ExitCode::from(if is_usage { Exit::Usage.code() } else { 0 });
        }
    };
    let wants_json = arguments.command.wants_json();
    match run(arguments) {
        Ok(()) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(Failure::Told(told)) => {
            // A program gets the problem where it looks for the result.
            if wants_json
                && told.exit != Exit::Usage
                && let Some(problem) = &told.problem
            {
                let _ = terminal::print(&format!("{problem}\n"));
            }
            terminal::error(&told);
            ExitCode::from(told.exit.code())
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("The program cannot start: {error}.")))?
        .block_on(commands::run(arguments, &ProcessEnvironment::read()))
}
