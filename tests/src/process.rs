//! Child processes that end with their owner, also when a test panics.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A child process that is killed when this is dropped.
#[derive(Debug)]
pub struct Guarded(Child);

impl Guarded {
    /// Starts `command`.
    ///
    /// # Panics
    /// Panics if the program cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        match command.stdin(Stdio::null()).spawn() {
            Ok(child) => Self(child),
            Err(error) => panic!("{command:?} did not start: {error}"),
        }
    }

    /// Returns the process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Returns the child process, for access to its pipes.
    pub const fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Kills the process with SIGKILL and waits for its end.
    pub fn kill(&mut self) {
        // Both calls fail only if it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Asks the process to end with SIGTERM and waits until it has ended.
    pub fn end(&mut self) {
        if !self.has_ended() {
            signal(self.id(), "TERM");
        }
        // This fails only if it has already ended.
        let _ = self.0.wait();
    }

    /// Whether it has ended on its own.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends `signal` (such as `TERM`) to the process `id`.
///
/// # Panics
/// Panics if `kill` cannot be run.
pub fn signal(id: u32, signal: &str) {
    let status = Command::new("kill")
        .args(["-s", signal, &id.to_string()])
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok(), "the program kill could not be run");
}

/// Kills every process whose command line or environment names `path`, a directory that only one
/// test run uses: the browser of a driver that was killed itself.
pub fn kill_users_of(path: &Path) {
    let Some(name) = path.to_str() else { return };
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|id| id.parse::<u32>().ok())
        else {
            continue;
        };
        let names_it = |file| {
            let text = std::fs::read(entry.path().join(file)).unwrap_or_default();
            String::from_utf8_lossy(&text).contains(name)
        };
        if id != std::process::id() && (names_it("cmdline") || names_it("environ")) {
            signal(id, "KILL");
        }
    }
}
