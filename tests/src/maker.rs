//! A game developer at a terminal: the real command-line tool, a separate home folder, and the
//! duration of each command.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::process::Command;

use crate::{server, settings};

/// The time limit for one command; some commands download or compile dependencies.
const BOUND: Duration = Duration::from_secs(600);

/// The output and the exit status of a command.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its exit status.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// Returns its standard output, without the last line break.
    ///
    /// # Panics
    /// Panics if the command failed.
    pub fn done(&self) -> &str {
        assert_eq!(self.code, 0, "{self:?}");
        self.out.trim_end()
    }
}

/// The terminal.
#[derive(Debug)]
pub struct Maker {
    home: TempDir,
    variables: Vec<(String, String)>,
}

impl Default for Maker {
    fn default() -> Self {
        Self::new()
    }
}

impl Maker {
    /// Creates a terminal with an empty home folder and the tool installed.
    #[must_use]
    pub fn new() -> Self {
        Self {
            home: TempDir::with_prefix("platform-maker-").expect("a temporary directory"),
            variables: Vec::new(),
        }
    }

    /// Adds an environment variable for every command.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the path of a file or folder in the home folder.
    #[must_use]
    pub fn file(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    /// Builds a command in a folder of the home folder, with only this terminal's variables. The
    /// tool comes first on its `PATH`.
    #[must_use]
    pub fn command(&self, folder: &str, program: &str) -> Command {
        let path = settings::variable("PATH").unwrap_or_default();
        let tools = tool().parent().expect("a folder").display();
        let program = match program {
            "platform" => tool().to_owned(),
            "npm" => settings::program("NPM", &["npm"]),
            other => other.into(),
        };
        let mut command = Command::new(program);
        command
            .current_dir(self.file(folder))
            .env_clear()
            .env("PATH", format!("{tools}:{path}"))
            .env("HOME", self.home.path())
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        // Downloads are shared by all home folders.
        for shared in ["CARGO_HOME", "RUSTUP_HOME", "npm_config_cache"] {
            if let Some(place) = shared_place(shared) {
                command.env(shared, place);
            }
        }
        let variables = self.variables.iter();
        command.envs(variables.map(|(name, value)| (name, value)));
        command
    }

    /// Runs `line` in a folder of the home folder and waits for its end.
    ///
    /// # Panics
    /// Panics if the program does not exist or does not end.
    pub async fn types(&self, folder: &str, line: &str) -> Said {
        let mut words = line.split(' ');
        let program = words.next().unwrap_or_default();
        let mut command = self.command(folder, program);
        command.args(words);
        let begun = now();
        let running = tokio::time::timeout(BOUND, command.output()).await;
        let output = running
            .unwrap_or_else(|_| panic!("{line} did not end"))
            .unwrap_or_else(|error| panic!("{line} cannot be run: {error}"));
        report(line, begun);
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Returns the current time, for measuring durations.
#[must_use]
pub fn now() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a command takes is to be said, not tested"
    )]
    Instant::now()
}

/// Prints how long `what` took.
pub fn report(what: &str, begun: Instant) {
    #[expect(
        clippy::print_stdout,
        reason = "the times are shown with a test's output"
    )]
    {
        println!("{:>7.2} s  {what}", begun.elapsed().as_secs_f64());
    }
}

/// The command-line tool.
fn tool() -> &'static Path {
    static TOOL: OnceLock<PathBuf> = OnceLock::new();
    TOOL.get_or_init(|| server::built("platform-cli", "platform"))
}

/// Returns the path of a folder that all home folders on this machine share.
fn shared_place(variable: &str) -> Option<String> {
    settings::variable(variable).or_else(|| {
        let home = settings::variable("HOME")?;
        let folder = match variable {
            "CARGO_HOME" => ".cargo",
            "RUSTUP_HOME" => ".rustup",
            _ => ".npm",
        };
        Some(format!("{home}/{folder}"))
    })
}
