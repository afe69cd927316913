//! A WebDriver program on a free port, with its own profile directory.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::Engine;
use super::display::Display;
use crate::poll;
use crate::process::{self, Guarded};

/// A running driver. Dropping it kills the driver and its browser, and deletes the profile.
#[derive(Debug)]
pub struct Driver {
    process: Guarded,
    address: String,
    profile: TempDir,
    // The screen, if the engine needs one. It is dropped last.
    _display: Option<Display>,
}

impl Driver {
    /// Starts the driver of `engine` and waits until it reports that it is ready.
    ///
    /// # Panics
    /// Panics if it does not start, or ends at once.
    pub async fn start(engine: Engine) -> Self {
        let profile = tempfile::Builder::new()
            .prefix("platform-tests-")
            .tempdir()
            .expect("a temporary directory can be made");
        let display = match engine {
            Engine::Chromium | Engine::Firefox => None,
            Engine::WebKit => Some(Display::start().await),
        };
        let port = free_port();
        let mut process = Guarded::start(
            Command::new(engine.driver())
                .args(engine.driver_arguments(port, profile.path()))
                .env("TMPDIR", profile.path())
                .envs(engine.environment(profile.path(), display.as_ref().map(Display::name)))
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        let address = format!("http://127.0.0.1:{port}");
        let client = reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("a client");
        let status = format!("{address}/status");
        poll::until("the driver is ready", async || {
            assert!(
                !process.has_ended(),
                "{engine}'s driver ended at once: is port {port} taken?"
            );
            let answer = client.get(&status).send().await.ok()?;
            let body: serde_json::Value =
                serde_json::from_slice(&answer.bytes().await.ok()?).ok()?;
            (body["value"]["ready"] == true).then_some(())
        })
        .await;
        Self {
            process,
            address,
            profile,
            _display: display,
        }
    }

    /// Returns the driver's address, `http://127.0.0.1:<port>`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the directory for the browser's profile.
    #[must_use]
    pub fn profile(&self) -> &Path {
        self.profile.path()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.process.kill();
        process::kill_users_of(self.profile.path());
    }
}

/// Returns a port on which nothing listens at the moment; a driver does not report which port it
/// took.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    listener
        .local_addr()
        .expect("a bound socket has an address")
        .port()
}
