//! Runs a program and keeps its output in a file: it is shown only if the program fails.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::command::describe;

/// The time between two looks at a program that runs.
const TICK_INTERVAL: Duration = Duration::from_millis(200);

/// How many lines of its output a failed program shows.
const MAX_LINES: usize = 20;

/// Where the output of programs is kept.
pub(super) struct Kept {
    folder: PathBuf,
}

impl Kept {
    /// Makes the folder.
    pub(super) fn new(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        Ok(Self { folder })
    }

    /// Runs it to its end, and calls `tick` meanwhile. The output goes to a file of this name. An
    /// error has its last lines.
    pub(super) fn run(&self, command: &mut Command, name: &str, tick: impl Fn()) -> Result<()> {
        let path = self.folder.join(file_name(name));
        let cannot_be_written = || format!("{} cannot be written", path.display());
        let file = File::create(&path).with_context(cannot_be_written)?;
        let errors = file.try_clone().with_context(cannot_be_written)?;
        let child = command
            .stdout(file)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("`{}` cannot be started", describe(command)))?;
        let status = wait(child, tick)
            .with_context(|| format!("the end of `{}` is not known", describe(command)))?;
        if !status.success() {
            bail!(
                "`{}` failed ({status}); all of its output is in {}, which ends with:\n{}",
                describe(command),
                path.display(),
                last_lines(&path)?
            );
        }
        Ok(())
    }
}

/// Waits for a program, and calls `tick` meanwhile.
fn wait(mut child: Child, tick: impl Fn()) -> Result<ExitStatus> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait()));
    loop {
        match receiver.recv_timeout(TICK_INTERVAL) {
            Ok(status) => return Ok(status?),
            Err(RecvTimeoutError::Timeout) => tick(),
            Err(RecvTimeoutError::Disconnected) => bail!("the thread that waits for it has ended"),
        }
    }
}

/// The file for the output of a step.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("{}.log", name.chars().map(plain).collect::<String>())
}

/// The last lines of a file, indented. Of a line that was written over itself, only the last state.
fn last_lines(path: &Path) -> Result<String> {
    let cannot_be_read = || format!("{} cannot be read", path.display());
    let mut lines = VecDeque::with_capacity(MAX_LINES);
    for line in BufReader::new(File::open(path).with_context(cannot_be_read)?).split(b'\n') {
        let line = line.with_context(cannot_be_read)?;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        let shown = line.rsplit('\r').next().unwrap_or(line);
        if lines.len() == MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(format!("  {shown}"));
    }
    Ok(Vec::from(lines).join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::command;

    fn run(script: &str, tick: impl Fn()) -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(folder.path().join("set-up")).unwrap();
        let mut sh = command("sh", folder.path());
        kept.run(sh.args(["-c", script]), "a step", tick)
    }

    #[test]
    fn a_failure_shows_its_last_lines_and_the_file_with_all_of_them() {
        let script = "seq 1000; printf 'Reading 5%%\\rReading 100%%\\n'; echo why >&2; exit 3";
        let error = run(script, || ()).unwrap_err().to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.contains("set-up/a-step.log"), "{error}");
        assert!(
            error.ends_with("\n  1000\n  Reading 100%\n  why"),
            "{error}"
        );
        assert!(!error.contains("\n  5\n"), "{error}");
        assert_eq!(error.lines().count(), 1 + MAX_LINES, "{error}");
    }

    #[test]
    fn a_program_that_runs_long_is_shown_while_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        // It ends only when it has been shown: by the first tick.
        let script = format!("until test -e {}; do :; done", seen.display());
        run(&script, || fs::write(&seen, "").unwrap()).unwrap();
        assert!(seen.exists());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(folder.path().to_owned()).unwrap();
        let mut missing = command("/no/such/program", folder.path());
        let error = kept.run(&mut missing, "a step", || ()).unwrap_err();
        assert_eq!(error.to_string(), "`/no/such/program` cannot be started");
    }
}
