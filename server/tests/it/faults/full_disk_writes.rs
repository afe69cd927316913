//! What is written for one player or by the operator, on a disk that is full at every one of its writes: it happens
//! as a whole or not at all, and succeeds when it is tried again.

use std::sync::Arc;

use platform_server::clock::{Clock as _, SystemClock};
use platform_server::platform::disk::SystemDisk;

use super::assert_kept;
use super::own_machine::OwnMachine;
use super::small_disk::Filler;
use crate::browser::Browser;
use crate::profile::Player;
use crate::program::program;
use crate::support::{Answer, TestApp};

/// How many pages of 4 KiB are free: none, too few for a part of the write, and more than all of it needs.
const PAGES: [u64; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 24, 40];
const DAY: i64 = 24 * 3_600_000;

/// Something that is written.
trait Write {
    /// Tries it. Returns whether it was done; whoever is refused is told that they may try again.
    async fn attempt(&mut self) -> bool;

    /// Whether it has happened.
    async fn has_happened(&mut self) -> bool;
}

/// Whether a request was done, or may be sent again in a second.
fn is_done(answer: &Answer) -> bool {
    if answer.status != 503 {
        return true;
    }
    assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
    assert_eq!(answer.problem(), "unavailable");
    for cause in ["sqlite", "database", "disk", "os error"] {
        assert!(!answer.text().contains(cause), "{answer:?}");
    }
    false
}

/// Somebody at the callback, who is about to be signed in.
struct SignIn<'a> {
    browser: Browser<'a>,
    name: String,
    game: String,
    callback: String,
    guest: String,
    /// The player that they are afterwards.
    account: String,
}

impl<'a> SignIn<'a> {
    async fn new(app: &'a TestApp, name: &str, account: Option<&str>) -> Self {
        let mut browser = Browser::new(app);
        let guest = browser.token().await.claims().sub;
        let mut this = Self {
            browser,
            name: name.to_owned(),
            game: format!("{}/", app.origin("demo")),
            callback: String::new(),
            account: account.unwrap_or(&guest).to_owned(),
            guest,
        };
        this.begin().await;
        this
    }

    async fn begin(&mut self) {
        let fields = [("name", self.name.as_str()), ("action", "sign-in")];
        let answered = self.browser.at_demo_provider(&self.game, &fields).await;
        self.callback = answered.location();
    }
}

impl Write for SignIn<'_> {
    async fn attempt(&mut self) -> bool {
        let answer = self.browser.get(&self.callback).await;
        if !is_done(&answer) {
            return false;
        }
        if answer.location() == self.game {
            return true;
        }
        // The last try took the code, and could not write what follows from it.
        assert_eq!(answer.setback().0, "expired");
        self.begin().await;
        assert_eq!(self.browser.get(&self.callback).await.location(), self.game);
        true
    }

    async fn has_happened(&mut self) -> bool {
        let claims = self.browser.token().await.claims();
        let expected = if claims.is_anon {
            &self.guest
        } else {
            &self.account
        };
        assert_eq!(&claims.sub, expected);
        !claims.is_anon
    }
}

/// A player who takes another name.
struct Rename<'a> {
    app: &'a TestApp,
    player: Player,
    name: String,
}

impl Write for Rename<'_> {
    async fn attempt(&mut self) -> bool {
        let answer = self.player.rename(self.app, &self.name).await;
        let is_done = is_done(&answer);
        assert!(!is_done || answer.status == 303, "{answer:?}");
        is_done
    }

    async fn has_happened(&mut self) -> bool {
        let shown = self.player.name_in_token(self.app).await;
        assert!([&self.name, &self.player.name].contains(&&shown), "{shown}");
        shown == self.name
    }
}

/// Who adds a signing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rotator {
    /// The command beside the server.
    Operator,
    /// The server itself, since the last one is 90 days old.
    Server,
}

struct Rotation<'a> {
    app: &'a TestApp,
    by: Rotator,
    last: String,
    /// The time that passes before the first try, in milliseconds.
    passes: i64,
}

impl<'a> Rotation<'a> {
    fn new(app: &'a TestApp, by: Rotator) -> Self {
        Self {
            app,
            by,
            last: newest_key(app),
            passes: 91 * DAY,
        }
    }
}

/// Returns the id of the newest key in the store.
fn newest_key(app: &TestApp) -> String {
    app.sql_text("SELECT kid FROM signing_keys ORDER BY position DESC LIMIT 1")
}

