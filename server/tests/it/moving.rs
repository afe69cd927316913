//! A platform moves from its folder into PostgreSQL and S3, while the program is killed, and a
//! server on the target goes on with everything.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_server::config::S3Settings;
use platform_server::domain::log::{LogEntry, LogId, NewLogRecords};
use platform_server::domain::page::PageId;
use platform_server::entropy::{Entropy, SystemEntropy};
use platform_server::store::{self, SchemaPolicy};
use platform_test_ports::ReservedPort;
use platform_test_postgres::TestDatabase;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::bucket::server::{BUCKET, Bucket, PREFIX};
use crate::operator::unpack;
use crate::program::{Server, guest, program, subject, token};

/// How often the program is killed.
const KILLS: u64 = 12;
/// Rows that are added to what a server made.
const PLAYERS: u64 = 12_000;
const RECORDS: u64 = 30_000;
/// Much longer than anything here takes; reaching it is a failure.
const NEVER: Duration = Duration::from_secs(120);
/// When the records were received: the first two hours of a day, and the day before.
const RECEIVED: i64 = 1_790_000_000_000;

/// Adds many rows to a folder that no server uses: players with sessions, one of them merged, and
/// log records of two days.
fn fill(data: &Path) {
    let main = rusqlite::Connection::open(data.join("platform.db")).unwrap();
    main.execute_batch(&format!(
        "BEGIN;
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {PLAYERS})
         INSERT INTO players (id, username, username_key, created_at, seen_at)
             SELECT randomblob(16), 'filler-' || n, 'filler-' || n, n, n FROM n;
         INSERT INTO sessions (hash, player, created_at, renewed_at, browser)
             SELECT randomblob(32), id, 1, 2, 'Firefox on Lïnux' FROM players;
         UPDATE players SET linked = 1 WHERE username = 'filler-1';
         UPDATE players SET merged_at = 7,
             merged_into = (SELECT id FROM players WHERE username = 'filler-1')
             WHERE username IN ('filler-2', 'filler-3');
         INSERT INTO identities (key, provider, player, linked_at)
             SELECT randomblob(32), 'demo', id, 5 FROM players WHERE linked = 1;
         INSERT INTO admins (player, granted_at) SELECT id, 6 FROM players WHERE linked = 1;
         INSERT INTO device_authorizations
             (device_code, user_code, client, network, started_at, interval)
             VALUES (randomblob(32), 'ABCDEFGH', 'cli', '192.0.2.1', 1, 5);
         COMMIT"
    ))
    .unwrap();
    let logs = rusqlite::Connection::open(data.join("logs.db")).unwrap();
    logs.execute_batch(&format!(
        "BEGIN;
         INSERT INTO log_environments (project, environment)
             VALUES ('filler', 'dev'), ('filler', 'prod');
         WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < {RECORDS} - 1)
         INSERT INTO log_records (id, environment, level, source, deployment, player, page, time,
             message, stack, line, count)
             SELECT (({RECEIVED} + n % 3 * 86400000) << 20) + n, e.id, n % 4, 'console', NULL,
                 iif(n % 5 = 0, NULL, zeroblob(16)), randomblob(16), n,
                 'message ' || n || iif(n = 7, char(0), ''), iif(n % 2 = 0, 'at ä.js', NULL), n, 1
             FROM n JOIN log_environments e
                 ON e.project = 'filler' AND e.environment = iif(n % 2 = 0, 'dev', 'prod');
         INSERT INTO log_error_counts (environment, hour, deployment, errors, warnings, last_at)
             SELECT id, 0, x'', 1, 2, 3 FROM log_environments;
         COMMIT"
    ))
    .unwrap();
}

/// The hash of every file in a folder that a server reads, by its path.
fn hashes(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(hashes(&path));
        } else if ["db", ""].contains(&path.extension().unwrap_or_default().to_str().unwrap()) {
            let hash = Sha256::digest(std::fs::read(&path).unwrap());
            found.insert(path.display().to_string(), hash.to_vec());
        }
    }
    found
}

/// The program with the variables of a bucket.
fn with_bucket(data: &Path, settings: &S3Settings) -> Command {
    let mut command = program(data);
    for (name, value) in &settings.variables {
        command.env(name, value.expose());
    }
    command
}

/// The command that moves a folder into databases and a bucket.
fn moving(data: &Path, main: &TestDatabase, logs: &TestDatabase, settings: &S3Settings) -> Command {
    let mut command = with_bucket(data, settings);
    command.args(["move", "--to", &main.url(), "--logs-to", &logs.url()]);
    command.args(["--files", &format!("s3://{BUCKET}/{PREFIX}")]);
    command
}

