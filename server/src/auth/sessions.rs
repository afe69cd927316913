//! Sweeping sessions, sign-ins and routine events that mean nothing any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::auth::AuthState;
use crate::clock::Millis;
use crate::http::api_error::chain;
use crate::store::{Store, StoreError};

/// How often it is looked for them.
const LOOK: Duration = Duration::from_secs(10 * 60);
/// How many one write removes, so that no player waits for it.
const BATCH: usize = 500;

/// Removes all of them, in small writes. Answers how many.
///
/// # Errors
/// The store's; what was removed until then stays so.
pub async fn sweep(store: &dyn Store, now: Millis) -> Result<usize, StoreError> {
    let mut removed = 0;
    loop {
        let batch = store.sweep_sessions(now, BATCH).await?;
        removed += batch;
        if batch == 0 {
            break;
        }
    }
    loop {
        let batch = store.sweep_audit_events(now, BATCH).await?;
        removed += batch;
        if batch == 0 {
            return Ok(removed);
        }
    }
}

/// Sweeps now and then, for as long as the server runs.
pub(crate) async fn keep_swept(state: Arc<AuthState>) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match sweep(&*state.platform.store, state.platform.clock.now()).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "old sessions and sign-ins were removed"),
            Err(error) => tracing::warn!(
                error = chain(&error),
                "old sessions and sign-ins could not be removed"
            ),
        }
    }
}
