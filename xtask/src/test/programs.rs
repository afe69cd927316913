//! The test programs: all are compiled together, so that every dependency is compiled with one set
//! of features, and then run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use super::results::Results;
use crate::command::{cargo, describe, read_lines, run as run_command};
use crate::drivers;
use crate::workspace::{FEATURES, Workspace};

/// The crate whose tests use browsers and servers; all others are native.
const END_TO_END: &str = "platform-tests";

/// The program with its own runner, which lists each test once for each browser and measures the
/// time itself.
const OWN_RUNNER: &str = "browsers";

/// The end-to-end programs that run a second time against several nodes, because they are quick.
/// The variable `TESTS_NODES` runs any other one so.
const ON_NODES: [&str; 3] = ["accounts", "command_line", "log_stream"];

/// The tests of the program with browsers that run a second time against several nodes: what players
/// and developers do one after the other.
const JOURNEYS: [&str; 2] = [
    "a_guest_signs_in_and_is_the_same_player_on_a_second_device_in_chromium",
    "a_game_is_deployed_played_counted_and_watched_in_chromium",
];

/// How many nodes these are.
const NODES: &str = "3";

/// A compiled program of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// The package and the target, such as `platform-server it`.
    pub(super) name: String,
    /// The package's folder, which is its working directory under cargo.
    folder: PathBuf,
    /// The program.
    file: PathBuf,
    /// Whether it belongs to the end-to-end tests.
    pub(super) is_end_to_end: bool,
    /// Whether it is the program of the browser tests.
    pub(super) has_own_runner: bool,
    /// Whether its tests run against several nodes instead of one server.
    pub(super) has_nodes: bool,
    /// The names of the tests that are run; all if there are none.
    only: &'static [&'static str],
}

/// Which tests of a program are run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which<'a> {
    /// All of them.
    All,
    /// Those whose names contain this.
    Like(&'a str),
    /// Those with exactly these names.
    Named(&'a [String]),
}

impl<'a> Which<'a> {
    /// The tests that have this part in their names; without one those with these names, and all
    /// if there are none.
    pub(super) fn of(part: Option<&'a str>, names: &'a [String]) -> Self {
        match part {
            Some(part) => Self::Like(part),
            None if names.is_empty() => Self::All,
            None => Self::Named(names),
        }
    }

    /// Whether the test with this name is one of them.
    fn has(self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Like(part) => name.contains(part),
            Self::Named(names) => names.iter().any(|one| one == name),
        }
    }
}

/// Compiles every test program of the workspace, and every program that the
/// tests start.
///
/// # Errors
/// Something does not compile; the compiler has printed what.
pub(super) fn compile(workspace: &Workspace) -> Result<Vec<Program>> {
    let arguments = [
        "test",
        "--workspace",
        "--features",
        FEATURES,
        "--tests",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ];
    let mut programs = Vec::new();
    read_lines(&mut cargo(&workspace.root, &arguments), |line| {
        programs.extend(program(line));
    })?;
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    // Cargo builds a package's programs for tests of the same package alone.
    let arguments = ["build", "--workspace", "--features", FEATURES];
    let started = ["--bin", "dist", "--bin", "platform-template-backend"];
    run_command(&mut cargo(
        &workspace.root,
        &[&arguments[..], &started].concat(),
    ))?;
    Ok(programs)
}

/// The test program in a message of cargo, if there is one.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let text = |at: &str| message.pointer(at).and_then(Value::as_str);
    if text("/reason") != Some("compiler-artifact")
        || message.pointer("/profile/test") != Some(&Value::Bool(true))
    {
        return None;
    }
    let file = PathBuf::from(text("/executable")?);
    let folder = Path::new(text("/manifest_path")?).parent()?.to_owned();
    // `path+file:///folder#name@version`; without the name if the folder has the same one.
    let id = text("/package_id")?;
    let (folder_url, fragment) = id.rsplit_once('#')?;
    let package = match fragment.split_once('@') {
        Some((package, _)) => package,
        None => folder_url.rsplit('/').next()?,
    };
    let target = text("/target/name")?;
    let kind = message
        .pointer("/target/kind/0")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let name = match kind {
        "test" => format!("{package} {target}"),
        "bin" => format!("{package} program {target}"),
        _ => format!("{package} library"),
    };
    let is_end_to_end = package == END_TO_END;
    Some(Program {
        has_own_runner: is_end_to_end && target == OWN_RUNNER,
        name,
        folder,
        file,
        is_end_to_end,
        has_nodes: false,
        only: &[],
    })
}

impl Program {
    /// Returns the run of the same program against several nodes, if it is one of those.
    pub(super) fn on_nodes(&self) -> Option<Self> {
        let target = self.name.strip_prefix(END_TO_END)?.trim_start();
        let only: &[&str] = if target == OWN_RUNNER {
            &JOURNEYS
        } else if ON_NODES.contains(&target) {
            &[]
        } else {
            return None;
        };
        Some(Self {
            name: format!("{}, {NODES} nodes", self.name),
            has_nodes: true,
            only,
            ..self.clone()
        })
    }

    /// Runs it, shows its output, and returns the result of each test.
    ///
    /// # Errors
    /// It cannot be started, or its exit status means that a test failed.
    pub(super) fn run(
        &self,
        workspace: &Workspace,
        which: Which<'_>,
        results: &mut Results,
    ) -> Result<()> {
        let mut one_by_one = |names: &mut dyn Iterator<Item = &str>| {
            let mut outcome = Ok(());
            for name in names {
                let one = self.run_with(workspace, &["--exact", name], results);
                outcome = outcome.and(one);
            }
            outcome
        };
        match which {
            _ if !self.only.is_empty() => {
                let mut chosen = self.only.iter().copied().filter(|name| which.has(name));
                one_by_one(&mut chosen)
            }
            // This runner takes one name at a time.
            Which::Named(names) if self.has_own_runner => {
                one_by_one(&mut names.iter().map(String::as_str))
            }
            Which::Named(names) => {
                let mut arguments = vec!["--exact"];
                arguments.extend(names.iter().map(String::as_str));
                self.run_with(workspace, &arguments, results)
            }
            Which::Like(part) => self.run_with(workspace, &[part], results),
            Which::All => self.run_with(workspace, &[], results),
        }
    }

