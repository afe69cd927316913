//! Who is suspended, for what must know it without asking the store: a token
//! that is still valid outlives the suspension of its player, and a page that
//! plays shows it with every heartbeat.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use uuid::Uuid;

use crate::auth::AuthState;
use crate::auth::tokens;
use crate::clock::Millis;
use crate::http::api_error::ApiError;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::store::{Store, StoreError};

/// How often the store is asked, for what other nodes and the operator's
/// commands do. With the time between two heartbeats it stays below a minute.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The players that were suspended within the life of a token, and what each
/// may be told.
#[derive(Debug, Default)]
pub struct Suspensions(ArcSwap<HashMap<Uuid, Option<String>>>);

impl Suspensions {
    /// Reads the store again. `token_seconds` is the life of a game token:
    /// whoever was suspended before that has none any more.
    ///
    /// # Errors
    /// The store's; what was known stays so.
    pub async fn refresh(
        &self,
        store: &dyn Store,
        token_seconds: u64,
        now: Millis,
    ) -> Result<(), StoreError> {
        let players = store
            .list_suspended_players(tokens::oldest(token_seconds, now))
            .await?;
        let players = players.into_iter().map(|player| (player.id, player.reason));
        self.0.store(players.collect::<HashMap<_, _>>().into());
        Ok(())
    }

    /// Refuses a player who is suspended, with the reason, as far as was known
    /// some seconds ago.
    ///
    /// # Errors
    /// `account-suspended`
    pub fn check(&self, player: &Uuid) -> Result<(), ApiError> {
        match self.0.load().get(player) {
            Some(reason) => Err(ApiError::suspended(reason.clone())),
            None => Ok(()),
        }
    }

    /// Whether the player is suspended, as far as was known some seconds ago.
    #[must_use]
    pub fn contains(&self, player: &Uuid) -> bool {
        self.0.load().contains_key(player)
    }
}

/// Follows the store.
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
