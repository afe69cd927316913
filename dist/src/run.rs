//! Runs other programs and reports which one failed.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// A program that is run in `folder` and reads no standard input.
pub(crate) fn program(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(name);
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// Cargo in `folder`.
pub(crate) fn cargo(folder: &Path) -> Command {
    program("cargo", folder)
}

/// Runs it to its end, with its output on the terminal.
///
/// # Errors
/// It cannot be started, or failed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("{command:?} cannot be started"))?;
    ensure!(status.success(), "{command:?} failed ({status})");
    Ok(())
}

/// Runs it to its end and returns what it wrote to standard output.
///
/// # Errors
/// It cannot be started, failed, or its output is not UTF-8.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{command:?} cannot be started"))?;
    ensure!(
        output.status.success(),
        "{command:?} failed ({})",
        output.status
    );
    String::from_utf8(output.stdout).with_context(|| format!("{command:?} wrote no UTF-8"))
}
