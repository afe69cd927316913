//! The processor time that each program uses for one request of each kind: requests of one kind
//! alone, at a steady rate. What players cost beside their requests is the rest of what the programs
//! used while the crowd played.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Plan;
use super::browser::{Browser, News};
use super::crowd::{OpenPage, texts};
use super::measure::Kind;
use super::place::{CROWD, Place, Used};

/// How long each kind is sent before it is measured.
const WARM_UP: Duration = Duration::from_secs(1);
/// Log records in a request.
const RECORDS: usize = 2;
/// What is sent alone: how many for each heartbeat of the crowd, and how many a second at least,
/// because the system counts processor time in hundredths of a second.
const KINDS: [(Kind, f64, f64); 6] = [
    (Kind::Page, 0.2, 200.0),
    (Kind::Runtime, 0.2, 200.0),
    (Kind::NewGuest, 0.2, 200.0),
    (Kind::KnownGuest, 0.2, 200.0),
    (Kind::Logs, 0.25, 250.0),
    (Kind::Heartbeat, 1.0, 1_000.0),
];

/// The processor time of each program, in seconds.
type Times = BTreeMap<String, f64>;

/// What was measured.
#[derive(Debug)]
pub(super) struct Costs {
    /// The programs, in the order of the table.
    programs: Vec<String>,
    /// In a second without requests.
    idle: Times,
    /// Of one request.
    each: BTreeMap<Kind, Times>,
    /// For a player who plays for a second, beside the requests.
    rest: Times,
    /// How many requests failed.
    pub(super) failed: u64,
}

/// What all players did, and what the programs used for it.
pub(super) struct Played {
    pub(super) passed: BTreeMap<Kind, u64>,
    pub(super) used: Used,
    pub(super) players: usize,
    pub(super) time: Duration,
}

/// How requests of one kind alone are sent.
pub(super) struct Sender<'a> {
    pub(super) place: &'a Place,
    pub(super) browser: &'a Browser,
    pub(super) pages: &'a [OpenPage],
    pub(super) news: &'a UnboundedSender<News>,
}

/// What was used between two moments, with all nodes as one program.
pub(super) fn between(before: &Used, after: &Used) -> Used {
    let mut used = Used::new();
    for ((name, after), (_, before)) in after.iter().zip(before) {
        let name = match name.strip_prefix("node-") {
            Some(_) => "all nodes",
            None => name,
        };
        match used.iter_mut().find(|(known, _)| known == name) {
            Some((_, time)) => *time += after - before,
            None => used.push((name.to_owned(), after - before)),
        }
    }
    used
}

impl Sender<'_> {
    /// Sends requests of each kind alone.
    pub(super) async fn measure(&self, plan: &Plan, played: &Played) -> Costs {
        let seconds = plan.alone.as_secs_f64();
        let before = self.place.processors();
        tokio::time::sleep_until(Instant::now() + plan.alone).await;
        let idle = between(&before, &self.place.processors());
        let programs = idle.iter().map(|(name, _)| name.clone()).collect();
        let mut costs = Costs {
            programs,
            idle: scaled(idle, 1.0 / seconds),
            each: BTreeMap::new(),
            rest: Times::new(),
            failed: 0,
        };
        let beats = plan.players as f64 / f64::from(plan.beat);
        for (kind, of_beats, least) in KINDS {
            let rate = (beats * of_beats).max(least);
            let browser = Arc::new(self.browser.measured_apart());
            // Opens connections, and lets the platform note what it notes once for each session.
            let warmed = self.send(&browser, kind, rate, WARM_UP).await;
            let before = self.place.processors();
            let began = Instant::now();
            let passed = self.send(&browser, kind, rate, plan.alone).await - warmed;
            let took = began.elapsed().as_secs_f64();
            let used = between(&before, &self.place.processors()).into_iter();
            let each = used.map(|(name, time)| {
                let each = (time - costs.idle[&name] * took) / passed.max(1) as f64;
                (name, each.max(0.0))
            });
            costs.each.insert(kind, each.collect());
            costs.failed += browser.measure.failed();
        }
        costs.rest = costs.rest_of(played);
        costs
    }

    /// Sends requests for so long. Returns how many of these browsers' requests have passed.
    async fn send(&self, browser: &Arc<Browser>, kind: Kind, rate: f64, time: Duration) -> u64 {
        let mut ticks = tokio::time::interval(Duration::from_secs(1).div_f64(rate));
        let (began, mut requests) = (Instant::now(), JoinSet::new());
        // Every page counts its player; whoever is known, was already known at the warm-up.
        let many = match kind {
            Kind::KnownGuest => (rate * WARM_UP.as_secs_f64() / 2.0).ceil() as usize,
            _ => self.pages.len(),
        };
        let mut pages = self.pages.iter().take(many).cycle();
        while began.elapsed() < time {
            let at = ticks.tick().await;
            let Some(page) = pages.next() else { break };
            let (browser, news) = (Arc::clone(browser), self.news.clone());
            requests.spawn(one(browser, news, kind, page.clone(), at));
            while requests.try_join_next().is_some() {}
        }
        requests.join_all().await;
        let passed = browser.measure.passed();
        passed.get(&kind).copied().unwrap_or(0)
    }
}

