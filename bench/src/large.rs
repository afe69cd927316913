//! The server on a large store: its start time, and the response time of pages and API calls, one
//! after the other. An example of the server's crate fills the store.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use xtask::command::output;
use xtask::terminal::{self, Stopwatch};
use xtask::workspace::Workspace;

use super::contenders::{self, Settings};
use super::process::Process;
use super::statistics::{Estimate, median, percentile_99};

/// Starts of the server that are timed.
const STARTS: usize = 9;
/// Requests of every kind: enough that the 99th percentile has an interval.
const ROUNDS: usize = 400;
/// The number of games.
const GAMES: usize = 200;
/// The pause between two calls, so that one player's rate limit is not reached.
const PAUSE: Duration = Duration::from_millis(51);
/// After this many equal answers in turn, about two seconds, a game has no more errors to group.
const SETTLED: usize = 40;

/// Milliseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Large {
    /// From start to ready line.
    pub(super) ready: Estimate,
    /// The 99th percentile of every kind of request.
    pub(super) p99: BTreeMap<&'static str, Estimate>,
    /// The median of every kind of request.
    pub(super) p50: BTreeMap<&'static str, Estimate>,
}

impl Large {
    /// The 99th percentile of the slowest kind of request.
    pub(super) fn slowest(&self) -> Estimate {
        Estimate::largest(self.p99.values().copied())
    }
}

/// What the store was filled with.
#[derive(Debug, Deserialize)]
pub(super) struct Filled {
    /// The cookie of the games' owner.
    pub(super) cookie: String,
    /// Times this many days ago in RFC 3339, by the number of days.
    days: BTreeMap<String, String>,
    /// The id of a log record of some days ago.
    before: String,
}

/// The requests by name; `{game}` is a different one each time.
const REQUESTS: [(&str, &str); 17] = [
    ("home page", "/"),
    ("ranking", "/api/ranking"),
    ("project", "/api/projects/{game}"),
    ("players of 24 h", "/api/projects/{game}/players?{1}"),
    ("players of 7 d", "/api/projects/{game}/players?{7}"),
    ("players of 90 d", "/api/projects/{game}/players?{90}"),
    ("chart of 90 d", "/api/projects/{game}/players/chart?{90}"),
    ("logs", "/api/projects/{game}/logs"),
    ("logs, errors", "/api/projects/{game}/logs?level=error"),
    ("logs, far back", "/api/projects/{game}/logs?{before}"),
    (
        "logs of a player",
        "/api/projects/{game}/logs?player={player}",
    ),
    (
        "logs, text that is there",
        "/api/projects/{game}/logs?q=socket+waits&{1}",
    ),
    (
        "logs, text that is not",
        "/api/projects/{game}/logs?q=nowhere&{7}",
    ),
    ("errors by deployment", "/api/projects/{game}/errors"),
    (
        "groups of errors",
        "/api/projects/{game}/error-groups?env=prod",
    ),
    (
        "groups of errors, text that is not there",
        "/api/projects/{game}/error-groups?env=prod&search=nowhere",
    ),
    (
        "one group of errors",
        "/api/projects/{game}/error-groups/{group}?env=prod",
    ),
];

/// Fills a store and measures the server on it. A share of 0.01 fills it to a hundredth.
pub(super) fn measure(workspace: &Workspace, folder: &Path, share: f64) -> Result<Large> {
    terminal::note("bench: filling a large store, which takes minutes and gigabytes");
    let data = folder.join("large");
    let filled = fill(workspace, &data, share)?;
    let large = measure_on(workspace, &data, &filled);
    // It is as large as all the rest together, and is not used again.
    std::fs::remove_dir_all(&data).context("the large store cannot be removed")?;
    large
}

/// Fills a store with a share of the records; all games are created.
pub(super) fn fill(workspace: &Workspace, data: &Path, share: f64) -> Result<Filled> {
    let mut fill = Command::new(workspace.binary(true, "examples/large_store"));
    let filled = output(fill.arg(data).arg(share.to_string()))?;
    let filled = filled.lines().last().context("nothing was printed")?;
    serde_json::from_str(filled).context("what was filled cannot be read")
}

