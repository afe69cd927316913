//! Four times as many tokens as the server can answer: what the admitted requests wait, how many are
//! answered, and when all is as before.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use xtask::command::output;
use xtask::terminal;
use xtask::workspace::Workspace;

use super::connections::{load, p99_at_rate};
use super::contenders::{self, Contenders, Settings};
use super::figures::{Goal, goal};
use super::process::Process;
use super::statistics::{Estimate, Limit, median_of};
use super::wrk::{self, Load};

/// Rounds: the fewest that give an interval.
const ROUNDS: usize = 6;
/// How many connections send, for how many seconds, and how many times the capacity.
const CONNECTIONS: u32 = 2_000;
const SECONDS: u32 = 10;
const TIMES: f64 = 4.0;
/// Seconds in which all must be as before.
const AFTER: f64 = 5.0;

/// The medians of the rounds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Overload {
    /// Tokens a second that were answered, divided by those without overload.
    pub(super) goodput: Estimate,
    /// The 99th percentile of the admitted requests, divided by that at half load.
    pub(super) p99_ratio: Estimate,
    /// Refused requests a second.
    pub(super) refused: Estimate,
    /// The same 99th percentile five seconds after the overload, divided by that before.
    pub(super) after: Estimate,
    /// The growth of the server's memory, in kilobytes.
    pub(super) grown_kilobytes: Estimate,
}

impl Overload {
    /// The goals.
    pub(super) fn goals(&self) -> [Goal; 4] {
        use Limit::{AtLeast, AtMost};
        [
            goal(
                "tokens at 4 × capacity / capacity",
                self.goodput,
                AtLeast(0.8),
                "×",
            ),
            goal(
                "admitted tokens at 4 × capacity / half load, p99",
                self.p99_ratio,
                AtMost(5.0),
                "×",
            ),
            goal(
                "tokens 5 s after the overload / before, p99",
                self.after,
                AtMost(2.0),
                "×",
            ),
            goal(
                "memory for the overload",
                self.grown_kilobytes.times(1.0 / 1_024.0),
                AtMost(128.0),
                "MiB",
            ),
        ]
    }

    /// The figures as a Markdown table.
    pub(super) fn markdown(&self) -> Vec<String> {
        let row = |name: &str, figure: Estimate, decimals| {
            format!("| {name} | {} |", figure.cell(decimals))
        };
        vec![
            String::new(),
            "| four times as many tokens as the server can answer | |".to_owned(),
            "|---|---:|".to_owned(),
            row("answered / capacity", self.goodput, 2),
            row("refused a second", self.refused, 0),
            row("p99 of the admitted / at half load", self.p99_ratio, 2),
            row(
                "p99 at half load, five seconds later / before",
                self.after,
                2,
            ),
            row("memory, MiB", self.grown_kilobytes.times(1.0 / 1_024.0), 1),
        ]
    }
}

/// The figures of one round.
struct Round {
    goodput: f64,
    p99_ratio: f64,
    refused: f64,
    after: f64,
    grown_kilobytes: f64,
}

/// Measures all of it, each round with a server of its own.
pub(super) fn measure(workspace: &Workspace, folder: &Path) -> Result<Overload> {
    let mut rounds = Vec::new();
    for number in 1..=ROUNDS {
        terminal::note(&format!("bench: overload, round {number} of {ROUNDS}"));
        let folder = folder.join(format!("overload-{number}"));
        let settings = Settings {
            overload: true,
            ..Settings::default()
        };
        let server = contenders::server(workspace, &folder, settings)?;
        rounds.push(round(workspace, &folder, &server)?);
    }
    Ok(Overload {
        goodput: median_of(&rounds, |round| round.goodput),
        p99_ratio: median_of(&rounds, |round| round.p99_ratio),
        refused: median_of(&rounds, |round| round.refused),
        after: median_of(&rounds, |round| round.after),
        grown_kilobytes: median_of(&rounds, |round| round.grown_kilobytes),
    })
}

fn round(workspace: &Workspace, folder: &Path, server: &Process) -> Result<Round> {
    let cookie = contenders::visit(server)?;
    let head = Contenders::head(server, &cookie);
    let script = contenders::token_script(server, Some(&cookie));
    let tokens: Load = contenders::load(folder, "tokens", server, "tokens", "/token", &script)?;
    let capacity = wrk::run(&tokens)?.per_second;
    let half = ((capacity / 2.0) as u32, SECONDS / 2);
    let idle = p99_at_rate(workspace, server, half, &head)?;
    let before = server.memory()?;
    let mut flood = load(workspace);
    flood.args([
        "flood",
        &server.address.to_string(),
        &CONNECTIONS.to_string(),
    ]);
    let rate = (capacity * TIMES) as u32;
    flood
        .args([rate.to_string(), SECONDS.to_string()])
        .arg(&head);
    let printed = output(&mut flood)?;
    let figures: Vec<f64> = printed
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| format!("paced_load printed {printed}"))?;
    let [answered, refused, p99] = figures[..] else {
        anyhow::bail!("paced_load printed {printed}");
    };
    let grown = server.memory()?.saturating_sub(before);
    // The whole of the time in which the server may recover is within this measurement's warm-up.
    #[expect(
        clippy::disallowed_methods,
        reason = "the server's recovery is measured"
    )]
    std::thread::sleep(std::time::Duration::from_secs_f64(AFTER));
    let after = p99_at_rate(workspace, server, half, &head)?;
    Ok(Round {
        goodput: answered / capacity,
        p99_ratio: p99 / idle,
        refused,
        after: after / idle,
        grown_kilobytes: grown as f64,
    })
}
