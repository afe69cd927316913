//! Fills a data folder like that of a large platform: 200 deployed games, each with 90 days of
//! minutes and hours of players, the unique players of days and months, the playing times of
//! 100,000 players in the last day, and ten million frontend log records of the last two weeks.
//! `cargo xtask bench` measures the server with it.
//!
//! `cargo run --release -p platform-server --example large_store <directory> [share]`
//!
//! A share of 0.01 creates a hundredth of the records, minutes and players. The last line of the
//! output is JSON with the values for requests to this data.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_server::clock::{Clock, Millis, SystemClock};
use platform_server::domain::audit::Actor;
use platform_server::domain::counting::{
    DAY, Distinct, DistinctSketch, HOUR, MINUTE, NewCounts, NewPlayTime, periods,
};
use platform_server::domain::date::rfc3339;
use platform_server::domain::identity::Identity;
use platform_server::domain::log::{LogEntry, LogId, NewLogRecords};
use platform_server::domain::page::PageId;
use platform_server::domain::project::{Deployment, Made, Project};
use platform_server::domain::session::SessionSecret;
use platform_server::domain::sign_in::SignIn;
use platform_server::entropy::{Entropy, SystemEntropy};
use platform_server::games::files::FileStore;

use platform_server::store::{SchemaPolicy, Store, connect};
use rusqlite::{Connection, params};
use serde_json::json;
use uuid::Uuid;

const GAMES: usize = 200;
/// Days of minutes.
const DAYS: i64 = 90;
const PLAYERS: usize = 100_000;
const RECORDS: usize = 10_000_000;
/// The number of records that one page sent at once.
const REQUEST: usize = 100;
/// The time over which the records are spread: a little less than they are kept.
const LOGGED: Millis = 14 * DAY - 2 * HOUR;
/// One of this number of games is large, with ten times as many records as others.
const LARGE: usize = 20;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this is the program's result")]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("name the directory to fill")?;
    let directory = PathBuf::from(directory);
    let share = arguments.next().map_or(Ok(1.0), |text| text.parse())?;
    let now = SystemClock.now();
    let file = directory.join("platform.db");
    let store = connect(
        &format!("sqlite://{}", file.display()),
        SchemaPolicy::Upgrade,
    )
    .await?;
    let (cookie, owner) = owner(&*store, now).await?;
    games(&*store, &directory, owner, now).await?;
    println!("{GAMES} games are deployed");
    let players = players(&*store, share, now).await?;
    println!("{players} players have played");
    let records = records(&store, share, now).await?;
    println!("{records} log records are written");
    store.close().await?;
    let minutes = minutes(&file, share, now)?;
    println!("{minutes} minutes of players are written");
    let days = [1, 7, 90].map(|days| (days.to_string(), rfc3339(now - days * DAY)));
    let before = LogId::first_of(now - 10 * DAY).0.to_string();
    let days = BTreeMap::from(days);
    println!(
        "{}",
        json!({ "cookie": cookie, "days": days, "before": before })
    );
    Ok(())
}

/// Returns a part of a non-negative number that floats represent exactly.
fn part(of: usize, share: f64) -> usize {
    (of as f64 * share).ceil() as usize
}

fn slug(game: usize) -> String {
    format!("game-{game:03}")
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

fn entropy() -> &'static dyn Entropy {
    &SystemEntropy
}

/// Creates the account that owns the games, and returns its cookie and its id.
async fn owner(store: &dyn Store, now: Millis) -> Outcome<(String, Uuid)> {
    let secret = SessionSecret::generate(entropy());
    let sign_in = SignIn {
        identity: Identity::new("measured", "https://accounts.example", "the owner"),
        guest: None,
        held: None,
        session: secret.hash(),
        new_player: entropy().uuid_v7(now),
        authenticated_at: now,
        usernames: vec!["the-owner".into()],
        wished_username: None,
        source: None,
        now,
    };
    let outcome = store.complete_sign_in(sign_in).await?;
    let player = outcome.player().ok_or("nobody was signed in")?.id;
    let value = URL_SAFE_NO_PAD.encode(secret.expose());
    Ok((format!("platform-session={value}"), player))
}

async fn games(store: &dyn Store, directory: &Path, owner: Uuid, now: Millis) -> Outcome<()> {
    let files = directory.join("files");
    let files = FileStore::local(&files)?;
    for game in 0..GAMES {
        let project = Project {
            slug: slug(game),
            owner: Some(owner),
            created_at: now - DAYS * DAY,
        };
        store.add_project(project).await?;
        let page = format!(
            "<!doctype html><title>Game number {game}</title>\
             <meta property=\"og:image\" content=\"/cover.png\">\
             <script defer src=\"/__platform/runtime.js\"></script>"
        );
        for environment in Environment::ALL {
            let cover = files.put(vec![7_u8; 100].into()).await?;
            let page = files.put(page.clone().into()).await?;
            let kept = [("index.html", page), ("cover.png", cover)];
            let deployment = Deployment {
                id: entropy().uuid_v4(),
                slug: slug(game),
                environment,
                files: kept.map(|(path, file)| (path.to_owned(), file)).into(),
                created_at: now,
                made: Made::default(),
                inspection: None,
            };
            store.add_deployment(deployment, Actor::Own.into()).await?;
        }
    }
    Ok(())
}

