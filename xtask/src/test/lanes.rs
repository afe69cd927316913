//! Runs tasks: one after the other, or in lanes side by side.

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

/// The number of lanes.
const LANES: usize = 3;
/// The program with tests that mostly wait: for the end of an outage, of a lease, of a player's presence.
const WAITS: &str = "platform-tests nodes";

/// Tasks that run side by side, in lanes, as places in the list of tasks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// The tasks of each lane. The third one is for tasks that need little processor time.
    pub(super) lanes: [Vec<usize>; LANES],
    /// Whether the second lane has only the processor time that the first one leaves. Otherwise, the
    /// one of these two that ends first helps the other one.
    pub(super) is_second_in_background: bool,
}

/// The steps of a run, one after the other.
///
/// Quick checks keep both cores busy, so they run alone. Native tests wait for disks and databases about
/// half of the time, so compilers run beside them, in the background, where they slow no test down. The
/// tests in browsers mostly wait for browsers, with the other end-to-end tests beside them, and those of
/// outages beside both.
pub(super) fn steps(tasks: &[Planned<'_>]) -> Vec<Step> {
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let mut native = Step {
        is_second_in_background: true,
        ..Step::default()
    };
    let mut end_to_end = Step::default();
    for (place, planned) in tasks.iter().enumerate() {
        match &planned.task.work {
            _ if planned.task.is_in_background => native.lanes[1].push(place),
            Work::Program(program) if program.is_end_to_end => {
                let lane = match &*program.name {
                    WAITS => 2,
                    _ if program.has_own_runner => 0,
                    _ => 1,
                };
                end_to_end.lanes[lane].push(place);
            }
            Work::Program(_) => native.lanes[0].push(place),
            Work::Check(_) => first.push(place),
            // They call cargo, which would wait for the compilers in the background.
            Work::Counted(_) => last.push(place),
        }
    }
    let alone = |place| Step {
        lanes: [vec![place], Vec::new(), Vec::new()],
        ..Step::default()
    };
    let mut steps: Vec<Step> = first.into_iter().map(alone).collect();
    steps.push(native);
    steps.extend(last.into_iter().map(alone));
    steps.push(end_to_end);
    steps
}

/// The places that no lane has begun with.
struct Waiting(Mutex<[VecDeque<usize>; LANES]>);

impl Waiting {
    fn of(lanes: &[Vec<usize>; LANES]) -> Self {
        Self(Mutex::new(lanes.clone().map(VecDeque::from)))
    }

    /// Takes the next task of a lane; if it has none any more, the last one of the lane that it helps.
    fn next(&self, lane: usize, helps: bool) -> Option<usize> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let helped = [1, 0].get(lane).filter(|_| helps);
        let own = lanes[lane].pop_front();
        own.or_else(|| lanes[*helped?].pop_back())
    }
}

/// Gives this thread, and the programs that it starts, the lowest priority. Where that is not possible,
/// they run as others do.
fn go_to_background() {
    // On other systems, the whole process would have it, for good.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 19);
}

/// Runs the lanes of one step side by side and hands each event to `on_event`, on this thread.
///
/// The first lane's output is shown as it comes, unless it is empty; the other's when a program
/// has ended.
pub(super) fn run(
    workspace: &Workspace,
    tasks: &[Planned<'_>],
    step: &Step,
    mut on_event: impl FnMut(Event),
) {
    let lanes = &step.lanes;
    let alone = lanes.iter().filter(|lane| !lane.is_empty()).count() == 1;
    let helps = !step.is_second_in_background;
    let waiting = &Waiting::of(lanes);
    thread::scope(|scope| {
        let (sender, events) = mpsc::channel();
        for number in (0..lanes.len()).filter(|number| !lanes[*number].is_empty()) {
            let sender = sender.clone();
            scope.spawn(move || {
                if number == 1 && step.is_second_in_background && !alone {
                    go_to_background();
                }
                while let Some(place) = waiting.next(number, helps) {
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
            is_in_background: false,
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
    fn compilers_run_beside_native_tests_and_others_beside_the_browsers() {
        let mut clippy = check("clippy", |_| Ok(()));
        clippy.is_in_background = true;
        let mut unit = Program::example("library");
        unit.is_end_to_end = false;
        let examples = Task {
            stage: Stage::Native,
            name: "examples".to_owned(),
            work: Work::Counted(|_, _, _| Ok(())),
            is_in_background: false,
        };
        let tasks = [
            check("rules", |_| Ok(())),
            clippy,
            Task::of(Program::example("accounts")),
            Task::of(Program::example("browsers")),
            Task::of(unit),
            examples,
            Task::of(Program::example("template")),
            Task::of(Program::example(WAITS)),
        ];
        let step = |lanes, is_second_in_background| Step {
            lanes,
            is_second_in_background,
        };
        let wanted = [
            step([vec![0], vec![], vec![]], false),
            step([vec![4], vec![1], vec![]], true),
            step([vec![5], vec![], vec![]], false),
            step([vec![3], vec![2, 6], vec![7]], false),
        ];
        assert_eq!(steps(&plan(&tasks)), wanted);
    }

    #[test]
    fn the_lane_that_ends_first_takes_the_last_tasks_of_the_other() {
        let waiting = Waiting::of(&[vec![3], vec![2, 4, 5], vec![6]]);
        let begun = [0, 1, 2, 2, 0, 1, 0].map(|lane| waiting.next(lane, true));
        let expected = [Some(3), Some(2), Some(6), None, Some(5), Some(4), None];
        assert_eq!(begun, expected, "the third lane is on its own");
        let waiting = Waiting::of(&[vec![3], vec![2], vec![]]);
        let begun = [0, 0, 1, 1].map(|lane| waiting.next(lane, false));
        assert_eq!(begun, [Some(3), None, Some(2), None]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_that_is_started_in_the_background_has_the_lowest_priority() {
        let started = thread::spawn(|| {
            go_to_background();
            std::process::Command::new("nice").output()
        });
        let output = started.join().unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "19");
        let here = std::process::Command::new("nice").output().unwrap();
        assert_ne!(here.stdout, output.stdout, "only that thread");
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
            &Step {
                lanes: [vec![0], vec![1, 2], vec![]],
                ..Step::default()
            },
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
