//! Measures what a store does per second, and what its database does with the same rows without the
//! store: new guests, lookups of their sessions, and frontend log records. Prints JSON, with the
//! rate of every round.
//! `cargo xtask bench` runs it with SQLite and with PostgreSQL.
//!
//! `cargo run --release -p platform-server --features cluster --example store_rates <store> <bare> [<rounds> <milliseconds>]`
//!
//! The first two arguments are addresses of empty stores, `sqlite://…` or `postgres://…`. The second one
//! gets its tables from the store, and its rows without it. On a virtual disk, the durable rates say
//! little about a real one, but the ratios hold. The others say how many rounds count, and how long
//! each part of one takes.

mod bare_postgres;
mod bare_sqlite;
mod rows;
mod through_store;

use std::error::Error;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use platform_server::clock::{Clock, SystemClock};
use platform_server::domain::session::SessionHash;
use platform_server::store::{SchemaPolicy, connect};
use serde_json::json;

use self::bare_postgres::BarePostgres;
use self::bare_sqlite::BareSqlite;
use self::through_store::ThroughStore;

/// Rounds that count unless the arguments say otherwise; one before them warms up.
const ROUNDS: usize = 9;
/// How long each part of a round takes unless the arguments say otherwise.
const PART_PERIOD: Duration = Duration::from_millis(1_500);
/// What the arguments say.
static CHOSEN_PERIOD: OnceLock<Duration> = OnceLock::new();
/// Callers who wait for their answer, as many as the load on a server has connections.
const CALLERS: usize = 64;
/// Records in a request.
const RECORDS: usize = 50;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A database without the store.
enum Bare {
    Postgres(BarePostgres),
    Sqlite(BareSqlite),
}

impl Bare {
    async fn open(url: &str) -> Outcome<Self> {
        let store = connect(url, SchemaPolicy::Upgrade).await?;
        let records = rows::records(rows::BARE, 1, SystemClock.now());
        store.add_log_records(records).await?;
        store.close().await?;
        Ok(match url.strip_prefix("sqlite://") {
            Some(path) => Self::Sqlite(BareSqlite::open(path.into())),
            None => Self::Postgres(BarePostgres::open(url).await?),
        })
    }

    async fn add_guests(&mut self) -> Outcome<(usize, Vec<SessionHash>)> {
        match self {
            Self::Postgres(bare) => bare.add_guests().await,
            Self::Sqlite(bare) => bare.add_guests().await,
        }
    }

    async fn look_up(&mut self, sessions: &[SessionHash]) -> Outcome<usize> {
        match self {
            Self::Postgres(bare) => bare.look_up(sessions).await,
            Self::Sqlite(bare) => bare.look_up(sessions).await,
        }
    }

    async fn add_records(&mut self) -> Outcome<usize> {
        match self {
            Self::Postgres(bare) => bare.add_records().await,
            Self::Sqlite(bare) => bare.add_records().await,
        }
    }
}

/// The rates of the store and of the bare database, in the order of the rounds.
struct Rates {
    store: Vec<f64>,
    bare: Vec<f64>,
}

impl Rates {
    const fn new() -> Self {
        Self {
            store: Vec::new(),
            bare: Vec::new(),
        }
    }

    fn add(&mut self, store: f64, bare: f64) {
        self.store.push(store);
        self.bare.push(bare);
    }

    fn json(&self) -> serde_json::Value {
        json!({ "store": self.store, "bare": self.bare })
    }
}

#[expect(clippy::print_stdout, reason = "this is the program's result")]
#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (store, bare, rounds) = match &arguments[..] {
        [store, bare] => (store, bare, ROUNDS),
        [store, bare, rounds, milliseconds] => {
            let period = Duration::from_millis(milliseconds.parse()?);
            CHOSEN_PERIOD.get_or_init(|| period);
            (store, bare, rounds.parse()?)
        }
        _ => return Err("name two empty stores".into()),
    };
    let store = ThroughStore::open(store).await?;
    let mut bare = Bare::open(bare).await?;
    let [mut guests, mut lookups, mut records] = [const { Rates::new() }; 3];
    for round in 0..=rounds {
        let (store_guests, known) = rate(store.add_guests()).await?;
        let (bare_guests, bare_known) = rate(bare.add_guests()).await?;
        let (store_lookups, ()) = rate(async { Ok((store.look_up(&known).await?, ())) }).await?;
        let (bare_lookups, ()) = rate(async { Ok((bare.look_up(&bare_known).await?, ())) }).await?;
        let (store_records, ()) = rate(async { Ok((store.add_records().await?, ())) }).await?;
        let (bare_records, ()) = rate(async { Ok((bare.add_records().await?, ())) }).await?;
        if round > 0 {
            guests.add(store_guests, bare_guests);
            lookups.add(store_lookups, bare_lookups);
            records.add(store_records, bare_records);
        }
    }
    store.close().await?;
    let found = json!({
        "guests": guests.json(), "lookups": lookups.json(), "records": records.json(),
    });
    println!("{found}");
    Ok(())
}

/// How many per second, and what else came of it.
async fn rate<T>(work: impl Future<Output = Outcome<(usize, T)>>) -> Outcome<(f64, T)> {
    let begin = now();
    let (count, other) = work.await?;
    Ok((count as f64 / begin.elapsed().as_secs_f64(), other))
}

/// How long each part of a round takes.
fn period() -> Duration {
    CHOSEN_PERIOD.get().copied().unwrap_or(PART_PERIOD)
}

/// Returns the real time.
fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "this program measures real time")]
    Instant::now()
}
