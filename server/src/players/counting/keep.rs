//! Keeping what was counted, and removing what is old.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::Counting;
use super::tally::Taken;
use crate::clock::Millis;
use crate::domain::counting::{DAY, HOUR, NewPlayTime, Span, periods};
use crate::games::live::{LiveError, Presence};
use crate::http::api_error::chain;
use crate::players::PlayersState;
use crate::store::{Store, StoreError};

/// How often the players are looked at.
pub const LOOK: Duration = Duration::from_secs(5);
/// What one look stands for at most: a machine that slept saw nobody play.
const MAX_ELAPSED: Millis = 10_000;
/// Players whose play is kept in one write: others' writes go in between.
const BATCH: usize = 500;
/// How long minutes are kept. Hours stay.
const MINUTES_KEPT: Millis = 90 * DAY;
/// How long it is known how long each player played. The ranking is of a day.
const PLAY_KEPT: Millis = DAY + HOUR;

impl Counting {
    /// Notes how many play now, everywhere.
    ///
    /// # Errors
    /// That of presence.
    pub async fn look(&self, presence: &dyn Presence, now: Millis) -> Result<(), LiveError> {
        let mut looked = self.looked.lock().await;
        let elapsed = looked.map_or(0, |before| (now - before).clamp(0, MAX_ELAPSED));
        *looked = Some(now);
        for tally in self.tallies.load_full().values() {
            let playing = presence.playing(&tally.audience, now).await?;
            tally.look(playing, elapsed, now);
        }
        Ok(())
    }

    /// Keeps what has come together. What cannot be kept now is kept the next
    /// time.
    ///
    /// # Errors
    /// The store's first.
    pub async fn keep(&self, store: &dyn Store, now: Millis) -> Result<(), StoreError> {
        let mut first = Ok(());
        for tally in self.tallies.load_full().values() {
            let Taken { counts, times } = tally.take(now);
            if !counts.minutes.is_empty() || !counts.distinct.is_empty() {
                let kept = store.add_player_counts(vec![counts.clone()]).await;
                if let Err(error) = kept {
                    tally.put_back(counts);
                    first = first.and(Err(error));
                }
            }
            for batch in times.chunks(BATCH) {
                let kept = store.add_play_times(batch.to_vec()).await;
                if let Err(error) = kept {
                    batch.iter().for_each(|time: &NewPlayTime| {
                        tally.put_back_time(time);
                    });
                    first = first.and(Err(error));
                }
            }
        }
        first
    }
}

/// Removes what is too old to be shown, in small writes.
///
/// # Errors
/// The store's; what was removed until then stays so.
pub async fn sweep(store: &dyn Store, now: Millis) -> Result<(), StoreError> {
    loop {
        let running = periods(now).into();
        let removed = store.sweep_counts(now - MINUTES_KEPT, now - PLAY_KEPT, running, BATCH);
        if removed.await? < BATCH {
            return Ok(());
        }
    }
}

/// Looks at the players every few seconds, keeps them every minute, and removes
/// what is old every hour, for as long as the server runs.
pub(crate) async fn keep_counting(state: Arc<PlayersState>) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ranked = state
        .counting
        .ranking
        .refresh(&*state.platform.store, state.platform.clock.now());
    note(ranked.await, "ranked");
    let mut minute = Some(Span::Minute.start(state.platform.clock.now()));
    let mut hour = None;
    loop {
        ticks.tick().await;
        let now = state.platform.clock.now();
        if let Err(error) = state.counting.look(&*state.games.presence, now).await {
            tracing::warn!(error = chain(&error), "the players could not be counted");
        }
        if minute.replace(Span::Minute.start(now)) != Some(Span::Minute.start(now)) {
            note(
                state.counting.keep(&*state.platform.store, now).await,
                "kept",
            );
            let ranked = state
                .counting
                .ranking
                .refresh(&*state.platform.store, now)
                .await;
            note(ranked, "ranked");
        }
        if hour.replace(Span::Hour.start(now)) != Some(Span::Hour.start(now)) {
            note(sweep(&*state.platform.store, now).await, "swept");
        }
    }
}

fn note(done: Result<(), StoreError>, what: &'static str) {
    if let Err(error) = done {
        tracing::warn!(error = chain(&error), "the players could not be {what}");
    }
}
