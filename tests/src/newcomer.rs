//! Somebody who has never seen the platform: a platform that hands out its command line, and a machine
//! with an empty home folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::server::{self, Server};
use crate::settings;

/// The platform, and the home folder.
#[derive(Debug)]
pub struct Newcomer {
    /// The platform.
    pub server: Server,
    /// The folder that contains the home folder, the platform's data, and what it hands out.
    pub folder: TempDir,
}

impl Newcomer {
    /// Starts a platform that hands out the command line of this build.
    ///
    /// # Panics
    /// Panics if that cannot be packed.
    pub async fn arrive() -> Self {
        let folder = TempDir::with_prefix("platform-tests-").expect("a temporary directory");
        let cli = folder.path().join("cli");
        let packed = Command::new(server::built("platform-dist", "dist"))
            .arg("command-line")
            .arg(server::built("platform-cli", "platform"))
            .arg(&cli)
            .status();
        assert!(
            packed.is_ok_and(|status| status.success()),
            "nothing was packed"
        );
        std::fs::create_dir(folder.path().join("home")).expect("a home folder");
        let variables = [("PLATFORM_CLI_FOLDER", &*cli.to_string_lossy())];
        let server = Server::start_set(&folder.path().join("data"), "", &variables).await;
        Self { server, folder }
    }

    /// Returns the home folder.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Returns a program in the home folder, with nothing of this machine's environment but its
    /// `PATH`.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(self.home())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", settings::variable("PATH").unwrap_or_default())
            .stdin(Stdio::null());
        command
    }

    /// Runs the line of the platform's page that installs the command line in a shell.
    ///
    /// # Panics
    /// Panics if there is no shell.
    #[must_use]
    pub fn install(&self) -> Output {
        let line = format!("curl -fsSL {}/cli/install.sh | sh", self.server.origin);
        let output = self.command("sh").args(["-c", &line]).output();
        output.expect("a shell")
    }
}
