//! The test run: runs every part even if an earlier one fails, shows how much is left, and ends
//! with the time of each stage, the slowest tests, and a count.

mod lanes;
mod programs;
mod record;
mod results;
mod stages;
mod supply_chain;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};

use self::lanes::{Done, Event, Planned, Step};
use self::programs::{Program, Which};
use self::record::Record;
use self::results::{Count, slowest};
use self::stages::{Task, Work};
use crate::setup::{self, Purpose};
use crate::terminal::{self, Stopwatch, duration};
use crate::workspace::Workspace;

/// A stage of the test run, which can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stage {
    /// Formatting, rules, clippy, and the licences and sources of dependencies.
    Checks,
    /// Rust tests outside of a browser.
    Native,
    /// The module's tests, inside of Chromium and Firefox.
    Wasm,
    /// The real server and real browsers, end to end.
    E2e,
}

/// How many seconds each stage may take on two cores that do nothing else, on a machine on which nothing
/// is compiled. What becomes slower takes the time from something else.
const BUDGETS: &[(&str, u64)] = &[
    ("set-up", 4 * 60),
    ("runtime", 2 * 60),
    ("test programs", 9 * 60),
    ("formatting", 15),
    ("rules", 15),
    ("JavaScript", 30),
    ("clippy", 5 * 60),
    ("supply chain", 30),
    ("native tests", 17 * 60),
    ("runtime in browsers", 60),
    ("end to end", 30 * 60),
    ("end to end, several nodes", 7 * 60),
];

/// Which part of the test run is wanted.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Choice {
    /// Only the tests whose names contain this.
    name: Option<String>,
    /// Only this stage; may be given more than once.
    #[arg(long, value_enum)]
    only: Vec<Stage>,
    /// Only what failed in the last run, or was not reached in it.
    #[arg(long)]
    failed: bool,
}

impl Choice {
    /// Whether tasks of this stage run. A name alone selects tests only.
    fn has(&self, stage: Stage) -> bool {
        if self.only.is_empty() {
            self.name.is_none() || stage != Stage::Checks
        } else {
            self.only.contains(&stage)
        }
    }

    /// Whether any of the compiled programs runs.
    fn has_programs(&self) -> bool {
        self.has(Stage::Native) || self.has(Stage::E2e)
    }
}

/// How a task ended.
struct Outcome {
    name: String,
    stage: &'static str,
    count: Count,
    /// When it began, since the run began.
    began: Duration,
    time: Duration,
    error: Option<anyhow::Error>,
}

impl Outcome {
    fn passed(&self) -> bool {
        self.error.is_none() && self.count.failed == 0
    }
}

/// Sets up, runs the selected tasks, reports each, and counts.
pub(crate) fn run(workspace: &Workspace, choice: &Choice) -> Result<ExitCode> {
    let stopwatch = Stopwatch::start();
    setup::run(workspace, Purpose::Test)?;
    let set_up = stopwatch.elapsed();
    let mut run = Run {
        stopwatch: &stopwatch,
        workspace,
        choice,
        record: Record::read(workspace),
        outcomes: Vec::new(),
        times: Vec::new(),
    };
    run.ended("set-up", "set-up", set_up, None);
    // The test programs embed the result.
    run.build();
    let tasks = run.tasks();
    run.all(&tasks)?;
    let total = total(&run.outcomes);
    terminal::note(&format!("\nthe slowest tests:\n{}", slowest(run.times)));
    terminal::note(&format!(
        "\n{}\nall of it: {stopwatch}",
        table(&run.outcomes)
    ));
    terminal::result(&total.to_string());
    if let Some(name) = &choice.name {
        anyhow::ensure!(
            total != Count::default(),
            "no test has `{name}` in its name"
        );
    }
    if total.failed == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    terminal::note("`cargo xtask test --failed` runs what did not pass once more");
    Ok(ExitCode::FAILURE)
}

