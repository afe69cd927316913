//! Tokens, which are never shown by accident.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A token or code that gives its holder access.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(String);

impl Secret {
    /// Wraps a token.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The token itself, to send it, or to print it on request.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows_in_debug_output() {
        assert!(!format!("{:?}", Secret::new("hidden")).contains("hidden"));
    }
}
