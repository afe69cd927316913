//! The embedded store: SQLite files, each with one thread that writes and a few
//! connections that read beside it. Frontend log records have a file of their
//! own, so that a flood of them waits for itself alone.
//!
//! | module | holds |
//! |---|---|
//! | `database` | one file: its rights, its settings, its connections |
//! | `writer` | the writing thread and its group commit |
//! | `readers` | the reading connections |
//! | `migrations` | the schemas' history |
//! | `error` | what SQLite's errors mean to a caller |
//! | `players`, `sessions`, `accounts`, `administration`, `sign_ins`, `audit`, `keys`, `projects`, `deployments`, `devices`, `device_codes`, `environments`, `counting`, `logs`, `log_room`, `log_search`, `log_ranges`, `error_counts`, `takedown`, `room` | the operations, as SQL |

mod accounts;
mod administration;
mod audit;
mod counting;
mod database;
mod deployments;
mod device_codes;
mod devices;
mod environments;
mod error;
mod error_counts;
mod keys;
mod left_guests;
mod log_ranges;
mod log_room;
mod log_search;
mod logs;
mod migrations;
mod players;
mod projects;
mod readers;
mod room;
mod sessions;
mod sign_ins;
mod takedown;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use uuid::Uuid;

use self::database::Database;
pub use self::database::{make_private_directory, make_private_file};
use self::error::Error;
use platform_domain::audit::{AuditEvent, AuditQuery, By};
use platform_domain::clock::Millis;
use platform_domain::console_token::{Hold, Holder};
use platform_domain::identity::LinkedIdentity;
use platform_domain::key::{Revocation, StoredKey};
use platform_domain::player::{Player, SuspendedPlayer};
use platform_domain::session::{Session, SessionHash, SessionSummary};
use platform_domain::sign_in::{PendingSignIn, SignIn, SignInOutcome, StateHash, TakenSignIn};
use platform_store::{ConnectError, NewGuest, Older, Store, StoreError};

/// A store in two SQLite files.
#[derive(Debug)]
pub struct SqliteStore {
    /// Players, sessions, keys, projects.
    main: Database,
    /// Frontend log records.
    logs: Database,
}

impl SqliteStore {
    /// Opens the store at `path`, and its log records in `logs.db` beside it.
    /// The files, which only their owner may read, and their directory are
    /// made if they are not there.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn open(path: &Path, older: Older) -> Result<Self, ConnectError> {
        let path = path.to_owned();
        tokio::task::spawn_blocking(move || {
            Ok(Self {
                main: Database::open(&path, &database::MAIN, older)?,
                logs: Database::open(&beside(&path), &database::LOGS, older)?,
            })
        })
        .await
        .unwrap_or_else(|error| Err(ConnectError::Database(Box::new(error))))
    }
}

/// The name of the store in a copy, which is the name of the settings' default.
const MAIN_FILE: &str = "platform.db";

