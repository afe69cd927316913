//! Many connections at a time: the memory of those that are idle, and what slow readers of a large
//! file cost those who read fast. An example of the web crate opens them.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use xtask::command::output;
use xtask::terminal;
use xtask::workspace::Workspace;

use super::figures::{Goal, goal};
use super::machine::load_command;
use super::process::{Process, Site};
use super::statistics::{Estimate, Limit, median_of};

/// Rounds: the fewest that give an interval. Each has a server of its own.
const ROUNDS: usize = 6;
/// Connections that wait after a response.
const IDLE: usize = 10_000;
/// Connections that read a file of 1 MB at 80 kB/s.
const SLOW: usize = 200;
/// Requests a second of those who read fast, and for how many seconds.
const RATE: u32 = 4_000;
const SECONDS: u32 = 4;

/// The medians of the rounds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Connections {
    /// The memory of an idle connection, in bytes.
    pub(super) idle_bytes: Estimate,
    /// The 99th percentile of the response times of a file of 20 kB, in milliseconds.
    pub(super) alone: Estimate,
    /// The same beside slow readers.
    pub(super) beside_slow: Estimate,
    /// The second divided by the first.
    pub(super) ratio: Estimate,
}

impl Connections {
    /// The goals.
    pub(super) fn goals(&self) -> [Goal; 2] {
        [
            goal(
                "memory of an idle connection, of 10,000",
                self.idle_bytes.times(1.0 / 1_024.0),
                Limit::AtMost(15.0),
                "KiB",
            ),
            goal(
                "a file of 20 kB beside 200 slow readers / alone, p99",
                self.ratio,
                Limit::AtMost(1.5),
                "×",
            ),
        ]
    }

    /// The figures as a Markdown table.
    pub(super) fn markdown(&self) -> Vec<String> {
        vec![
            String::new(),
            "| connections | |".to_owned(),
            "|---|---:|".to_owned(),
            format!(
                "| bytes of memory for an idle one, of 10,000 | {} |",
                self.idle_bytes.cell(0)
            ),
            format!(
                "| p99 of a file of 20 kB at 4,000 a second, ms | {} |",
                self.alone.cell(2)
            ),
            format!(
                "| the same beside 200 slow readers, ms | {} |",
                self.beside_slow.cell(2)
            ),
        ]
    }
}

/// The figures of one round.
struct Round {
    idle_bytes: f64,
    alone: f64,
    beside_slow: f64,
}

/// A program that holds connections until this is dropped.
struct Held(Child);

impl Held {
    /// Starts it, and waits until each of its connections has had a response.
    fn open(
        workspace: &Workspace,
        kind: &str,
        of: &Site,
        count: usize,
        head: &str,
    ) -> Result<Self> {
        let mut program = load(workspace);
        program.args([kind, &of.address.to_string(), &count.to_string(), head]);
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the example paced_load cannot be started")?;
        let stdout = child.stdout.take().context("its output was not piped")?;
        let held = Self(child);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        ensure!(
            line.trim() == "ready",
            "{kind} connections did not all open"
        );
        Ok(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program that sends at a pace.
pub(super) fn load(workspace: &Workspace) -> Command {
    load_command(
        &workspace
            .binary(true, "examples/paced_load")
            .to_string_lossy(),
    )
}

/// The head of a request for a file of the game.
fn head(server: &Site, path: &str) -> String {
    let host = server.host("bench");
    format!("GET {path} HTTP/1.1\\nHost: {host}\\nAccept-Encoding: br")
}

/// Returns the 99th percentile of the response times in milliseconds, with this many requests a second.
pub(super) fn p99_at_rate(
    workspace: &Workspace,
    of: &Site,
    (rate, seconds): (u32, u32),
    head: &str,
) -> Result<f64> {
    let mut program = load(workspace);
    program.args(["rate", &of.address.to_string()]);
    program
        .args([rate.to_string(), seconds.to_string()])
        .arg(head);
    let printed = output(&mut program)?;
    let p99 = printed.trim().parse();
    p99.with_context(|| format!("paced_load printed {printed}"))
}

/// Measures all of it.
pub(super) fn measure(workspace: &Workspace, folder: &Path) -> Result<Connections> {
    let mut rounds = Vec::new();
    for number in 1..=ROUNDS {
        terminal::note(&format!("bench: connections, round {number} of {ROUNDS}"));
        let folder = folder.join(format!("connections-{number}"));
        std::fs::create_dir_all(&folder)?;
        let program = workspace.binary(true, "examples/hosted_file");
        let server = Process::start(Command::new(program).arg(&folder))?;
        rounds.push(round(workspace, &server)?);
    }
    Ok(Connections {
        idle_bytes: median_of(&rounds, |round| round.idle_bytes),
        alone: median_of(&rounds, |round| round.alone),
        beside_slow: median_of(&rounds, |round| round.beside_slow),
        ratio: median_of(&rounds, |round| round.beside_slow / round.alone),
    })
}

fn round(workspace: &Workspace, server: &Process) -> Result<Round> {
    let file = head(server, "/file.js");
    let p99 = || p99_at_rate(workspace, server, (RATE, SECONDS), &file);
    // What the first requests allocate once is not memory of connections.
    p99()?;
    let before = server.memory()?;
    let held = Held::open(workspace, "idle", server, IDLE, &file)?;
    let grown = server.memory()?.saturating_sub(before);
    drop(held);
    let alone = p99()?;
    let slow = Held::open(workspace, "slow", server, SLOW, &head(server, "/large.bin"))?;
    let beside_slow = p99()?;
    drop(slow);
    Ok(Round {
        idle_bytes: grown as f64 * 1_024.0 / IDLE as f64,
        alone,
        beside_slow,
    })
}
