//! Upgrading the data of earlier versions in PostgreSQL, by nodes that start at the same time or are killed.
//!
//! `postgres<version>.sql.gz` have the same players, key, game and log record as the data folders of SQLite.
//! For another version, dump what a release has made of the last one: `pg_dump --inserts --no-owner`, without its settings
//! of the session.

use std::io::Read as _;

use flate2::read::GzDecoder;
use platform_server::clock::{Clock as _, SystemClock};
use platform_server::config::{Config, Secret};
use platform_test_postgres::TestDatabase;

use super::{assert_whole, keep_page};
use crate::program::{Server, program_by};
use crate::support::TestApp;

/// More starts than an upgrade of one version after the other needs.
const STARTS: usize = 200;

/// A version of the schema, and its database.
struct Before {
    version: i64,
    dump: &'static [u8],
}

macro_rules! before {
    ($version:literal, $name:literal) => {
        Before {
            version: $version,
            dump: include_bytes!(concat!($name, ".sql.gz")),
        }
    };
}

const BEFORE: [Before; 6] = [
    before!(1, "postgres01"),
    before!(3, "postgres03"),
    before!(6, "postgres06"),
    before!(10, "postgres10"),
    before!(13, "postgres13"),
    before!(20, "postgres20"),
];

/// Makes the database of nodes of that version, and the folder of their deployed files.
fn place(before: &Before) -> (TestDatabase, tempfile::TempDir) {
    let database = TestDatabase::new();
    let mut sql = String::new();
    GzDecoder::new(before.dump)
        .read_to_string(&mut sql)
        .unwrap();
    // As if they had stopped an hour ago: nodes go by the time of the database.
    let ago = SystemClock.now() - 60 * 60 * 1_000;
    let recent = format!(
        "UPDATE sessions SET created_at = {ago}, renewed_at = {ago};
         UPDATE signing_keys SET created_at = {ago}, signs_from = {ago}"
    );
    database.run(&format!("{sql};\n{recent}"));
    assert_eq!(version(&database), before.version);
    let files = tempfile::tempdir().unwrap();
    keep_page(files.path());
    (database, files)
}

fn version(database: &TestDatabase) -> i64 {
    let newest = "SELECT max(version) FROM platform_schema_history";
    database.ask(newest).unwrap().parse().unwrap()
}

/// The settings of a node on this database.
fn settings(
    database: &TestDatabase,
    files: &tempfile::TempDir,
) -> impl FnOnce(&mut Config) + use<> {
    let (url, files) = (Secret::new(database.url()), files.path().to_owned());
    move |config| {
        config.postgres = Some(url);
        config.files = Some(files);
        // The records of before are not too old.
        config.log_retention_days = 3_650;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_data_of_each_earlier_version_in_postgresql_is_upgraded_by_one_of_two_nodes() {
    let empty = TestDatabase::new();
    let files = tempfile::tempdir().unwrap();
    let app = TestApp::with(settings(&empty, &files)).await;
    let newest = version(&empty);
    app.running.stop().await.unwrap();
    for before in &BEFORE {
        let (database, files) = place(before);
        let (one, other) = tokio::join!(
            TestApp::with(settings(&database, &files)),
            TestApp::with(settings(&database, &files))
        );
        assert_eq!(version(&database), newest, "from {}", before.version);
        for app in [one, other] {
            assert_whole(&app, before.version).await;
            app.running.stop().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_killed_while_it_upgrades_leaves_a_database_that_the_next_one_upgrades() {
    let [before, ..] = &BEFORE;
    let (database, files) = place(before);
    let mut reached = before.version;
    let mut kills = 0;
    let server = loop {
        // Each start gets further by a few messages to the database.
        let calls = "write,writev,sendto,sendmsg";
        let kill = format!("inject={calls}:signal=KILL:when={}", 3 * kills + 1);
        let trace = format!("trace={calls}");
        let strace = [
            "strace",
            "-D",
            "-f",
            "-o",
            "/dev/null",
            "-e",
            &trace,
            "-e",
            &kill,
        ];
        let data = tempfile::tempdir().unwrap();
        let mut node = program_by(&strace, data.path());
        node.env("PLATFORM_DATABASE_URL", database.url());
        let files = format!("file://{}", files.path().display());
        node.env("PLATFORM_FILES_URL", files);
        node.env("PLATFORM_LOG_RETENTION_DAYS", "3650");
        match Server::try_start(&mut node) {
            Ok(server) => break server,
            Err(killed) => assert_eq!(killed.status.code(), None, "{killed:?}"),
        }
        kills += 1;
        assert!(kills < STARTS, "it never gets through");
        let now = version(&database);
        assert!(now >= reached, "{now} after {reached}");
        reached = now;
    };
    server.stop("-KILL");
    let app = TestApp::with(settings(&database, &files)).await;
    assert_whole(&app, before.version).await;
    app.running.stop().await.unwrap();
}