/// Adds the playing times of the last day, most of them in the first games, and the unique players
/// of every day and month.
async fn players(store: &dyn Store, share: f64, now: Millis) -> Outcome<usize> {
    let (count, mut numbers) = (part(PLAYERS, share), Numbers(1));
    let hour = now - now.rem_euclid(HOUR);
    let mut times = Vec::new();
    for _ in 0..count {
        let player = entropy().uuid_v7(now);
        for _ in 0..1 + numbers.below(3) {
            let game = numbers.below(GAMES) * numbers.below(GAMES) / GAMES;
            times.push(NewPlayTime {
                slug: slug(game),
                environment: Environment::Prod,
                player,
                hour: hour - numbers.below(24) as i64 * HOUR,
                millis: 10_000 + numbers.below(1_200_000) as i64,
            });
        }
    }
    for batch in times.chunks(10_000) {
        store.add_play_times(batch.to_vec()).await?;
    }
    for game in 0..GAMES {
        let mut distinct = Vec::new();
        for day in 0..part(DAYS as usize, share) {
            let [period, month] = periods(now - day as i64 * DAY);
            let mut players = Distinct::default();
            for _ in 0..500 {
                players.add(entropy().uuid_v7(now));
            }
            for period in [period, month] {
                let players = players.clone();
                distinct.push(DistinctSketch { period, players });
            }
        }
        let counts = NewCounts {
            slug: slug(game),
            environment: Environment::Prod,
            minutes: Vec::new(),
            distinct,
        };
        store.add_player_counts(vec![counts]).await?;
    }
    Ok(count)
}

/// Adds log records as pages send them, oldest first.
async fn records(store: &Arc<dyn Store>, share: f64, now: Millis) -> Outcome<usize> {
    let (requests, mut numbers) = (part(RECORDS, share) / REQUEST, Numbers(2));
    let mut writing = tokio::task::JoinSet::new();
    for request in 0..requests {
        // A large game gets ten times as many records as another.
        let game = match numbers.below(LARGE * 2) {
            large if large < LARGE => large % (GAMES / LARGE) * LARGE,
            _ => numbers.below(GAMES),
        };
        let player = Uuid::from_u128((game * 1_000 + numbers.below(500)) as u128);
        let received_at =
            now - LOGGED + (LOGGED as i128 * request as i128 / requests as i128) as i64;
        let entries = (0..REQUEST).map(|_| entry(&mut numbers, received_at));
        let new = NewLogRecords {
            slug: slug(game),
            environment: Environment::Prod,
            deployment: Some(Uuid::from_u128(game as u128)),
            player: Some(player),
            page: PageId([7; 16]),
            received_at,
            entries: entries.collect(),
        };
        let store = Arc::clone(store);
        writing.spawn(async move { store.add_log_records(new).await });
        // As many writes wait as fit into a full group.
        if writing.len() >= 64 {
            writing.join_next().await.ok_or("one is writing")???;
        }
    }
    while let Some(written) = writing.join_next().await {
        written??;
    }
    Ok(requests * REQUEST)
}

fn entry(numbers: &mut Numbers, time: Millis) -> LogEntry {
    const WORDS: [&str; 8] = [
        "coin", "level", "player", "texture", "socket", "frame", "sound", "score",
    ];
    let level = match numbers.below(20) {
        0 => LogLevel::Error,
        1..=3 => LogLevel::Warn,
        4..=17 => LogLevel::Info,
        _ => LogLevel::Debug,
    };
    let mut words = || WORDS[numbers.below(WORDS.len())];
    let message = format!(
        "the {} of {} {} was not where {} expected it, so {} waits",
        words(),
        words(),
        words(),
        words(),
        words()
    );
    let place = numbers.below(100_000);
    let stack = (level == LogLevel::Error).then(|| {
        let frame = |depth: usize| format!("    at step (/assets/index-4f1c.js:{depth}:{place})\n");
        format!(
            "Error: {message}\n{}",
            (1..6).map(frame).collect::<String>()
        )
    });
    LogEntry {
        time,
        level,
        source: LogSource::Console,
        message: format!("{message} {place}"),
        stack,
        url: None,
        line: None,
        column: None,
        metadata: None,
        count: 1,
    }
}

/// Adds every minute of every game in the order of the table, which takes minutes and not hours.
fn minutes(file: &Path, share: f64, now: Millis) -> Outcome<usize> {
    let mut connection = Connection::open(file)?;
    let index: String = connection.query_row(
        "SELECT sql FROM sqlite_schema WHERE name = 'player_counts_by_start'",
        [],
        |row| row.get(0),
    )?;
    connection.execute_batch("PRAGMA synchronous = OFF; DROP INDEX player_counts_by_start;")?;
    let (end, mut written) = (now - now.rem_euclid(HOUR), 0);
    let length = part(DAYS as usize, share) as i64 * DAY;
    let transaction = connection.transaction()?;
    for span in [MINUTE, HOUR] {
        written += transaction.execute(
            "INSERT INTO player_counts (project, environment, span, start, peak, player_millis)
             WITH RECURSIVE starts (start) AS
                 (SELECT ?2 UNION ALL SELECT start + ?1 FROM starts WHERE start + ?1 < ?3)
             SELECT p.id, 'prod', ?1, start, 1 + (start / ?1 * p.id) % 97, ?1 * (1 + p.id % 50)
             FROM projects p, starts WHERE p.slug LIKE 'game-%' ORDER BY p.id, start",
            params![span, end - length, end],
        )?;
    }
    transaction.execute_batch(&index)?;
    transaction.commit()?;
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);")?;
    Ok(written)
}
