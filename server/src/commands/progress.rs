//! The progress of long commands, on standard error.

use std::time::Duration;

use platform_server::app::moving::Teller;

use super::output;

/// Progress on standard error.
pub(crate) struct OnStderr {
    is_terminal: bool,
}

impl OnStderr {
    /// Prepares it.
    pub(crate) fn new() -> Self {
        Self {
            is_terminal: output::is_terminal(),
        }
    }
}

impl Teller for OnStderr {
    fn period(&self) -> Duration {
        Duration::from_secs(if self.is_terminal { 1 } else { 5 })
    }

    fn tell(&self, line: &str, is_last: bool) {
        output::progress(line, self.is_terminal, is_last);
    }
}
