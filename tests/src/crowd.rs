//! Simulates many players: guests of many games with real tokens. Their heartbeats go to a platform
//! over HTTP and into a file, from which an independent program computes the expected counts.
//!
//! Not all of them play normally: some send one heartbeat, some leave too soon to count, some have
//! a page that sends heartbeats too rarely, some have two tabs, and some send heartbeats as fast as
//! they can.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::paths;
use platform_server::clock::Millis;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::owner::Owner;
use crate::settings;
use crate::visitor::Visitor;

/// The number of concurrent requests.
const AT_ONCE: usize = 32;
/// Seconds between two heartbeats of one page.
const BEAT: u64 = 30;
/// Milliseconds for which a player counts as playing after a heartbeat.
const PLAYING: Millis = 75_000;

/// The clock of the simulation.
pub trait Pace {
    /// Lets time pass until `second` seconds after the start.
    fn reach(&self, second: u64) -> impl Future<Output = ()> + Send;
    /// Returns the current time in milliseconds since the epoch.
    fn now(&self) -> Millis;
}

/// How a simulated player behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// A page that sends heartbeats as long as it is open.
    Plays,
    /// A single heartbeat.
    LooksIn,
    /// Two heartbeats: half a minute of play.
    LeavesSoon,
    /// A page that sends a heartbeat every 100 seconds.
    Idle,
    /// Two pages of one player that send heartbeats at different times.
    TwoTabs,
    /// A heartbeat every second, for 45 seconds.
    Script,
}

/// A simulated player.
#[derive(Clone, Debug)]
struct Player {
    game: String,
    sub: String,
    token: String,
    pages: [String; 2],
    habit: Habit,
    /// The second of the first heartbeat.
    from: u64,
}

impl Player {
    /// Returns the page that sends a heartbeat in this second, if any.
    fn beats(&self, second: u64) -> Option<&str> {
        let since = second.checked_sub(self.from)?;
        let first = match self.habit {
            Habit::Plays | Habit::TwoTabs => since % BEAT == 0,
            Habit::LooksIn => since == 0,
            Habit::LeavesSoon => since == 0 || since == BEAT,
            Habit::Idle => since % 100 == 0,
            Habit::Script => since < 45,
        };
        if first {
            return Some(&self.pages[0]);
        }
        let second_tab = self.habit == Habit::TwoTabs && since % BEAT == 13;
        second_tab.then_some(&*self.pages[1])
    }
}

/// The simulated players.
#[derive(Debug)]
pub struct Crowd {
    visitor: Visitor,
    players: Vec<Player>,
    /// The last heartbeat of each player of each game.
    last: BTreeMap<(String, String), Millis>,
    beats: std::fs::File,
    /// The number of heartbeats sent.
    pub sent: usize,
}

/// The counts of one game, from the program or from the platform.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Ranked {
    /// The game.
    pub slug: String,
    /// Players of the last day.
    pub players_day: usize,
    /// Players at that moment.
    pub players_now: usize,
}

/// Creates, deploys and lists `games` games, and returns their slugs.
///
/// # Panics
/// Panics if this fails.
pub async fn deploy(owner: &Owner, games: usize) -> Vec<String> {
    let slugs: Vec<String> = (0..games)
        .map(|game| format!("crowded-{game:02}"))
        .collect();
    for slug in &slugs {
        owner.create(slug).await;
        let page = format!(
            "<!doctype html><title>{slug}</title><script defer src=\"/__platform/runtime.js\"></script>"
        );
        owner.deploy(slug, "prod", &[("index.html", &page)]).await;
        let path = format!("/api/projects/{slug}/listing");
        let listed = Some(json!({ "listed": true, "own": {} }));
        let (status, answer) = owner.ask(Method::PUT, &path, listed).await;
        assert_eq!(status, 200, "{answer}");
    }
    slugs
}

impl Crowd {
    /// Creates the guests, more of them for the first games, and the file for their heartbeats.
    ///
    /// # Panics
    /// Panics if a guest cannot be created.
    pub async fn gather(visitor: &Visitor, games: &[String], count: usize, beats: &Path) -> Self {
        let mut coming = JoinSet::new();
        let mut players = Vec::new();
        for number in 0..count {
            let visitor = visitor.clone();
            // First each game gets one player. After that the first games are preferred, since
            // products of two numbers are more often small than large.
            let product = (number * 7_919 % count) * (number * 104_729 % count);
            let game = games.get(number).unwrap_or_else(|| {
                let place = product * games.len() / (count * count);
                &games[place]
            });
            let game = game.clone();
            coming.spawn(async move { player(&visitor, number, game).await });
            if coming.len() >= AT_ONCE {
                players.extend(coming.join_next().await.map(|one| one.expect("a player")));
            }
        }
        players.extend(coming.join_all().await);
        Self {
            visitor: visitor.clone(),
            players,
            last: BTreeMap::new(),
            beats: std::fs::File::create(beats).expect("a file for the beats"),
            sent: 0,
        }
    }

