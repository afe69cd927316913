//! Measures how many log records SQLite alone can store: batches of 100 rows, each committed to the
//! disk, on one thread. `cargo xtask bench` compares the log endpoint with it.
//!
//! `cargo run --release -p platform-server --example raw_log_rows <directory>`

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use platform_server::clock::{Clock, SystemClock};
use rusqlite::{Connection, params};

/// The number of rows in one transaction.
const BATCH: i64 = 100;
/// How long rows are written.
const LONG: Duration = Duration::from_secs(4);

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "this program measures real time")]
    Instant::now()
}

#[expect(clippy::print_stdout, reason = "this is the program's result")]
fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = given.ok_or("name the directory that is measured")?;
    std::fs::create_dir_all(&directory)?;
    let file = directory.join("raw.db");
    let mut connection = Connection::open(&file)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE IF NOT EXISTS records (
             id INTEGER PRIMARY KEY, environment INTEGER NOT NULL, level INTEGER NOT NULL,
             source TEXT NOT NULL, page BLOB NOT NULL, time INTEGER NOT NULL,
             message TEXT NOT NULL, count INTEGER NOT NULL
         ) STRICT;",
    )?;
    let (begin, mut rows) = (now(), 0);
    while begin.elapsed() < LONG {
        let transaction = connection.transaction()?;
        {
            let mut add = transaction.prepare_cached(
                "INSERT INTO records (environment, level, source, page, time, message, count)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            for row in 0..BATCH {
                let message = format!("the player picked up coin {row} of level 3 at 12.5, 88.0");
                let time = SystemClock.now();
                add.execute(params![1, 1, "console", [7_u8; 16], time, message, 1])?;
            }
        }
        transaction.commit()?;
        rows += BATCH;
    }
    let per_second = f64::from(u32::try_from(rows)?) / begin.elapsed().as_secs_f64();
    println!("{per_second:.0}");
    drop(connection);
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
    Ok(())
}
