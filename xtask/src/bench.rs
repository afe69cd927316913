//! Measuring: set up, build the program that measures, and become it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{build, setup};

/// Sets up, builds, and replaces this program by `platform-bench`, which reads the arguments.
pub(crate) fn run(workspace: &Workspace, arguments: &[OsString]) -> Result<ExitCode> {
    if !asks_for_help(arguments) {
        let purpose = if arguments.iter().any(|word| word == "--plot") {
            setup::Purpose::Serve
        } else {
            setup::Purpose::Bench
        };
        setup::run(workspace, purpose)?;
    }
    build::compile(workspace, &["platform-bench"], false)?;
    let bench = workspace.binary(false, "platform-bench");
    let failure = Command::new(&bench).args(arguments).exec();
    Err(failure).with_context(|| format!("{} cannot be started", bench.display()))
}

/// Whether the arguments only ask what there is to measure, for which nothing is installed.
fn asks_for_help(arguments: &[OsString]) -> bool {
    arguments
        .iter()
        .any(|word| word == "--help" || word == "-h")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_recognised_among_other_arguments() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert!(asks_for_help(&words(&["--only", "tokens", "--help"])));
        assert!(asks_for_help(&words(&["-h"])));
        assert!(!asks_for_help(&words(&["--only", "tokens"])));
    }
}
