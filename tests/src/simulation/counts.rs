//! What the platform shows to owners and players, compared with what the crowd knows.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::truth::Truth;
use super::{Place, Plan, number};
use crate::crowd;
use crate::owner::Owner;
use crate::visitor::Visitor;

/// How often the platform is asked again until its counts are right.
const AGAIN: Duration = Duration::from_secs(3);
/// A player is counted for so long after the last heartbeat.
const COUNTED: Duration = Duration::from_secs(75);
/// So much later everything of a minute is in the store: the minute ends, and it is stored.
const STORED: Duration = Duration::from_secs(75);
/// The node that ranks the games may do so before another one has stored the minute.
const RANKED: Duration = Duration::from_secs(60);
/// Different players are estimated by a sketch with a standard error of 1.6 %.
const DISTINCT: f64 = 0.05;
/// Playing time is sampled every five seconds, here and there.
const PLAY_TIME: f64 = 0.05;

/// What is compared.
pub(super) struct Counts<'a> {
    pub(super) owner: &'a Owner,
    pub(super) games: &'a [String],
    pub(super) began: Instant,
}

/// One count.
struct Count {
    name: &'static str,
    /// What the crowd knows, with the tolerance.
    known: RangeInclusive<f64>,
    shown: f64,
}

impl Count {
    fn is_right(&self) -> bool {
        self.known.contains(&self.shown)
    }
}

/// Returns how many players play now in all games, as the ranking of each address has it; the
/// largest number.
pub(super) async fn players_now(place: &Place, games: &[String]) -> f64 {
    let port = place.site().address.port();
    let mut most: usize = 0;
    for address in place.addresses() {
        let ranking = crowd::ranking(&Visitor::new(address, port)).await;
        let ranked = ranking.iter().filter(|game| games.contains(&game.slug));
        most = most.max(ranked.map(|game| game.players_now).sum());
    }
    most as f64
}

impl Counts<'_> {
    /// Compares all counts, and asks again for those that are stored once a minute. Returns lines
    /// for people, and what is wrong.
    pub(super) async fn compare(
        &self,
        truth: &mut Truth,
        (shown, known): (f64, RangeInclusive<f64>),
        plan: &Plan,
    ) -> (String, Vec<String>) {
        let end = Instant::now();
        // A long run is measured to the end of everybody's playing time.
        let settles = plan.time > COUNTED;
        let mut patience = if settles { COUNTED + STORED } else { STORED };
        if plan.nodes > 1 {
            patience += RANKED;
        }
        let mut again = tokio::time::interval(AGAIN);
        let counts = loop {
            let counts = self.look(truth, settles).await;
            let waited = end.elapsed();
            let is_right = counts.iter().all(Count::is_right) && (!settles || waited > COUNTED);
            if is_right || waited > patience {
                break counts;
            }
            again.tick().await;
            truth.sample(self.began);
        };
        let now = Count {
            name: "players now",
            known,
            shown,
        };
        let (mut lines, mut wrong) = (String::new(), Vec::new());
        for count in [now].into_iter().chain(counts) {
            let known = format!("{:.0} to {:.0}", count.known.start(), count.known.end());
            let line = format!("  {:30} {known:>26} {:14.0}", count.name, count.shown);
            let mark = if count.is_right() { "" } else { "   WRONG" };
            // Writing into a string cannot fail.
            let _ = writeln!(lines, "{line}{mark}");
            if !count.is_right() {
                wrong.push(line);
            }
        }
        (lines, wrong)
    }

    async fn look(&self, truth: &Truth, settles: bool) -> [Count; 4] {
        let (mut players, mut play_time, mut log_bytes) = (0.0, 0.0, 0.0);
        for game in self.games {
            let shown = self
                .ask(&format!("/api/projects/{game}/players?env=prod"))
                .await;
            let minutes = shown["points"].as_array().into_iter().flatten();
            play_time += minutes.map(|minute| number(minute, "mean")).sum::<f64>() * 60.0;
            let days = shown["days"].as_array().into_iter().flatten();
            players += days.map(|day| number(day, "players")).sum::<f64>();
            let project = self.ask(&format!("/api/projects/{game}")).await;
            log_bytes += number(&project["logs"], "bytes");
        }
        let ranking = crowd::ranking(&self.owner.visitor()).await;
        let ranked = ranking
            .iter()
            .filter(|game| self.games.contains(&game.slug));
        let of_a_minute: usize = ranked.map(|game| game.players_day).sum();
        let (all, until) = (
            truth.play_time(Duration::ZERO),
            // What was played in the current minute is not stored yet.
            truth.play_time(if settles { Duration::ZERO } else { STORED }),
        );
        [
            Count {
                name: "players of the day (5 %)",
                known: widened(&truth.players(), DISTINCT),
                shown: players,
            },
            Count {
                name: "who played for a minute",
                known: truth.players_of_a_minute(),
                shown: of_a_minute as f64,
            },
            Count {
                name: "play time, seconds (5 %)",
                known: widened(&(until..=all), PLAY_TIME),
                shown: play_time,
            },
            Count {
                name: "bytes of log records",
                known: truth.log_bytes(),
                shown: log_bytes,
            },
        ]
    }

    async fn ask(&self, path: &str) -> Value {
        let (status, body) = self.owner.ask(Method::GET, path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }
}

fn widened(range: &RangeInclusive<f64>, by: f64) -> RangeInclusive<f64> {
    range.start() * (1.0 - by)..=range.end() * (1.0 + by)
}
