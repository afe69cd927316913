//! Where the programs are that drive browsers.

use std::process::Command;

use anyhow::{Context, Result};

use crate::setup::Tool;
use crate::workspace::Workspace;

/// Says where the drivers are: in variables, and on the `PATH`.
pub(crate) fn add_to(mut command: Command, workspace: &Workspace) -> Result<Command> {
    let chromedriver = which::which_in("chromedriver", Some(&workspace.path), &workspace.root)
        .context("chromedriver is not on the PATH")?;
    let geckodriver = Tool::Geckodriver.file(workspace)?;
    let runner = Tool::WasmBindgenTestRunner.file(workspace)?;
    let folders = [&runner, &geckodriver]
        .into_iter()
        .filter_map(|file| file.parent());
    let path = std::env::join_paths(
        folders
            .map(Into::into)
            .chain(std::env::split_paths(&workspace.path)),
    )
    .context("the PATH cannot be made longer")?;
    command
        .env("PATH", path)
        .env("CHROMEDRIVER", chromedriver)
        .env("GECKODRIVER", geckodriver);
    Ok(command)
}
