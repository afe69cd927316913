//! The stages of the test run, in their order.

use std::process::Command;

use anyhow::{Context, Result};

use super::count::Count;
use super::{Part, Stage, supply_chain};
use crate::command::{cargo, command, run_reading};
use crate::setup::Tool;
use crate::workspace::Workspace;
use crate::{build, drivers, size, tidy};

/// The crate that opens browsers and starts servers; the rest is native.
const END_TO_END: &str = "platform-tests";

pub(super) const STAGES: &[Stage] = &[
    Stage {
        name: "build and size budget",
        part: None,
        always: true,
        run: build_within_budget,
    },
    Stage {
        name: "formatting",
        part: None,
        always: false,
        run: |at, _| tidy::format(at),
    },
    Stage {
        name: "rules",
        part: None,
        always: false,
        run: |at, _| tidy::rules(at),
    },
    Stage {
        name: "clippy",
        part: None,
        always: false,
        run: |at, _| tidy::lints(at),
    },
    Stage {
        name: "supply chain",
        part: None,
        always: false,
        run: |at, _| supply_chain::check(at),
    },
    Stage {
        name: "native tests",
        part: Some(Part::Native),
        always: false,
        run: native,
    },
    Stage {
        name: "runtime in Chromium",
        part: Some(Part::Wasm),
        always: false,
        run: chromium,
    },
    Stage {
        name: "runtime in Firefox",
        part: Some(Part::Wasm),
        always: false,
        run: firefox,
    },
    Stage {
        name: "npm tests",
        part: Some(Part::Npm),
        always: false,
        run: npm,
    },
    Stage {
        name: "end to end",
        part: Some(Part::E2e),
        always: false,
        run: end_to_end,
    },
];

fn build_within_budget(workspace: &Workspace, _: &mut Count) -> Result<()> {
    let report = build::run(workspace, false)?;
    match size::over_budget(report.brotli, report.budget) {
        None => Ok(()),
        Some(sentence) => anyhow::bail!(sentence),
    }
}

fn native(workspace: &Workspace, count: &mut Count) -> Result<()> {
    let arguments = [
        "test",
        "--workspace",
        "--exclude",
        END_TO_END,
        "--no-fail-fast",
    ];
    read(&mut cargo(&workspace.root, &arguments), count)
}

fn chromium(workspace: &Workspace, count: &mut Count) -> Result<()> {
    read(&mut wasm_pack(workspace, "--chrome")?, count)
}

fn firefox(workspace: &Workspace, count: &mut Count) -> Result<()> {
    read(&mut wasm_pack(workspace, "--firefox")?, count)
}

/// `wasm-pack test`, which must take the tools that are there: it would
/// otherwise download others.
fn wasm_pack(workspace: &Workspace, browser: &str) -> Result<Command> {
    let mut wasm_pack = command(
        Tool::WasmPack.bin(workspace)?.join("wasm-pack"),
        &workspace.root,
    );
    // The folder stands last: what follows it goes to cargo.
    wasm_pack.args([
        "test",
        "--mode",
        "no-install",
        "--headless",
        browser,
        "runtime-wasm",
    ]);
    drivers::add_to(wasm_pack, workspace)
}

fn end_to_end(workspace: &Workspace, count: &mut Count) -> Result<()> {
    // Two browsers at a time: each test has its own, and its own server.
    let arguments = [
        "test",
        "--package",
        END_TO_END,
        "--no-fail-fast",
        "--",
        "--test-threads=2",
    ];
    let mut tests = drivers::add_to(cargo(&workspace.root, &arguments), workspace)?;
    // A test's panic says where and why; its frames are the runner's own, and
    // would push that out of sight.
    read(tests.env("RUST_BACKTRACE", "0"), count)
}

/// `npm test` in each folder whose `package.json` has such a script.
fn npm(workspace: &Workspace, count: &mut Count) -> Result<()> {
    for folder in ["loader", "tests/npm"] {
        let folder = workspace.root.join(folder);
        if has_test_script(&std::fs::read_to_string(folder.join("package.json"))?)? {
            read(command("npm", &folder).args(["test", "--silent"]), count)?;
        }
    }
    Ok(())
}

fn has_test_script(package: &str) -> Result<bool> {
    let package: serde_json::Value =
        serde_json::from_str(package).context("package.json cannot be parsed")?;
    Ok(package.pointer("/scripts/test").is_some())
}

fn read(command: &mut Command, count: &mut Count) -> Result<()> {
    run_reading(command, |line| count.read(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_with_a_test_script_are_tested() {
        assert!(has_test_script(r#"{"scripts":{"test":"node --test"}}"#).unwrap());
        assert!(!has_test_script(r#"{"scripts":{"build":"x"}}"#).unwrap());
        assert!(!has_test_script("{}").unwrap());
        assert!(has_test_script("not json").is_err());
    }
}
