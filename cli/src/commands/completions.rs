//! `platform completions <shell>`: a script for the shell.

use clap::CommandFactory as _;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::terminal;

/// Prints the script.
pub(super) fn run(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "platform", &mut script);
    terminal::print_file(&script)
}
