//! A virtual screen for an engine that has no headless mode.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::poll;
use crate::process::Guarded;
use crate::settings;

/// A running X server without a monitor. Dropping it stops it and every program that draws on it.
#[derive(Debug)]
pub(super) struct Display {
    server: Guarded,
    name: String,
}

impl Display {
    /// Starts one with the first free display number.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub(super) async fn start() -> Self {
        let mut server = Guarded::start(
            Command::new(settings::program("XVFB", &["Xvfb"]))
                .args(["-displayfd", "1", "-screen", "0", "1280x800x24"])
                .args(["-nolisten", "tcp", "-noreset"])
                .stdout(Stdio::piped())
                .stderr(Stdio::null()),
        );
        let output = server.child().stdout.take().expect("the output is a pipe");
        let reading = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(output).read_line(&mut line).map(|_| line)
        });
        let line = poll::within("a display", reading)
            .await
            .expect("the reader ends")
            .expect("the output can be read");
        let number: u32 = line.trim().parse().unwrap_or_else(|_| {
            panic!("Xvfb said {line:?} in place of its number");
        });
        Self {
            server,
            name: format!(":{number}"),
        }
    }

    /// Returns the value for `DISPLAY`.
    #[must_use]
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        // If it were killed immediately, it would leave its lock file behind.
        self.server.end();
    }
}
