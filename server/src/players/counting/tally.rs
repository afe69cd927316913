//! The counts of one environment since they were last stored.
//!
//! The players are distributed over shards by their id, so that heartbeats of different players
//! rarely wait for each other. No two locks are held at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use platform_protocol::names::Environment;
use uuid::Uuid;

use crate::clock::Millis;
use crate::domain::counting::{
    Distinct, DistinctSketch, NewCounts, NewPlayTime, PlayerCount, Span, periods,
};
use crate::domain::presence::{PLAYING_MILLIS, played};

/// The number of shards.
const SHARDS: usize = 16;
/// How much later than another heartbeat one may arrive here that came before it: what other nodes
/// say about one may take longer.
const OVERTAKEN: Millis = 2_000;

/// The counts of one environment.
#[derive(Debug)]
pub struct Tally {
    slug: String,
    environment: Environment,
    /// The audience of its tokens.
    pub audience: Arc<str>,
    players: [Mutex<HashMap<Uuid, Play>>; SHARDS],
    distinct: Mutex<Periods>,
    minutes: Mutex<Vec<PlayerCount>>,
}

/// How long one player has played since this was last stored.
#[derive(Clone, Copy, Debug)]
struct Play {
    /// The time of the last heartbeat.
    last: Millis,
    /// The playing time in milliseconds.
    unkept: i64,
    /// The day of the heartbeat that was added to the sketches.
    day: i64,
}

/// The unique players of periods that have changed since they were stored: the current day and
/// month, and those that have just ended.
#[derive(Debug, Default)]
struct Periods(Vec<Period>);

#[derive(Debug)]
struct Period {
    name: String,
    players: Distinct,
    changed: bool,
}

/// The counts collected since they were last taken.
#[derive(Debug)]
pub struct Taken {
    /// Minutes and sketches.
    pub counts: NewCounts,
    /// The playing times of players.
    pub times: Vec<NewPlayTime>,
}

/// A panic of a holder leaves no partial change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn day(time: Millis) -> i64 {
    time.div_euclid(crate::domain::counting::DAY)
}

impl Tally {
    /// Creates an empty tally.
    #[must_use]
    pub fn new(slug: String, environment: Environment, audience: Arc<str>) -> Self {
        Self {
            slug,
            environment,
            audience,
            players: Default::default(),
            distinct: Mutex::default(),
            minutes: Mutex::default(),
        }
    }

    /// Continues a stored sketch of a period that has not ended.
    pub(super) fn resume(&self, sketch: DistinctSketch) {
        lock(&self.distinct).0.push(Period {
            name: sketch.period,
            players: sketch.players,
            changed: false,
        });
    }

