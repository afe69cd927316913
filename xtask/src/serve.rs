//! Serving: set up, build, and become the server.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::command::{command, run as run_command};
use crate::workspace::Workspace;
use crate::{build, setup, terminal};

/// Names the folder of the command line to the server.
const CLI_FOLDER: &str = "PLATFORM_CLI_FOLDER";

/// Sets up, builds, and replaces this program by `platform-server serve`, so that signals and the
/// exit code are the server's own.
pub(crate) fn run(
    workspace: &Workspace,
    release: bool,
    arguments: &[OsString],
) -> Result<ExitCode> {
    setup::run(workspace, setup::Purpose::Serve)?;
    build::with(workspace, &["platform", "dist"], release)?;
    let server = workspace.binary(release, "platform-server");
    let mut serve = Command::new(&server);
    serve.arg("serve").args(arguments);
    if !workspace.settings.iter().any(|name| name == CLI_FOLDER) {
        serve.env(CLI_FOLDER, command_line(workspace, release)?);
    }
    terminal::note(&where_to_look(arguments, &workspace.settings));
    let failure = serve.exec();
    Err(failure).with_context(|| format!("{} cannot be started", server.display()))
}

/// Packs the command line of this machine, so that the server can hand it out, and returns the folder.
/// It is not beside the server, where a server that tests start would find it.
fn command_line(workspace: &Workspace, release: bool) -> Result<PathBuf> {
    let program = workspace.binary(release, "platform");
    let profile = if release { "release" } else { "debug" };
    let folder = workspace.target.join("cli").join(profile);
    if !is_newer(&folder.join("version.json"), &program) {
        let dist = workspace.binary(release, "dist");
        let mut dist = command(dist, &workspace.root);
        run_command(dist.arg("command-line").args([&program, &folder]))?;
    }
    Ok(folder)
}

/// Whether a file exists and was written after `other`.
fn is_newer(file: &Path, other: &Path) -> bool {
    let written = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    written(file) > written(other)
}

/// The address to open. If the user changed settings, only the server's ready line knows it.
fn where_to_look(arguments: &[OsString], settings: &[String]) -> String {
    if arguments.is_empty() && settings.is_empty() {
        "When the server is ready, open http://demo.platform.localhost:8787/ (Ctrl-C stops it)."
            .into()
    } else {
        "When the server is ready, it says its address; the demo game is at the same one with `demo.` before its host (Ctrl-C stops it)."
            .into()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_not_newer() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        assert!(!is_newer(&one, &other));
        std::fs::write(&other, "").unwrap();
        assert!(!is_newer(&one, &other));
        std::fs::write(&one, "").unwrap();
        let later = other.metadata().unwrap().modified().unwrap() + Duration::from_secs(1);
        let file = std::fs::File::options().append(true).open(&one).unwrap();
        file.set_modified(later).unwrap();
        assert!(is_newer(&one, &other));
        assert!(!is_newer(&other, &one));
    }

    #[test]
    fn the_default_address_is_only_promised_where_nothing_is_set() {
        assert!(where_to_look(&[], &[]).contains("http://demo.platform.localhost:8787/"));
        assert!(!where_to_look(&["--no-demo".into()], &[]).contains("8787"));
        assert!(!where_to_look(&[], &["PLATFORM_LISTEN".into()]).contains("8787"));
    }
}
