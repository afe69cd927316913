//! The suite on SQLite, and tests of the file, its mode, its schema version, other processes, and
//! recovery from the log.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use platform_domain::project::FileEntry;
use platform_domain::session::SessionHash;
use platform_store::{ConnectError, NewGuest, SchemaPolicy, Store, StoreError};
use platform_store_conformance::{Needle, Place, TwoHandles, concurrent_suite, suite};
use rusqlite::Connection;
use tempfile::TempDir;

use super::SqliteStore;

/// The directory of one test, and those of copies.
struct Directory(TempDir, Mutex<Vec<Arc<TempDir>>>);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap(), Mutex::default())
    }

    /// A file in a directory that does not exist yet.
    fn file(&self) -> PathBuf {
        self.0.path().join("data/deep/platform.db")
    }

    fn raw(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }
}

#[async_trait]
impl Place for Directory {
    async fn open(&self) -> Arc<dyn Store> {
        let store = SqliteStore::open(&self.file(), SchemaPolicy::Upgrade).await;
        Arc::new(store.unwrap())
    }

    async fn open_copy(&self) -> Arc<dyn Store> {
        let store = SqliteStore::open(&self.file(), SchemaPolicy::Refuse).await;
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let copied = store.unwrap().copy_into(Arc::clone(&folder)).await;
        copied.unwrap();
        let copy = folder.path().join("platform.db");
        let store = SqliteStore::open(&copy, SchemaPolicy::Upgrade).await;
        self.1.lock().unwrap().push(folder);
        Arc::new(store.unwrap())
    }

    async fn find_raw(&self, needles: &[Needle]) -> Vec<String> {
        let folder = self.file();
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder.parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            for needle in needles {
                if spellings(needle).iter().any(|one| has(&bytes, one)) {
                    found.push(format!("{needle:?} in {}", path.display()));
                }
            }
        }
        found.sort_unstable();
        found.dedup_by_key(|line| line.split(" in ").next().map(str::to_owned));
        found
    }
}

