//! The result of each test, read from the output of the test programs.

use std::fmt;
use std::time::Duration;

use crate::terminal;

/// How many of the slowest tests are named at the end of a run.
const SLOWEST: usize = 50;

/// The numbers of passed and of failed tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// The results of one program's tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Results {
    /// From the result lines at the ends of programs.
    pub(super) count: Count,
    /// The names of the tests that failed, in the order of the program.
    pub(super) failed: Vec<String>,
    /// The time of each test, if the program printed it.
    pub(super) times: Vec<(Duration, String)>,
    /// The output that was not shown yet, if it is kept back until the program ends.
    held: Option<Vec<String>>,
}

impl Results {
    /// Results of a program whose output is shown when it has ended, so that it does not mix with
    /// the output of others.
    pub(super) fn held_back() -> Self {
        Self {
            held: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// Reads a line, and shows it or keeps it until [`Self::show_held`].
    pub(super) fn take(&mut self, line: &str) {
        self.read(line);
        match &mut self.held {
            Some(held) => held.push(line.to_owned()),
            None => terminal::result(line),
        }
    }

    /// Shows the output that was kept back.
    pub(super) fn show_held(&mut self) {
        for line in self.held.take().unwrap_or_default() {
            terminal::result(&line);
        }
    }

    /// Reads a line, if it is about one test or is a result line. It understands libtest,
    /// libtest-mimic and wasm-bindgen's runner.
    fn read(&mut self, line: &str) {
        let line = line.trim();
        if let Some(result) = line.strip_prefix("test result: ") {
            self.count += count(result);
        } else if let Some(test) = line.strip_prefix("time ") {
            self.times.extend(own_time(test));
        } else if let Some((name, outcome)) = line
            .strip_prefix("test ")
            .and_then(|test| test.rsplit_once(" ... "))
        {
            let name = name.trim_end();
            if outcome.starts_with("FAILED") {
                self.failed.push(name.to_owned());
            }
            if let Some(time) = reported_time(outcome) {
                self.times.push((time, name.to_owned()));
            }
        }
    }
}

/// The numbers of a result line.
fn count(result: &str) -> Count {
    let mut count = Count::default();
    for part in result.split(['.', ';']) {
        match part.trim().split_once(' ') {
            Some((number, "passed")) => count.passed += number.parse().unwrap_or(0),
            Some((number, "failed")) => count.failed += number.parse().unwrap_or(0),
            _ => {}
        }
    }
    count
}

/// The time in `ok <1.234s>`, as libtest writes it.
fn reported_time(outcome: &str) -> Option<Duration> {
    let seconds = outcome.split_once('<')?.1.split_once("s>")?.0;
    Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
}

/// The time and the name in `1.234 name`, as the browser tests write it after
/// `time`.
fn own_time(test: &str) -> Option<(Duration, String)> {
    let (seconds, name) = test.split_once(' ')?;
    let time = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
    Some((time, name.to_owned()))
}

/// The slowest of these tests, one per line, slowest first.
pub(super) fn slowest(mut times: Vec<(Duration, String)>) -> String {
    times.sort_by(|one, other| other.cmp(one));
    let lines = times.iter().take(SLOWEST);
    lines
        .map(|(time, name)| format!("{:>8.1} s   {name}", time.as_secs_f64()))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Results {
        let mut results = Results::default();
        text.lines().for_each(|line| results.read(line));
        results
    }

    #[test]
    fn result_lines_are_added_up() {
        let text = "running 2 tests\n\
            test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.00s\n\
            test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s\n";
        let wanted = Count {
            passed: 15,
            failed: 2,
        };
        assert_eq!(read(text).count, wanted);
        assert_eq!(wanted.to_string(), "15 passed, 2 failed");
    }

    #[test]
    fn failed_tests_are_known_by_name_and_every_test_by_its_time() {
        let results = read(
            "test a::b ... ok <0.250s>\n\
             test c - should panic ... FAILED <1.500s>\n\
             test d_in_firefox ... FAILED\n\
             time 2.750 d_in_firefox\n\
             test e ... ok\n",
        );
        assert_eq!(results.failed, ["c - should panic", "d_in_firefox"]);
        let named = |name: &str| {
            let found = results.times.iter().find(|(_, test)| test == name);
            found.map(|(time, _)| time.as_millis())
        };
        assert_eq!(named("a::b"), Some(250));
        assert_eq!(named("c - should panic"), Some(1500));
        assert_eq!(named("d_in_firefox"), Some(2750));
        assert_eq!(named("e"), None);
    }

    #[test]
    fn output_is_kept_back_in_order() {
        let mut results = Results::held_back();
        results.take("test a ... FAILED");
        results.take("thread 'a' panicked");
        assert_eq!(results.failed, ["a"]);
        let held = results.held.as_deref();
        assert_eq!(
            held,
            Some(&["test a ... FAILED", "thread 'a' panicked"].map(String::from)[..])
        );
    }

    #[test]
    fn other_lines_say_nothing() {
        let text = "# passing\n3 passed\ntest a is run\ntime is short\ntime 1.x a\n";
        assert_eq!(read(text), Results::default());
    }

    #[test]
    fn the_slowest_fifty_are_named_and_the_slowest_is_first() {
        let times = (0..60).map(|tenths| {
            (
                Duration::from_millis(tenths * 100),
                format!("test {tenths}"),
            )
        });
        let lines = slowest(times.collect());
        assert_eq!(lines.lines().count(), 50);
        assert!(lines.lines().next().unwrap().ends_with("5.9 s   test 59"));
    }
}
