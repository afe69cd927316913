//! Finds the programs that drive browsers.

use std::process::Command;

use anyhow::{Context, Result};

use crate::setup::Tool;
use crate::workspace::Workspace;

/// Passes the drivers to a command: in variables, and on the `PATH`.
pub fn add_to(mut command: Command, workspace: &Workspace) -> Result<Command> {
    let chromedriver = which::which_in("chromedriver", Some(&workspace.path), &workspace.root)
        .context("chromedriver is not on the PATH")?;
    let geckodriver = Tool::Geckodriver.bin(workspace)?;
    let path = std::env::join_paths(
        [Tool::WasmBindgen.bin(workspace)?, geckodriver.clone()]
            .into_iter()
            .chain(std::env::split_paths(&workspace.path)),
    )
    .context("the PATH cannot be made longer")?;
    command
        .env("PATH", path)
        .env("CHROMEDRIVER", chromedriver)
        .env("GECKODRIVER", geckodriver.join("geckodriver"));
    Ok(command)
}
