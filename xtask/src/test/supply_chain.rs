//! Checks of the dependencies: licences, duplicate major versions, sources, and known
//! vulnerabilities. `deny.toml` has the rules.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command::{cargo, command, run};
use crate::setup::Tool;
use crate::terminal;
use crate::workspace::Workspace;

/// Checks that need only the lock file and the sources that cargo has.
const OFFLINE: [&str; 6] = [
    "--offline",
    "--all-features",
    "check",
    "licenses",
    "bans",
    "sources",
];

/// Checks that need the current database of advisories.
const ADVISORIES: [&str; 3] = ["--all-features", "check", "advisories"];

/// Runs all checks. If the database cannot be fetched, it says so and goes on: known
/// vulnerabilities are then not checked.
pub(super) fn check(workspace: &Workspace) -> Result<()> {
    // The sources of dependencies for other systems may not be fetched yet.
    run(&mut cargo(&workspace.root, &["fetch", "--locked"]))?;
    run(deny(workspace)?.args(OFFLINE))?;
    let output = deny(workspace)?
        .args(ADVISORIES)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .context("cargo-deny cannot be started")?;
    let said = String::from_utf8_lossy(&output.stderr);
    match judge(output.status.success(), &said) {
        Advisories::Clean => Ok(()),
        Advisories::OutOfReach => {
            terminal::note(
                "supply chain: the advisories were SKIPPED: their database cannot be fetched here; \
                 run `cargo deny check advisories` where it can",
            );
            Ok(())
        }
        Advisories::Found => {
            terminal::note(&said);
            bail!("there are advisories about dependencies; see above");
        }
    }
}

fn deny(workspace: &Workspace) -> Result<Command> {
    let program = Tool::CargoDeny.bin(workspace)?.join("cargo-deny");
    Ok(command(program, &workspace.root))
}

/// The result of the check of the advisories.
#[derive(Debug, PartialEq, Eq)]
enum Advisories {
    Clean,
    OutOfReach,
    Found,
}

fn judge(success: bool, said: &str) -> Advisories {
    let out_of_reach = [
        "failed to fetch advisory database",
        "failed to clone advisory database",
        "unable to fetch advisory database",
        "unable to load advisory database",
    ];
    if success {
        Advisories::Clean
    } else if out_of_reach.iter().any(|words| said.contains(words)) {
        Advisories::OutOfReach
    } else {
        Advisories::Found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advisories_that_cannot_be_fetched_are_told_from_those_that_were_found() {
        let unreachable =
            "[ERROR] failed to fetch advisory database https://github.com/rustsec/advisory-db";
        assert_eq!(judge(false, unreachable), Advisories::OutOfReach);
        assert_eq!(judge(true, ""), Advisories::Clean);
        let found = "error[vulnerability]: Denial of service\nadvisories FAILED";
        assert_eq!(judge(false, found), Advisories::Found);
        assert_eq!(judge(false, ""), Advisories::Found);
    }
}