/// How a needle may be written.
fn spellings(needle: &Needle) -> Vec<Vec<u8>> {
    match needle {
        Needle::Text(text) => vec![text.clone().into_bytes()],
        Needle::Id(id) => vec![
            id.as_bytes().to_vec(),
            id.to_string().into_bytes(),
            id.simple().to_string().into_bytes(),
        ],
        Needle::Hash(hash) => vec![hash.to_vec()],
    }
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

suite!(Directory::new());

/// Two stores on the same files: each has its own writer, which waits for the other's lock, and
/// neither keeps rows in memory.
mod two_handles {
    use super::*;

    concurrent_suite!(TwoHandles(Directory::new()));
}

fn guest(number: u8) -> NewGuest {
    NewGuest {
        id: uuid::Uuid::from_bytes([number; 16]),
        usernames: vec![format!("otter-{number}")],
        session: SessionHash([number; 32]),
        address: "192.0.2.1".into(),
        cap: None,
        awaiting: None,
        now: 1,
    }
}

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn the_file_the_log_and_the_directory_are_the_owners_alone() {
    let place = Directory::new();
    let store = place.open().await;
    store.add_guest(guest(1)).await.unwrap();
    let file = place.file();
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    for suffix in ["", "-wal", "-shm"] {
        let name = format!("{}{suffix}", file.display());
        assert_eq!(mode(name.as_ref()), 0o600, "{name}");
    }
}

#[tokio::test]
async fn others_rights_to_an_existing_file_are_taken_away() {
    let place = Directory::new();
    place.open().await.close().await.unwrap();
    std::fs::set_permissions(place.file(), std::fs::Permissions::from_mode(0o644)).unwrap();
    place.open().await;
    assert_eq!(mode(&place.file()), 0o600);
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused_with_a_sentence() {
    let place = Directory::new();
    place.open().await.close().await.unwrap();
    place
        .raw()
        .execute_batch(
            "INSERT INTO refinery_schema_history
             SELECT 9999, 'later', applied_on, checksum FROM refinery_schema_history LIMIT 1",
        )
        .unwrap();
    let error = SqliteStore::open(&place.file(), SchemaPolicy::Upgrade)
        .await
        .unwrap_err();
    assert!(
        matches!(error, ConnectError::TooNew { found: 9_999, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("schema version 9999"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_that_open_one_new_store_at_once_all_succeed() {
    let place = Arc::new(Directory::new());
    let tasks: Vec<_> = (1..=8)
        .map(|number| {
            let place = Arc::clone(&place);
            tokio::spawn(async move { place.open().await.add_guest(guest(number)).await.unwrap() })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn what_was_answered_is_in_the_files_at_that_moment() {
    let place = Directory::new();
    let store = place.open().await;
    for number in 1..=20 {
        store.add_guest(guest(number)).await.unwrap();
        // The files as after a crash: the database and its log, without the shared memory, copied
        // while the store is open.
        let copy = Directory::new();
        std::fs::create_dir_all(copy.file().parent().unwrap()).unwrap();
        for suffix in ["", "-wal"] {
            let name = |place: &Directory| format!("{}{suffix}", place.file().display());
            std::fs::copy(name(&place), name(&copy)).unwrap();
        }
        let recovered = copy.open().await;
        for earlier in 1..=number {
            let session = recovered
                .lookup_session(&SessionHash([earlier; 32]))
                .await
                .unwrap();
            assert_eq!(session.unwrap().player.username, format!("otter-{earlier}"));
        }
    }
}

#[tokio::test]
async fn a_close_leaves_two_files_that_are_the_whole_store() {
    let place = Directory::new();
    let store = place.open().await;
    store.add_guest(guest(1)).await.unwrap();
    store.close().await.unwrap();
    let mut names: Vec<_> = std::fs::read_dir(place.file().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["logs.db", "platform.db"]);
    let read = store.lookup_session(&SessionHash([1; 32])).await;
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_waits_while_another_process_holds_the_file() {
    let place = Directory::new();
    let store = place.open().await;
    let other = place.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let write = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.add_guest(guest(1)).await }
    });
    // Reads continue meanwhile.
    assert_eq!(
        store.lookup_session(&SessionHash([1; 32])).await.unwrap(),
        None
    );
    assert!(!write.is_finished());
    other.execute_batch("COMMIT").unwrap();
    write.await.unwrap().unwrap();
}

#[tokio::test]
async fn every_commit_reaches_the_disk_before_the_answer() {
    let place = Directory::new();
    let store = SqliteStore::open(&place.file(), SchemaPolicy::Upgrade)
        .await
        .unwrap();
    let setting = |pragma: &'static str| {
        store.main.write(move |connection| {
            Ok(connection.query_row(pragma, [], |row| row.get::<_, i64>(0))?)
        })
    };
    assert_eq!(setting("PRAGMA synchronous").await.unwrap(), 2, "2 is FULL");
    assert_eq!(setting("PRAGMA foreign_keys").await.unwrap(), 1);
}

#[tokio::test]
async fn a_path_that_cannot_be_made_is_named() {
    let place = Directory::new();
    std::fs::write(place.0.path().join("data"), "a file").unwrap();
    let error = SqliteStore::open(&place.file(), SchemaPolicy::Upgrade)
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::File { .. }), "{error:?}");
    assert!(error.to_string().contains("data/deep"), "{error}");
}

#[tokio::test]
async fn a_copy_names_its_files_once_and_takes_no_others_place() {
    let directory = Directory::new();
    let store = directory.open().await;
    store.close().await.unwrap();
    let files = "INSERT INTO projects (id, slug, created_at) VALUES (1, 'game', 1);
         INSERT INTO deployments (id, project, environment, created_at)
             VALUES (zeroblob(16), 1, 'prod', 1);
         INSERT INTO deployment_files (deployment, path, sha256, size)
             VALUES (zeroblob(16), 'index.html', zeroblob(32), 3),
                 (zeroblob(16), 'again.html', zeroblob(32), 3)";
    directory.raw().execute_batch(files).unwrap();
    let store = SqliteStore::open(&directory.file(), SchemaPolicy::Refuse).await;
    let store = store.unwrap();
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let copy = store.copy_into(Arc::clone(&folder)).await.unwrap();
    let expected = FileEntry {
        sha256: "00".repeat(32),
        size: 3,
    };
    assert_eq!(copy.files, [expected]);
    let again = store.copy_into(folder).await;
    assert!(again.is_err(), "a copy takes no other's place");
}
