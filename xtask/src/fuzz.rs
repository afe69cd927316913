//! Fuzzing: builds the targets of `fuzz/` with the compiler's coverage and libFuzzer, and runs each for
//! some time. It needs no nightly compiler: the coverage pass is part of the stable one.
//!
//! The folders of a target `name`: `fuzz/corpus/name` has inputs that are kept in the repository;
//! `target/fuzz/corpus/name` has those that earlier runs found; `target/fuzz/findings/name` has inputs
//! that made it fail.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::command::{cargo, command, output, run as run_command};
use crate::setup::{self, Purpose};
use crate::terminal;
use crate::workspace::Workspace;

/// How long each target runs in a test run, in seconds. Two run at a time.
const IN_TESTS: u64 = 5;
/// Targets that run at a time.
const AT_A_TIME: usize = 2;
/// The longest input, in bytes, the seconds that one may take, and the megabytes that a target may
/// use.
const LIMITS: [&str; 3] = ["-max_len=65536", "-timeout=10", "-rss_limit_mb=2048"];

/// What makes the compiler count which code runs, and compare what is compared.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// The parts of `fuzz/Cargo.toml` that are read.
#[derive(Deserialize)]
struct Manifest {
    bin: Vec<Binary>,
}

#[derive(Deserialize)]
struct Binary {
    name: String,
}

/// The targets, ready to run.
struct Targets<'a> {
    workspace: &'a Workspace,
    names: Vec<String>,
    /// The folder of the programs.
    programs: PathBuf,
}

/// Runs one target, or all of them, for `seconds` each. With `input`, runs the target once with this
/// file only.
pub(crate) fn run(
    workspace: &Workspace,
    target: Option<&str>,
    seconds: u64,
    input: Option<&Path>,
) -> Result<ExitCode> {
    setup::run(workspace, Purpose::Fuzz)?;
    let targets = Targets::build(workspace, target, &[])?;
    if let Some(input) = input {
        let name = targets.names.first().context("there is no target")?;
        let mut program = targets.program(name);
        run_command(program.args(LIMITS).arg(input))?;
        return Ok(ExitCode::SUCCESS);
    }
    targets.run_all(seconds)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs all targets for a short time, as a part of the tests. Other output is shown meanwhile, so the
/// compiler prints only what is wrong.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    Targets::build(workspace, None, &["--quiet"])?.run_all(IN_TESTS)
}

impl<'a> Targets<'a> {
    /// Builds the programs of all targets, or of one, with `more` arguments for cargo.
    fn build(workspace: &'a Workspace, only: Option<&str>, more: &[&str]) -> Result<Self> {
        let manifest = workspace.root.join("fuzz/Cargo.toml");
        let text = fs::read_to_string(&manifest)
            .with_context(|| format!("cannot read {}", manifest.display()))?;
        let names = select(names(&text)?, only)?;
        let host = host()?;
        let folder = workspace.target.join("fuzz");
        let manifest = manifest.to_string_lossy();
        let mut arguments = vec![
            "build",
            "--locked",
            "--release",
            "--manifest-path",
            &manifest,
        ];
        // With a target, the flags are not for build scripts and macros.
        arguments.extend(["--target", &host]);
        arguments.extend(more);
        for name in &names {
            arguments.extend(["--bin", name]);
        }
        let mut build = cargo(&workspace.root, &arguments);
        build
            .env("CARGO_TARGET_DIR", &folder)
            .env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\u{1f}"));
        run_command(&mut build)?;
        Ok(Self {
            workspace,
            names,
            programs: folder.join(host).join("release"),
        })
    }

    fn program(&self, name: &str) -> Command {
        command(self.programs.join(name), &self.workspace.root)
    }

    /// Runs all of them, some at a time, and fails with the names of those that found something.
    fn run_all(&self, seconds: u64) -> Result<()> {
        let mut failed = Vec::new();
        for names in self.names.chunks(AT_A_TIME) {
            terminal::note(&format!("fuzzing {} for {seconds} s", names.join(" and ")));
            let started = names.iter().map(|name| self.start(name, seconds));
            let started = started.collect::<Result<Vec<_>>>()?;
            for mut target in started {
                if !target.child.wait()?.success() {
                    terminal::note(&tail(&target.log));
                    failed.push(target.name.clone());
                } else if let Some(line) = summary(&target.log) {
                    terminal::note(&format!("{}: {line}", target.name));
                }
            }
        }
        if failed.is_empty() {
            return Ok(());
        }
        bail!(
            "{} found an input that fails, in target/fuzz/findings; \
             `cargo xtask fuzz <target> --input <file>` runs it again",
            failed.join(" and ")
        )
    }

    fn start(&self, name: &str, seconds: u64) -> Result<Started> {
        let folder = self.workspace.target.join("fuzz");
        let found = folder.join("corpus").join(name);
        let findings = folder.join("findings").join(name);
        for folder in [&found, &findings] {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let log = folder.join(format!("{name}.log"));
        let mut program = self.program(name);
        program
            .args(LIMITS)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", findings.display()))
            .arg("-print_final_stats=1")
            .arg(found)
            .arg(self.workspace.root.join("fuzz/corpus").join(name))
            .stdout(Stdio::null())
            .stderr(File::create(&log)?);
        let child = program
            .spawn()
            .with_context(|| format!("the fuzz target {name} cannot be started"))?;
        Ok(Started {
            name: name.to_owned(),
            log,
            child,
        })
    }
}

/// A target that runs; it ends when this is dropped.
struct Started {
    name: String,
    /// What it writes.
    log: PathBuf,
    child: Child,
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The names of the targets in a manifest.
fn names(manifest: &str) -> Result<Vec<String>> {
    let manifest: Manifest = toml::from_str(manifest).context("fuzz/Cargo.toml cannot be read")?;
    Ok(manifest.bin.into_iter().map(|binary| binary.name).collect())
}

/// All of them, or the one with this name.
fn select(mut names: Vec<String>, only: Option<&str>) -> Result<Vec<String>> {
    if let Some(only) = only {
        let all = names.join(", ");
        names.retain(|name| name == only);
        ensure!(!names.is_empty(), "there is no fuzz target `{only}`: {all}");
    }
    Ok(names)
}

/// The target triple of this machine.
fn host() -> Result<String> {
    let version = output(command("rustc", Path::new("/")).arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host
        .context("rustc does not say for which host it is")?
        .to_owned())
}

/// How many inputs were tried, as libFuzzer says at its end.
fn summary(log: &Path) -> Option<String> {
    let text = fs::read_to_string(log).ok()?;
    let line = text.lines().rev().find(|line| line.starts_with("Done "))?;
    Some(line.to_owned())
}

/// The last lines of a log.
fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(40);
    lines[from..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_source_and_inputs_to_begin_with() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        let names = names(&fs::read_to_string(root.join("Cargo.toml")).unwrap()).unwrap();
        assert!(names.len() >= 14, "{names:?}");
        for name in names {
            assert!(root.join(format!("targets/{name}.rs")).is_file(), "{name}");
            let corpus = fs::read_dir(root.join("corpus").join(&name)).unwrap();
            assert!(corpus.count() > 0, "{name}");
        }
    }

    #[test]
    fn an_unknown_target_is_refused_with_the_names_of_all() {
        let names = || vec!["one".to_owned(), "two".to_owned()];
        assert_eq!(select(names(), Some("two")).unwrap(), ["two"]);
        assert_eq!(select(names(), None).unwrap().len(), 2);
        let error = select(names(), Some("three")).unwrap_err().to_string();
        assert_eq!(error, "there is no fuzz target `three`: one, two");
    }
}