fn measure_on(workspace: &Workspace, data: &Path, filled: &Filled) -> Result<Large> {
    let settings = Settings::default();
    // The first start deploys the demo.
    contenders::server(workspace, data, settings)?.stop();
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let server = contenders::server(workspace, data, settings)?;
        times.push(server.ready_after.as_secs_f64() * 1_000.0);
        server.stop();
    }
    let server = contenders::server(workspace, data, settings)?;
    let token = contenders::token_for(&server, &filled.cookie, &server.origin)?;
    let groups = grouped(&server, &token)?;
    let mut samples: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for round in 0..ROUNDS {
        if round % 50 == 0 {
            terminal::note(&format!("bench: large store, round {round} of {ROUNDS}"));
        }
        for (name, path) in REQUESTS {
            let path = filled
                .path(path, round)
                .replace("{group}", &groups[round % GAMES]);
            let took = ask(&server, &token, &path)?;
            samples.entry(name).or_default().push(took);
        }
    }
    let of = |figure: fn(&[f64]) -> Estimate| {
        let kinds = samples.iter();
        kinds.map(|(name, times)| (*name, figure(times))).collect()
    };
    Ok(Large {
        ready: median(&times),
        p99: of(percentile_99),
        p50: of(median),
    })
}

/// Waits until the server has grouped all errors, and returns the id of a group for each round: one
/// of its game.
fn grouped(server: &Process, token: &str) -> Result<Vec<String>> {
    terminal::note("bench: large store, waiting until all errors are grouped");
    let host = server.host("").trim_start_matches('.').to_owned();
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let list = |game: usize| -> Result<Groups> {
        pause();
        let path = format!("/api/projects/game-{game:03}/error-groups?env=prod&limit=100");
        let answer = server.ask("GET", &host, &path, &bearer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("an empty answer")?;
        serde_json::from_str(body).context("a list of groups cannot be read")
    };
    // The games with the most errors are the last.
    for game in (0..GAMES).step_by(10) {
        let mut before = list(game)?.count();
        let mut equal = 0;
        while equal < SETTLED {
            let now = list(game)?.count();
            equal = if now == before && now > 0 {
                equal + 1
            } else {
                0
            };
            before = now;
        }
    }
    (0..GAMES)
        .map(|round| {
            let groups = list(game_of(round))?.groups;
            let first = groups.into_iter().next().context("a game has no groups")?;
            Ok(first.id)
        })
        .collect()
}

/// The groups of errors of a game, as far as they are needed.
#[derive(Debug, Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct Group {
    id: String,
    count: u64,
}

impl Groups {
    fn count(&self) -> u64 {
        self.groups.iter().map(|group| group.count).sum()
    }
}

/// Sends one request; returns milliseconds.
fn ask(server: &Process, token: &str, path: &str) -> Result<f64> {
    pause();
    let host = server.host("").trim_start_matches('.').to_owned();
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let stopwatch = Stopwatch::start();
    server.ask("GET", &host, path, &bearer)?;
    Ok(stopwatch.elapsed().as_secs_f64() * 1_000.0)
}

#[expect(
    clippy::disallowed_methods,
    reason = "one player may ask only so often, and that is real time"
)]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// The game of a round.
const fn game_of(round: usize) -> usize {
    if round.is_multiple_of(2) {
        round * 10 % GAMES
    } else {
        round * 37 % GAMES
    }
}

impl Filled {
    /// The path of one round. Every other one is of a large game, with ten times the records.
    fn path(&self, path: &str, round: usize) -> String {
        let game = game_of(round);
        let player = format!(
            "00000000-0000-0000-0000-{:012x}",
            game * 1_000 + round % 500
        );
        let mut path = path
            .replace("{game}", &format!("game-{game:03}"))
            .replace("{player}", &player)
            .replace("{before}", &format!("before={}", self.before));
        for (days, from) in &self.days {
            path = path.replace(&format!("{{{days}}}"), &format!("from={from}"));
        }
        path
    }
}
