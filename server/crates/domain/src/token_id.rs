//! The id of a game token, `jti`. It also says whether heartbeats with the token count.
//!
//! A client without cookies can become any number of guests, so a guest counts as a player once its
//! cookie came back to the auth service. The token is signed, so each node knows this from the token
//! alone, without asking the store or another node at any heartbeat, and no client can change it. The
//! claims of a token are fixed, and an id is a random UUID in any case: its version makes the
//! difference.

use uuid::{Uuid, Version};

use crate::entropy::Entropy;

/// Returns an id for a token. `counts` says whether heartbeats with it count.
pub fn new_token_id(entropy: &dyn Entropy, counts: bool) -> Uuid {
    if counts {
        entropy.uuid_v4()
    } else {
        entropy.uuid_v8()
    }
}

/// Whether heartbeats with a token of this id count.
#[must_use]
pub fn counts(id: &str) -> bool {
    let id = Uuid::parse_str(id);
    !id.is_ok_and(|id| id.get_version() == Some(Version::Custom))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    #[test]
    fn an_id_says_whether_heartbeats_count() {
        for expected in [true, false] {
            let one = new_token_id(&SystemEntropy, expected);
            assert_eq!(counts(&one.to_string()), expected);
            assert_ne!(one, new_token_id(&SystemEntropy, expected));
        }
    }
}