/// Returns how many rows were moved so far; `None` before the first one.
fn moved(main: &TestDatabase, logs: &TestDatabase) -> Option<u64> {
    let of_main = main.ask("SELECT sum(moved) FROM platform_incoming");
    let of_logs = logs.ask("SELECT sum(moved) FROM platform_log_incoming");
    let of_main: u64 = of_main?.parse().ok()?;
    let of_logs: u64 = of_logs.and_then(|moved| moved.parse().ok()).unwrap_or(0);
    Some(of_main + of_logs)
}

/// Kills the program once so many rows were moved.
fn kill_after(mut child: Child, rows: Option<u64>, main: &TestDatabase, logs: &TestDatabase) {
    let start = Instant::now();
    while moved(main, logs) < rows {
        assert!(start.elapsed() < NEVER, "it does not go on");
        let ended = child.try_wait().unwrap();
        assert_eq!(ended, None, "it ended before it was killed");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Returns the body of a response.
fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

/// Returns a random number below `bound`.
fn random(bound: u64) -> u64 {
    let entropy: &dyn Entropy = &SystemEntropy;
    u64::from_be_bytes(entropy.bytes()) % bound
}

/// Opens the store of the target as an operator's command does.
async fn open(
    main: &TestDatabase,
    logs: &TestDatabase,
) -> Result<std::sync::Arc<dyn store::Store>, store::ConnectError> {
    let (main, logs) = (main.url(), logs.url());
    store::connect_with_logs(&main, Some(&logs), SchemaPolicy::Refuse).await
}

/// What players know of a platform.
struct Known {
    /// Ids and cookies.
    guests: Vec<(String, String)>,
    /// The header with a token of the first guest.
    bearer: String,
    key_set: String,
    page: String,
}

impl Known {
    fn of(server: &Server) -> Self {
        let guests: Vec<(String, String)> = (0..3).map(|_| guest(server)).collect();
        let token = token(server, &guests[0].1);
        let token: serde_json::Value = serde_json::from_str(body(&token)).unwrap();
        let token = token["access_token"].as_str().unwrap();
        Self {
            bearer: format!("Authorization: Bearer {token}\r\n"),
            key_set: Self::key_set(server),
            page: Self::page(server),
            guests,
        }
    }

    fn key_set(server: &Server) -> String {
        let answer = server.ask("GET /.well-known/jwks.json", "auth.platform.localhost", "");
        body(&answer).to_owned()
    }

    fn page(server: &Server) -> String {
        let answer = server.ask("GET /", "demo.platform.localhost", "");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        body(&answer).to_owned()
    }

    /// Asserts that nobody notices another server.
    fn assert_on(&self, server: &Server) {
        for (player, cookie) in &self.guests {
            assert_eq!(&subject(&token(server, cookie)), player);
        }
        assert_eq!(Self::key_set(server), self.key_set);
        assert_eq!(Self::page(server), self.page);
        let me = server.ask("GET /api/me", "demo.platform.localhost", &self.bearer);
        assert!(me.contains(&self.guests[0].0), "{me}");
    }
}

/// Moves the folder, and kills the program again and again.
async fn interrupt(data: &Path, main: &TestDatabase, logs: &TestDatabase, settings: &S3Settings) {
    for kill in 0..KILLS {
        let mut command = moving(data, main, logs, settings);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        // The first one at once, the second one before its first row.
        let rows = match kill {
            0 => None,
            1 => Some(0),
            _ => Some((2 * PLAYERS + RECORDS) * (kill - 2) / KILLS + random(1_500)),
        };
        kill_after(child.unwrap(), rows, main, logs);
    }
    let half = open(main, logs).await.unwrap_err().to_string();
    assert!(half.contains("run the same"), "{half}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_folder_moves_while_the_program_is_killed_and_a_server_goes_on_with_everything() {
    let (main, logs) = (TestDatabase::new(), TestDatabase::new());
    let bucket = Bucket::start().await;
    let settings = bucket.settings();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();

    // The address is a part of each token, so every server of this test has the same.
    let port = ReservedPort::take().unwrap();
    let listen = port.address().to_string();
    let server = Server::start(program(data).env("PLATFORM_LISTEN", &listen));
    let known = Known::of(&server);
    let refused = moving(data, &main, &logs, &settings).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("stop it"), "{}", said(&refused));
    server.stop("-KILL");
    Server::start(&mut program(data)).stop("-TERM");
    fill(data);

    let untouched = hashes(data);
    assert!(untouched.len() > 5, "{untouched:?}");
    interrupt(data, &main, &logs, &settings).await;
    let ended = moving(data, &main, &logs, &settings).output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", said(&ended));
    let next = String::from_utf8(ended.stdout.clone()).unwrap();
    assert!(next.contains("PLATFORM_FILES_URL=s3://"), "{next}");
    assert!(next.contains("PLATFORM_LISTEN as before"), "{next}");
    assert!(!next.contains(&main.url()), "{next}");
    assert!(
        said(&ended).contains("rows are the same"),
        "{}",
        said(&ended)
    );
    assert_eq!(hashes(data), untouched, "the folder is not changed");
    let again = moving(data, &main, &logs, &settings).output().unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains("has rows"), "{}", said(&again));

    let other = tempfile::tempdir().unwrap();
    let node = || {
        let mut command = with_bucket(other.path(), &settings);
        command
            .env("PLATFORM_LISTEN", &listen)
            .env("PLATFORM_LOG_RETENTION_DAYS", "3650")
            .env("PLATFORM_DATABASE_URL", main.url())
            .env("PLATFORM_LOGS_DATABASE_URL", logs.url())
            .env("PLATFORM_FILES_URL", format!("s3://{BUCKET}/{PREFIX}"));
        command
    };
    let server = Server::start(&mut node());
    known.assert_on(&server);
    assert_log_records_go_on(data, &main, &logs).await;

    let restored = tempfile::tempdir().unwrap();
    back_up(&node, &main, restored.path());
    let (later, _) = guest(&server);
    server.stop("-TERM");
    let mut command = program(restored.path());
    let server = Server::start(command.env("PLATFORM_LISTEN", &listen));
    known.assert_on(&server);
    server.stop("-TERM");
    let mut show = program(restored.path());
    let show = show.args(["player", "show", &later]).output().unwrap();
    assert_eq!(show.status.code(), Some(1), "who came later is not in it");
}

/// Makes a backup beside a running node, and unpacks it into an empty folder.
fn back_up(node: &dyn Fn() -> Command, main: &TestDatabase, restored: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("platform.tar");
    let backup = |arguments: &[&str]| {
        let mut command = node();
        command.arg("backup").arg(&file).args(arguments).output()
    };
    let nobody = backup(&["--from", "postgres://u:hunter2@127.0.0.1:1/x"]).unwrap();
    assert_eq!(nobody.status.code(), Some(1));
    let why = said(&nobody);
    assert!(
        why.contains("--from: ") && !why.contains("hunter2"),
        "{why}"
    );
    let made = backup(&["--from", &main.url()]).unwrap();
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    assert!(said(&made).contains("rows are the same"), "{}", said(&made));
    unpack(&file, restored);
    let logs = rusqlite::Connection::open(restored.join("logs.db")).unwrap();
    let count = "SELECT count(*) FROM log_records WHERE message LIKE 'message %'";
    let count: i64 = logs.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(count.unsigned_abs(), RECORDS);
}

/// Asserts that the target has all records of the folder, and that new ones come after them.
async fn assert_log_records_go_on(data: &Path, main: &TestDatabase, logs: &TestDatabase) {
    let folder = rusqlite::Connection::open(data.join("logs.db")).unwrap();
    // The picture of U+0000 has two bytes more.
    let sizes = "SELECT count(*) || ' ' || sum(id % 1000003) || ' ' || (sum(bytes) + 2)
         FROM log_record_sizes";
    let old: String = folder.query_row(sizes, [], |row| row.get(0)).unwrap();
    let sizes = "SELECT count(*) || ' ' || sum(id % 1000003) || ' '
             || (SELECT sum(bytes) FROM log_environments) FROM log_records";
    assert_eq!(logs.ask(sizes), Some(old));
    assert_eq!(
        logs.ask("SELECT count(*) FROM log_records WHERE message LIKE '%␀'"),
        Some("1".to_owned())
    );
    let store = open(main, logs).await.unwrap();
    let received_at = RECEIVED + 10 * 24 * 60 * 60 * 1_000;
    let last = async || {
        let last = store.last_log_id("filler", Environment::Prod, received_at);
        last.await.unwrap()
    };
    let before = last().await;
    assert!(before > LogId::first_of(RECEIVED), "{before:?}");
    let record = NewLogRecords {
        slug: "filler".to_owned(),
        environment: Environment::Prod,
        deployment: None,
        player: None,
        page: PageId([1; 16]),
        // A clock that is behind.
        received_at: RECEIVED,
        entries: vec![LogEntry {
            time: 1,
            level: LogLevel::Error,
            source: LogSource::Console,
            message: "new".to_owned(),
            stack: None,
            url: None,
            line: None,
            column: None,
            metadata: None,
            count: 1,
        }],
    };
    store.add_log_records(record).await.unwrap();
    assert!(last().await >= before);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_damaged_file_is_named_and_can_be_put_right_or_left_out() {
    let (main, logs) = (TestDatabase::new(), TestDatabase::new());
    let bucket = Bucket::start().await;
    let settings = bucket.settings();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    Server::start(&mut program(data)).stop("-TERM");
    let files = hashes(&data.join("files"));
    let mut paths = files.keys();
    let (damaged, missing) = (paths.next().unwrap(), paths.next().unwrap());
    let right = [damaged, missing].map(|path| std::fs::read(path).unwrap());
    let mut wrong = right[0].clone();
    wrong[0] ^= 1;
    std::fs::write(damaged, wrong).unwrap();
    std::fs::remove_file(missing).unwrap();
    let refused = moving(data, &main, &logs, &settings).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    for part in [
        format!("{damaged} (damaged)"),
        format!("{missing} (missing)"),
    ] {
        assert!(said(&refused).contains(&part), "{}", said(&refused));
    }
    std::fs::write(damaged, &right[0]).unwrap();
    let mut left_out = moving(data, &main, &logs, &settings);
    let left_out = left_out.arg("--leave-damaged-files-out").output().unwrap();
    assert_eq!(left_out.status.code(), Some(0), "{}", said(&left_out));
    let next = String::from_utf8(left_out.stdout).unwrap();
    assert!(next.contains(&format!("left out: {missing}")), "{next}");

    // Another platform's bucket is not taken.
    let (main, logs) = (TestDatabase::new(), TestDatabase::new());
    std::fs::write(missing, &right[1]).unwrap();
    let foreign = bucket.object(&"ab".repeat(32));
    std::fs::create_dir_all(foreign.parent().unwrap()).unwrap();
    std::fs::write(&foreign, "another platform's").unwrap();
    let refused = moving(data, &main, &logs, &settings).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said(&refused).contains("another platform"),
        "{}",
        said(&refused)
    );
    std::fs::remove_file(foreign).unwrap();
    // An object that has the right size but other bytes is stored again.
    let name = Path::new(damaged);
    let name: String = [name.parent().unwrap(), name]
        .map(|part| part.file_name().unwrap().to_str().unwrap())
        .concat();
    let length = std::fs::metadata(bucket.object(&name)).unwrap().len();
    let zeros = vec![0; usize::try_from(length).unwrap()];
    std::fs::write(bucket.object(&name), zeros).unwrap();
    let ended = moving(data, &main, &logs, &settings).output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", said(&ended));
    assert_eq!(std::fs::read(bucket.object(&name)).unwrap(), right[0]);
}

#[tokio::test]
async fn what_cannot_be_moved_is_said_without_passwords() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let run = |arguments: &[&str]| {
        let output = program(data).arg("move").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = said(&output);
        assert!(!said.contains("hunter2"), "{said}");
        said
    };
    let nobody = "postgres://platform:hunter2@127.0.0.1:1/platform";
    assert!(run(&["--to", nobody]).contains("there is no platform"));
    assert!(run(&["--to", "mysql://u:hunter2@h/x"]).contains("write --to"));
    Server::start(&mut program(data)).stop("-TERM");
    let refused = run(&["--to", nobody]);
    assert!(
        refused.contains("--to: the database could not"),
        "{refused}"
    );
    // It names the option, and not the setting of a server.
    assert!(!refused.contains("PLATFORM_"), "{refused}");
    let (main, logs) = (TestDatabase::new(), ["--logs-to", nobody]);
    let refused = run(&[&["--to", &*main.url()], &logs[..]].concat());
    assert!(
        refused.contains("--logs-to: the database of log"),
        "{refused}"
    );
    assert!(!refused.contains("PLATFORM_"), "{refused}");
    let bucket = ["--to", nobody, "--files", "s3://games/x"];
    assert!(run(&bucket).contains("AWS_REGION"));
    let mut command = program(data);
    command.env("PLATFORM_DATABASE_URL", nobody);
    let output = command.args(["move", "--to", nobody]).output().unwrap();
    assert!(said(&output).contains("already"), "{}", said(&output));
}
