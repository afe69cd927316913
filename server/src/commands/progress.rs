//! The progress of long commands, on standard error.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use platform_server::app::moving::Teller;

/// Progress on standard error.
pub(crate) struct OnStderr {
    is_terminal: bool,
}

impl OnStderr {
    /// Prepares it.
    pub(crate) fn new() -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
        }
    }
}

impl Teller for OnStderr {
    fn period(&self) -> Duration {
        Duration::from_secs(if self.is_terminal { 1 } else { 5 })
    }

    fn tell(&self, line: &str, is_last: bool) {
        let mut errors = std::io::stderr().lock();
        // Nobody has to read it.
        let _ = match (self.is_terminal, is_last) {
            (true, false) => write!(errors, "\r\x1b[2K{line}"),
            (true, true) => writeln!(errors, "\r\x1b[2K{line}"),
            (false, _) => writeln!(errors, "{line}"),
        };
        let _ = errors.flush();
    }
}