/// The file of the log records: `logs.db` beside `platform.db`. A store of
/// another name has its name in front, so that two in one directory share
/// nothing.
fn beside(path: &Path) -> PathBuf {
    match path.file_stem().and_then(std::ffi::OsStr::to_str) {
        None | Some("platform") => path.with_file_name("logs.db"),
        Some(stem) => path.with_file_name(format!("{stem}.logs.db")),
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn lookup_session(&self, hash: &SessionHash) -> Result<Option<Session>, StoreError> {
        self.main
            .read(|connection| sessions::lookup_session(connection, hash))
    }

    async fn find_holder(&self, hold: &Hold, now: Millis) -> Result<Option<Holder>, StoreError> {
        self.main.read(|connection| match hold {
            Hold::Session(hash) => sessions::find_holder(connection, hash, now),
            Hold::Device(device) => devices::find_holder(connection, *device, now),
        })
    }

    async fn add_guest(&self, guest: NewGuest) -> Result<Player, StoreError> {
        self.main
            .write(move |connection| players::add_guest(connection, &guest))
            .await
    }

    async fn bring_back_guest(&self, guest: NewGuest) -> Result<Player, StoreError> {
        self.main
            .write(move |connection| players::bring_back_guest(connection, &guest))
            .await
    }

    async fn renew_session(&self, hash: &SessionHash, now: Millis) -> Result<(), StoreError> {
        let hash = *hash;
        self.main
            .write(move |connection| sessions::renew_session(connection, &hash, now))
            .await
    }

    async fn see_guest(&self, player: Uuid, now: Millis) -> Result<(), StoreError> {
        self.main
            .write(move |connection| players::see_guest(connection, player, now))
            .await
    }

    async fn end_session(&self, hash: &SessionHash, by: By, now: Millis) -> Result<(), StoreError> {
        let hash = *hash;
        self.main
            .write(move |connection| sessions::sign_out(connection, &hash, by, now))
            .await
    }

    async fn note_browser(&self, hash: &SessionHash, browser: &str) -> Result<(), StoreError> {
        let (hash, browser) = (*hash, browser.to_owned());
        self.main
            .write(move |connection| sessions::note_browser(connection, &hash, &browser))
            .await
    }

    async fn end_session_of(
        &self,
        player: Uuid,
        hash: &SessionHash,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let hash = *hash;
        self.main
            .write(move |connection| sessions::end_session_of(connection, player, &hash, by, now))
            .await
    }

    async fn end_other_sessions(
        &self,
        player: Uuid,
        kept: Option<&SessionHash>,
        by: By,
        now: Millis,
    ) -> Result<usize, StoreError> {
        let kept = kept.copied();
        self.main
            .write(move |connection| {
                sessions::end_other_sessions(connection, player, kept.as_ref(), by, now)
            })
            .await
    }

    async fn list_sessions(
        &self,
        player: Uuid,
        now: Millis,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        self.main
            .read(|connection| sessions::list_sessions(connection, player, now))
    }

    async fn sweep_sessions(&self, now: Millis, limit: usize) -> Result<usize, StoreError> {
        self.main
            .write(move |connection| sessions::sweep_sessions(connection, now, limit))
            .await
    }

    async fn find_player(&self, id: Uuid) -> Result<Option<Player>, StoreError> {
        self.main
            .read(|connection| players::find_player(connection, id))
    }

    async fn list_identities(&self, player: Uuid) -> Result<Vec<LinkedIdentity>, StoreError> {
        self.main
            .read(|connection| accounts::list_identities(connection, player))
    }

    async fn rename_player(
        &self,
        player: Uuid,
        username: &str,
        by: By,
        now: Millis,
    ) -> Result<(), StoreError> {
        let username = username.to_owned();
        self.main
            .write(move |connection| players::rename_player(connection, player, &username, by, now))
            .await
    }

    async fn suspend_player(
        &self,
        player: Uuid,
        reason: Option<&str>,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let reason = reason.map(str::to_owned);
        self.main
            .write(move |connection| {
                accounts::suspend_player(connection, player, reason.as_deref(), by, now)
            })
            .await
    }

    async fn unsuspend_player(
        &self,
        player: Uuid,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError> {
        self.main
            .write(move |connection| accounts::unsuspend_player(connection, player, by, now))
            .await
    }

    async fn list_suspended_players(
        &self,
        since: Millis,
    ) -> Result<Vec<SuspendedPlayer>, StoreError> {
        self.main
            .read_much(move |connection| accounts::list_suspended_players(connection, since))
            .await
    }

    async fn list_ended_sessions(&self, since: Millis) -> Result<Vec<(Uuid, Millis)>, StoreError> {
        self.main
            .read_much(move |connection| sessions::list_ended(connection, since))
            .await
    }

    async fn add_pending_sign_in(&self, pending: PendingSignIn) -> Result<(), StoreError> {
        self.main
            .write(move |connection| sign_ins::add_pending(connection, &pending))
            .await
    }

    async fn take_pending_sign_in(
        &self,
        state: &StateHash,
        browser: &[u8; 32],
        now: Millis,
    ) -> Result<TakenSignIn, StoreError> {
        let (state, browser) = (*state, *browser);
        // Anybody can ask for any number of states: those that are none cost
        // no write.
        if !self
            .main
            .read(|connection| sign_ins::is_pending(connection, &state))?
        {
            return Ok(TakenSignIn::Unknown);
        }
        self.main
            .write(move |connection| sign_ins::take_pending(connection, &state, &browser, now))
            .await
    }

    async fn complete_sign_in(&self, sign_in: SignIn) -> Result<SignInOutcome, StoreError> {
        self.main
            .write(move |connection| sign_ins::complete(connection, &sign_in))
            .await
    }

    async fn list_audit_events(&self, query: AuditQuery) -> Result<Vec<AuditEvent>, StoreError> {
        self.main
            .read_much(move |connection| audit::list_audit_events(connection, query))
            .await
    }

    async fn list_keys(&self) -> Result<Vec<StoredKey>, StoreError> {
        self.main.read_much(keys::list_keys).await
    }

    async fn add_key(
        &self,
        key: StoredKey,
        after: Option<&str>,
        by: By,
    ) -> Result<bool, StoreError> {
        let after = after.map(str::to_owned);
        self.main
            .write(move |connection| keys::add_key(connection, &key, after.as_deref(), by))
            .await
    }

    async fn remove_keys(&self, kids: &[String]) -> Result<(), StoreError> {
        let kids = kids.to_vec();
        self.main
            .write(move |connection| keys::remove_keys(connection, &kids))
            .await
    }

    async fn revoke_key(
        &self,
        kid: &str,
        successor: Option<StoredKey>,
        after: Option<&str>,
        at: Millis,
        by: By,
    ) -> Result<Revocation, StoreError> {
        let (kid, after) = (kid.to_owned(), after.map(str::to_owned));
        self.main
            .write(move |connection| {
                let after = after.as_deref();
                keys::revoke_key(connection, &kid, successor.as_ref(), after, at, by)
            })
            .await
    }

    async fn reseal_keys(&self, keys: Vec<(String, Vec<u8>)>) -> Result<(), StoreError> {
        self.main
            .write(move |connection| keys::reseal_keys(connection, &keys))
            .await
    }

    async fn raise_token_life(&self, millis: Millis) -> Result<(), StoreError> {
        self.main
            .write(move |connection| keys::raise_token_life(connection, millis))
            .await
    }

    async fn close(&self) -> Result<(), StoreError> {
        let (main, logs) = futures_util::join!(self.main.close(), self.logs.close());
        main.and(logs)
    }
}

/// A UUID as the store keeps it, or which row is wrong.
fn uuid(
    bytes: &[u8],
    table: &'static str,
    column: &'static str,
    row: impl FnOnce() -> String,
) -> Result<Uuid, Error> {
    let wrong = |_| StoreError::Corrupt {
        table,
        column,
        row: row(),
    };
    Ok(Uuid::from_slice(bytes).map_err(wrong)?)
}
