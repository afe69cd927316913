//! A release: sets up what it needs; the program `dist` does the rest.

use std::process::ExitCode;

use anyhow::Result;

use crate::command::{command, run as run_command};
use crate::terminal::{self, Stopwatch};
use crate::workspace::Workspace;
use crate::{build, setup};

/// Makes the archive of a release; with `verify` in two folders, which must give the same result.
pub(crate) fn run(workspace: &Workspace, verify: bool) -> Result<ExitCode> {
    let stopwatch = Stopwatch::start();
    setup::run(workspace, setup::Purpose::Dist)?;
    build::compile(workspace, &["dist"], false)?;
    let mut dist = command(workspace.binary(false, "dist"), &workspace.root);
    // Cargo finds its command `zigbuild` there, which finds zig.
    let folders = std::iter::once(workspace.python("dist").join("bin"));
    let folders = folders.chain(std::env::split_paths(&workspace.path));
    dist.env("PATH", std::env::join_paths(folders)?);
    if verify {
        dist.arg("--verify");
    }
    run_command(&mut dist)?;
    terminal::note(&format!("release made in {stopwatch}"));
    Ok(ExitCode::SUCCESS)
}