/// Sends one request.
async fn one(
    browser: Arc<Browser>,
    news: UnboundedSender<News>,
    kind: Kind,
    page: OpenPage,
    at: Instant,
) {
    let OpenPage {
        visit,
        token,
        sub,
        cookie,
    } = page;
    match kind {
        Kind::Page => {
            browser.page(visit.game, at).await;
        }
        Kind::Runtime => {
            browser.runtime(visit.game, at, true).await;
        }
        Kind::NewGuest => browser.token(&news, visit, at, None).await,
        Kind::KnownGuest => browser.token(&news, visit, at, Some(cookie)).await,
        Kind::Logs => {
            let texts = texts(visit.game, RECORDS);
            browser.log(&news, visit, at, &token, texts).await;
        }
        Kind::Heartbeat | Kind::Leave | Kind::Deploy => {
            browser.beat(&news, visit, at, &token, sub).await;
        }
    }
}

fn scaled(used: Used, by: f64) -> Times {
    let used = used.into_iter();
    used.map(|(name, time)| (name, time * by)).collect()
}

impl Costs {
    fn of(&self, kind: Kind, program: &str) -> f64 {
        let times = self.each.get(&kind);
        let time = times.and_then(|times| times.get(program));
        time.copied().unwrap_or(0.0)
    }

    /// What is left of the programs' time after all requests, for a second of one player.
    fn rest_of(&self, played: &Played) -> Times {
        let seconds = played.time.as_secs_f64();
        let rest = played.used.iter().map(|(name, used)| {
            let requests = played.passed.iter().map(|(kind, passed)| {
                // The last heartbeat of a page is like any other.
                let kind = match kind {
                    Kind::Leave => Kind::Heartbeat,
                    kind => *kind,
                };
                self.of(kind, name) * *passed as f64
            });
            let idle = self.idle.get(name).copied().unwrap_or(0.0) * seconds;
            let rest = used - requests.sum::<f64>() - idle;
            (
                name.clone(),
                rest.max(0.0) / seconds / played.players as f64,
            )
        });
        rest.collect()
    }

    /// The costs as a table for people.
    pub(super) fn table(&self) -> String {
        let mut text = "\nprocessor time of one request, µs".to_owned();
        let columns = [
            ("page", Kind::Page),
            ("runtime.js", Kind::Runtime),
            ("new guest", Kind::NewGuest),
            ("token", Kind::KnownGuest),
            ("heartbeat", Kind::Heartbeat),
            ("log record", Kind::Logs),
        ];
        for (name, _) in columns {
            // Writing into a string cannot fail.
            let _ = write!(text, " {name:>10}");
        }
        text.push_str("   beside requests, of a core for 10,000 players\n");
        for program in &self.programs {
            let _ = write!(text, "  {program:31}");
            for (_, kind) in columns {
                let _ = write!(text, " {:10.0}", self.one(kind, program) * 1e6);
            }
            let rest = self.rest.get(program).copied().unwrap_or(0.0);
            let _ = writeln!(text, "   {:8.1} %", rest * 10_000.0 * 100.0);
        }
        text
    }

