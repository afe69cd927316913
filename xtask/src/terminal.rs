//! Output to the user: results to standard output, the rest to standard error. And a stopwatch.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Reports progress on standard error.
pub fn note(line: &str) {
    // A closed standard error must not stop the work.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Prints a line of the result, on standard output.
pub fn result(line: &str) {
    // A closed pipe (`| head`) must not stop the work.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Whether a user can be asked for a password.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether standard error is a terminal, and no log.
pub(crate) fn is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// How many characters fit in a line of standard error, if it is a terminal.
pub(crate) fn width() -> Option<usize> {
    let (_rows, columns) = console::Term::stderr().size_checked()?;
    Some(columns.into())
}

/// Measures how long something takes.
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts it.
    #[expect(
        clippy::disallowed_methods,
        reason = "durations are printed here, nothing depends on them"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since it was started.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

impl fmt::Display for Stopwatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&duration(self.elapsed()))
    }
}

/// A duration for people, such as `2.5 s` or `3 min 20 s`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    whole_seconds(time)
}

/// A duration to the second, such as `2 s` or `3 min 20 s`.
pub(crate) fn whole_seconds(time: Duration) -> String {
    match (time.as_secs() / 60, time.as_secs() % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}