/// How far a task has come.
#[derive(Clone, Copy)]
enum Progress {
    Waits,
    /// Since this time of the run's stopwatch.
    RunsSince(Duration),
    Ended,
}

/// A test run in progress.
struct Run<'a> {
    stopwatch: &'a Stopwatch,
    workspace: &'a Workspace,
    choice: &'a Choice,
    record: Record,
    outcomes: Vec<Outcome>,
    times: Vec<(Duration, String)>,
}

impl Run<'_> {
    /// Builds the runtime, in every run: it is quick when nothing has changed.
    fn build(&mut self) {
        let stopwatch = Stopwatch::start();
        terminal::note("\nbuild and size budget");
        let error = stages::build_within_budget(self.workspace).err();
        self.ended(
            "runtime",
            "build and size budget",
            stopwatch.elapsed(),
            error,
        );
    }

    /// The tasks, in order.
    fn tasks(&mut self) -> Vec<Task> {
        let mut tasks = stages::checks();
        if self.choice.has_programs() {
            let stopwatch = Stopwatch::start();
            terminal::note("\ncompiling the tests");
            let error = match programs::compile(self.workspace) {
                Ok(programs) => {
                    let again = programs.iter().filter_map(Program::on_nodes);
                    let again: Vec<_> = again.collect();
                    tasks.extend(programs.into_iter().chain(again).map(Task::of));
                    None
                }
                Err(error) => Some(error),
            };
            self.ended(
                "test programs",
                "compiling the tests",
                stopwatch.elapsed(),
                error,
            );
        }
        tasks.extend(stages::others());
        // End to end comes last: it takes longest, and says least about the place of a mistake.
        tasks.sort_by_key(|task| task.stage as u8);
        tasks.retain(|task| self.is_wanted(task));
        tasks
    }

    fn is_wanted(&self, task: &Task) -> bool {
        let passed = || {
            let known = self.record.find(&task.name);
            known.is_some_and(|entry| entry.passed)
        };
        self.choice.has(task.stage) && !(self.choice.failed && passed())
    }

    /// Runs these tasks, and records after each what is left.
    fn all(&mut self, tasks: &[Task]) -> Result<()> {
        // The last failures are read before the record is overwritten.
        let named: Vec<Vec<String>> = tasks.iter().map(|task| self.named(task)).collect();
        let name = self.choice.name.as_deref();
        let planned: Vec<_> = tasks
            .iter()
            .zip(&named)
            .map(|(task, named)| Planned {
                task,
                which: Which::of(name, named),
            })
            .collect();
        if name.is_none() {
            for task in tasks {
                self.record.begin(&task.name);
            }
            self.record.write()?;
        }
        let steps = lanes::steps(&planned);
        let mut progress = vec![Progress::Waits; tasks.len()];
        for step in &steps {
            let mut written = Ok(());
            lanes::run(self.workspace, &planned, step, |event| match event {
                Event::Begins(place) => {
                    progress[place] = Progress::RunsSince(self.stopwatch.elapsed());
                    let (stage, name) = (tasks[place].stage_name(), &*tasks[place].name);
                    let stage = if stage == name {
                        String::new()
                    } else {
                        format!("{stage}: ")
                    };
                    terminal::note(&format!(
                        "\n[{}/{}] {stage}{name}{}",
                        place + 1,
                        tasks.len(),
                        self.left(tasks, &steps, &progress)
                    ));
                }
                Event::Ended(place, done) => {
                    progress[place] = Progress::Ended;
                    let recorded = self.one_ended(&planned[place], done);
                    written = std::mem::replace(&mut written, Ok(())).and(recorded);
                }
            });
            written?;
        }
        Ok(())
    }

    /// The failed tests of a task in the last run, if only these are wanted.
    fn named(&self, task: &Task) -> Vec<String> {
        let known = self.record.find(&task.name);
        match known {
            Some(entry) if self.choice.failed => entry.failed.clone(),
            _ => Vec::new(),
        }
    }

    /// Records and reports how a task ended.
    fn one_ended(&mut self, planned: &Planned<'_>, done: Done) -> Result<()> {
        let Done {
            mut results,
            error,
            time,
        } = done;
        let task = planned.task;
        results.show_held();
        if let (Some(_), Work::Program(program)) = (&error, &task.work) {
            let command = program.by_hand(self.workspace);
            terminal::note(&format!("by hand: {command}"));
        }
        self.times.append(&mut results.times);
        let passed = error.is_none();
        self.ended(&task.name, task.stage_name(), time, error);
        if let Some(last) = self.outcomes.last_mut() {
            last.count = results.count;
        }
        if self.choice.name.is_some() {
            return Ok(());
        }
        let whole = matches!(planned.which, Which::All).then_some(time.as_secs_f64());
        self.record.end(&task.name, results.failed, passed, whole);
        self.record.write()
    }

    fn ended(
        &mut self,
        name: &str,
        stage: &'static str,
        time: Duration,
        error: Option<anyhow::Error>,
    ) {
        if let Some(error) = &error {
            terminal::note(&format!("{name} failed: {error:#}"));
        }
        self.outcomes.push(Outcome {
            name: name.to_owned(),
            stage,
            count: Count::default(),
            began: self.stopwatch.elapsed().saturating_sub(time),
            time,
            error,
        });
    }

    /// How long the tasks that have not ended will take, if the last run recorded it.
    fn left(&self, tasks: &[Task], steps: &[Step], progress: &[Progress]) -> String {
        if self.choice.name.is_some() || self.choice.failed {
            return String::new();
        }
        let now = self.stopwatch.elapsed();
        let one = |place: &usize| {
            let whole = self.record.find(&tasks[*place].name)?.seconds?;
            Some(match progress[*place] {
                Progress::Waits => whole,
                Progress::RunsSince(began) => {
                    (whole - now.saturating_sub(began).as_secs_f64()).max(0.0)
                }
                Progress::Ended => 0.0,
            })
        };
        // Lanes help each other, but a task is not divided.
        let step = |step: &Step| {
            let left: Vec<f64> = step
                .lanes
                .iter()
                .flatten()
                .map(one)
                .collect::<Option<_>>()?;
            let lanes = step.lanes.iter().filter(|lane| !lane.is_empty());
            let at_a_time = f64::from(u32::try_from(lanes.count()).ok()?.max(1));
            let longest = left.iter().copied().fold(0.0, f64::max);
            Some(longest.max(left.iter().sum::<f64>() / at_a_time))
        };
        let seconds: Option<f64> = steps.iter().map(step).sum();
        match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
            Some(left) => format!(" (about {} left, by the last run)", duration(left)),
            None => String::new(),
        }
    }
}

