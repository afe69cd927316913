//! Runs other programs and reports which one failed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// A command that is run in `folder` and reads no standard input.
pub fn command(program: impl AsRef<std::ffi::OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// Cargo, of the toolchain that runs this program, in `folder`.
pub fn cargo(folder: &Path, arguments: &[&str]) -> Command {
    let mut cargo = command("cargo", folder);
    cargo.args(arguments);
    // Cargo set these for this program, and they are wrong for others. A build script that reads
    // them (such as ring's) would run again, and everything that depends on it would be compiled
    // again.
    for about_this_program in [
        "CARGO_MANIFEST_DIR",
        "CARGO_MANIFEST_LINKS",
        "CARGO_MANIFEST_PATH",
        "CARGO_PKG_NAME",
        "CARGO_PKG_VERSION_MAJOR",
        "CARGO_PKG_VERSION_MINOR",
        "CARGO_PKG_VERSION_PATCH",
        "CARGO_PKG_VERSION_PRE",
    ] {
        cargo.env_remove(about_this_program);
    }
    cargo
}

/// Runs it to its end, with its output on the terminal.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| cannot_start(command))?;
    check(command, status)
}

/// Runs it to its end and returns what it wrote to standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| cannot_start(command))?;
    check(command, output.status)?;
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` wrote what is not UTF-8", describe(command)))
}

/// Runs it to its end, with its errors on the terminal, and passes every line of its standard
/// output to `on_line`.
pub fn read_lines(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<()> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| cannot_start(command))?;
    let stdout = child
        .stdout
        .take()
        .context("the standard output was not piped")?;
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.with_context(|| format!("`{}` cannot be read", describe(command)))?;
        on_line(&String::from_utf8_lossy(&line));
    }
    let status = child.wait().with_context(|| cannot_start(command))?;
    check(command, status)
}

/// The command as a person would type it.
pub fn describe(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| {
            let word = word.to_string_lossy();
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
            if !word.is_empty() && word.chars().all(plain) {
                word.into_owned()
            } else {
                format!("'{word}'")
            }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

fn check(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        let folder = command.get_current_dir().unwrap_or(Path::new("."));
        bail!(
            "`{}` failed ({status}) in {}",
            describe(command),
            folder.display()
        );
    }
    Ok(())
}

fn cannot_start(command: &Command) -> String {
    format!("`{}` cannot be started", describe(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_the_folder() {
        let error = run(command("false", Path::new("/")).arg("a b"))
            .unwrap_err()
            .to_string();
        assert_eq!(error, "`false 'a b'` failed (exit status: 1) in /");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(&mut command("/no/such/program", Path::new("/"))).unwrap_err();
        assert_eq!(error.to_string(), "`/no/such/program` cannot be started");
    }

    #[test]
    fn lines_are_handed_over_and_a_failure_is_still_seen() {
        let mut lines = Vec::new();
        let mut script = command("sh", Path::new("/"));
        script.args(["-c", "echo one; echo two; exit 3"]);
        let outcome = read_lines(&mut script, |line| lines.push(line.to_owned()));
        assert_eq!(lines, ["one", "two"]);
        assert!(outcome.unwrap_err().to_string().contains("exit status: 3"));
    }
}
