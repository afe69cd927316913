//! A game maker at a terminal: the real command-line tool, a home of their
//! own, and how long each command took.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::process::Command;

use crate::{server, settings};

/// How long one command may take: one fetches or compiles what is not at hand.
const BOUND: Duration = Duration::from_secs(600);

/// What a command printed, and how it ended.
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
    /// What it printed to standard output, without the last line's end.
    ///
    /// # Panics
    /// When the command failed.
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
    /// A terminal in an empty home, where the tool is installed.
    #[must_use]
    pub fn new() -> Self {
        Self {
            home: TempDir::with_prefix("platform-maker-").expect("a temporary directory"),
            variables: Vec::new(),
        }
    }

    /// The same with a variable for every command.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A file or folder in the home.
    #[must_use]
    pub fn file(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    /// A command in a folder of the home, with nothing but this terminal's
    /// variables. The tool comes first on its `PATH`.
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
        // What was fetched once need not be fetched for each home.
        for shared in ["CARGO_HOME", "RUSTUP_HOME", "npm_config_cache"] {
            if let Some(place) = shared_place(shared) {
                command.env(shared, place);
            }
        }
        let variables = self.variables.iter();
        command.envs(variables.map(|(name, value)| (name, value)));
        command
    }

    /// Types `line` in a folder of the home and waits for its end.
    ///
    /// # Panics
    /// When the program is not there or does not end.
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

/// The time, to say how long something took.
#[must_use]
pub fn now() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a command takes is to be said, not tested"
    )]
    Instant::now()
}

/// Says how long `what` took.
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

/// Where something lies that this machine shares between homes.
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