    fn run_with(
        &self,
        workspace: &Workspace,
        arguments: &[&str],
        results: &mut Results,
    ) -> Result<()> {
        let mut command = self.command(workspace)?;
        command.args(arguments);
        read_lines(&mut command, |line| results.take(line))
    }

    /// The program with the environment that cargo would set.
    fn command(&self, workspace: &Workspace) -> Result<Command> {
        let mut command = crate::command::command(&self.file, &self.folder);
        command.env("CARGO_MANIFEST_DIR", &self.folder);
        if !self.has_own_runner {
            // The flag that shows the time of each test is not stable yet. The toolchain is pinned,
            // so the flag works until that changes.
            command.env("RUSTC_BOOTSTRAP", "1");
            command.args(["-Zunstable-options", "--report-time"]);
        }
        if !self.is_end_to_end {
            return Ok(command);
        }
        // Each test has its own browser and its own server. The programs beside the one with the
        // browsers run one test at a time: more would leave too little for tests of speed.
        let at_a_time = if self.has_own_runner { 2 } else { 1 };
        command.arg(format!("--test-threads={at_a_time}"));
        // A test's panic has a message and a place; the backtrace is only the runner's own frames
        // and would hide them.
        command.env("RUST_BACKTRACE", "0");
        command.env("TESTS_PROGRAMS", workspace.target.join("debug"));
        if self.has_nodes {
            command.env("TESTS_NODES", NODES);
        }
        drivers::add_to(command, workspace)
    }

    /// How a developer would run this program alone.
    pub(super) fn by_hand(&self, workspace: &Workspace) -> String {
        self.command(workspace)
            .map(|command| describe(&command))
            .unwrap_or_default()
    }
}

#[cfg(test)]
impl Program {
    /// A program of the end-to-end tests.
    pub(super) fn example(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            folder: PathBuf::new(),
            file: PathBuf::new(),
            is_end_to_end: true,
            has_own_runner: name == OWN_RUNNER,
            has_nodes: false,
            only: &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journeys_are_tests_in_chromium() {
        let source = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/tests/browsers/journey.rs"
        );
        let source = std::fs::read_to_string(source).unwrap();
        for journey in JOURNEYS {
            let name = journey.strip_suffix("_in_chromium").unwrap();
            assert!(
                source.contains(&format!("async fn {name}(stage: Stage)")),
                "{name}"
            );
        }
    }

    fn message(id: &str, kind: &str, target: &str, test: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "package_id": id,
            "manifest_path": "/work/some/Cargo.toml",
            "target": { "kind": [kind], "name": target },
            "profile": { "test": test },
            "executable": "/target/debug/deps/some-0123",
        })
        .to_string()
    }

    fn name(id: &str, kind: &str, target: &str) -> Option<String> {
        program(&message(id, kind, target, true)).map(|program| program.name)
    }

    #[test]
    fn a_program_is_named_after_its_package_and_target() {
        let server = "path+file:///work/server#platform-server@0.1.0";
        assert_eq!(
            name(server, "test", "it").as_deref(),
            Some("platform-server it")
        );
        assert_eq!(
            name(server, "lib", "platform_server").as_deref(),
            Some("platform-server library")
        );
        let xtask = "path+file:///work/xtask#0.1.0";
        assert_eq!(
            name(xtask, "bin", "xtask").as_deref(),
            Some("xtask program xtask")
        );
    }

    #[test]
    fn quick_end_to_end_programs_and_journeys_run_on_nodes_as_well() {
        let id = "path+file:///w/tests#platform-tests@0.1.0";
        let one = |target: &str| program(&message(id, "test", target, true)).unwrap();
        let again = one("accounts").on_nodes().unwrap();
        assert_eq!(again.name, "platform-tests accounts, 3 nodes");
        assert!(again.has_nodes && !one("accounts").has_nodes);
        assert!(again.only.is_empty());
        assert_eq!(one("browsers").on_nodes().unwrap().only, JOURNEYS);
        assert_eq!(one("deploys").on_nodes(), None);
        let server = "path+file:///w/server#platform-server@0.1.0";
        let native = program(&message(server, "test", "accounts", true)).unwrap();
        assert_eq!(native.on_nodes(), None);
    }

    #[test]
    fn what_is_no_test_program_is_left_out() {
        let id = "path+file:///work/server#platform-server@0.1.0";
        assert_eq!(program(&message(id, "bin", "platform-server", false)), None);
        assert_eq!(
            program(r#"{"reason":"build-finished","success":true}"#),
            None
        );
        assert_eq!(program("no message"), None);
    }

    #[test]
    fn only_the_end_to_end_tests_have_browsers() {
        let one = |id: &str, target: &str| program(&message(id, "test", target, true)).unwrap();
        let browsers = one("path+file:///w/tests#platform-tests@0.1.0", "browsers");
        assert!(browsers.is_end_to_end && browsers.has_own_runner);
        let accounts = one("path+file:///w/tests#platform-tests@0.1.0", "accounts");
        assert!(accounts.is_end_to_end && !accounts.has_own_runner);
        let it = one("path+file:///w/server#platform-server@0.1.0", "it");
        assert!(!it.is_end_to_end);
    }
}