    fn shard(&self, player: Uuid) -> MutexGuard<'_, HashMap<Uuid, Play>> {
        // The last bytes of a UUID are random, in version 4 and 7.
        lock(&self.players[usize::from(player.as_bytes()[15]) % SHARDS])
    }

    /// Counts a heartbeat of a player. The time between two heartbeats is playing time, if it is
    /// not longer than a player counts as playing after a heartbeat. `shared` is the time since the
    /// last one on any node, if that is known.
    pub fn beat(&self, player: Uuid, now: Millis, shared: Option<Millis>) {
        let today = day(now);
        let is_new = {
            let mut players = self.shard(player);
            let mut here = None;
            let play = players
                .entry(player)
                .and_modify(|play| here = Some(now - play.last))
                .or_insert(Play {
                    last: now,
                    unkept: 0,
                    day: i64::MIN,
                });
            play.unkept += played(here, shared);
            // The time from this heartbeat to one that overtook it was counted with that one.
            if !here.is_some_and(|gap| (-OVERTAKEN..0).contains(&gap)) {
                play.last = now;
            }
            std::mem::replace(&mut play.day, today) != today
        };
        if is_new {
            lock(&self.distinct).add(player, now);
        }
    }

    /// Records that `playing` players played for the last `elapsed` milliseconds.
    pub(super) fn look(&self, playing: usize, elapsed: Millis, now: Millis) {
        if playing == 0 {
            return;
        }
        let count = u32::try_from(playing).unwrap_or(u32::MAX);
        let start = Span::Minute.start(now);
        let mut minutes = lock(&self.minutes);
        let player_millis = i64::from(count) * elapsed;
        match minutes.last_mut().filter(|minute| minute.start == start) {
            Some(minute) => {
                minute.peak = minute.peak.max(count);
                minute.player_millis += player_millis;
            }
            None => minutes.push(PlayerCount {
                start,
                peak: count,
                player_millis,
            }),
        }
    }

    /// Takes the counts to be stored, and removes players who do not play any more.
    pub(super) fn take(&self, now: Millis) -> Taken {
        let mut times = Vec::new();
        for shard in &self.players {
            let mut players = lock(shard);
            for (player, play) in players.iter_mut() {
                let millis = std::mem::take(&mut play.unkept);
                if millis > 0 {
                    times.push(self.play_time(*player, millis, now));
                }
            }
            players.retain(|_, play| (now - play.last).abs() <= PLAYING_MILLIS);
            if players.capacity() > 4 * (players.len() + 16) {
                players.shrink_to_fit();
            }
        }
        let counts = NewCounts {
            slug: self.slug.clone(),
            environment: self.environment,
            minutes: std::mem::take(&mut *lock(&self.minutes)),
            distinct: lock(&self.distinct).take(now),
        };
        Taken { counts, times }
    }

    fn play_time(&self, player: Uuid, millis: i64, now: Millis) -> NewPlayTime {
        NewPlayTime {
            slug: self.slug.clone(),
            environment: self.environment,
            player,
            hour: Span::Hour.start(now),
            millis,
        }
    }

    /// Returns counts that could not be stored.
    pub(super) fn put_back(&self, counts: NewCounts) {
        let mut minutes = lock(&self.minutes);
        let newer = std::mem::replace(&mut *minutes, counts.minutes);
        minutes.extend(newer);
        drop(minutes);
        lock(&self.distinct).put_back(counts.distinct);
    }

    /// Returns a player's time that could not be stored.
    pub(super) fn put_back_time(&self, time: &NewPlayTime) {
        let mut players = self.shard(time.player);
        let play = players.entry(time.player).or_insert(Play {
            // This is so long ago that the next heartbeat starts a new interval.
            last: time.hour - PLAYING_MILLIS,
            unkept: 0,
            day: i64::MIN,
        });
        play.unkept += time.millis;
    }
}

impl Periods {
    fn add(&mut self, player: Uuid, now: Millis) {
        for name in periods(now) {
            let known = self.0.iter_mut().find(|period| period.name == name);
            if let Some(period) = known {
                period.players.add(player);
                period.changed = true;
            } else {
                let mut players = Distinct::default();
                players.add(player);
                self.0.push(Period {
                    name,
                    players,
                    changed: true,
                });
            }
        }
    }

    fn take(&mut self, now: Millis) -> Vec<DistinctSketch> {
        let changed = self.0.iter_mut().filter(|period| period.changed);
        let taken = changed
            .map(|period| {
                period.changed = false;
                DistinctSketch {
                    period: period.name.clone(),
                    players: period.players.clone(),
                }
            })
            .collect();
        let running = periods(now);
        self.0.retain(|period| running.contains(&period.name));
        taken
    }

