//! Frontend logs beside their endpoint: how many are taken in, and how long
//! and how many of them are kept.

pub mod handlers;
pub mod sanitize;
pub mod streams;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::FromRef;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::handlers::{errors, search, stream};
use crate::auth::AuthState;
use crate::clock::{Clock, Millis};
use crate::config::Config;
use crate::logs::streams::LogStreams;
use crate::platform::Platform;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::projects::removal::sweep_removed;
use crate::store::{LOG_WRITES, Store, StoreError};
use crate::web::client_address::Network;
use crate::web::fair_shares::Shares;
use crate::web::limiter::{Limiter, Rate};

/// How often projects are looked for whose records take more than they may.
const LOOK: Duration = Duration::from_secs(10);
/// Every so many looks, old records are looked for.
const LOOKS_BY_AGE: u64 = 60;
/// Records that one write of the sweep removes: others' writes go in between,
/// so it is as short as one of theirs.
const BATCH: usize = 50;
/// Writes of one look for projects that are over the quota: old records must
/// not wait until the last flood is over.
const QUOTA_WRITES: usize = 1_000;
const DAY_MILLIS: Millis = 24 * 60 * 60 * 1_000;
/// Players and strangers.
const BOTH: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

/// The calls about frontend logs, with their descriptions.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Arc<LogsState>: FromRef<S>,
    Arc<AuthState>: FromRef<S>,
{
    OpenApiRouter::default()
        .routes(routes!(search::handle))
        .routes(routes!(stream::handle))
        .routes(routes!(errors::handle))
}

/// The parts that frontend logs need.
#[derive(Debug)]
pub struct LogsState {
    /// What every slice uses.
    pub platform: Arc<Platform>,
    /// Who sends and reads them.
    pub auth: Arc<AuthState>,
    /// How many records may come in.
    pub limits: LogLimits,
    /// Who follows them.
    pub streams: LogStreams,
}

/// How many records, and how many bytes, may come in. Records with a player's
/// token are counted apart from those of strangers, of whom anybody may be as
/// many as they like: they take nothing from the players.
#[derive(Debug)]
pub struct LogLimits {
    /// Of requests with a player's token.
    pub players: LogRates,
    /// Of all others.
    pub strangers: LogRates,
    /// Requests by network address, before it is known whether they have a token:
    /// what verifying costs has a limit as well.
    pub requests_by_address: Limiter<Network>,
    /// Requests of each environment that wait for the store, as its audience.
    pub waiting: Shares<Arc<str>>,
}

/// How many requests of one environment may wait for the store at one time: an
/// eighth of those that may wait in all, so that no game keeps the others out.
pub const WAITING: usize = LOG_WRITES / 8;

/// How many records, and how many bytes, may come in, by who sends them.
#[derive(Debug)]
pub struct LogRates {
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
        let rates = || LogRates {
            by_address: Limiter::new(&config.log_rate, Arc::clone(clock)),
            by_game: Limiter::new(&config.log_rate_game, Arc::clone(clock)),
            bytes_by_address: Limiter::new(&config.log_bytes_rate, Arc::clone(clock)),
            bytes_by_game: Limiter::new(&config.log_bytes_rate_game, Arc::clone(clock)),
        };
        // As many as those two let through together, of one record each.
        let requests = Rate {
            count: config.log_rate.count.saturating_mul(BOTH),
            burst: config.log_rate.burst.saturating_mul(BOTH),
            ..config.log_rate
        };
        Self {
            players: rates(),
            strangers: rates(),
            requests_by_address: Limiter::new(&requests, Arc::clone(clock)),
            waiting: Shares::default(),
        }
    }

    /// Forgets those who have been quiet for long enough.
    pub fn sweep(&self) {
        self.requests_by_address.sweep();
        for rates in [&self.players, &self.strangers] {
            rates.by_address.sweep();
            rates.by_game.sweep();
            rates.bytes_by_address.sweep();
            rates.bytes_by_game.sweep();
        }
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

/// Removes the oldest records of each project whose records take more than
/// `quota` bytes, in small writes, of which there are so many in one look.
/// Answers how many.
///
/// # Errors
/// The store's; what was removed until then stays so.
pub async fn sweep_quota(store: &dyn Store, quota: u64) -> Result<usize, StoreError> {
    let mut removed = 0;
    for _ in 0..QUOTA_WRITES {
        let batch = store.sweep_log_quota(quota, BATCH).await?;
        removed += batch;
        if batch == 0 {
            break;
        }
    }
    Ok(removed)
}

/// Sweeps now and then: what is beyond the quota with every run, and what is old
/// with every so many.
#[derive(Debug)]
pub(crate) struct SweepLogs {
    state: Arc<LogsState>,
    runs: u64,
    /// Records beyond the quota that were removed since the log last said so.
    beyond: usize,
}

impl SweepLogs {
    /// Has not swept yet.
    pub(crate) const fn new(state: Arc<LogsState>) -> Self {
        Self {
            state,
            runs: 0,
            beyond: 0,
        }
    }

    async fn sweep_quota(&mut self) -> Result<(), StoreError> {
        let platform = &self.state.platform;
        if let Some(quota) = platform.config.log_quota() {
            self.beyond += sweep_quota(&*platform.store, quota).await?;
        }
        Ok(())
    }

    async fn sweep_old(&mut self) -> Result<(), StoreError> {
        let beyond = std::mem::take(&mut self.beyond);
        let platform = &self.state.platform;
        let days = platform.config.log_retention_days;
        let old = sweep(&*platform.store, days, platform.clock.now()).await;
        if let Ok(old) = old
            && old + beyond > 0
        {
            tracing::info!(old, beyond, "frontend log records were removed");
        }
        // Those that arrived after their project was removed, or that were
        // left when the server stopped.
        sweep_removed(&*platform.store).await?;
        old.map(drop)
    }
}

#[async_trait]
impl Job for SweepLogs {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("sweep-logs", LOOK)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let is_old_due = self.runs.is_multiple_of(LOOKS_BY_AGE);
        self.runs += 1;
        let mut swept = self.sweep_quota().await;
        if is_old_due {
            let old = self.sweep_old().await;
            swept = swept.and(old);
        }
        swept.map_err(JobError::because(
            "frontend log records could not be removed",
        ))
    }
}
