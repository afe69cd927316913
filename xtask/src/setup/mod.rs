//! Set-up: everything that a task needs on a fresh machine. Each part is checked before it is
//! installed.
//!
//! The steps are data ([`steps`]); [`check`] tells whether one is done, and [`fix`] does it. What is
//! missing is announced first ([`announcement`]), and then done in queues side by side ([`jobs`]).
//! Output of other programs is shown only if they fail ([`kept`]). With nothing to do, this takes
//! well under a second.

mod announcement;
mod check;
mod fix;
mod jobs;
mod kept;
mod progress;
mod steps;

use std::sync::OnceLock;
use std::thread;

use anyhow::{Error, Result};
use clap::ValueEnum;

use self::announcement::{announcement, first_compilation};
use self::fix::Fixer;
use self::jobs::{Job, jobs};
use self::progress::Progress;
pub use self::steps::Tool;
use self::steps::{Queue, STEPS, Step};
use crate::terminal::{self, Stopwatch};
use crate::workspace::Workspace;

/// The purpose of the set-up. Each one needs different steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Purpose {
    /// Building and serving.
    Serve,
    /// Serving from several nodes.
    Cluster,
    /// Making a release.
    Dist,
    /// Checking formatting, lints and rules.
    Tidy,
    /// Running every test.
    Test,
    /// Running the fuzz targets.
    Fuzz,
    /// Measuring.
    Bench,
}

/// Does the missing steps for `purpose`. An optional step may fail; then a note says what is lost.
pub(crate) fn run(workspace: &Workspace, purpose: Purpose) -> Result<()> {
    let stopwatch = Stopwatch::start();
    let machine = check::Machine::look(workspace)?;
    let missing = missing(STEPS, purpose, |step| machine.has(&step.check));
    if !missing.is_empty() {
        terminal::note(&announcement(&missing, purpose, terminal::width()));
    }
    if !is_compiled(workspace)
        && let Some(line) = first_compilation(purpose)
    {
        terminal::note(line);
    }
    if missing.is_empty() {
        terminal::note(&format!("set-up: everything is there ({stopwatch})"));
        return Ok(());
    }
    let fixer = Fixer::new(workspace)?;
    let packages = || {
        missing
            .iter()
            .filter(|step| step.fix.queue() == Queue::System)
    };
    if packages().count() > 0
        && let Err(error) = fixer.ask_for_password()
    {
        // What this purpose works without is left out, step by step.
        if packages().any(|step| !step.is_optional(purpose)) {
            return Err(error);
        }
        terminal::note(&format!("set-up: {error:#}"));
    }
    Run::new(&fixer, purpose, missing).all()?;
    fixer.finish()?;
    terminal::note(&format!("set-up: done in {stopwatch}"));
    Ok(())
}

/// Whether the server was compiled here before.
fn is_compiled(workspace: &Workspace) -> bool {
    let mut profiles = [false, true].into_iter();
    profiles.any(|release| workspace.binary(release, "platform-server").exists())
}

/// The set-up while it runs.
struct Run<'a> {
    fixer: &'a Fixer<'a>,
    progress: Progress,
    purpose: Purpose,
    missing: Vec<&'static Step>,
    /// Is set when the Debian packages are there, or cannot be installed.
    debian_is_done: OnceLock<()>,
    /// Why a step that is needed cannot be done: after it, no other is begun.
    failure: OnceLock<Error>,
}

impl<'a> Run<'a> {
    fn new(fixer: &'a Fixer<'a>, purpose: Purpose, missing: Vec<&'static Step>) -> Self {
        Self {
            fixer,
            progress: Progress::new(terminal::is_terminal()),
            purpose,
            missing,
            debian_is_done: OnceLock::new(),
            failure: OnceLock::new(),
        }
    }

    /// Does every step: most of the time is waiting for the network or for one processor, so the
    /// queues are worked off side by side.
    fn all(self) -> Result<()> {
        let run = &self;
        thread::scope(|scope| {
            for queue in Queue::ALL {
                scope.spawn(move || run.work_off(queue));
            }
        });
        self.failure.into_inner().map_or(Ok(()), Err)
    }

