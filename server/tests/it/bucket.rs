//! Deployed files in an S3 bucket: a real S3 server, which is killed, cut off, silent, and whose
//! objects are damaged.

mod backups;
pub(crate) mod server;
mod start;
mod sweep;

use std::sync::Arc;
use std::time::Duration;

use platform_server::clock::{Clock, ManualClock};
use platform_server::config::Config;
use platform_server::domain::project::FileEntry;
use platform_server::games::files::{FileError, FileStore};
use platform_server::platform::disk::{FreeSpace, SystemDisk};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use self::server::Bucket;
use crate::caller::{Caller, archive};
use crate::support::{Answer, NOW, TestApp, send};

/// Much longer than anything here takes; reaching it is a failure.
const NEVER: Duration = Duration::from_secs(60);
const GOOD: &str = "the game that is there";
const MIB: usize = 1024 * 1024;

/// The settings of a node on this bucket.
fn on(bucket: &Bucket) -> impl FnOnce(&mut Config) + use<> {
    let settings = bucket.settings();
    move |config| {
        config.s3 = Some(settings);
        config.operations_listen = Some("127.0.0.1:0".parse().unwrap());
    }
}

/// Bytes that cannot be compressed, of this length.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..length.div_ceil(8))
        .flat_map(|_| next().to_le_bytes())
        .take(length)
        .collect()
}

/// Returns the entry of the current deployment's file at `path`.
async fn entry(app: &TestApp, path: &str) -> FileEntry {
    let store = &app.running.state.platform.store;
    let environment = platform_protocol::names::Environment::Prod;
    let current = store.find_current_deployment("game", environment).await;
    current.unwrap().unwrap().files[path].clone()
}

async fn degraded(app: &TestApp) -> Value {
    let address = app.running.operations.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client.get(format!("http://{address}/readyz")).send().await;
    let body = answer.unwrap().text().await.unwrap();
    serde_json::from_str(&body).unwrap()
}

/// Waits until the node says that it is degraded in this way.
async fn becomes_degraded(app: &TestApp, wanted: Value) {
    let wanted = json!({ "ready": true, "degraded": wanted });
    let become_so = async {
        while degraded(app).await != wanted {
            tokio::task::yield_now().await;
        }
    };
    let became = tokio::time::timeout(NEVER, become_so).await;
    assert!(became.is_ok(), "{:?}", degraded(app).await);
}

/// Asks until the bucket is asked again: for a second after a failure, it is not.
async fn until_served(app: &TestApp, path: &str) -> Answer {
    let ask = async {
        loop {
            let answer = send(app.get("game", path)).await;
            if answer.status == 200 {
                return answer;
            }
            assert_out_of_reach(&answer);
        }
    };
    tokio::time::timeout(NEVER, ask).await.unwrap()
}

#[track_caller]
fn assert_out_of_reach(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(
        answer.text().contains("cannot reach the files"),
        "{answer:?}"
    );
    assert!(!answer.text().contains(server::SECRET), "{answer:?}");
}

/// The number of files in the cache of the node on the disk, and their size.
fn cached(app: &TestApp) -> (usize, u64) {
    let cache = app.directory.path().join("cache");
    let folders = std::fs::read_dir(cache).into_iter().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    let sizes: Vec<u64> = files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .collect();
    (sizes.len(), sizes.iter().sum())
}

