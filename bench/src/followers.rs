//! How much 200 readers of one log stream slow down its writers: an example of the tests' crate
//! sends 5,000 records a second, first without readers and then with them.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use xtask::command::output;
use xtask::terminal;
use xtask::workspace::Workspace;

use super::statistics::{Estimate, median_of};

/// Records in each of the pages' requests, as the example sends them.
const RECORDS: u64 = 50;
/// Runs of the example: the fewest that give an interval.
const ROUNDS: usize = 6;

/// What was measured.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Followers {
    /// The 99th percentile of the pages' requests without readers, in milliseconds.
    pub(super) alone: Estimate,
    /// The same with 200 readers.
    pub(super) followed: Estimate,
    /// The second divided by the first.
    pub(super) ratio: Estimate,
    /// The growth of the server's memory, in kilobytes.
    pub(super) grown_kilobytes: Estimate,
    /// Records that a reader got twice or in the wrong order, in all runs.
    pub(super) wrong: u64,
}

/// What the example prints.
#[derive(Debug, Deserialize)]
struct Printed {
    readers: u64,
    pages: Pages,
    server_kilobytes: Kilobytes,
    got: Got,
    reader_of_nothing_cut_off: bool,
}

#[derive(Debug, Deserialize)]
struct Pages {
    nobody_follows: Waits,
    followed: Waits,
}

#[derive(Debug, Deserialize)]
struct Waits {
    requests: u64,
    taken: u64,
    p99: f64,
}

#[derive(Debug, Deserialize)]
struct Kilobytes {
    before: u64,
    most: u64,
}

#[derive(Debug, Deserialize)]
struct Got {
    records_read: u64,
    records_left_out: u64,
    repeated_or_out_of_order: u64,
}

impl Printed {
    /// Rejects the figures of a run in which too little happened.
    fn check(&self) -> Result<()> {
        let Pages {
            nobody_follows,
            followed,
        } = &self.pages;
        for part in [nobody_follows, followed] {
            ensure!(
                part.taken == part.requests,
                "the pages were refused: {part:?}"
            );
        }
        let told = self.got.records_read + self.got.records_left_out;
        let sent = self.readers * followed.taken * RECORDS;
        ensure!(
            told * 20 >= sent * 19,
            "of {sent} records the readers were told {told}"
        );
        ensure!(
            self.reader_of_nothing_cut_off,
            "who reads nothing was not cut off"
        );
        Ok(())
    }
}

/// Measures the followers, which takes more than a minute each time.
pub(super) fn measure(workspace: &Workspace) -> Result<Followers> {
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        terminal::note(&format!(
            "bench: 200 readers of a log stream, round {round} of {ROUNDS}"
        ));
        rounds.push(run(workspace)?);
    }
    Ok(Followers {
        alone: median_of(&rounds, |round| round.pages.nobody_follows.p99),
        followed: median_of(&rounds, |round| round.pages.followed.p99),
        ratio: median_of(&rounds, |round| {
            round.pages.followed.p99 / round.pages.nobody_follows.p99
        }),
        grown_kilobytes: median_of(&rounds, |round| {
            let Kilobytes { before, most } = round.server_kilobytes;
            most.saturating_sub(before) as f64
        }),
        wrong: rounds
            .iter()
            .map(|round| round.got.repeated_or_out_of_order)
            .sum(),
    })
}

fn run(workspace: &Workspace) -> Result<Printed> {
    let program = workspace.binary(true, "examples/followers");
    let printed = output(&mut Command::new(program))?;
    let printed: Printed =
        serde_json::from_str(&printed).context("what the readers' example printed")?;
    printed.check()?;
    Ok(printed)
}
