//! Serving: set up, build, and become the server.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{build, setup, terminal};

/// Sets up, builds, and replaces this program by `platform-server serve`, so that signals and the
/// exit code are the server's own.
pub(crate) fn run(
    workspace: &Workspace,
    release: bool,
    arguments: &[OsString],
) -> Result<ExitCode> {
    setup::run(workspace, setup::Purpose::Serve)?;
    build::run(workspace, release)?;
    terminal::note(&where_to_look(arguments, &workspace.settings));
    let server = workspace.binary(release, "platform-server");
    let failure = Command::new(&server).arg("serve").args(arguments).exec();
    Err(failure).with_context(|| format!("{} cannot be started", server.display()))
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
    use super::*;

    #[test]
    fn the_default_address_is_only_promised_where_nothing_is_set() {
        assert!(where_to_look(&[], &[]).contains("http://demo.platform.localhost:8787/"));
        assert!(!where_to_look(&["--no-demo".into()], &[]).contains("8787"));
        assert!(!where_to_look(&[], &["PLATFORM_LISTEN".into()]).contains("8787"));
    }
}
