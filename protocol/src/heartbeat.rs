//! How a page reports that its player is playing.

use serde::{Deserialize, Serialize};

/// The body of `POST /__platform/heartbeat`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The page's id: 128 random bits in base64url without padding, 22 characters. A page that is
    /// restored from the back/forward cache takes a new one.
    pub page: String,
    /// True in the last heartbeat of a page that goes away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<bool>,
}
