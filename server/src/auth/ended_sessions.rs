//! A cache of ended sessions, for checks that must not read the store: a game token outlives the
//! session from which it was minted, and an open page sends it with every heartbeat.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use uuid::Uuid;

use crate::auth::AuthState;
use crate::auth::game_tokens;
use crate::clock::Millis;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::store::{Store, StoreError};

/// The interval of reading the store, besides what is followed every second. Together with the time
/// between two heartbeats it is less than a minute.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// How long ago a session that is new to this node can have ended: another node's clock may be half
/// a minute behind, and its write takes some seconds.
const RECENT: Millis = 60_000;

/// Players with a session that ended within the lifetime of a token, and when the last one did.
#[derive(Debug, Default)]
pub struct Endings(ArcSwap<HashMap<Uuid, Millis>>);

impl Endings {
    /// Reads the store again. `token_seconds` is the lifetime of a game token: there are no older
    /// tokens.
    ///
    /// # Errors
    /// Errors of the store; the cache then stays unchanged.
    pub async fn refresh(
        &self,
        store: &dyn Store,
        token_seconds: u64,
        now: Millis,
    ) -> Result<(), StoreError> {
        let oldest = game_tokens::oldest(token_seconds, now);
        let ended = store.list_ended_sessions(oldest).await?;
        self.0.rcu(|known| {
            // What ended while the store was read may be missing in what was read.
            let later = known.iter().filter(|(_, ended)| **ended >= oldest);
            newest(later.map(|(player, ended)| (*player, *ended)), &ended)
        });
        Ok(())
    }

    /// Adds the sessions that ended lately: some end every second, and reading all of them again
    /// each time would be too much.
    ///
    /// # Errors
    /// Errors of the store; the cache then stays unchanged.
    pub async fn follow(&self, store: &dyn Store, now: Millis) -> Result<(), StoreError> {
        let ended = store.list_ended_sessions(now - RECENT).await?;
        self.0.rcu(|known| {
            let known = known.iter().map(|(player, ended)| (*player, *ended));
            newest(known, &ended)
        });
        Ok(())
    }

    /// Whether a session of the player ended after a token was issued, according to the cache,
    /// which is a few seconds old. `issued` is the token's `iat` in whole seconds (RFC 7519
    /// §4.1.6). A session that ended in the same second does not count; otherwise the token of the
    /// next session would be mistaken for one of the old session. For the same reason it does not
    /// count within `clocks_apart`, by which the clocks of two nodes differ: one node may have written
    /// when the session ended, and another one signs the token.
    ///
    /// The token may belong to another session of the player that has not ended: its page then
    /// requests a new token, and nothing else changes.
    #[must_use]
    pub fn any_since(&self, player: &Uuid, issued: u64, clocks_apart: Millis) -> bool {
        let after = issued.saturating_add(1).saturating_mul(1_000);
        let after = Millis::try_from(after).unwrap_or(Millis::MAX);
        let after = after.saturating_add(clocks_apart);
        self.0
            .load()
            .get(player)
            .is_some_and(|ended| *ended >= after)
    }
}

/// Returns the last end of each player's sessions.
fn newest(
    known: impl Iterator<Item = (Uuid, Millis)>,
    read: &[(Uuid, Millis)],
) -> HashMap<Uuid, Millis> {
    let mut newest: HashMap<Uuid, Millis> = known.collect();
    for (player, ended) in read {
        let last = newest.entry(*player).or_insert(*ended);
        *last = (*last).max(*ended);
    }
    newest
}

/// The job that reads the store.
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
            assert_eq!(endings.any_since(&player, issued, 0), expected, "{issued}");
        }
        assert!(!endings.any_since(&player, u64::MAX, 0));
        assert!(!endings.any_since(&other, 0, 0));
        assert!(!Endings::default().any_since(&player, 0, 0));
    }

    #[test]
    fn a_token_of_a_node_that_is_behind_is_not_mistaken_for_one_of_the_session_before() {
        let player = Uuid::from_u128(1);
        let endings = Endings(ArcSwap::from_pointee(HashMap::from([(player, 10_500)])));
        for (issued, apart, expected) in [
            (6, 4_000, false),
            (5, 4_000, true),
            (8, 1_500, true),
            (8, 1_501, false),
        ] {
            let found = endings.any_since(&player, issued, apart);
            assert_eq!(found, expected, "{issued} {apart}");
        }
    }
}
