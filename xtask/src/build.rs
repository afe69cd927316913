//! Builds the runtime alone, or the server, whose build script builds the runtime in parallel with
//! the dependencies.

use anyhow::Result;

use crate::command::{cargo, command, run as run_command};
use crate::size::Sizes;
use crate::terminal::{self, Stopwatch};
use crate::workspace::{FEATURES, Workspace};

/// Builds the server with the runtime, and returns the runtime's sizes.
pub(crate) fn run(workspace: &Workspace, release: bool) -> Result<Sizes> {
    with(workspace, &[], release)
}

/// Builds the server with the runtime, and other programs. Returns the runtime's sizes.
pub(crate) fn with(workspace: &Workspace, others: &[&str], release: bool) -> Result<Sizes> {
    let stopwatch = Stopwatch::start();
    terminal::note("building the server, and runtime.js for it");
    compile(workspace, &[&["platform-server"], others].concat(), release)?;
    let sizes = Sizes::read(&workspace.root)?;
    terminal::note(&format!(
        "server built in {stopwatch}; runtime.js has {} bytes in brotli",
        sizes.brotli
    ));
    Ok(sizes)
}

/// Builds runtime.js alone, and prints its sizes.
pub(crate) fn runtime(workspace: &Workspace) -> Result<Sizes> {
    let stopwatch = Stopwatch::start();
    terminal::note(
        "building runtime.js; where it has changed, with a standard library made for size, which takes a minute the first time",
    );
    compile(workspace, &["loader"], false)?;
    let loader = workspace.binary(false, "loader");
    run_command(command(loader, &workspace.root).arg("."))?;
    terminal::note(&format!("runtime.js built in {stopwatch}"));
    Sizes::read(&workspace.root)
}

/// Builds the server with what several nodes need, and the runtime with it.
pub fn cluster(workspace: &Workspace, release: bool) -> Result<()> {
    let stopwatch = Stopwatch::start();
    terminal::note("building the server with PostgreSQL, Redis and S3, and runtime.js for it");
    let mut arguments = vec![
        "build",
        "--workspace",
        "--features",
        FEATURES,
        "--bin",
        "platform-server",
    ];
    if release {
        arguments.push("--release");
    }
    run_command(&mut cargo(&workspace.root, &arguments))?;
    terminal::note(&format!("server built in {stopwatch}"));
    Ok(())
}

/// Compiles programs with the features that they have in the whole workspace, so that they share
/// their dependencies with every other program here.
pub(crate) fn compile(workspace: &Workspace, programs: &[&str], release: bool) -> Result<()> {
    let mut arguments = vec!["build", "--workspace"];
    for program in programs {
        arguments.extend(["--bin", *program]);
    }
    if release {
        arguments.push("--release");
    }
    run_command(&mut cargo(&workspace.root, &arguments))
}
