//! How much 200 readers of one log stream slow down its writers: an example of the tests' crate
//! sends 5,000 records a second, first without readers and then with them.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::command::output;
use crate::terminal;
use crate::workspace::Workspace;

/// Records in each of the pages' requests, as the example sends them.
const RECORDS: u64 = 50;

/// What was measured.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Followers {
    /// The 99th percentile of the pages' requests without readers, in milliseconds.
    pub(super) alone: f64,
    /// The same with 200 readers.
    pub(super) followed: f64,
    /// The second divided by the first.
    pub(super) ratio: f64,
    /// The growth of the server's memory, in kilobytes.
    pub(super) grown_kilobytes: u64,
    /// Records that a reader got twice or in the wrong order.
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

/// Measures the followers, which takes more than a minute.
pub(super) fn measure(workspace: &Workspace) -> Result<Followers> {
    terminal::note("bench: 200 readers of a log stream");
    let program = workspace.binary(true, "examples/followers");
    let printed = output(&mut Command::new(program))?;
    let printed: Printed =
        serde_json::from_str(&printed).context("what the readers' example printed")?;
    printed.check()?;
    let (alone, followed) = (printed.pages.nobody_follows.p99, printed.pages.followed.p99);
    let Kilobytes { before, most } = printed.server_kilobytes;
    Ok(Followers {
        alone,
        followed,
        ratio: followed / alone,
        grown_kilobytes: most.saturating_sub(before),
        wrong: printed.got.repeated_or_out_of_order,
    })
}
