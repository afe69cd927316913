//! Runs tasks: one after the other, or in two lanes side by side.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use super::programs::Which;
use super::results::Results;
use super::stages::{Task, Work};
use crate::terminal::Stopwatch;
use crate::workspace::Workspace;

/// A task, and which of its tests are to run.
pub(super) struct Planned<'a> {
    /// The task.
    pub(super) task: &'a Task,
    /// Its tests.
    pub(super) which: Which<'a>,
}

/// How a task ended.
pub(super) struct Done {
    /// The results of its tests.
    pub(super) results: Results,
    /// Why it failed, if it did.
    pub(super) error: Option<anyhow::Error>,
    /// How long it took.
    pub(super) time: Duration,
}

/// What happens in a lane, with the task's place in the list.
pub(super) enum Event {
    /// The task begins.
    Begins(usize),
    /// The task has ended.
    Ended(usize, Done),
}

/// The lanes in which tasks run, as places in the list of tasks.
///
/// Compilers, rules and native tests keep both cores busy, so they run one after the other. The
/// tests in browsers mostly wait for browsers, with the other end-to-end tests beside them.
pub(super) fn steps(tasks: &[Planned<'_>]) -> Vec<[Vec<usize>; 2]> {
    let mut steps = Vec::new();
    let mut end_to_end = [Vec::new(), Vec::new()];
    for (place, planned) in tasks.iter().enumerate() {
        match &planned.task.work {
            Work::Program(program) if program.is_end_to_end => {
                end_to_end[usize::from(!program.has_own_runner)].push(place);
            }
            _ => steps.push([vec![place], Vec::new()]),
        }
    }
    steps.push(end_to_end);
    steps
}

/// The places that no lane has begun with.
struct Waiting(Mutex<[VecDeque<usize>; 2]>);

impl Waiting {
    fn of(lanes: &[Vec<usize>; 2]) -> Self {
        Self(Mutex::new(lanes.clone().map(VecDeque::from)))
    }

    /// Takes the next task of a lane; if it has none any more, the last one of the other lane.
    fn next(&self, lane: usize) -> Option<usize> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = lanes[lane].pop_front();
        own.or_else(|| lanes[1 - lane].pop_back())
    }
}

/// Runs the lanes of one step side by side and hands each event to `on_event`, on this thread. The
/// lane that ends first helps the other one.
///
/// The first lane's output is shown as it comes, unless it is empty; the other's when a program
/// has ended.
pub(super) fn run(
    workspace: &Workspace,
    tasks: &[Planned<'_>],
    lanes: &[Vec<usize>; 2],
    mut on_event: impl FnMut(Event),
) {
    let alone = lanes.iter().any(Vec::is_empty);
    let waiting = &Waiting::of(lanes);
    thread::scope(|scope| {
        let (sender, events) = mpsc::channel();
        for number in (0..lanes.len()).filter(|number| !lanes[*number].is_empty()) {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some(place) = waiting.next(number) {
                    let results = if alone || number == 0 {
                        Results::default()
                    } else {
                        Results::held_back()
                    };
                    // The receiver lives until all lanes have ended.
                    let _ = sender.send(Event::Begins(place));
                    let done = one(workspace, &tasks[place], results);
                    let _ = sender.send(Event::Ended(place, done));
                }
            });
        }
        drop(sender);
        events.into_iter().for_each(&mut on_event);
    });
}

fn one(workspace: &Workspace, planned: &Planned<'_>, mut results: Results) -> Done {
    let stopwatch = Stopwatch::start();
    let which = planned.which;
    let outcome = match &planned.task.work {
        Work::Check(check) => check(workspace),
        Work::Counted(tests) => tests(workspace, which, &mut results),
        Work::Program(program) => program.run(workspace, which, &mut results),
    };
    Done {
        results,
        error: outcome.err(),
        time: stopwatch.elapsed(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stage;
    use super::super::programs::Program;
    use super::*;

    fn check(name: &str, check: fn(&Workspace) -> anyhow::Result<()>) -> Task {
        Task {
            stage: Stage::Checks,
            name: name.to_owned(),
            work: Work::Check(check),
        }
    }

    fn plan(tasks: &[Task]) -> Vec<Planned<'_>> {
        let planned = |task| Planned {
            task,
            which: Which::All,
        };
        tasks.iter().map(planned).collect()
    }

    #[test]
    fn only_the_end_to_end_tests_run_beside_the_browsers() {
        let tasks = [
            check("rules", |_| Ok(())),
            check("clippy", |_| Ok(())),
            Task::of(Program::example("accounts")),
            Task::of(Program::example("browsers")),
            Task::of(Program::example("template")),
        ];
        let wanted = [[vec![0], vec![]], [vec![1], vec![]], [vec![3], vec![2, 4]]];
        assert_eq!(steps(&plan(&tasks)), wanted);
    }

    #[test]
    fn the_lane_that_ends_first_takes_the_last_tasks_of_the_other() {
        let waiting = Waiting::of(&[vec![3], vec![2, 4, 5]]);
        let begun = [0, 1, 0, 1, 0].map(|lane| waiting.next(lane));
        assert_eq!(begun, [Some(3), Some(2), Some(5), Some(4), None]);
    }

    #[test]
    fn every_task_of_both_lanes_begins_and_ends_and_a_failure_stops_no_other() {
        let tasks = [
            check("a", |_| Ok(())),
            check("b", |_| anyhow::bail!("no")),
            check("c", |_| Ok(())),
        ];
        let workspace = Workspace::find().unwrap();
        let (mut begun, mut ended) = (Vec::new(), Vec::new());
        run(
            &workspace,
            &plan(&tasks),
            &[vec![0], vec![1, 2]],
            |event| match event {
                Event::Begins(place) => begun.push(place),
                Event::Ended(place, done) => ended.push((place, done.error.is_none())),
            },
        );
        begun.sort_unstable();
        ended.sort_unstable();
        assert_eq!(begun, [0, 1, 2]);
        assert_eq!(ended, [(0, true), (1, false), (2, true)]);
    }
}