    /// The time of a request, or of one log record.
    fn one(&self, kind: Kind, program: &str) -> f64 {
        let time = self.of(kind, program);
        if kind == Kind::Logs {
            time / RECORDS as f64
        } else {
            time
        }
    }

    /// How many cores each program needs for a million players at once, as a table for people.
    pub(super) fn million(&self, beat: u32) -> String {
        let players = 1e6;
        let rates = [
            ("heartbeats", Kind::Heartbeat, players / f64::from(beat)),
            ("tokens", Kind::KnownGuest, players / f64::from(beat * 27)),
            ("new guests", Kind::NewGuest, NEW_GUESTS),
            (
                "log records",
                Kind::Logs,
                players * RECORDS as f64 / f64::from(beat * 4),
            ),
        ];
        let mut text = "\na million players at once, cores  ".to_owned();
        for (name, _, rate) in rates {
            // Writing into a string cannot fail.
            let _ = write!(text, " {:>20}", format!("{name} {rate:.0}/s"));
        }
        text.push_str("      the rest       sum\n");
        for program in self.programs.iter().filter(|program| *program != CROWD) {
            let _ = write!(text, "  {program:31} ");
            let mut sum = self.rest.get(program).copied().unwrap_or(0.0) * players;
            let rest = sum;
            for (_, kind, rate) in rates {
                let cores = self.one(kind, program) * rate;
                sum += cores;
                let _ = write!(text, " {cores:20.2}");
            }
            let _ = writeln!(text, " {rest:13.2} {sum:9.2}");
        }
        text.push_str(PAPER);
        text
    }
}

/// New guests a second among a million players: so many of them are there for the first time.
const NEW_GUESTS: f64 = 12.0;
/// What was computed without measuring.
const PAPER: &str =
    "  on paper: nodes 8 cores, with room 16; PostgreSQL is the first limit (play times, logs)\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn times(time: f64) -> Times {
        [("server".to_owned(), time)].into()
    }

    fn used(time: f64) -> Used {
        vec![("server".to_owned(), time)]
    }

    fn costs() -> Costs {
        Costs {
            programs: vec!["server".to_owned()],
            idle: times(0.01),
            each: [
                (Kind::Heartbeat, times(60e-6)),
                (Kind::Logs, times(240e-6)),
                (Kind::KnownGuest, times(405e-6)),
            ]
            .into(),
            rest: times(0.0),
            failed: 0,
        }
    }

    #[test]
    fn nodes_are_one_program() {
        let before = vec![("node-1".to_owned(), 1.0), ("node-2".to_owned(), 2.0)];
        let after = vec![("node-1".to_owned(), 1.5), ("node-2".to_owned(), 4.0)];
        assert_eq!(
            between(&before, &after),
            [("all nodes".to_owned(), 2.5)].to_vec()
        );
    }

    #[test]
    fn what_no_request_explains_is_the_rest() {
        let played = Played {
            passed: [(Kind::Heartbeat, 90_000), (Kind::Leave, 10_000)].into(),
            // 6 s for heartbeats, 0.1 s for nothing, and 3 s for the players.
            used: used(9.1),
            players: 30_000,
            time: Duration::from_secs(10),
        };
        let rest = costs().rest_of(&played)["server"];
        assert!((rest - 3.0 / 10.0 / 30_000.0).abs() < 1e-12, "{rest}");
        // Requests that cost less together than alone leave nothing.
        let played = Played {
            used: used(5.0),
            ..played
        };
        assert!(costs().rest_of(&played)["server"].abs() < f64::EPSILON);
    }

    #[test]
    fn a_million_is_computed_from_the_cost_of_each() {
        let costs = Costs {
            rest: times(1e-6),
            ..costs()
        };
        // 33,333 heartbeats of 60 µs, 1,235 tokens of 405 µs, 16,667 records of 120 µs, and 1 µs a
        // second for each player.
        let text = costs.million(30);
        let line = text
            .lines()
            .find(|line| line.trim().starts_with("server"))
            .unwrap();
        let cores: Vec<&str> = line.split_whitespace().skip(1).collect();
        assert_eq!(cores, ["2.00", "0.50", "0.00", "2.00", "1.00", "5.50"]);
    }
}
