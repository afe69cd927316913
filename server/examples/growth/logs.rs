//! Search in log records, beside `LIKE` on the same records.

use std::path::Path;

use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_server::clock::{Clock, Millis, SystemClock};
use platform_server::domain::counting::DAY;
use platform_server::domain::log::{LogEntry, LogSearch, NewLogRecords};
use platform_server::domain::page::PageId;
use platform_server::store::{SchemaPolicy, connect};
use rusqlite::Connection;
use uuid::Uuid;

use super::{Measured, Numbers, Outcome, ROUNDS, add, microseconds, now};

/// Records that one request brings.
const REQUEST: usize = 1_000;
/// Over how long they are spread.
const LOGGED: Millis = 13 * DAY;
/// More records than a page shows at once are not looked for.
const LIMIT: usize = 100;
/// The limit of their texts.
const BYTES: usize = 1_000_000;

const SEARCH: &str = "SELECT id, message FROM log_records
     WHERE message LIKE '%' || ?1 || '%' ORDER BY id DESC LIMIT 100";

/// Adds records and looks for some of them, and for text that none has.
pub(super) async fn measure(directory: &Path, count: usize, to: &mut Measured) -> Outcome<()> {
    let file = directory.join("platform.db");
    let store = connect(
        &format!("sqlite://{}", file.display()),
        SchemaPolicy::Upgrade,
    )
    .await?;
    let (at, mut numbers) = (SystemClock.now(), Numbers(3));
    let requests = count.div_ceil(REQUEST);
    for request in 0..requests {
        let received_at = at - LOGGED + LOGGED * request as Millis / requests as Millis;
        let player = Uuid::from_u128(1 + numbers.below(500) as u128);
        let entries = (0..REQUEST.min(count)).map(|_| entry(&mut numbers, received_at));
        let new = NewLogRecords {
            slug: "game".into(),
            environment: Environment::Prod,
            deployment: None,
            player: Some(player),
            page: PageId([7; 16]),
            received_at,
            entries: entries.collect(),
        };
        store.add_log_records(new).await?;
    }
    let bare = Connection::open(directory.join("logs.db"))?;
    for (name, text) in [
        ("search for a frequent word, ms", "socket"),
        ("search for a word that is not there, ms", "nowhere"),
    ] {
        for round in 0..=ROUNDS {
            let search = LogSearch {
                text: Some(text.to_owned()),
                ..LogSearch::all("game".into(), Environment::Prod, LIMIT, BYTES)
            };
            let begin = now();
            store.search_log_records(search).await?;
            let ours = microseconds(begin) / 1e3;
            let begin = now();
            let mut statement = bare.prepare_cached(SEARCH)?;
            let mut rows = statement.query([text])?;
            while rows.next()?.is_some() {}
            add(to, round, name, ours, microseconds(begin) / 1e3);
        }
    }
    store.close().await?;
    Ok(())
}

fn entry(numbers: &mut Numbers, time: Millis) -> LogEntry {
    const WORDS: [&str; 6] = ["coin", "level", "texture", "socket", "frame", "sound"];
    let word = WORDS[numbers.below(WORDS.len())];
    let place = numbers.below(100_000);
    LogEntry {
        time,
        level: LogLevel::Info,
        source: LogSource::Console,
        message: format!("the {word} at {place} was not where the player expected it, so it waits"),
        stack: None,
        url: None,
        line: None,
        column: None,
        metadata: None,
        count: 1,
    }
}
