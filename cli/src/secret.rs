//! Tokens, which are never shown by accident.

use std::fmt;

use platform_protocol::deploy_token;
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

    /// Whether it is a deploy token, which belongs to a project and not to an account.
    pub(crate) fn is_deploy_token(&self) -> bool {
        self.0.starts_with(deploy_token::PREFIX)
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
