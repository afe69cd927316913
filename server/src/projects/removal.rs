//! Removes deleted projects after their grace period, and their remaining data.

use crate::domain::takedown::GRACE;
use crate::projects::ProjectsState;
use crate::store::{Removed, Store, StoreError};

/// The maximum number of log records that one write removes, so that other writes do not wait long.
const BATCH: usize = 50;

/// Removes deleted projects after their grace period, and returns their number.
///
/// # Errors
/// Errors of the store; the remaining projects are removed next time.
pub async fn remove_deleted(state: &ProjectsState) -> Result<usize, StoreError> {
    let now = state.platform.clock.now();
    let mut removed = 0;
    while let Some(part) = state
        .platform
        .store
        .remove_deleted(now - GRACE, now)
        .await?
    {
        if let Removed::Whole(slug) = part {
            tracing::info!(%slug, "a deleted project was removed permanently");
            state.hosting.read(&slug).await?;
            removed += 1;
        }
    }
    if removed > 0 {
        sweep_removed(&*state.platform.store).await?;
    }
    Ok(removed)
}

/// Removes the remaining data of projects that were removed, in small writes. Returns the number of
/// records and environments.
///
/// # Errors
/// Errors of the store; data that was already removed stays removed.
pub async fn sweep_removed(store: &dyn Store) -> Result<usize, StoreError> {
    let mut removed = 0;
    loop {
        match store.sweep_removed_logs(BATCH).await? {
            0 => return Ok(removed),
            batch => removed += batch,
        }
    }
}
