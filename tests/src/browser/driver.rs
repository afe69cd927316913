//! A WebDriver program on a port of its own, with its own profile directory.

use std::path::Path;
use std::process::{Command, Stdio};

use platform_test_ports::ReservedPort;
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
    // The screen, if the engine needs one. It outlives the process.
    _display: Option<Display>,
    _port: ReservedPort,
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
        let port = ReservedPort::take().expect("a port is free");
        let mut process = Guarded::start(
            Command::new(engine.driver())
                .args(engine.driver_arguments(port.number(), profile.path()))
                .env("TMPDIR", profile.path())
                .envs(engine.environment(profile.path(), display.as_ref().map(Display::name)))
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        let address = format!("http://{}", port.address());
        let client = reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("a client");
        let status = format!("{address}/status");
        poll::until("the driver is ready", async || {
            assert!(!process.has_ended(), "{engine}'s driver ended at once");
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
            _port: port,
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
