//! SQLite without the store: the same statements for the same rows, in groups as large as the
//! store's can be, on one writing thread and as many reading ones as the store has.

use std::path::{Path, PathBuf};

use platform_server::clock::{Clock, SystemClock};
use platform_server::domain::log::LogId;
use platform_server::domain::session::SessionHash;
use platform_server::domain::username;
use rusqlite::{Connection, params};

use super::rows::{self, ADDRESS, BARE, Turn};
use super::{CALLERS, Outcome, RECORDS};

/// As many reading connections as the store has.
const READERS: usize = 4;

const LOOK_UP: &str = "SELECT p.id, p.username, p.linked, p.merged_into, p.suspended_at,
         p.suspension_reason, p.created_at, p.seen_at, p.awaiting IS NOT NULL,
         s.created_at, s.renewed_at, s.ended_at, s.browser
     FROM sessions s JOIN players p ON p.id = s.player WHERE s.hash = ?1";
const ADD_PLAYER: &str =
    "INSERT INTO players (id, username, username_key, address, created_at, seen_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?5)";
const ADD_SESSION: &str = "INSERT INTO sessions (hash, player, created_at, renewed_at)
     VALUES (?1, ?2, ?3, ?3)";
const ADD_RECORD: &str = "INSERT INTO log_records (id, environment, level, source, deployment,
         player, page, time, message, stack, url, line, \"column\", metadata, count)
     VALUES (?1, ?2, ?3, ?4, NULL, ?5, ?6, ?7, ?8, NULL, NULL, NULL, NULL, NULL, ?9)";

/// The files of a store.
pub(super) struct BareSqlite {
    path: PathBuf,
}

/// Work that blocks its thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    tokio::task::spawn_blocking(work).await?
}

fn open(path: &Path) -> Outcome<Connection> {
    let connection = Connection::open(path)?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = true")?;
    Ok(connection)
}

impl BareSqlite {
    pub(super) const fn open(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) async fn add_guests(&mut self) -> Outcome<(usize, Vec<SessionHash>)> {
        let path = self.path.clone();
        blocking(move || {
            let mut connection = open(&path)?;
            let (turn, mut sessions) = (Turn::begin(), Vec::new());
            while turn.goes_on() {
                let transaction = connection.transaction()?;
                {
                    let mut add_player = transaction.prepare_cached(ADD_PLAYER)?;
                    let mut add_session = transaction.prepare_cached(ADD_SESSION)?;
                    for _ in 0..CALLERS {
                        let rows::Guest {
                            id,
                            username,
                            session,
                            now,
                        } = rows::guest();
                        let key = username::unique_key(&username);
                        add_player.execute(params![id.as_bytes(), username, key, ADDRESS, now])?;
                        add_session.execute(params![session.0, id.as_bytes(), now])?;
                        sessions.push(session);
                    }
                }
                transaction.commit()?;
            }
            Ok((sessions.len(), sessions))
        })
        .await
    }

    pub(super) async fn look_up(&mut self, sessions: &[SessionHash]) -> Outcome<usize> {
        let turn = Turn::begin();
        let readers = (0..READERS).map(|reader| {
            let (path, sessions) = (self.path.clone(), sessions.to_vec());
            tokio::spawn(blocking(move || {
                let connection = open(&path)?;
                let mut statement = connection.prepare(LOOK_UP)?;
                let mut count = 0;
                for session in sessions.iter().cycle().skip(reader * 101).step_by(7) {
                    if !turn.goes_on() {
                        break;
                    }
                    let player: [u8; 16] =
                        statement.query_row([session.0.as_slice()], |row| row.get(0))?;
                    count += usize::from(player != [0; 16]);
                }
                Ok(count)
            }))
        });
        let readers: Vec<_> = readers.collect();
        let mut all = 0;
        for reader in readers {
            all += reader.await??;
        }
        Ok(all)
    }

    pub(super) async fn add_records(&mut self) -> Outcome<usize> {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let path = self.path.with_file_name(format!("{stem}.logs.db"));
        blocking(move || {
            let mut connection = open(&path)?;
            let environment: i64 = connection.query_row(
                "SELECT id FROM log_environments WHERE project = ?1",
                [BARE],
                |row| row.get(0),
            )?;
            let mut last: i64 =
                connection.query_row("SELECT max(id) FROM log_records", [], |row| row.get(0))?;
            let (turn, mut count) = (Turn::begin(), 0);
            while turn.goes_on() {
                let now = SystemClock.now();
                last = last.max(LogId::first_of(now).0);
                let transaction = connection.transaction()?;
                {
                    let mut add = transaction.prepare_cached(ADD_RECORD)?;
                    for _ in 0..CALLERS {
                        let new = rows::records(BARE, RECORDS, now);
                        let player = new.player.map(|player| *player.as_bytes());
                        for entry in &new.entries {
                            last += 1;
                            add.execute(params![
                                last,
                                environment,
                                entry.level as i64,
                                entry.source.as_str(),
                                player,
                                new.page.0,
                                entry.time,
                                entry.message,
                                entry.count
                            ])?;
                            count += 1;
                        }
                    }
                }
                transaction.commit()?;
            }
            Ok(count)
        })
        .await
    }
}