/// The sum of all tasks. A task that failed without a failed test, for example because it did not
/// compile, counts as one failure.
fn total(outcomes: &[Outcome]) -> Count {
    let mut total = Count::default();
    for outcome in outcomes {
        total += outcome.count;
        if outcome.error.is_some() && outcome.count.failed == 0 {
            total.failed += 1;
        }
    }
    total
}

/// A line for each stage with the sums of its tasks and its time from begin to end, and one for each failed task.
fn table(outcomes: &[Outcome]) -> String {
    let mut lines = Vec::new();
    let mut stages: Vec<&str> = Vec::new();
    for outcome in outcomes {
        if !stages.contains(&outcome.stage) {
            stages.push(outcome.stage);
        }
    }
    for name in stages {
        let stage = outcomes.iter().filter(|outcome| outcome.stage == name);
        let stage: Vec<&Outcome> = stage.collect();
        let mut count = Count::default();
        stage.iter().for_each(|outcome| count += outcome.count);
        // Tasks of a stage may run side by side.
        let began = stage.iter().map(|outcome| outcome.began).min();
        let ended = stage.iter().map(|outcome| outcome.began + outcome.time);
        let time = ended.max().unwrap_or_default() - began.unwrap_or_default();
        let passed = stage.iter().all(|outcome| outcome.passed());
        let mark = if passed { "ok" } else { "FAILED" };
        let tests = if count == Count::default() {
            String::new()
        } else {
            count.to_string()
        };
        let line = format!(
            "{mark:6}  {name:34} {:>12}{:20}   {tests}",
            duration(time),
            beside_budget(name, time)
        );
        lines.push(line.trim_end().to_owned());
        let failed = stage.iter().filter(|outcome| !outcome.passed());
        lines.extend(failed.map(|outcome| format!("          {}", outcome.name)));
    }
    lines.join("\n")
}

