//! How a page says that its player is playing.

use serde::{Deserialize, Serialize};

/// The body of `POST /__platform/heartbeat`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The page's id: 128 random bits in base64url without padding, 22
    /// characters. A page that comes back out of the back/forward cache takes a
    /// new one.
    pub page: String,
    /// True in the farewell of a page that goes away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<bool>,
}
