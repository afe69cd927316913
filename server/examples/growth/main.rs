//! Measures one size of a platform: how long look-ups, heartbeats, the ranking, sweeps and the search
//! in log records take, and what presence takes in memory, each beside the bare database or a bare
//! map in the same rounds. `cargo xtask bench --plot` runs it for each size. Prints one JSON object:
//! the values of every round, by name.
//!
//! `cargo run --release -p platform-server --example growth <directory> players|games|records <number>`
//!
//! The folder keeps the store, so that a server can be started on it.

mod logs;
mod presence;
mod stored;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;

/// Rounds that count; one before them warms up.
const ROUNDS: usize = 9;
/// The number of games where players grow.
const GAMES: usize = 50;
/// The number of players where games grow.
const PLAYERS: usize = 10_000;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The values of the rounds.
#[derive(Default, Serialize)]
struct Values {
    ours: Vec<f64>,
    /// Of the same without the platform.
    bare: Vec<f64>,
}

/// What was measured, by name.
type Measured = BTreeMap<&'static str, Values>;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this is the program's result")]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, what, number] = &arguments[..] else {
        return Err("name a directory, what grows, and how many there are".into());
    };
    let (directory, number) = (PathBuf::from(directory), number.parse()?);
    std::fs::create_dir_all(&directory)?;
    let mut measured = Measured::new();
    match what.as_str() {
        "players" => {
            presence::measure(number, GAMES, &mut measured).await?;
            stored::measure(&directory, number, GAMES, &mut measured).await?;
        }
        "games" => {
            presence::measure(PLAYERS, number, &mut measured).await?;
            stored::measure(&directory, PLAYERS, number, &mut measured).await?;
        }
        "records" => logs::measure(&directory, number, &mut measured).await?,
        other => return Err(format!("`{other}` does not grow here").into()),
    }
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

/// Adds what a round measured, unless it is the one that warms up.
fn add(to: &mut Measured, round: usize, name: &'static str, ours: f64, bare: f64) {
    if round > 0 {
        let values = to.entry(name).or_default();
        values.ours.push(ours);
        values.bare.push(bare);
    }
}

/// Microseconds since then.
fn microseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

/// Returns the real time.
fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "this program measures real time")]
    Instant::now()
}

/// Numbers that look random but are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % end
    }
}
