//! Records that a preview is used, at most once a day: one that nobody uses ends
//! ([`crate::domain::preview`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::http::HeaderMap;

use crate::domain::errors::chain;
use crate::domain::preview::day_of;
use crate::games::catalogue::Game;
use crate::hosting::HostingState;
use crate::web::navigation::is_navigation;

/// Records the use of a preview if a browser opens a page of it. The page does not wait for this,
/// and does not depend on it.
pub fn note(state: &HostingState, game: &Game, headers: &HeaderMap) {
    let Some(preview) = &game.preview else {
        return;
    };
    if !is_navigation(headers) {
        return;
    }
    let day = day_of(state.platform.clock.now());
    // Of many pages that are opened at once, one records it.
    if preview.used_at.fetch_max(day, Ordering::Relaxed) >= day {
        return;
    }
    let (store, slug) = (Arc::clone(&state.platform.store), game.slug.clone());
    let preview = Arc::clone(preview);
    tokio::spawn(async move {
        // If this fails, the next reading of the games resets the day.
        if let Err(error) = store.note_preview_use(&slug, &preview.name, day).await {
            let error = chain(&error);
            tracing::warn!(error, %slug, "the use of a preview was not recorded");
        }
    });
}
