//! The rules that the compiler does not check. Each is a pure function from a
//! file's path and text to what is wrong with it; what other programs check is in
//! [`javascript`], [`format`] and [`lints`].

mod arrows;
mod evidence;
mod files;
mod graph;
pub(crate) mod javascript;
mod language;
mod layers;
mod manifests;
mod markdown;
mod ports;
mod source;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::command::{cargo, run as run_command};
use crate::setup::{self, Purpose};
use crate::terminal;
use crate::workspace::{FEATURES, Workspace};

/// One thing that is wrong, at one place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file, from the workspace's root.
    pub(crate) path: String,
    /// The line, from 1; 0 for the file as a whole.
    pub(crate) line: usize,
    /// What is wrong and which rule says so, a sentence.
    pub(crate) sentence: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.sentence),
            line => write!(f, "{}:{line}: {}", self.path, self.sentence),
        }
    }
}

/// Says how the server's slices import each other, and draws it.
pub(crate) fn graph(workspace: &Workspace, picture: Option<&Path>) -> Result<ExitCode> {
    graph::run(workspace, picture)?;
    Ok(ExitCode::SUCCESS)
}

/// Checks formatting, lints and rules, all of them, whatever fails first.
/// With `fix`, it first formats everything.
pub(crate) fn run(workspace: &Workspace, fix: bool) -> Result<ExitCode> {
    setup::run(workspace, Purpose::Tidy)?;
    if fix {
        language::fix(&workspace.root)?;
        run_command(&mut cargo(&workspace.root, &["fmt", "--all"]))?;
        javascript::fix(workspace)?;
    }
    let outcomes = [
        rules(workspace),
        format(workspace),
        javascript::check(workspace),
        lints(workspace),
    ];
    let mut failed = false;
    for error in outcomes.into_iter().filter_map(Result::err) {
        terminal::note(&format!("tidy: {error:#}"));
        failed = true;
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Checks that rustfmt would change nothing.
pub(crate) fn format(workspace: &Workspace) -> Result<()> {
    run_command(&mut cargo(&workspace.root, &["fmt", "--all", "--check"]))
}

/// Checks that clippy finds nothing.
pub(crate) fn lints(workspace: &Workspace) -> Result<()> {
    run_command(&mut clippy(workspace, &[]))
}

/// Lints as [`lints`] does, and prints only what is wrong.
pub(crate) fn lints_quietly(workspace: &Workspace) -> Result<()> {
    run_command(&mut clippy(workspace, &["--quiet"]))
}

fn clippy(workspace: &Workspace, more: &[&str]) -> Command {
    let mut clippy = cargo(&workspace.root, &["clippy"]);
    clippy.args(more);
    clippy.args(["--workspace", "--features", FEATURES, "--all-targets"]);
    clippy.args(["--", "--deny", "warnings"]);
    clippy
}

/// Checks the rules of this module.
pub(crate) fn rules(workspace: &Workspace) -> Result<()> {
    let mut findings = Vec::new();
    let paths = files::list(&workspace.root)?;
    let mut usage = language::Usage::new(&paths);
    for path in &paths {
        let Some(text) = files::read(&workspace.root, path)? else {
            continue;
        };
        usage.read(path, &text);
        findings.extend(source::module_docs(path, &text));
        findings.extend(source::forbidden_words(path, &text));
        findings.extend(ports::by_luck(path, &text));
        findings.extend(arrows::check(path, &text));
        findings.extend(layers::check(path, &text));
        findings.extend(manifests::check(path, &text)?);
        findings.extend(manifests::repeated_version(
            path,
            &text,
            &workspace.wasm_bindgen_version()?,
        ));
        findings.extend(markdown::commands(path, &text, &crate::task_names()));
        findings.extend(markdown::links(path, &text, |file| {
            workspace.root.join(file).exists()
        }));
        findings.extend(evidence::rows(path, &text));
        findings.extend(evidence::named_tests(path, &text, |file| {
            std::fs::read_to_string(workspace.root.join(file)).ok()
        }));
    }
    findings.extend(usage.check(&workspace.root)?);
    for finding in &findings {
        terminal::note(&finding.to_string());
    }
    anyhow::ensure!(findings.is_empty(), "{} rules are broken", findings.len());
    terminal::note(&format!("tidy: {} files keep the rules", paths.len()));
    Ok(())
}
