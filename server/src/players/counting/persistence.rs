//! Keeping what was counted, and removing what is old.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::Counting;
use super::tally::Taken;
use crate::clock::Millis;
use crate::domain::counting::{DAY, HOUR, NewPlayTime, Span, periods};
use crate::games::live::{LiveError, Presence};
use crate::platform::jobs::{Job, JobError, Schedule};
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

/// Looks at the players every few seconds, keeps what was counted every minute, and
/// removes what is old every hour.
#[derive(Debug)]
pub(crate) struct CountPlayers {
    state: Arc<PlayersState>,
    minute: Option<Millis>,
    hour: Option<Millis>,
}

impl CountPlayers {
    /// Has not looked yet.
    pub(crate) const fn new(state: Arc<PlayersState>) -> Self {
        Self {
            state,
            minute: None,
            hour: None,
        }
    }

    async fn look(&self, now: Millis) -> Result<(), JobError> {
        let looked = self.state.counting.look(&*self.state.games.presence, now);
        let failed = JobError::because("the players could not be counted");
        looked.await.map_err(failed)
    }

    async fn keep(&self, now: Millis) -> Result<(), JobError> {
        let kept = self.state.counting.keep(&*self.state.platform.store, now);
        let failed = JobError::because("what was counted of players could not be kept");
        kept.await.map_err(failed)
    }

    async fn rank(&self, now: Millis) -> Result<(), JobError> {
        let ranking = &self.state.counting.ranking;
        let ranked = ranking.refresh(&*self.state.platform.store, now).await;
        ranked.map_err(JobError::because("the games could not be ranked"))
    }

    async fn sweep(&self, now: Millis) -> Result<(), JobError> {
        let swept = sweep(&*self.state.platform.store, now).await;
        swept.map_err(JobError::because(
            "old counts of players could not be removed",
        ))
    }
}

#[async_trait]
impl Job for CountPlayers {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("count-players", LOOK)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let now = self.state.platform.clock.now();
        let (minute, hour) = (Span::Minute.start(now), Span::Hour.start(now));
        let mut done = Ok(());
        if self.minute.is_none() {
            // What was kept until the last stop is ranked at once.
            self.minute = Some(minute);
            done = self.rank(now).await;
        }
        done = done.and(self.look(now).await);
        if self.minute.replace(minute) != Some(minute) {
            done = done.and(self.keep(now).await);
            done = done.and(self.rank(now).await);
        }
        if self.hour.replace(hour) != Some(hour) {
            done = done.and(self.sweep(now).await);
        }
        done
    }
}
