//! The whole test run: every stage, whatever fails before it, and one line at
//! its end.

mod count;
mod stages;
mod supply_chain;

use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;

use self::count::Count;
use crate::setup::{self, Purpose};
use crate::terminal::{self, Stopwatch};
use crate::workspace::Workspace;

/// A part of the test run that can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Rust tests outside of a browser.
    Native,
    /// The module's tests, inside of Chromium and Firefox.
    Wasm,
    /// The tests written for Node.js.
    Npm,
    /// The real server and real browsers, end to end.
    E2e,
}

/// One stage of the run.
struct Stage {
    /// What is shown.
    name: &'static str,
    /// The part that it belongs to; none: every part needs it.
    part: Option<Part>,
    /// Whether it also belongs to a run of one part.
    always: bool,
    /// Does it, and counts the tests that it saw.
    run: fn(&Workspace, &mut Count) -> Result<()>,
}

impl Stage {
    fn is_in(&self, only: &[Part]) -> bool {
        only.is_empty() || self.always || self.part.is_some_and(|part| only.contains(&part))
    }
}

/// How a stage ended.
struct Outcome {
    name: &'static str,
    count: Count,
    time: String,
    error: Option<anyhow::Error>,
}

/// Sets up, runs the stages of `only` (none: all), reports each, and counts.
pub(crate) fn run(workspace: &Workspace, only: &[Part]) -> Result<ExitCode> {
    let stopwatch = Stopwatch::start();
    setup::run(workspace, Purpose::Test)?;
    let stages: Vec<&Stage> = stages::STAGES
        .iter()
        .filter(|stage| stage.is_in(only))
        .collect();
    let mut outcomes = Vec::new();
    for (place, stage) in stages.iter().enumerate() {
        terminal::note(&format!(
            "\n[{}/{}] {}",
            place + 1,
            stages.len(),
            stage.name
        ));
        let stopwatch = Stopwatch::start();
        let mut count = Count::default();
        let error = (stage.run)(workspace, &mut count).err();
        if let Some(error) = &error {
            terminal::note(&format!("{} failed: {error:#}", stage.name));
        }
        outcomes.push(Outcome {
            name: stage.name,
            count,
            time: stopwatch.to_string(),
            error,
        });
    }
    let total = total(&outcomes);
    terminal::note(&format!("\n{}\nall of it: {stopwatch}", table(&outcomes)));
    terminal::result(&total.to_string());
    Ok(if total.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The sum of all stages. A stage that failed without a failed test, because
/// it did not compile for one, counts as one failure.
fn total(outcomes: &[Outcome]) -> Count {
    let mut total = Count::default();
    for outcome in outcomes {
        total.passed += outcome.count.passed;
        total.failed += outcome.count.failed;
        if outcome.error.is_some() && outcome.count.failed == 0 {
            total.failed += 1;
        }
    }
    total
}

fn table(outcomes: &[Outcome]) -> String {
    let line = |outcome: &Outcome| {
        let mark = if outcome.error.is_none() && outcome.count.failed == 0 {
            "ok"
        } else {
            "FAILED"
        };
        format!(
            "{mark:6}  {:34} {:>10}   {}",
            outcome.name, outcome.time, outcome.count
        )
    };
    outcomes.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(passed: u64, failed: u64, error: bool) -> Outcome {
        let error = error.then(|| anyhow::anyhow!("no"));
        Outcome {
            name: "some",
            count: Count { passed, failed },
            time: "1.0 s".into(),
            error,
        }
    }

    #[test]
    fn a_stage_that_fails_without_a_failed_test_counts_as_a_failure() {
        let outcomes = [
            outcome(3, 0, false),
            outcome(0, 0, true),
            outcome(5, 2, true),
        ];
        assert_eq!(
            total(&outcomes),
            Count {
                passed: 8,
                failed: 3
            }
        );
        assert_eq!(total(&outcomes).to_string(), "8 passed, 3 failed");
    }

    #[test]
    fn a_run_of_one_part_leaves_the_others_out() {
        let names = |only: &[Part]| -> Vec<&str> {
            stages::STAGES
                .iter()
                .filter(|stage| stage.is_in(only))
                .map(|stage| stage.name)
                .collect()
        };
        assert_eq!(names(&[]).len(), stages::STAGES.len());
        let native = names(&[Part::Native]);
        assert!(native.len() < stages::STAGES.len());
        assert!(
            native.iter().any(|name| name.starts_with("build")),
            "{native:?}"
        );
        assert!(
            !native.iter().any(|name| name.contains("Firefox")),
            "{native:?}"
        );
        for part in Part::value_variants() {
            assert!(
                stages::STAGES.iter().any(|stage| stage.part == Some(*part)),
                "{part:?}"
            );
        }
    }

    #[test]
    fn the_table_shows_which_stage_failed() {
        let table = table(&[outcome(1, 0, false), outcome(0, 0, true)]);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].starts_with("ok "), "{table}");
        assert!(lines[1].starts_with("FAILED "), "{table}");
    }
}
