//! Stores counts, and removes old ones.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::Counting;
use super::tally::Taken;
use crate::clock::Millis;
use crate::domain::counting::{DAY, HOUR, NewCounts, NewPlayTime, Span, periods};
use crate::domain::player_game::PLAYED_MAX_AGE;
use crate::games::catalogue::Game;
use crate::games::live::Presence;
use crate::platform::jobs::{Job, JobError, Leases as _, Schedule};
use crate::players::PlayersState;
use crate::store::{Store, StoreError};

/// How often the number of players is sampled.
pub const LOOK: Duration = Duration::from_secs(5);
/// The maximum time that one sample stands for: a machine that slept had no players in that time.
const MAX_ELAPSED: Millis = 10_000;
/// The maximum number of players' playing times per write, so that other writes do not wait long.
const BATCH: usize = 500;
/// How long minutes are kept. Hours are kept permanently.
const MINUTES_KEPT: Millis = 90 * DAY;
/// How long each player's playing time is kept. The ranking is for one day.
const PLAY_KEPT: Millis = DAY + HOUR;

impl Counting {
    /// Samples the current number of players of every game with players on this node, which must be
    /// the only one.
    pub async fn look(&self, presence: &dyn Presence, now: Millis) {
        let tallies = self.tallies.load_full();
        let audiences: Vec<&str> = tallies.values().map(|tally| &*tally.audience).collect();
        let elapsed = self.elapsed(now).await;
        let playing = presence.playing_each(&audiences, now).await;
        for (tally, playing) in tallies.values().zip(playing) {
            tally.look(playing.unwrap_or(0), elapsed, now);
        }
    }

    /// Samples the current number of players of these games, on all nodes. Only one node may do
    /// this. If the number is not known, there is no sample.
    pub async fn look_everywhere(&self, presence: &dyn Presence, games: &[Arc<Game>], now: Millis) {
        let audiences: Vec<&str> = games.iter().map(|game| &*game.audience).collect();
        let elapsed = self.elapsed(now).await;
        let playing = presence.playing_each(&audiences, now).await;
        for (game, playing) in games.iter().zip(playing) {
            if let Some(playing) = playing.filter(|playing| *playing > 0) {
                self.tally_of(game).look(playing, elapsed, now);
            }
        }
    }

    /// Returns the time that a sample stands for.
    async fn elapsed(&self, now: Millis) -> Millis {
        let before = self.looked.lock().await.replace(now);
        before.map_or(0, |before| (now - before).clamp(0, MAX_ELAPSED))
    }

    /// Stores the collected counts. If this fails, they are stored the next time. What may have been
    /// stored although no answer came is not added again, because it could count twice; players are
    /// counted once however often they are stored.
    ///
    /// # Errors
    /// The first error of the store.
    pub async fn keep(&self, store: &dyn Store, now: Millis) -> Result<(), StoreError> {
        let mut first = Ok(());
        for tally in self.tallies.load_full().values() {
            let Taken { counts, times } = tally.take(now);
            if !counts.minutes.is_empty() || !counts.distinct.is_empty() {
                let kept = store.add_player_counts(vec![counts.clone()]).await;
                if let Err(error) = kept {
                    if may_have_happened(&error) {
                        tally.put_back(NewCounts {
                            minutes: Vec::new(),
                            ..counts
                        });
                    } else {
                        tally.put_back(counts);
                    }
                    first = first.and(Err(error));
                }
            }
            for batch in times.chunks(BATCH) {
                let kept = store.add_play_times(batch.to_vec()).await;
                if let Err(error) = kept {
                    if !may_have_happened(&error) {
                        batch.iter().for_each(|time: &NewPlayTime| {
                            tally.put_back_time(time);
                        });
                    }
                    first = first.and(Err(error));
                }
            }
        }
        first
    }
}

const fn may_have_happened(error: &StoreError) -> bool {
    matches!(error, StoreError::Uncertain(_))
}

/// Removes counts that are too old to be shown, in small writes.
///
/// # Errors
/// Errors of the store; counts that were already removed stay removed.
pub async fn sweep(store: &dyn Store, now: Millis) -> Result<(), StoreError> {
    loop {
        // Other nodes may not have stored their last counts of a period that has just ended.
        let running = [periods(now), periods(now - HOUR)].concat();
        let removed = store.sweep_counts(now - MINUTES_KEPT, now - PLAY_KEPT, running, BATCH);
        let forgotten = store.sweep_played(now - PLAYED_MAX_AGE, BATCH);
        if removed.await?.max(forgotten.await?) < BATCH {
            return Ok(());
        }
    }
}

/// The job that samples players every few seconds, stores counts every minute, and removes old ones
/// every hour.
#[derive(Debug)]
pub(crate) struct CountPlayers {
    state: Arc<PlayersState>,
    minute: Option<Millis>,
    hour: Option<Millis>,
}

impl CountPlayers {
    /// Creates the job.
    pub(crate) const fn new(state: Arc<PlayersState>) -> Self {
        Self {
            state,
            minute: None,
            hour: None,
        }
    }

    async fn look(&self, now: Millis) {
        let (counting, games) = (&self.state.counting, &self.state.games);
        let presence = &*games.presence;
        if !presence.is_shared() {
            counting.look(presence, now).await;
        } else if self.state.platform.nodes.take("count-playing").await {
            let all = games.catalogue.all();
            counting.look_everywhere(presence, &all, now).await;
        }
    }

    async fn keep(&self, now: Millis) -> Result<(), JobError> {
        let kept = self.state.counting.keep(&*self.state.platform.store, now);
        let failed = JobError::because("the counts of players could not be stored");
        kept.await.map_err(failed)
    }

    async fn rank(&self, now: Millis) -> Result<(), JobError> {
        let (ranking, platform) = (&self.state.counting.ranking, &self.state.platform);
        let ranked = if !platform.store.is_shared() {
            ranking.refresh(&*platform.store, now).await
        } else if platform.nodes.take("rank-games").await {
            ranking.refresh_for_all(&*platform.store, now).await
        } else {
            ranking.read(&*platform.store).await
        };
        ranked.map_err(JobError::because("the games could not be ranked"))
    }

    async fn sweep(&self, now: Millis) -> Result<(), JobError> {
        let platform = &self.state.platform;
        if !platform.nodes.may_remove_by_age() || !platform.nodes.take("sweep-counts").await {
            return Ok(());
        }
        let swept = sweep(&*platform.store, now).await;
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
            // The counts that were stored before the last stop are ranked at once.
            self.minute = Some(minute);
            done = self.rank(now).await;
        }
        self.look(now).await;
        if self.minute.replace(minute) != Some(minute) {
            done = JobError::join([done, self.keep(now).await, self.rank(now).await]);
        }
        if self.hour.replace(hour) != Some(hour) {
            done = JobError::join([done, self.sweep(now).await]);
        }
        done
    }
}
