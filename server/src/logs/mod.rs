//! Frontend logs: the limits on received records, and the sweep of old records.

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

/// The interval of checking which projects exceed their quota.
const LOOK: Duration = Duration::from_secs(10);
/// After this number of checks, old records are removed, too.
const LOOKS_BY_AGE: u64 = 60;
/// The maximum number of records that one write of the sweep removes, so that other writes do not
/// wait long.
const BATCH: usize = 50;
/// The maximum number of writes per check for projects over the quota: removing old records must
/// not wait for the end of a flood.
const QUOTA_WRITES: usize = 1_000;
const DAY_MILLIS: Millis = 24 * 60 * 60 * 1_000;
/// Players and strangers.
const BOTH: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

/// Returns the endpoints for frontend logs, with their descriptions.
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

/// The state of frontend logs.
#[derive(Debug)]
pub struct LogsState {
    /// The state that every slice uses.
    pub platform: Arc<Platform>,
    /// The senders and readers of logs.
    pub auth: Arc<AuthState>,
    /// The rate limits on received records.
    pub limits: LogLimits,
    /// The open streams.
    pub streams: LogStreams,
}

/// The rate limits on records and bytes. Records with a player's token are counted separately from
/// those of strangers, of which anybody can send any number: they must not use up the players'
/// limits.
#[derive(Debug)]
pub struct LogLimits {
    /// For requests with a player's token.
    pub players: LogRates,
    /// For all other requests.
    pub strangers: LogRates,
    /// Requests by network address, before it is known whether they have a token: verifying it
    /// costs something, too.
    pub requests_by_address: Limiter<Network>,
    /// The number of requests per environment (by audience) that wait for the store.
    pub waiting: Shares<Arc<str>>,
}

/// The maximum number of requests of one environment that may wait for the store: an eighth of all,
/// so that no game blocks the others.
pub const WAITING: usize = LOG_WRITES / 8;

/// The rate limits on records and bytes, by sender.
#[derive(Debug)]
pub struct LogRates {
    /// By network address.
    pub by_address: Limiter<Network>,
    /// By environment of a project, as its audience.
    pub by_game: Limiter<Arc<str>>,
    /// Bytes by network address: a hundred records may have 1 kB or 64 kB.
    pub bytes_by_address: Limiter<Network>,
    /// Bytes by environment of a project, as its audience.
    pub bytes_by_game: Limiter<Arc<str>>,
}

impl LogLimits {
    /// Creates the limits of the settings.
    #[must_use]
    pub fn new(config: &Config, clock: &Arc<dyn Clock>) -> Self {
        let rates = || LogRates {
            by_address: Limiter::new(&config.log_rate, Arc::clone(clock)),
            by_game: Limiter::new(&config.log_rate_game, Arc::clone(clock)),
            bytes_by_address: Limiter::new(&config.log_bytes_rate, Arc::clone(clock)),
            bytes_by_game: Limiter::new(&config.log_bytes_rate_game, Arc::clone(clock)),
        };
        // As many requests as both limits allow together, with one record each.
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

    /// Removes keys that have been quiet for long enough.
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

/// Removes records that are older than the setting, in small writes, and returns their number.
///
/// # Errors
/// Errors of the store; records that were already removed stay removed.
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

/// Removes the oldest records of each project whose records exceed `quota` bytes, in small writes,
/// up to a maximum number per check. Returns the number of records.
///
/// # Errors
/// Errors of the store; records that were already removed stay removed.
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

/// The job that sweeps: records over the quota in every run, and old records in some runs.
#[derive(Debug)]
pub(crate) struct SweepLogs {
    state: Arc<LogsState>,
    runs: u64,
    /// The number of records over the quota that were removed since this was last logged.
    beyond: usize,
}

impl SweepLogs {
    /// Creates the job.
    pub(crate) const fn new(state: Arc<LogsState>) -> Self {
        Self {
            state,
            runs: 0,
            beyond: 0,
        }
    }

    async fn sweep_quota(&mut self) -> Result<(), JobError> {
        let platform = &self.state.platform;
        if let Some(quota) = platform.config.log_quota() {
            let swept = sweep_quota(&*platform.store, quota).await;
            let failed = JobError::because("log records beyond their quota could not be removed");
            self.beyond += swept.map_err(failed)?;
        }
        Ok(())
    }

    async fn sweep_old(&mut self) -> Result<(), JobError> {
        let beyond = std::mem::take(&mut self.beyond);
        let platform = &self.state.platform;
        let days = platform.config.log_retention_days;
        let old = sweep(&*platform.store, days, platform.clock.now()).await;
        if let Ok(old) = old
            && old + beyond > 0
        {
            tracing::info!(old, beyond, "frontend log records were removed");
        }
        // Records that arrived after their project was removed, or that remained when the server
        // stopped.
        let removed = sweep_removed(&*platform.store).await;
        JobError::join([
            old.map(drop)
                .map_err(JobError::because("old log records could not be removed")),
            removed.map(drop).map_err(JobError::because(
                "log records of removed projects could not be removed",
            )),
        ])
    }
}

#[async_trait]
impl Job for SweepLogs {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("sweep-logs", LOOK).once()
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let is_old_due = self.runs.is_multiple_of(LOOKS_BY_AGE);
        self.runs += 1;
        let quota = self.sweep_quota().await;
        let old = if is_old_due {
            self.sweep_old().await
        } else {
            Ok(())
        };
        JobError::join([quota, old])
    }
}
