//! What the crowd knows to be true, because the platform has acknowledged it.
//!
//! If a response was lost, the crowd does not know what happened. Then the truth is a range.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

/// How long a player counts as playing after a heartbeat.
const PLAYING: Duration = Duration::from_secs(75);
/// How much earlier or later the platform may have seen a heartbeat than its response arrived.
const MARGIN: Duration = Duration::from_secs(3);
/// The size of a log record beside its texts, as quotas count it.
const RECORD: u64 = 160;
/// Players who played this long count for the ranking.
const COUNTS: Duration = Duration::from_secs(60);

/// An open page, or one that was left without a word.
#[derive(Debug)]
struct Page {
    player: Uuid,
    last: Instant,
    /// A response was lost: it may be counted or not.
    is_doubtful: bool,
}

/// The playing time of a player.
#[derive(Debug)]
struct Played {
    last: Instant,
    time: Duration,
}

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Truth {
    pages: HashMap<String, Page>,
    played: HashMap<Uuid, Played>,
    /// Players whose only heartbeats had no response.
    doubtful_players: HashSet<Uuid>,
    /// Bytes of log records, as quotas count them: acknowledged, and without a response.
    log_bytes: u64,
    doubtful_log_bytes: u64,
    /// Players at moments five seconds apart, with the length of time that each stands for.
    samples: Vec<(Instant, f64)>,
}

impl Truth {
    /// A heartbeat was acknowledged, or its response was lost.
    pub(super) fn beat(&mut self, page: &str, player: Uuid, is_sure: bool) {
        let now = Instant::now();
        let entry = self.pages.entry(page.to_owned());
        let entry = entry.or_insert(Page {
            player,
            last: now,
            is_doubtful: !is_sure,
        });
        entry.last = now;
        entry.is_doubtful = !is_sure;
        if !is_sure {
            self.doubtful_players.insert(player);
            return;
        }
        let played = self.played.entry(player).or_insert(Played {
            last: now,
            time: Duration::ZERO,
        });
        let gap = now.duration_since(played.last);
        if gap <= PLAYING {
            played.time += gap;
        }
        played.last = now;
    }

    /// The last heartbeat of a page was acknowledged, or its response was lost.
    pub(super) fn left(&mut self, page: &str, is_sure: bool) {
        if is_sure {
            self.pages.remove(page);
        } else if let Some(page) = self.pages.get_mut(page) {
            page.is_doubtful = true;
        }
    }

    /// Log records were acknowledged, or their response was lost.
    pub(super) fn logged(&mut self, texts: &[String], is_sure: bool) {
        let bytes: u64 = texts.iter().map(|text| text.len() as u64 + RECORD).sum();
        if is_sure {
            self.log_bytes += bytes;
        } else {
            self.doubtful_log_bytes += bytes;
        }
    }

    /// Returns how many players play now.
    pub(super) fn players_now(&self) -> RangeInclusive<f64> {
        let now = Instant::now();
        let players = |is_counted: &dyn Fn(&Page) -> bool| {
            let pages = self.pages.values().filter(|page| is_counted(page));
            let players: HashSet<Uuid> = pages.map(|page| page.player).collect();
            players.len() as f64
        };
        let since = |page: &Page| now.duration_since(page.last);
        let least = players(&|page| !page.is_doubtful && since(page) <= PLAYING - MARGIN);
        let most = players(&|page| since(page) <= PLAYING + MARGIN);
        least..=most
    }

    /// Notes how many players play now, which stands for the time since the last note.
    pub(super) fn sample(&mut self, began: Instant) {
        let now = Instant::now();
        let last = self.samples.last().map_or(began, |(moment, _)| *moment);
        let range = self.players_now();
        let middle = f64::midpoint(*range.start(), *range.end());
        let seconds = now.duration_since(last).as_secs_f64();
        self.samples.push((now, middle * seconds));
        // Pages that nobody counts any more.
        self.pages
            .retain(|_, page| now.duration_since(page.last) <= PLAYING + MARGIN);
    }

    /// Returns the playing time of all players until so long ago, in seconds.
    pub(super) fn play_time(&self, ago: Duration) -> f64 {
        let now = Instant::now();
        let samples = self.samples.iter();
        let until = samples.filter(|(moment, _)| now.duration_since(*moment) >= ago);
        until.map(|(_, seconds)| seconds).sum()
    }

    /// Returns how many players have played.
    pub(super) fn players(&self) -> RangeInclusive<f64> {
        let least = self.played.len();
        let played = |player: &&Uuid| !self.played.contains_key(*player);
        let more = self.doubtful_players.iter().filter(played).count();
        least as f64..=(least + more) as f64
    }

    /// Returns how many players have played for a minute or more.
    pub(super) fn players_of_a_minute(&self) -> RangeInclusive<f64> {
        let longer = |than: Duration| {
            let played = self.played.values();
            played.filter(|played| played.time >= than).count() as f64
        };
        longer(COUNTS + MARGIN)..=longer(COUNTS - MARGIN) + self.doubtful_players.len() as f64
    }

    /// Returns the size of all log records.
    pub(super) fn log_bytes(&self) -> RangeInclusive<f64> {
        let most = self.log_bytes + self.doubtful_log_bytes;
        self.log_bytes as f64..=most as f64
    }
}