impl Write for Rotation<'_> {
    async fn attempt(&mut self) -> bool {
        if self.by == Rotator::Server {
            // Only now, so that the server's own job does not add it before.
            self.app.clock.advance(self.passes);
            self.passes = 0;
            // As its job does every three seconds. What it removes afterwards may fail as well.
            let refreshed = self.app.running.state.auth.keys.refresh().await;
            let happened = self.has_happened().await;
            assert!(happened || refreshed.is_err());
            return happened;
        }
        let mut command = program(self.app.directory.path());
        let output = command.args(["keys", "rotate"]).output().unwrap();
        if output.status.success() {
            return true;
        }
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let last = said.lines().last().unwrap();
        assert!(
            last.starts_with("platform-server: ") && last.contains("full"),
            "{said}"
        );
        false
    }

    async fn has_happened(&mut self) -> bool {
        newest_key(self.app) != self.last
    }
}

/// Fills the disk as if for the last time, and tries this write until it is done.
struct Trial<'a> {
    app: &'a TestApp,
    disk: Filler,
    /// A guest who was there before.
    known: Browser<'a>,
}

impl Trial<'_> {
    /// Empties the write-ahead log, so that every write needs space. No server's job may be writing then.
    fn empty_log(&self) {
        let database = self.app.directory.path().join("platform.db");
        let database = rusqlite::Connection::open(database).unwrap();
        let emptied = || {
            database
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
                    row.get::<_, i64>(0)
                })
                .unwrap()
        };
        let begun = tokio::time::Instant::now();
        while emptied() != 0 {
            assert!(begun.elapsed() < super::PATIENCE, "the store is idle");
        }
    }

    /// Returns whether the write was refused at first.
    async fn refuses(&mut self, pages: u64, mut write: impl Write) -> bool {
        self.empty_log();
        self.disk.leave(pages);
        let is_done = write.attempt().await;
        assert_eq!(write.has_happened().await, is_done, "{pages} pages free");
        assert_eq!(self.known.token().await.status, 200, "{pages} pages free");
        self.disk.free();
        if !is_done {
            assert!(write.attempt().await, "after {pages} pages were free");
        }
        assert!(write.has_happened().await, "after {pages} pages were free");
        // Where there is room, a session that is used is prolonged.
        assert_eq!(self.known.token().await.status, 200);
        !is_done
    }
}

/// Makes a write for each number of free pages. The first ones are refused, and the last one is not.
async fn demand_all_or_nothing<W: Write>(
    trial: &mut Trial<'_>,
    what: &str,
    mut prepare: impl AsyncFnMut(u64) -> W,
) {
    let mut refused = Vec::new();
    for pages in PAGES {
        let write = prepare(pages).await;
        if trial.refuses(pages, write).await {
            refused.push(pages);
        }
    }
    assert!(refused.starts_with(&[0, 1]), "{what}: {refused:?}");
    let most = PAGES[PAGES.len() - 1];
    assert!(!refused.contains(&most), "{what}: {refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_every_write_for_a_player_or_a_key_happens_as_a_whole_or_later() {
    let name = "faults::full_disk_writes::on_a_full_disk_every_write_for_a_player_or_a_key_happens_as_a_whole_or_later";
    let Some(machine) = OwnMachine::enter(name) else {
        return;
    };
    let data = tempfile::tempdir_in(machine.disk()).unwrap();
    let (disk, now) = (Arc::new(SystemDisk), Some(SystemClock.now()));
    let change = |config: &mut platform_server::config::Config| config.disk_floor_mib = 0;
    let app = &TestApp::start_in(data, disk, now, change).await;
    let mut known = Browser::new(app);
    let player = known.token().await.claims().sub;
    let mut trial = Trial {
        app,
        disk: machine.filler(),
        known,
    };
    let first = async |pages: u64| SignIn::new(app, &format!("First{pages}"), None).await;
    demand_all_or_nothing(&mut trial, "a first sign-in", first).await;

    let mut ann = SignIn::new(app, "Ann", None).await;
    assert!(ann.attempt().await);
    let account = ann.account.clone();
    let merge = async |_: u64| SignIn::new(app, "Ann", Some(&account)).await;
    demand_all_or_nothing(&mut trial, "a merge", merge).await;

    let rename = async |pages: u64| Rename {
        app,
        player: Player::guest(app).await,
        name: format!("Renamed{pages}"),
    };
    demand_all_or_nothing(&mut trial, "another name", rename).await;

    let by_operator = async |_: u64| Rotation::new(app, Rotator::Operator);
    demand_all_or_nothing(&mut trial, "a key of the operator", by_operator).await;
    let by_server = async |_: u64| Rotation::new(app, Rotator::Server);
    demand_all_or_nothing(&mut trial, "a key of the server", by_server).await;

    let kept = trial.known.token().await.claims().sub;
    assert_eq!(kept, player);
    assert_kept(app.directory.path(), &[player, account]);
}
