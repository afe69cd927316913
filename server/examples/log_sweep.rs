//! Measures how much a sweep of frontend log records delays concurrent writes: without a sweep,
//! while more than a million records are removed because of their age, and while as many are
//! removed because of the quota. Prints one JSON object; times are in milliseconds.
//!
//! `cargo run --release -p platform-server --example log_sweep <directory> [records]`

#![expect(
    clippy::disallowed_methods,
    reason = "it measures what happens while time passes"
)]

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_server::domain::log::{LogEntry, NewLogRecords};
use platform_server::domain::page::PageId;
use platform_server::logs;
use platform_server::store::{SchemaPolicy, Store, connect};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The default number of records that are removed.
const RECORDS: usize = 1_200_000;
/// The number of concurrent pages, and how often each sends.
const PAGES: usize = 16;
const PAUSE: Duration = Duration::from_millis(20);
/// How long writes are measured without a sweep.
const QUIET: Duration = Duration::from_secs(10);
/// When the old records arrived, in milliseconds since the epoch.
const OLD: i64 = 1_700_000_000_000;
const DAY: i64 = 86_400_000;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this is the program's result")]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("name a directory")?);
    let count = arguments.next().map_or(Ok(RECORDS), |text| text.parse())?;
    let store = connect(
        &format!("sqlite://{}/sweep.db", directory.display()),
        SchemaPolicy::Upgrade,
    )
    .await?;

    fill(&store, count).await?;
    let quiet = Writers::start(&store);
    tokio::time::sleep(QUIET).await;
    let quiet = quiet.stop().await?;

    let (writers, begin) = (Writers::start(&store), now());
    let by_age = logs::sweep::sweep(&*store, 1, OLD + 2 * DAY).await?;
    let (by_age_took, by_age_waits) = (begin.elapsed(), writers.stop().await?);

    fill(&store, count).await?;
    let (writers, begin) = (Writers::start(&store), now());
    let by_room = logs::sweep::sweep_quota(&*store, 1_000_000).await?;
    let (by_room_took, by_room_waits) = (begin.elapsed(), writers.stop().await?);
    println!(
        "{:#}",
        json!({
            "quiet": quiet,
            "by_age": { "removed": by_age, "seconds": by_age_took.as_secs_f64(), "writers": by_age_waits },
            "by_room": { "removed": by_room, "seconds": by_room_took.as_secs_f64(), "writers": by_room_waits },
        })
    );
    store.close().await?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "this program measures real time")]
    Instant::now()
}

fn request(slug: &str, received_at: i64, records: usize) -> NewLogRecords {
    let entry = LogEntry {
        time: received_at,
        level: LogLevel::Info,
        source: LogSource::Console,
        message: "the player picked up a coin of level 3 at 12.5, 88.0; ".repeat(3),
        stack: None,
        url: None,
        line: None,
        column: None,
        metadata: None,
        count: 1,
    };
    NewLogRecords {
        slug: slug.into(),
        environment: Environment::Prod,
        deployment: None,
        player: Some(uuid::Uuid::from_u128(9)),
        page: PageId([7; 16]),
        received_at,
        entries: vec![entry; records],
    }
}

async fn fill(store: &Arc<dyn Store>, count: usize) -> Outcome<()> {
    for _ in 0..count.div_ceil(1_000) {
        store.add_log_records(request("old", OLD, 1_000)).await?;
    }
    Ok(())
}

/// Pages that send ten records from time to time.
struct Writers {
    stop: Arc<AtomicBool>,
    pages: Vec<tokio::task::JoinHandle<Outcome<Vec<f64>>>>,
}

impl Writers {
    fn start(store: &Arc<dyn Store>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let page = |_| {
            let (store, stop) = (Arc::clone(store), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut waits = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let begin = now();
                    let new = request("young", OLD + 10 * DAY, 10);
                    store.add_log_records(new).await?;
                    waits.push(begin.elapsed().as_secs_f64() * 1_000.0);
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(waits)
            })
        };
        let pages = (0..PAGES).map(page).collect();
        Self { stop, pages }
    }

    /// Stops the pages and returns how long the writes took.
    async fn stop(self) -> Outcome<Value> {
        self.stop.store(true, Ordering::Relaxed);
        let mut waits = Vec::new();
        for page in self.pages {
            waits.extend(page.await??);
        }
        waits.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let place = (waits.len() * percent).div_ceil(100).saturating_sub(1);
            waits.get(place).copied()
        };
        Ok(json!({ "writes": waits.len(), "p50": at(50), "p99": at(99), "most": at(100) }))
    }
}
