//! Shows how far the set-up is: bars on a terminal, and a line now and then in a log.

use std::cell::Cell;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};

use super::announcement::approximately;
use crate::terminal::{self, Stopwatch};

/// The time between two lines of a log about the same task.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// What a bar looks like.
const TEMPLATE: &str = "set-up: {bar:20} {prefix}: {so_far}";

/// Shows the tasks that are under way.
pub(super) struct Progress {
    /// The bars, unless standard error is a log.
    bars: Option<MultiProgress>,
}

impl Progress {
    /// For a terminal or a log.
    pub(super) fn new(is_terminal: bool) -> Self {
        Self {
            bars: is_terminal.then(MultiProgress::new),
        }
    }

    /// Writes a line, above the bars.
    pub(super) fn note(&self, line: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| terminal::note(line)),
            None => terminal::note(line),
        }
    }

    /// Shows a task that is expected to take some time.
    pub(super) fn start<'a>(&'a self, name: &'a str, expected: Duration) -> Task<'a> {
        Task {
            progress: self,
            name,
            expected,
            stopwatch: Stopwatch::start(),
            bar: self.bars.as_ref().map(|bars| bars.add(bar(name, expected))),
            lines: Cell::new(0),
        }
    }
}

/// A task that is under way.
pub(super) struct Task<'a> {
    progress: &'a Progress,
    name: &'a str,
    expected: Duration,
    stopwatch: Stopwatch,
    bar: Option<ProgressBar>,
    /// How many lines a log has about it.
    lines: Cell<u32>,
}

impl Task<'_> {
    /// What it is.
    pub(super) fn name(&self) -> &str {
        self.name
    }

    /// Is called often while the task is under way.
    pub(super) fn tick(&self) {
        let elapsed = self.stopwatch.elapsed();
        match &self.bar {
            Some(bar) => bar.set_position(elapsed.min(self.expected).as_secs()),
            None if is_due(elapsed, self.lines.get()) => {
                self.lines.set(self.lines.get() + 1);
                let so_far = so_far(elapsed, self.expected);
                self.note(&format!("set-up: {}: {so_far}", self.name));
            }
            None => {}
        }
    }

    /// Writes a line, above the bars.
    pub(super) fn note(&self, line: &str) {
        self.progress.note(line);
    }

    /// Removes the bar, and says how long the task took.
    pub(super) fn done(self) {
        self.note(&format!(
            "set-up: {}: done in {}",
            self.name, self.stopwatch
        ));
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Whether a log that has some lines about a task is to get the next one.
fn is_due(elapsed: Duration, lines: u32) -> bool {
    elapsed >= LOG_INTERVAL * (lines + 1)
}

/// Such as `1 min 30 s of about 3 min`.
fn so_far(elapsed: Duration, expected: Duration) -> String {
    let is_longer = elapsed > expected;
    let (elapsed, expected) = (terminal::whole_seconds(elapsed), approximately(expected));
    if is_longer {
        format!("{elapsed} so far, longer than the usual {expected}")
    } else {
        format!("{elapsed} of about {expected}")
    }
}

/// A bar that is full at the expected time.
fn bar(name: &str, expected: Duration) -> ProgressBar {
    let style = ProgressStyle::with_template(TEMPLATE);
    let bar = ProgressBar::new(expected.as_secs()).with_prefix(name.to_owned());
    let so_far = move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        // A line that cannot be written must not stop the work.
        let _ = write!(text, "{}", so_far(state.elapsed(), expected));
    };
    match style {
        Ok(style) => bar.with_style(style.with_key("so_far", so_far)),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_slow_task_has_a_line_in_the_log_every_half_minute() {
        assert!(!is_due(seconds(29), 0));
        assert!(is_due(seconds(30), 0));
        assert!(!is_due(seconds(31), 1));
        assert!(is_due(seconds(61), 1));
    }

    #[test]
    fn the_elapsed_time_stands_beside_the_expected_time() {
        assert_eq!(
            so_far(seconds(90), seconds(180)),
            "1 min 30 s of about 3 min"
        );
        assert_eq!(
            so_far(seconds(120), seconds(24)),
            "2 min 0 s so far, longer than the usual 24 s"
        );
    }

    #[test]
    fn the_template_of_a_bar_is_understood() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