    fn put_back(&mut self, sketches: Vec<DistinctSketch>) {
        for DistinctSketch { period, players } in sketches {
            match self.0.iter_mut().find(|known| known.name == period) {
                // It contains everything that was taken from it, and more.
                Some(known) => known.changed = true,
                None => self.0.push(Period {
                    name: period,
                    players,
                    changed: true,
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::counting::{DAY, HOUR, MINUTE};

    /// In the middle of a minute, an hour and a day.
    const NOW: Millis = 1_795_219_230_000;

    fn tally() -> Tally {
        Tally::new("game".into(), Environment::Prod, "game:game".into())
    }

    fn player(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    #[test]
    fn what_lies_between_two_beats_was_played() {
        let tally = tally();
        for at in [0, 30_000, 60_000, 135_000, 211_000, 211_000] {
            tally.beat(player(1), NOW + at, None);
        }
        // The gap of 76 s does not count as playing time.
        let times = tally.take(NOW + 211_000).times;
        assert_eq!(times.len(), 1);
        assert_eq!(times[0].millis, 135_000);
        assert_eq!(times[0].hour, Span::Hour.start(NOW));
        tally.beat(player(1), NOW + 241_000, None);
        assert_eq!(tally.take(NOW + 241_000).times[0].millis, 30_000);
        assert!(tally.take(NOW + 241_000).times.is_empty());
    }

    #[test]
    fn pages_of_one_player_play_no_longer_than_the_player() {
        let tally = tally();
        for at in 0..=60 {
            tally.beat(player(1), NOW + at * 1_000, None);
        }
        assert_eq!(tally.take(NOW).times[0].millis, 60_000);
    }

    #[test]
    fn what_lies_between_beats_at_different_nodes_was_played() {
        let (one, two) = (tally(), tally());
        one.beat(player(1), NOW, Some(0));
        two.beat(player(1), NOW + 30_000, Some(30_000));
        two.beat(player(1), NOW + 60_000, Some(30_000));
        one.beat(player(1), NOW + 70_000, Some(10_000));
        let millis = |tally: &Tally| tally.take(NOW + 70_000).times[0].millis;
        assert_eq!((millis(&one), millis(&two)), (10_000, 60_000));
    }

    #[test]
    fn a_heartbeat_that_another_one_overtook_counts_once() {
        let tally = tally();
        tally.beat(player(1), NOW, Some(0));
        tally.beat(player(1), NOW + 31_000, Some(1_000));
        tally.beat(player(1), NOW + 30_000, Some(30_000));
        tally.beat(player(1), NOW + 61_000, None);
        assert_eq!(tally.take(NOW + 61_000).times[0].millis, 61_000);
    }

    #[test]
    fn a_clock_set_back_adds_no_play() {
        let tally = tally();
        tally.beat(player(1), NOW, None);
        tally.beat(player(1), NOW - HOUR, None);
        tally.beat(player(1), NOW - HOUR + 30_000, None);
        assert_eq!(tally.take(NOW).times[0].millis, 30_000);
    }

    #[test]
    fn each_minute_has_its_peak_and_what_was_played_in_it() {
        let tally = tally();
        let start = Span::Minute.start(NOW);
        for (playing, at) in [(2, 5_000), (5, 10_000), (0, 15_000), (1, 65_000)] {
            tally.look(playing, 5_000, start + at);
        }
        let count = |start, peak, player_millis| PlayerCount {
            start,
            peak,
            player_millis,
        };
        assert_eq!(
            tally.take(NOW).counts.minutes,
            [count(start, 5, 35_000), count(start + MINUTE, 1, 5_000)]
        );
    }

    #[test]
    fn a_player_is_one_a_day_and_one_a_month() {
        let tally = tally();
        let numbers = |taken: Taken| -> Vec<(String, u64)> {
            let sketches = taken.counts.distinct.into_iter();
            sketches
                .map(|sketch| (sketch.period, sketch.players.count()))
                .collect()
        };
        for number in [1, 2, 2, 1] {
            tally.beat(player(number), NOW, None);
        }
        let both = [("2026-11-21".to_owned(), 2), ("2026-11".to_owned(), 2)];
        assert_eq!(numbers(tally.take(NOW)), both);
        assert!(numbers(tally.take(NOW)).is_empty(), "nothing changed");
        tally.beat(player(1), NOW + DAY, None);
        let next = [("2026-11".to_owned(), 2), ("2026-11-22".to_owned(), 1)];
        assert_eq!(numbers(tally.take(NOW + DAY)), next);
    }

    #[test]
    fn what_could_not_be_kept_is_kept_the_next_time() {
        let tally = tally();
        tally.beat(player(1), NOW, None);
        tally.beat(player(1), NOW + 30_000, None);
        tally.look(1, 5_000, NOW);
        let taken = tally.take(NOW + 30_000);
        tally.look(3, 5_000, NOW + MINUTE);
        tally.put_back(taken.counts);
        tally.put_back_time(&taken.times[0]);
        let again = tally.take(NOW + 2 * MINUTE);
        assert_eq!(again.times, taken.times);
        assert_eq!(again.counts.minutes.len(), 2);
        assert_eq!(again.counts.distinct.len(), 2);
    }
}