/// Forgets what lies in memory and on the disk, as on another node.
async fn on_a_new_node(app: TestApp, bucket: &Bucket) -> TestApp {
    std::fs::remove_dir_all(app.directory.path().join("cache")).unwrap();
    app.restart(on(bucket)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_any_size_are_stored_and_read_back() {
    let bucket = Bucket::start().await;
    let app = TestApp::with(on(&bucket)).await;
    let owner = Caller::with_project(&app).await;
    // In parts, of just one part, of several reads, of one, and of nothing.
    let sizes = [20 * MIB + 7, 8 * MIB, 4 * MIB, 4 * MIB + 1, 300, 0];
    let contents: Vec<(String, Vec<u8>)> = sizes
        .iter()
        .map(|size| (format!("{size}.bin"), noise(*size as u64, *size)))
        .collect();
    let mut files: Vec<(&str, &[u8])> = vec![("index.html", GOOD.as_bytes())];
    files.extend(
        contents
            .iter()
            .map(|(path, content)| (path.as_str(), content.as_slice())),
    );
    let deployed = owner.deploy("prod", archive(&files)).await;
    assert_eq!(deployed.status, 201, "{deployed:?}");
    let app = on_a_new_node(app, &bucket).await;
    for (path, content) in &contents {
        let path = format!("/{path}");
        let answer = send(app.get("game", &path)).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.body == *content, "{path}");
        if content.len() > 100 {
            let last = content.len() - 90;
            let range = format!("bytes={last}-");
            let part = send(app.get("game", &path).header("range", range)).await;
            assert_eq!((part.status.as_u16(), part.body.len()), (206, 90), "{path}");
            assert_eq!(part.body, content[last..]);
        }
    }
    assert_eq!(
        degraded(&app).await,
        json!({ "ready": true, "degraded": [] })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_bucket_is_gone_cached_files_are_served_and_nothing_is_deployed() {
    let bucket = Bucket::start().await;
    let app = TestApp::with(on(&bucket)).await;
    let owner = Caller::with_project(&app).await;
    let files: [(&str, &[u8]); 3] = [
        ("index.html", GOOD.as_bytes()),
        ("seen.3f2a9c1b.js", b"seen()"),
        ("unseen.3f2a9c1b.js", b"unseen()"),
    ];
    assert_eq!(owner.deploy("prod", archive(&files)).await.status, 201);
    let before = entry(&app, "index.html").await;
    for path in ["/", "/seen.3f2a9c1b.js"] {
        assert_eq!(send(app.get("game", path)).await.status, 200);
    }
    bucket.kill();
    assert_out_of_reach(&send(app.get("game", "/unseen.3f2a9c1b.js")).await);
    becomes_degraded(&app, json!(["s3"])).await;
    let refused = owner
        .deploy("prod", archive(&[("index.html", b"new")]))
        .await;
    assert_out_of_reach(&refused);
    assert!(
        refused.text().contains("nothing was deployed"),
        "{refused:?}"
    );
    assert_eq!(entry(&app, "index.html").await, before);

    // Also by a node that starts meanwhile.
    let (sub, cookie) = (owner.sub, owner.cookie.clone());
    let app = app.restart(on(&bucket)).await;
    assert_eq!(send(app.get("game", "/")).await.text(), GOOD);
    let seen = send(app.get("game", "/seen.3f2a9c1b.js")).await;
    assert_eq!(seen.text(), "seen()");
    let unseen = send(app.get("game", "/unseen.3f2a9c1b.js")).await;
    assert_out_of_reach(&unseen);
    assert_eq!(
        degraded(&app).await,
        json!({ "ready": true, "degraded": ["s3"] })
    );

    bucket.run();
    let unseen = until_served(&app, "/unseen.3f2a9c1b.js").await;
    assert_eq!(unseen.text(), "unseen()");
    becomes_degraded(&app, json!([])).await;
    let owner = Caller::with_cookie(&app, Some(&cookie)).await;
    assert_eq!(owner.sub, sub);
    let deployed = owner
        .deploy("prod", archive(&[("index.html", b"new")]))
        .await;
    assert_eq!(deployed.status, 201, "{deployed:?}");
    assert_eq!(send(app.get("game", "/")).await.text(), "new");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_stays_silent_keeps_nobody_waiting_for_long() {
    let bucket = Bucket::start().await;
    let app = TestApp::with(on(&bucket)).await;
    let owner = Caller::with_project(&app).await;
    let files: [(&str, &[u8]); 2] = [("index.html", GOOD.as_bytes()), ("a.js", b"a()")];
    assert_eq!(owner.deploy("prod", archive(&files)).await.status, 201);
    bucket.proxy.be_silent(true);
    let start = tokio::time::Instant::now();
    assert_out_of_reach(&send(app.get("game", "/a.js")).await);
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
    // Those who come later are told at once.
    let start = tokio::time::Instant::now();
    assert_out_of_reach(&send(app.get("game", "/")).await);
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    bucket.proxy.be_silent(false);
    assert_eq!(until_served(&app, "/a.js").await.text(), "a()");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deploy_that_is_cut_off_changes_nothing() {
    let bucket = Bucket::start().await;
    let app = TestApp::with(on(&bucket)).await;
    let owner = Caller::with_project(&app).await;
    let page = archive(&[("index.html", GOOD.as_bytes())]);
    assert_eq!(owner.deploy("prod", page).await.status, 201);
    let before = entry(&app, "index.html").await;
    let big = noise(1, 20 * MIB);
    let next = archive(&[("index.html", b"new"), ("big.bin", &big)]);
    bucket.proxy.cut_after_sent(11 * MIB as i64);
    let refused = owner.deploy("prod", next.clone()).await;
    assert_out_of_reach(&refused);
    assert!(bucket.proxy.is_cut());
    assert_eq!(entry(&app, "index.html").await, before);
    let big_name = base16ct::lower::encode_string(&Sha256::digest(&big));
    assert!(!bucket.object(&big_name).exists(), "nothing half is there");
    bucket.proxy.mend();
    assert_eq!(until_served(&app, "/").await.text(), GOOD);
    let deployed = owner.deploy("prod", next).await;
    assert_eq!(deployed.status, 201, "{deployed:?}");
    assert!(send(app.get("game", "/big.bin")).await.body == big);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deploy_whose_sender_is_signed_out_while_it_is_stored_changes_nothing() {
    let bucket = Bucket::start().await;
    let app = TestApp::with(on(&bucket)).await;
    let owner = Caller::with_project(&app).await;
    bucket.proxy.be_silent(true);
    let before = bucket.proxy.asked();
    let deploy = owner.deploy("prod", archive(&[("index.html", GOOD.as_bytes())]));
    let sign_out = async {
        until(|| bucket.proxy.asked() > before).await;
        assert_eq!(app.end_sessions(owner.sub).await, 1);
        bucket.proxy.be_silent(false);
    };
    let (refused, ()) = tokio::join!(deploy, sign_out);
    assert_eq!(refused.status, 401, "{refused:?}");
    assert_eq!(refused.problem(), "not-signed-in");
    assert_eq!(send(app.get("game", "/")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_is_cut_off_is_neither_served_nor_kept() {
    let bucket = Bucket::start().await;
    let app = TestApp::with(on(&bucket)).await;
    let owner = Caller::with_project(&app).await;
    let big = noise(2, 20 * MIB);
    let files: [(&str, &[u8]); 2] = [("index.html", GOOD.as_bytes()), ("big.bin", &big)];
    assert_eq!(owner.deploy("prod", archive(&files)).await.status, 201);
    bucket.proxy.cut_after_received(10 * MIB as i64);
    assert_out_of_reach(&send(app.get("game", "/big.bin")).await);
    assert!(bucket.proxy.is_cut());
    assert!(cached(&app).1 < 4 * MIB as u64, "{:?}", cached(&app));
    bucket.proxy.mend();
    assert!(until_served(&app, "/big.bin").await.body == big);

    // A process that is killed leaves nothing behind, and neither does one that was cut off.
    bucket.kill();
    assert!(send(app.get("game", "/big.bin")).await.body == big);
    std::fs::remove_dir_all(app.directory.path().join("cache")).unwrap();
    assert_out_of_reach(&send(app.get("game", "/big.bin")).await);
    bucket.run();
    assert!(until_served(&app, "/big.bin").await.body == big);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_bytes_in_the_bucket_are_not_served() {
    let bucket = Bucket::start().await;
    let app = TestApp::with(on(&bucket)).await;
    let owner = Caller::with_project(&app).await;
    let big = noise(3, 9 * MIB);
    let files: [(&str, &[u8]); 5] = [
        ("index.html", GOOD.as_bytes()),
        ("other.js", b"other()"),
        ("empty.js", b"empty()"),
        ("gone.js", b"gone()"),
        ("big.bin", &big),
    ];
    let all = archive(&files);
    assert_eq!(owner.deploy("prod", all.clone()).await.status, 201);
    let object = async |path: &str| bucket.object(&entry(&app, path).await.sha256);
    std::fs::write(object("other.js").await, "evil!()").unwrap();
    std::fs::write(object("empty.js").await, "").unwrap();
    std::fs::remove_file(object("gone.js").await).unwrap();
    let mut flipped = big.clone();
    flipped[5 * MIB] ^= 1;
    std::fs::write(object("big.bin").await, flipped).unwrap();
    for (path, _) in &files[1..] {
        assert_out_of_reach(&send(app.get("game", &format!("/{path}"))).await);
    }
    assert_eq!(cached(&app).0, 0);
    // The bucket itself answers.
    assert_eq!(send(app.get("game", "/")).await.text(), GOOD);
    assert_eq!(
        degraded(&app).await,
        json!({ "ready": true, "degraded": [] })
    );
    // The node knows, and a deploy of the same files mends them.
    assert_eq!(owner.deploy("prod", all).await.status, 201);
    for (path, content) in &files {
        let answer = send(app.get("game", &format!("/{path}"))).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.body == *content, "{path}");
    }
}

/// A file store on the bucket, with a cache of so many MiB in `folder`.
async fn store(bucket: &Bucket, folder: &tempfile::TempDir, mib: u64) -> FileStore {
    let config = Config {
        data: folder.path().to_owned(),
        s3: Some(bucket.settings()),
        file_disk_cache_mib: mib,
        disk_floor_mib: 0,
        ..Config::default()
    };
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(NOW));
    let disk: Arc<dyn FreeSpace> = Arc::new(SystemDisk);
    FileStore::open(&config, &clock, &disk).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_requests_for_a_cold_file_read_it_once() {
    let (bucket, folder) = (Bucket::start().await, tempfile::tempdir().unwrap());
    let files = Arc::new(store(&bucket, &folder, 64).await);
    let content = noise(4, MIB);
    let entry = files.put(content.clone().into()).await.unwrap();
    let before = bucket.proxy.gets();
    let asking: Vec<_> = (0..1_000)
        .map(|_| {
            let (files, name) = (Arc::clone(&files), entry.clone());
            tokio::spawn(async move { files.read(&name, "game").await })
        })
        .collect();
    for asking in asking {
        assert!(asking.await.unwrap().unwrap() == content);
    }
    assert_eq!(bucket.proxy.gets() - before, 1);
    // One that is missing is asked for once as well, and by all who come soon after.
    let missing = bogus(0, 3);
    for _ in 0..5 {
        let read = files.read(&missing, "game").await;
        assert!(matches!(read, Err(FileError::Absent(_))), "{read:?}");
    }
    assert_eq!(bucket.proxy.gets() - before, 2);
}

/// The entry of a file whose name is only this number.
fn bogus(number: u64, size: u64) -> FileEntry {
    let sha256 = format!("{number:064x}");
    FileEntry { sha256, size }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_games_large_files_keep_no_other_file_waiting() {
    let (bucket, folder) = (Bucket::start().await, tempfile::tempdir().unwrap());
    let files = Arc::new(store(&bucket, &folder, 512).await);
    let small = files.put(noise(5, 12).into()).await.unwrap();
    let large = files.put(noise(6, 5 * MIB).into()).await.unwrap();
    let slow: Vec<FileEntry> = (1..=24).map(|number| bogus(number, 40 << 20)).collect();
    for entry in &slow {
        let object = bucket.object(&entry.sha256);
        std::fs::create_dir_all(object.parent().unwrap()).unwrap();
        let object = std::fs::File::create(object).unwrap();
        object.set_len(entry.size).unwrap();
    }
    let before = bucket.proxy.gets();
    bucket.proxy.hold_each_after(MIB as i64);
    let asked = |entry: &FileEntry, game: &'static str| {
        let (files, entry) = (Arc::clone(&files), entry.clone());
        tokio::spawn(async move { files.read(&entry, game).await })
    };
    let of_one: Vec<_> = slow.iter().map(|entry| asked(entry, "one")).collect();
    until(|| bucket.proxy.gets() == before + 2).await;
    // A small file of any game does not wait for a large one to end.
    assert_eq!(files.read(&small, "one").await.unwrap().len(), 12);
    assert!(of_one.iter().all(|asking| !asking.is_finished()));
    // Neither does a large one of another game.
    let of_another = asked(&large, "another");
    until(|| bucket.proxy.gets() == before + 4).await;
    assert!(of_one.iter().all(|asking| !asking.is_finished()));
    // What nobody waits for any more is not fetched once its turn comes.
    for asking in of_one {
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
    }
    bucket.proxy.mend();
    assert_eq!(of_another.await.unwrap().unwrap().len(), 5 * MIB);
    let last = bogus(99, 40 << 20);
    let absent = files.read(&last, "one").await;
    assert!(matches!(absent, Err(FileError::Absent(_))), "{absent:?}");
    // Two of ten pieces, one of two, the small one, and the one that is not there.
    assert_eq!(bucket.proxy.gets(), before + 2 * 10 + 2 + 1 + 1);
}

/// Waits until this is so.
async fn until(is_so: impl Fn() -> bool) {
    let become_so = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(NEVER, become_so).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_cache_serves_everything_and_stays_within_its_size() {
    let (bucket, folder) = (Bucket::start().await, tempfile::tempdir().unwrap());
    let files = Arc::new(store(&bucket, &folder, 3).await);
    let mut entries = Vec::new();
    for number in 0..12 {
        let size = if number % 4 == 0 { 5 * MIB } else { 700_000 };
        let content = noise(100 + number, size);
        entries.push((files.put(content.clone().into()).await.unwrap(), content));
    }
    for _ in 0..2 {
        let asking: Vec<_> = entries
            .iter()
            .cloned()
            .map(|(entry, content)| {
                let files = Arc::clone(&files);
                tokio::spawn(async move {
                    let read = files.read(&entry, "game").await.unwrap();
                    assert!(read == content);
                })
            })
            .collect();
        for asking in asking {
            asking.await.unwrap();
        }
    }
    files.read(&entries[1].0, "game").await.unwrap();
    let folders = std::fs::read_dir(folder.path().join("cache")).unwrap();
    let sizes = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    let size: u64 = sizes
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(size <= 3 * MIB as u64, "{size}");
    // Without a cache that can be read or written, small files are served all the same, also one
    // that was in the cache.
    files.read(&entries[2].0, "game").await.unwrap();
    std::fs::remove_dir_all(folder.path().join("cache")).unwrap();
    std::fs::write(folder.path().join("cache"), "a file in its place").unwrap();
    let (entry, content) = &entries[2];
    assert!(files.read(entry, "game").await.unwrap() == *content);
}