    /// Plays from one second to another.
    ///
    /// # Panics
    /// Panics if a heartbeat is refused.
    pub async fn play(&mut self, seconds: std::ops::Range<u64>, pace: &impl Pace) {
        for second in seconds {
            pace.reach(second).await;
            let mut sending = JoinSet::new();
            let mut sent = Vec::new();
            for player in &self.players {
                let Some(page) = player.beats(second) else {
                    continue;
                };
                let now = pace.now();
                sent.push((player.game.clone(), player.sub.clone(), now));
                let beat = self
                    .visitor
                    .request(Method::POST, &player.game, paths::HEARTBEAT)
                    .header(AUTHORIZATION, format!("Bearer {}", player.token))
                    .header(CONTENT_TYPE, "application/json")
                    .body(json!({ "page": page }).to_string());
                sending.spawn(async move { beat.send().await.expect("an answer").status() });
                if sending.len() >= AT_ONCE {
                    expect_taken(sending.join_next().await);
                }
            }
            while !sending.is_empty() {
                expect_taken(sending.join_next().await);
            }
            for (game, player, time) in sent {
                let line = json!({ "time": time, "game": game, "player": player });
                writeln!(self.beats, "{line}").expect("a beat is written down");
                self.last.insert((game, player), time);
                self.sent += 1;
            }
        }
    }

    /// Every second player closes the page without sending the final heartbeat.
    pub fn half_leaves(&mut self) {
        let mut number = 0;
        self.players.retain(|_| {
            number += 1;
            number % 2 == 0
        });
    }

    /// Returns the number of players at `now` for each game that has any.
    #[must_use]
    pub fn playing(&self, now: Millis) -> BTreeMap<String, usize> {
        let mut playing = BTreeMap::new();
        for ((game, _), last) in &self.last {
            if now - last <= PLAYING {
                *playing.entry(game.clone()).or_default() += 1;
            }
        }
        playing
    }
}

fn expect_taken(status: Option<Result<reqwest::StatusCode, tokio::task::JoinError>>) {
    let status = status
        .expect("a beat is on its way")
        .expect("a beat is sent");
    assert_eq!(status, 204);
}

async fn player(visitor: &Visitor, number: usize, game: String) -> Player {
    let minted = visitor.mint_player(&game).await.expect("a guest");
    let page = |tab: u8| {
        let mut bytes = [tab; 16];
        bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    };
    let habit = match number % 16 {
        0 => Habit::LooksIn,
        3 => Habit::LeavesSoon,
        6 => Habit::Idle,
        9 | 10 => Habit::TwoTabs,
        13 => Habit::Script,
        _ => Habit::Plays,
    };
    Player {
        game,
        sub: minted.claims.sub,
        token: minted.token,
        pages: [page(1), page(2)],
        habit,
        from: (number as u64).wrapping_mul(2_654_435_761) % BEAT,
    }
}

/// Returns the response of `GET /api/ranking`, in its order.
///
/// # Panics
/// Panics if it does not respond.
pub async fn ranking(visitor: &Visitor) -> Vec<Ranked> {
    let text = console(visitor, "/api/ranking").await;
    let mut answer: Value = serde_json::from_str(&text).expect("JSON");
    serde_json::from_value(answer["games"].take()).expect("games")
}

/// Returns the current number of players on the pages at `/` for each game that has any.
///
/// # Panics
/// Panics if they do not respond.
pub async fn page(visitor: &Visitor) -> BTreeMap<String, usize> {
    let mut playing = BTreeMap::new();
    for number in 1.. {
        let page = console(visitor, &format!("/?page={number}")).await;
        let entries = page.split("<li ").skip(1);
        playing.extend(entries.filter_map(|entry| {
            let (_, slug) = entry.split_once("href=\"/games/")?;
            let (slug, _) = slug.split_once('"')?;
            let (_, now) = entry.split_once("<strong class=\"now\">")?;
            let (now, _) = now.split_once(" playing now")?;
            Some((slug.to_owned(), now.parse().expect("a number")))
        }));
        if !page.contains("rel=\"next\"") {
            break;
        }
    }
    playing
}

async fn console(visitor: &Visitor, path: &str) -> String {
    let host = visitor.host("x").replacen("x.", "", 1);
    let answer = visitor.request_host(Method::GET, &host, path).send().await;
    let answer = answer.expect("the platform answers");
    assert_eq!(answer.status(), 200);
    answer.text().await.expect("a whole answer")
}

/// Returns what `tests/ranking.py` computes from the heartbeats in `file`, at `now`.
///
/// # Panics
/// Panics if it fails.
#[must_use]
pub fn computed(file: &Path, now: Millis) -> Vec<Ranked> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("ranking.py");
    let python = settings::program("PYTHON", &["python3"]);
    let output = Command::new(python)
        .arg(script)
        .arg(file)
        .arg(now.to_string())
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Returns the platform's ranking without the games that nobody played, which must have no players
/// and come last.
///
/// # Panics
/// Panics if one of them has a player or comes before another game.
#[must_use]
pub fn of_the_crowd(ranking: Vec<Ranked>, computed: &[Ranked]) -> Vec<Ranked> {
    let known: BTreeSet<&str> = computed.iter().map(|game| game.slug.as_str()).collect();
    let (crowd, others): (Vec<_>, Vec<_>) = ranking
        .into_iter()
        .partition(|game| known.contains(game.slug.as_str()));
    for game in others {
        assert_eq!((game.players_day, game.players_now), (0, 0), "{game:?}");
    }
    crowd
}

/// A [`Pace`] with a manual clock: time passes when the simulation says so.
#[derive(Debug)]
pub struct ManualPace {
    /// The platform's clock.
    pub clock: Arc<platform_server::clock::ManualClock>,
    /// The time at the start.
    pub start: Millis,
}

impl Pace for ManualPace {
    async fn reach(&self, second: u64) {
        let end = self.start + i64::try_from(second).unwrap_or(i64::MAX) * 1_000;
        self.clock.advance((end - self.now()).max(0));
    }

    fn now(&self) -> Millis {
        platform_server::clock::Clock::now(&*self.clock)
    }
}