    fn work_off(&self, queue: Queue) {
        for job in jobs(&self.missing, queue) {
            if job.needs_debian && queue != Queue::System {
                self.debian_is_done.wait();
            }
            self.job(&job);
            if queue == Queue::System {
                self.debian_is_done.get_or_init(|| ());
            }
        }
        if queue == Queue::System {
            self.debian_is_done.get_or_init(|| ());
        }
    }

    /// Does the steps of a job at once. Where that is not possible, does each one for itself: then
    /// only those fail that cannot be done.
    fn job(&self, job: &Job) {
        if job.steps.len() > 1 && self.fixer.has_apt() && self.failure.get().is_none() {
            let task = self.progress.start("Debian packages", job.expected());
            let packages = job.debian_packages();
            let Err(error) = self.fixer.debian(&packages, &task) else {
                task.done();
                return;
            };
            task.note(&format!(
                "set-up: apt-get cannot install all of the Debian packages at once, so those of each part are installed for themselves: {error:#}"
            ));
        }
        for step in &job.steps {
            if self.failure.get().is_some() {
                return;
            }
            self.step(step);
        }
    }

    fn step(&self, step: &Step) {
        let expected = announcement::one_by_one(&[step]);
        let task = self.progress.start(step.name, expected);
        match self.fixer.fix(&step.fix, &task) {
            Ok(()) => task.done(),
            Err(error) if step.is_optional(self.purpose) => {
                task.note(&format!("set-up: {}: {error:#}", step.name));
                task.note(&format!("set-up: going on without: {}", step.without));
            }
            Err(error) => {
                task.note(&format!(
                    "set-up: {} failed; what is done beside it is finished first",
                    step.name
                ));
                let error = error.context(format!("{} is needed: {}", step.name, step.why));
                if let Err(second) = self.failure.set(error) {
                    task.note(&format!("set-up: {second:#}"));
                }
            }
        }
    }
}

/// The missing steps for `purpose`, in order.
fn missing(
    steps: &'static [Step],
    purpose: Purpose,
    is_done: impl Fn(&Step) -> bool,
) -> Vec<&'static Step> {
    steps
        .iter()
        .filter(|step| step.is_for(purpose) && !is_done(step))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(purpose: Purpose, is_done: impl Fn(&Step) -> bool) -> Vec<&'static str> {
        missing(STEPS, purpose, is_done)
            .into_iter()
            .map(|step| step.name)
            .collect()
    }

    #[test]
    fn nothing_is_done_twice() {
        for purpose in Purpose::value_variants() {
            assert!(names(*purpose, |_| true).is_empty());
        }
    }

    #[test]
    fn serving_asks_for_no_browser() {
        let serving = names(Purpose::Serve, |_| false);
        assert!(!serving.iter().any(|name| {
            ["Chromium", "WebKit", "driver"]
                .iter()
                .any(|browser| name.contains(browser))
        }));
        assert!(serving.contains(&"C compiler"));
        let testing = names(Purpose::Test, |_| false);
        for browser in ["Chromium", "Firefox", "WebKitGTK", "geckodriver"] {
            assert!(testing.contains(&browser), "{browser}");
        }
    }

    #[test]
    fn javascript_is_checked_by_tidy_and_tests_and_not_for_serving() {
        let step = "npm packages of the checks";
        assert!(names(Purpose::Test, |_| false).contains(&step));
        assert!(names(Purpose::Tidy, |_| false).contains(&step));
        assert!(!names(Purpose::Serve, |_| false).contains(&step));
    }

    #[test]
    fn the_compiler_comes_before_what_it_compiles() {
        let testing = names(Purpose::Test, |_| false);
        let place = |name| testing.iter().position(|other| *other == name).unwrap();
        assert!(place("C compiler") < place("geckodriver"));
        assert!(place("Node.js") < place("npm packages of the tests"));
        for step in STEPS {
            assert!(
                step.fix
                    .after()
                    .iter()
                    .all(|name| { !step.is_for(Purpose::Test) || place(name) < place(step.name) })
            );
        }
    }

    #[test]
    fn what_is_optional_says_what_is_lost() {
        for step in STEPS {
            assert!(
                step.may.is_empty() || !step.without.is_empty(),
                "{}",
                step.name
            );
            assert!(!step.why.is_empty() && !step.must.is_empty() | !step.may.is_empty());
        }
    }
}
