//! The responses of the token endpoints (shaped after RFC 6749 §5.1).

use serde::{Deserialize, Serialize};

/// `token_type` of every response (RFC 6750).
pub const BEARER: &str = "Bearer";

/// The response of `POST {auth_url}/token` with status 200.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenAnswer {
    /// The game token, a compact JWS.
    pub access_token: String,
    /// Always [`BEARER`].
    pub token_type: String,
    /// Seconds until the token expires.
    pub expires_in: u64,
    /// Whether the player is a guest whom this response begins. The guest counts as a player once
    /// the cookie of this response came back, so the page asks once more with its first heartbeat.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_new: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// The response of `POST /__platform/token/user/<n>` on a local dev server, and the output of
/// `test-token <n> --json`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestTokenAnswer {
    /// The game token, a compact JWS.
    pub access_token: String,
    /// Always [`BEARER`].
    pub token_type: String,
    /// Seconds until the token expires.
    pub expires_in: u64,
    /// The test player's id.
    pub sub: String,
    /// `test-user-<n>` or `test-guest-<n>`.
    pub username: String,
}

impl std::fmt::Debug for TokenAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenAnswer")
            .field("expires_in", &self.expires_in)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for TestTokenAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestTokenAnswer")
            .field("username", &self.username)
            .field("sub", &self.sub)
            .field("expires_in", &self.expires_in)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_never_shows_in_debug_output() {
        let answer = TokenAnswer {
            access_token: "secret".into(),
            token_type: BEARER.into(),
            expires_in: 900,
            is_new: false,
        };
        let json = serde_json::to_string(&answer).unwrap();
        assert!(!json.contains("is_new"), "only a new guest has it: {json}");
        assert!(!format!("{answer:?}").contains("secret"));
    }
}