/// The budget of a stage, and whether it took more.
fn beside_budget(stage: &str, time: Duration) -> String {
    let Some((_, seconds)) = BUDGETS.iter().find(|(name, _)| *name == stage) else {
        return String::new();
    };
    let budget = Duration::from_secs(*seconds);
    let over = if time > budget { ", OVER" } else { "" };
    format!(" of {}{over}", duration(budget))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(stage: &'static str, passed: u64, failed: u64, error: bool) -> Outcome {
        Outcome {
            name: format!("{passed} of {stage}"),
            stage,
            count: Count { passed, failed },
            began: Duration::from_secs(10),
            time: Duration::from_secs(passed),
            error: error.then(|| anyhow::anyhow!("no")),
        }
    }

    #[test]
    fn a_task_that_fails_without_a_failed_test_counts_as_a_failure() {
        let outcomes = [
            outcome("a", 3, 0, false),
            outcome("b", 0, 0, true),
            outcome("b", 5, 2, true),
        ];
        assert_eq!(total(&outcomes).to_string(), "8 passed, 3 failed");
    }

    #[test]
    fn the_table_sums_each_stage_and_names_what_failed() {
        let table = table(&[
            outcome("native", 1, 0, false),
            outcome("native", 70, 0, false),
            outcome("e2e", 2, 0, false),
            // Two stages may run side by side.
            outcome("nodes", 1, 0, false),
            outcome("e2e", 0, 0, true),
        ]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        assert!(
            lines[0].starts_with("ok ")
                && lines[0].contains(" 1 min 10 s ")
                && lines[0].ends_with("71 passed, 0 failed"),
            "{table}"
        );
        assert!(lines[1].starts_with("FAILED "), "{table}");
        assert_eq!(lines[2].trim(), "0 of e2e");
    }

    #[test]
    fn every_stage_has_a_budget_beside_what_it_took() {
        let tasks = stages::checks().into_iter().chain(stages::others());
        let programs = ["accounts", "browsers"].map(|name| Task::of(Program::example(name)));
        for task in tasks.chain(programs) {
            let stage = task.stage_name();
            assert!(BUDGETS.iter().any(|(name, _)| *name == stage), "{stage}");
        }
        let beside = |seconds| beside_budget("native tests", Duration::from_secs(seconds));
        assert_eq!(beside(60), " of 17 min 0 s");
        assert_eq!(beside(17 * 60 + 1), " of 17 min 0 s, OVER");
        assert_eq!(beside_budget("another", Duration::from_secs(1)), "");
    }

    #[test]
    fn a_name_alone_means_tests_and_a_stage_alone_that_stage() {
        let all = Choice::default();
        let name = Choice {
            name: Some("guest".into()),
            ..Choice::default()
        };
        let wasm = Choice {
            only: vec![Stage::Wasm],
            ..Choice::default()
        };
        for stage in Stage::value_variants() {
            assert!(all.has(*stage));
            assert_eq!(name.has(*stage), *stage != Stage::Checks);
            assert_eq!(wasm.has(*stage), *stage == Stage::Wasm);
        }
        assert!(all.has_programs() && name.has_programs() && !wasm.has_programs());
    }
}
