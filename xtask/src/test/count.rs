//! Counting tests by what the test programs print themselves.

use std::fmt;

/// Tests that passed and that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Count {
    /// Adds what a line says, if it is a result line of cargo test, of
    /// wasm-bindgen-test-runner, or of Node.js's test runner.
    pub(crate) fn read(&mut self, line: &str) {
        let line = line.trim();
        if let Some(result) = line.strip_prefix("test result: ") {
            for part in result.split(['.', ';']) {
                match part.trim().split_once(' ') {
                    Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                    Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                    _ => {}
                }
            }
        } else if let Some(summary) = line.strip_prefix("# ").or(line.strip_prefix("ℹ ")) {
            match summary.split_once(' ') {
                Some(("pass", number)) => self.passed += number.parse().unwrap_or(0),
                Some(("fail", number)) => self.failed += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Count {
        let mut count = Count::default();
        text.lines().for_each(|line| count.read(line));
        count
    }

    #[test]
    fn result_lines_of_cargo_test_are_added_up() {
        let text = "running 2 tests\ntest a ... ok\n\
            test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.00s\n\
            test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s\n";
        assert_eq!(
            count(text),
            Count {
                passed: 15,
                failed: 2
            }
        );
    }

    #[test]
    fn both_forms_of_node_are_read() {
        assert_eq!(
            count("# tests 3\n# pass 2\n# fail 1\n"),
            Count {
                passed: 2,
                failed: 1
            }
        );
        assert_eq!(
            count("ℹ pass 4\nℹ fail 0\n"),
            Count {
                passed: 4,
                failed: 0
            }
        );
    }

    #[test]
    fn other_lines_say_nothing() {
        assert_eq!(
            count("# passing\n3 passed\ntest a ... FAILED\n# pass many\n"),
            Count::default()
        );
    }
}
