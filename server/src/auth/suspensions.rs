//! A cache of suspended players, for checks that must not read the store: a valid token outlives
//! the suspension of its player, and an open page sends it with every heartbeat.

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
use crate::web::api_error::ApiError;

/// The interval of reading the store, for changes by other nodes and the operator's commands.
/// Together with the time between two heartbeats it is less than a minute.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The players that were suspended within the lifetime of a token, each with the reason to show.
#[derive(Debug, Default)]
pub struct Suspensions(ArcSwap<HashMap<Uuid, Option<String>>>);

impl Suspensions {
    /// Reads the store again. `token_seconds` is the lifetime of a game token: players who were
    /// suspended before that have none any more.
    ///
    /// # Errors
    /// Errors of the store; the cache then stays unchanged.
    pub async fn refresh(
        &self,
        store: &dyn Store,
        token_seconds: u64,
        now: Millis,
    ) -> Result<(), StoreError> {
        let players = store
            .list_suspended_players(game_tokens::oldest(token_seconds, now))
            .await?;
        let players = players.into_iter().map(|player| (player.id, player.reason));
        self.0.store(players.collect::<HashMap<_, _>>().into());
        Ok(())
    }

    /// Rejects a suspended player with the reason, according to the cache, which is a few seconds
    /// old.
    ///
    /// # Errors
    /// `account-suspended`
    pub fn check(&self, player: &Uuid) -> Result<(), ApiError> {
        match self.0.load().get(player) {
            Some(reason) => Err(ApiError::suspended(reason.clone())),
            None => Ok(()),
        }
    }

    /// Whether the player is suspended, according to the cache, which is a few seconds old.
    #[must_use]
    pub fn contains(&self, player: &Uuid) -> bool {
        self.0.load().contains_key(player)
    }
}

/// The job that reads the store.
#[derive(Debug)]
pub(crate) struct ReadSuspensions(pub(crate) Arc<AuthState>);

#[async_trait]
impl Job for ReadSuspensions {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("read-suspensions", LOOK_AGAIN)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let platform = &self.0.platform;
        let (life, now) = (platform.config.token_seconds, platform.clock.now());
        let read = self
            .0
            .suspensions
            .refresh(&*platform.store, life, now)
            .await;
        read.map_err(JobError::because("the suspensions could not be read again"))
    }
}
