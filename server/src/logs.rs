//! Frontend logs beside their endpoint: how many are taken in, and how long
//! they are kept.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::clock::{Clock, Millis};
use crate::config::Config;
use crate::http::client_address::Network;
use crate::http::limiter::Limiter;
use crate::http::refusal::chain;
use crate::state::AppState;
use crate::store::{Store, StoreError};

/// How often old records are looked for.
const LOOK: Duration = Duration::from_secs(10 * 60);
/// Records that one write of the sweep removes: others' writes go in between.
const BATCH: usize = 1_000;
const DAY_MILLIS: Millis = 24 * 60 * 60 * 1_000;

/// How many records, and how many bytes, may come in, by who sends them.
#[derive(Debug)]
pub struct LogLimits {
    /// By network address.
    pub by_address: Limiter<Network>,
    /// By environment of a project, as its audience.
    pub by_game: Limiter<Arc<str>>,
    /// Bytes by network address: a hundred records may have 1 kB or 64.
    pub bytes_by_address: Limiter<Network>,
    /// Bytes by environment of a project, as its audience.
    pub bytes_by_game: Limiter<Arc<str>>,
}

impl LogLimits {
    /// The limits of the settings.
    #[must_use]
    pub fn new(config: &Config, clock: &Arc<dyn Clock>) -> Self {
        Self {
            by_address: Limiter::new(&config.log_rate, Arc::clone(clock)),
            by_game: Limiter::new(&config.log_rate_game, Arc::clone(clock)),
            bytes_by_address: Limiter::new(&config.log_bytes_rate, Arc::clone(clock)),
            bytes_by_game: Limiter::new(&config.log_bytes_rate_game, Arc::clone(clock)),
        }
    }

    /// Forgets those who have been quiet for long enough.
    pub fn sweep(&self) {
        self.by_address.sweep();
        self.by_game.sweep();
        self.bytes_by_address.sweep();
        self.bytes_by_game.sweep();
    }
}

/// Removes records that are older than the settings say, in small writes.
/// Answers how many.
///
/// # Errors
/// The store's; what was removed until then stays so.
pub async fn sweep(store: &dyn Store, days: u32, now: Millis) -> Result<usize, StoreError> {
    let before = now.saturating_sub(Millis::from(days) * DAY_MILLIS);
    let mut removed = 0;
    loop {
        let batch = store.sweep_log_records(before, BATCH).await?;
        removed += batch;
        if batch < BATCH {
            return Ok(removed);
        }
    }
}

/// Sweeps now and then, for as long as the server runs.
pub(crate) async fn keep_swept(state: AppState) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let days = state.config.log_retention_days;
        match sweep(&*state.store, days, state.clock.now()).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "old frontend log records were removed"),
            Err(error) => tracing::warn!(
                error = chain(&error),
                "old frontend log records could not be removed"
            ),
        }
    }
}
