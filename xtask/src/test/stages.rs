//! The tasks of a run, except the test programs.

use std::process::Command;

use anyhow::Result;

use super::programs::{Program, Which};
use super::results::Results;
use super::{Stage, supply_chain};
use crate::command::{cargo, read_lines};
use crate::setup::Tool;
use crate::workspace::{FEATURES, Workspace};
use crate::{build, drivers, fuzz, tidy};

/// The check that compiles the whole workspace.
const CLIPPY: &str = "clippy";

/// One task of a run.
pub(super) struct Task {
    /// The stage that it belongs to.
    pub(super) stage: Stage,
    /// Its name, for people and for its record.
    pub(super) name: String,
    /// How to do it.
    pub(super) work: Work,
    /// Whether it has only the time that native tests leave. It is a compiler, which they would wait for.
    pub(super) is_in_background: bool,
}

/// A check returns an error if something is wrong.
type Check = fn(&Workspace) -> Result<()>;

/// How a task is done.
pub(super) enum Work {
    /// Passes or fails as a whole.
    Check(Check),
    /// Tests that are not one program.
    Counted(fn(&Workspace, Which<'_>, &mut Results) -> Result<()>),
    /// A program of tests.
    Program(Program),
}

impl Task {
    /// The task of running a program.
    pub(super) fn of(program: Program) -> Self {
        Self {
            stage: if program.is_end_to_end {
                Stage::E2e
            } else {
                Stage::Native
            },
            name: program.name.clone(),
            work: Work::Program(program),
            is_in_background: false,
        }
    }

    /// The name of the stage. Each check has its own line.
    pub(super) fn stage_name(&self) -> &'static str {
        if let Work::Program(program) = &self.work
            && program.has_nodes
        {
            return "end to end, several nodes";
        }
        match (self.stage, &*self.name) {
            (Stage::Checks, "formatting") => "formatting",
            (Stage::Checks, "rules") => "rules",
            (Stage::Checks, "JavaScript") => "JavaScript",
            (Stage::Checks, CLIPPY) => CLIPPY,
            (Stage::Checks, _) => "supply chain",
            (Stage::Native, _) => "native tests",
            (Stage::Wasm, _) => "runtime in browsers",
            (Stage::E2e, _) => "end to end",
        }
    }
}

/// The checks in order: the quick ones first.
pub(super) fn checks() -> Vec<Task> {
    let checks: [(&str, Check); 5] = [
        ("formatting", tidy::format),
        ("rules", tidy::rules),
        ("JavaScript", tidy::javascript::check),
        ("supply chain", supply_chain::check),
        (CLIPPY, tidy::lints_quietly),
    ];
    let task = |(name, check): (&str, _)| Task {
        stage: Stage::Checks,
        name: name.to_owned(),
        work: Work::Check(check),
        is_in_background: name == CLIPPY,
    };
    checks.into_iter().map(task).collect()
}

/// Tests that are not programs of their own.
pub(super) fn others() -> Vec<Task> {
    let task = |stage, name: &str, tests| Task {
        stage,
        name: name.to_owned(),
        work: Work::Counted(tests),
        is_in_background: false,
    };
    let fuzzing = Task {
        stage: Stage::Native,
        name: "fuzz targets".to_owned(),
        work: Work::Check(fuzz::test),
        is_in_background: true,
    };
    vec![
        fuzzing,
        task(Stage::Native, "examples in the documentation", examples),
        task(Stage::Wasm, "runtime in Chromium", chromium),
        task(Stage::Wasm, "runtime in Firefox", firefox),
    ]
}

/// Builds the runtime, and fails over its size budget.
///
/// # Errors
/// It does not build, or is too large.
pub(super) fn build_within_budget(workspace: &Workspace) -> Result<()> {
    match build::runtime(workspace)?.over_budget() {
        None => Ok(()),
        Some(sentence) => anyhow::bail!(sentence),
    }
}

fn examples(workspace: &Workspace, which: Which<'_>, results: &mut Results) -> Result<()> {
    // With the features of the test programs, or all of it is compiled once more.
    let arguments = ["test", "--workspace", "--features", FEATURES, "--doc"];
    read(cargo(&workspace.root, &arguments), which, results)
}

fn chromium(workspace: &Workspace, which: Which<'_>, results: &mut Results) -> Result<()> {
    read(in_browser(workspace, "GECKODRIVER")?, which, results)
}

fn firefox(workspace: &Workspace, which: Which<'_>, results: &mut Results) -> Result<()> {
    read(in_browser(workspace, "CHROMEDRIVER")?, which, results)
}

/// The module's tests in a browser. wasm-bindgen's runner uses the browser whose driver is set in
/// the environment, so `other` must not be set.
fn in_browser(workspace: &Workspace, other: &str) -> Result<Command> {
    let runner = Tool::WasmBindgen
        .bin(workspace)?
        .join("wasm-bindgen-test-runner");
    let mut command = cargo(
        &workspace.root,
        &[
            "test",
            "--package",
            "platform-runtime",
            "--lib",
            "--target",
            "wasm32-unknown-unknown",
        ],
    );
    command
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", runner)
        .env("WASM_BINDGEN_TEST_ONLY_WEB", "1");
    let mut command = drivers::add_to(command, workspace)?;
    command.env_remove(other);
    Ok(command)
}

/// Runs cargo with the names of the selected tests, shows its output and reads it.
fn read(mut command: Command, which: Which<'_>, results: &mut Results) -> Result<()> {
    // The runner in the browser takes only one filter, so failed tests run together with all
    // others.
    if let Which::Like(part) = which {
        command.args(["--", part]);
    }
    read_lines(&mut command, |line| results.take(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_has_a_name_of_its_own() {
        let mut names: Vec<String> = checks()
            .into_iter()
            .chain(others())
            .map(|task| task.name)
            .collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
