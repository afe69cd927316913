//! A user at a terminal: folders of their own, and the program in them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::net::TcpSocket;
use tokio::process::Command;

use crate::platform::Platform;

/// The folders of one test.
pub(crate) struct Home {
    folder: tempfile::TempDir,
    origin: Option<String>,
    cache: Option<PathBuf>,
}

/// The outcome of a run of the program.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn of(platform: &Platform) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            cache: None,
            origin: Some(platform.origin()),
        }
    }

    pub(crate) fn at(origin: &str) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            cache: None,
            origin: Some(origin.to_owned()),
        }
    }

    /// A home whose environment names no platform.
    pub(crate) fn without_origin() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            cache: None,
            origin: None,
        }
    }

    /// A home that is already signed in.
    pub(crate) async fn signed_in(platform: &Platform) -> Self {
        let home = Self::of(platform);
        home.run(&["login", "--no-browser"]).await.succeeded();
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Keeps copies where another user does.
    pub(crate) fn shares_cache_of(&mut self, other: &Self) {
        self.cache = Some(other.path(".cache"));
    }

    pub(crate) fn credentials(&self) -> PathBuf {
        self.path("config/platform/credentials.toml")
    }

    /// Writes a file, with its folders.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The program, without any variable of this machine's environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_platform"));
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.path("config"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if let Some(cache) = &self.cache {
            command.env("XDG_CACHE_HOME", cache);
        }
        if let Some(origin) = &self.origin {
            command.env("PLATFORM_ORIGIN", origin);
        }
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Outcome {
        outcome(self.command(arguments)).await
    }
}

/// Runs a command to its end.
pub(crate) async fn outcome(mut command: Command) -> Outcome {
    let output = command.output().await.unwrap();
    Outcome {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Outcome {
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        self.ended_with(0)
    }

    #[track_caller]
    pub(crate) fn ended_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        // No stream here is a terminal, so there are no colours.
        assert!(!self.stderr.contains('\u{1b}'), "{self:?}");
        self
    }
}

/// Returns a port that refuses connections, and the socket that keeps it from all others: it does not listen.
pub(crate) fn closed_port() -> (TcpSocket, u16) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

/// The last line of a text, where the failure is.
pub(crate) fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

/// A file's permissions.
#[cfg(unix)]
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().unwrap().permissions().mode() & 0o777
}
