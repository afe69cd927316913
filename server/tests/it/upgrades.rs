//! Upgrading the data of earlier versions, and going back by the backup that the upgrade makes.
//!
//! `upgrades/v<version>.<database>.sql.gz` are the two databases as programs of that schema version
//! had them: two players, a signing key, a deployed game and a log record. For another version, dump
//! what a release has made of the last one: `sqlite3 platform.db .dump | gzip -9n`.

#[cfg(feature = "cluster")]
mod postgres;

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use platform_protocol::log::LogLevel;
use platform_protocol::names::Environment;
use platform_server::config::{BackupPlace, Config};
use platform_server::domain::log::LogQuery;
use sha2::{Digest as _, Sha256};

use crate::caller::Caller;
use crate::program::program;
use crate::restore::{names, return_as};
use crate::support::{TestApp, send};

/// The only file of the game.
const PAGE: &[u8] = include_bytes!("upgrades/index.html");
/// The cookies of the two players, and their ids.
const GUEST: &str = "platform-session=4qdBzZg2cw2yhuqvZBQXAKVJ7coJDOpx-69Or1tS0N4";
const GUEST_ID: &str = "b79c84e4-2e78-4bae-9129-8f61e660d147";
const OWNER: &str = "platform-session=eIz4mR2kzAc5YGzq9sqY-VcEAbbO253YtfET7hfKYzk";
const OWNER_ID: &str = "ed345c58-e4c9-4e48-8a32-16eee98f4d7f";
/// The id of the signing key, which signs for nobody else.
const KEY: &str = "aQ6gHoWgb6fjuYmjPFjx7G94vlQh5ViUOrcesnwKhU0";

/// A version of the schema, and its databases.
pub(crate) struct Before {
    pub(crate) version: i64,
    main: &'static [u8],
    logs: &'static [u8],
}

macro_rules! before {
    ($version:literal, $name:literal) => {
        Before {
            version: $version,
            main: include_bytes!(concat!("upgrades/", $name, ".platform.sql.gz")),
            logs: include_bytes!(concat!("upgrades/", $name, ".logs.sql.gz")),
        }
    };
}

pub(crate) const BEFORE: [Before; 5] = [
    before!(8, "v08"),
    before!(16, "v16"),
    before!(24, "v24"),
    before!(31, "v31"),
    before!(38, "v38"),
];

fn open(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

/// Makes the data folder of a server of that version.
pub(crate) fn data_folder(before: &Before) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, dump) in [("platform.db", before.main), ("logs.db", before.logs)] {
        let mut sql = String::new();
        GzDecoder::new(dump).read_to_string(&mut sql).unwrap();
        let database = open(&folder.path().join(name));
        // The dump is in the order of names.
        database
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = off")
            .unwrap();
        database.execute_batch(&sql).unwrap();
        database.close().unwrap();
    }
    keep_page(&folder.path().join("files"));
    folder
}

/// Puts the game's file into a folder of deployed files.
fn keep_page(files: &Path) {
    let sha256 = base16ct::lower::encode_string(&Sha256::digest(PAGE));
    let (start, rest) = sha256.split_at(2);
    let files = files.join(start);
    std::fs::create_dir_all(&files).unwrap();
    std::fs::write(files.join(rest), PAGE).unwrap();
}

/// Returns the version of the schema in a data folder.
pub(crate) fn version(data: &Path) -> i64 {
    let newest = "SELECT max(version) FROM refinery_schema_history";
    let database = open(&data.join("platform.db"));
    database.query_row(newest, [], |row| row.get(0)).unwrap()
}

/// Checks that everything is there.
pub(crate) async fn assert_whole(app: &TestApp, of: i64) {
    assert_eq!(
        return_as(app, "game", GUEST).await,
        GUEST_ID,
        "of version {of}"
    );
    let owner = Caller::with_cookie(app, Some(OWNER)).await;
    assert_eq!(owner.sub.to_string(), OWNER_ID, "of version {of}");
    let keys = send(app.get("auth", "/.well-known/jwks.json")).await;
    assert!(keys.text().contains(KEY), "of version {of}: {keys:?}");
    let project = owner.get("/api/projects/game").await;
    assert_eq!(project.status, 200, "of version {of}: {project:?}");
    let page = send(app.get("game", "/")).await;
    assert_eq!(page.body, PAGE, "of version {of}");
    let query = LogQuery {
        slug: "game".into(),
        environment: Environment::Prod,
        level: LogLevel::Debug,
        before: None,
        limit: 10,
        bytes: usize::MAX,
    };
    let store = &app.running.state.platform.store;
    let records = store.list_log_records(query).await.unwrap().records;
    let messages: Vec<&str> = records
        .iter()
        .map(|record| &*record.entry.message)
        .collect();
    assert_eq!(messages, ["the door is stuck"], "of version {of}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_data_of_each_earlier_version_is_upgraded_and_goes_back_by_its_backup() {
    for before in &BEFORE {
        let data = data_folder(before);
        let backups = tempfile::tempdir().unwrap();
        let folder = backups.path().to_owned();
        let with_backups = move |config: &mut Config| {
            config.backup = Some(BackupPlace::Folder(folder));
            // The records of before are not too old.
            config.log_retention_days = 3_650;
        };
        let of = before.version;
        assert_eq!(version(data.path()), of);
        let app = TestApp::in_directory(data, with_backups.clone()).await;
        let newest = version(app.directory.path());
        assert_whole(&app, of).await;
        let (data, running) = (app.directory, app.running);
        running.stop().await.unwrap();
        if newest == of {
            continue;
        }
        // It was made before the upgrade, so none was due since.
        let made = names(backups.path());
        assert_eq!(
            made,
            [".unfinished-backup", "platform-2026-01-01T000000Z.tar"]
        );

        let mut back = program(data.path());
        back.env("PLATFORM_BACKUP", backups.path());
        let back = back
            .args(["restore", "latest", "--force"])
            .output()
            .unwrap();
        let said = String::from_utf8(back.stdout).unwrap();
        assert!(
            said.contains("which upgrades the store"),
            "{said} {:?}",
            back.stderr
        );
        assert_eq!(version(data.path()), of, "as the program of then needs it");
        let app = TestApp::in_directory(data, with_backups).await;
        assert_whole(&app, of).await;
        assert_eq!(version(app.directory.path()), newest);
        app.running.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_not_upgraded_if_there_can_be_no_backup_of_it() {
    let [before, ..] = &BEFORE;
    let data = data_folder(before);
    let nowhere = data.path().join("platform.db/backups");
    let start = move |data: &Path| {
        let mut command = program(data);
        command
            .env("PLATFORM_BACKUP", nowhere)
            .arg("serve")
            .output()
    };
    let refused = start(data.path()).unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains("is not upgraded, because no backup"),
        "{said}"
    );
    assert!(said.contains("PLATFORM_BACKUP"), "{said}");
    assert_eq!(version(data.path()), before.version);
    let app = TestApp::in_directory(data, |_| {}).await;
    assert_whole(&app, before.version).await;
}
