//! The end of projects whose days of grace are over, and of what they leave behind.

use crate::domain::takedown::GRACE;
use crate::projects::ProjectsState;
use crate::store::{Removed, Store, StoreError};

/// Log records that one write removes: others' writes go in between.
const BATCH: usize = 50;

/// Removes the projects whose days of grace are over. Answers how many.
///
/// # Errors
/// The store's; the rest is removed next time.
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
            tracing::info!(%slug, "a deleted project was removed for good");
            state.hosting.refresh(&slug).await?;
            removed += 1;
        }
    }
    if removed > 0 {
        sweep_removed(&*state.platform.store).await?;
    }
    Ok(removed)
}

/// Removes what is left of projects that were removed for good, in small writes.
/// Returns how many records and environments it removed.
///
/// # Errors
/// The store's; what was removed until then stays so.
pub async fn sweep_removed(store: &dyn Store) -> Result<usize, StoreError> {
    let mut removed = 0;
    loop {
        match store.sweep_removed_logs(BATCH).await? {
            0 => return Ok(removed),
            batch => removed += batch,
        }
    }
}
