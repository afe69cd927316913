//! Whose sessions ended, for what must know it without asking the store: a game
//! token outlives the session that it was made of, and a page that plays shows
//! it with every heartbeat.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use uuid::Uuid;

use crate::auth::AuthState;
use crate::auth::tokens;
use crate::clock::Millis;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::store::{Store, StoreError};

/// How often the store is asked. With the time between two heartbeats it stays
/// below a minute.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The players of whom a session ended within the life of a token, and when the
/// last one did.
#[derive(Debug, Default)]
pub struct Endings(ArcSwap<HashMap<Uuid, Millis>>);

impl Endings {
    /// Reads the store again. `token_seconds` is the life of a game token: none is
    /// left that is older.
    ///
    /// # Errors
    /// The store's; what was known stays so.
    pub async fn refresh(
        &self,
        store: &dyn Store,
        token_seconds: u64,
        now: Millis,
    ) -> Result<(), StoreError> {
        let ended = store
            .list_ended_sessions(tokens::oldest(token_seconds, now))
            .await?;
        self.0
            .store(ended.into_iter().collect::<HashMap<_, _>>().into());
        Ok(())
    }

    /// Whether a session of the player ended after a token was made, as far as was
    /// known some seconds ago. `issued` is the token's `iat`, which is in whole
    /// seconds (RFC 7519 §4.1.6): a session that ended in the same second does not
    /// count, or the token of the session after it would be taken for the old
    /// one's.
    ///
    /// The token may be of another session of the player, which goes on: its page
    /// asks for a new one, and nothing else changes.
    #[must_use]
    pub fn any_since(&self, player: &Uuid, issued: u64) -> bool {
        let after = issued.saturating_add(1).saturating_mul(1_000);
        let after = Millis::try_from(after).unwrap_or(Millis::MAX);
        self.0
            .load()
            .get(player)
            .is_some_and(|ended| *ended >= after)
    }
}

/// Follows the store.
#[derive(Debug)]
pub(crate) struct ReadEndings(pub(crate) Arc<AuthState>);

#[async_trait]
impl Job for ReadEndings {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("read-endings", LOOK_AGAIN)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let platform = &self.0.platform;
        let (life, now) = (platform.config.token_seconds, platform.clock.now());
        let read = self.0.endings.refresh(&*platform.store, life, now).await;
        read.map_err(JobError::because(
            "the sessions that ended could not be read again",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_a_session_that_ended_if_it_was_made_in_a_second_before() {
        let (player, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let endings = Endings(ArcSwap::from_pointee(HashMap::from([(player, 10_500)])));
        for (issued, expected) in [(0, true), (9, true), (10, false), (11, false)] {
            assert_eq!(endings.any_since(&player, issued), expected, "{issued}");
        }
        assert!(!endings.any_since(&player, u64::MAX));
        assert!(!endings.any_since(&other, 0));
        assert!(!Endings::default().any_since(&player, 0));
    }
}
