//! A program that ends with the test process, however that ends.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// Starts the program, waits until its own input is closed, then kills the program. The test process has
/// the other end of the input, so its end is noticed even after a `kill -9`.
const KEEPER: &str = r#"
    trap : INT TERM
    "$@" </dev/null &
    program=$!
    cat >/dev/null
    kill -KILL "$program" 2>/dev/null
    wait "$program"
"#;

/// A running program. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Process(Child);

impl Process {
    /// Starts a program, whose output goes into `log`.
    pub(super) fn start(arguments: &[&str], variables: &[(&str, &str)], log: File) -> Self {
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            // Signals from the terminal to the tests must not end the keeper before its work is
            // done.
            .process_group(0)
            .spawn()
            .unwrap();
        Self(keeper)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
