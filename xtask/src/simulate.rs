//! A crowd of virtual players on the real programs. The simulation itself is an example of the tests'
//! crate.

use std::process::ExitCode;

use anyhow::Result;

use crate::command::{cargo, command, run as run_command};
use crate::setup;
use crate::terminal;
use crate::workspace::{FEATURES, Workspace};

/// Sets up, builds the server and the crowd as for production, and lets the crowd play. Fails if
/// the platform counts something wrong.
pub(crate) fn run(
    workspace: &Workspace,
    players: usize,
    (minutes, arriving): (f64, f64),
    nodes: usize,
) -> Result<ExitCode> {
    let purpose = match nodes {
        1 => setup::Purpose::Serve,
        _ => setup::Purpose::Cluster,
    };
    setup::run(workspace, purpose)?;
    terminal::note("building the server and the crowd");
    let programs = ["--bin", "platform-server", "--example", "simulate"];
    let arguments = ["build", "--release", "--workspace", "--features", FEATURES];
    run_command(&mut cargo(
        &workspace.root,
        &[&arguments[..], &programs].concat(),
    ))?;
    let programs = workspace.target.join("release");
    let seconds = |minutes: f64| (minutes * 60.0).round().to_string();
    let mut crowd = command(programs.join("examples/simulate"), &workspace.root);
    crowd.env("TESTS_PROGRAMS", &programs).args([
        players.to_string(),
        seconds(minutes),
        nodes.to_string(),
        seconds(arriving),
    ]);
    run_command(&mut crowd)?;
    Ok(ExitCode::SUCCESS)
}
