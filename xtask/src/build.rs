//! Building: first the runtime, which the server embeds, then the server.

use anyhow::Result;

use crate::command::{cargo, run as run_command};
use crate::terminal::{self, Stopwatch};
use crate::workspace::Workspace;

/// Builds runtime.js and the server, and answers the runtime's sizes.
pub(crate) fn run(workspace: &Workspace, release: bool) -> Result<platform_loader::Report> {
    let report = runtime(workspace)?;
    let stopwatch = Stopwatch::start();
    terminal::note("building the server");
    let mut arguments = vec!["build", "--package", "platform-server"];
    if release {
        arguments.push("--release");
    }
    run_command(&mut cargo(&workspace.root, &arguments))?;
    terminal::note(&format!("server built in {stopwatch}"));
    Ok(report)
}

/// Builds runtime.js alone.
pub(crate) fn runtime(workspace: &Workspace) -> Result<platform_loader::Report> {
    let stopwatch = Stopwatch::start();
    terminal::note(
        "building runtime.js; where it has changed, with a standard library made for size, which takes minutes the first time",
    );
    let options = platform_loader::Options {
        workspace_root: workspace.root.clone(),
    };
    let report = platform_loader::build(&options)?;
    terminal::note(&format!(
        "runtime.js built in {stopwatch}: {} bytes in brotli",
        report.brotli
    ));
    Ok(report)
}
