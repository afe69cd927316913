//! The suite on PostgreSQL, with one store and with two on one database, and tests that only
//! PostgreSQL needs: simultaneous starts, the schema of a newer program, and lost connections.

mod proxy;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use futures_util::future::join;
use platform_domain::entropy::{Entropy, SystemEntropy};
use platform_domain::log::{LogEntry, NewLogRecords};
use platform_domain::node::NodeReport;
use platform_domain::page::PageId;
use platform_domain::session::SessionHash;
use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_store::tables::PARTS;
use platform_store::transfer::{Moved, RowSource as _, RowTarget as _};
use platform_store::{
    AdminStore as _, ConnectError, LogStore as _, NewGuest, NodeStore as _, PlayerStore as _,
    SchemaPolicy, Store, StoreError,
};
use platform_store_conformance::{Needle, Place, TwoHandles, concurrent_suite, suite};
use platform_test_ports::ReservedPort;
use platform_test_postgres::TestDatabase;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_postgres::{Client, NoTls};

use self::proxy::Proxy;
use super::migrations::Schema;
use super::{PostgresRows, PostgresStore, address, database, migrations};

/// The database of one test, and the databases to which copies were restored.
struct Server {
    database: TestDatabase,
    copies: Mutex<Vec<TestDatabase>>,
}

impl Server {
    fn new() -> Self {
        Self {
            database: TestDatabase::new(),
            copies: Mutex::default(),
        }
    }

    async fn connect(url: &str) -> PostgresStore {
        let store = PostgresStore::open(url, None, SchemaPolicy::Upgrade).await;
        store.unwrap()
    }
}

#[async_trait]
impl Place for Server {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(Self::connect(&self.database.url()).await)
    }

    async fn open_copy(&self) -> Arc<dyn Store> {
        let copy = TestDatabase::new();
        let source = PostgresRows::open(&self.database.url(), None).await;
        let target = PostgresRows::create(&copy.url(), None).await.unwrap();
        let source = source.unwrap();
        target.begin("").await.unwrap();
        for part in PARTS {
            let mut moved = Moved::default();
            let mut batches = source.read(part, None).await.unwrap();
            while let Some(rows) = batches.try_next().await.unwrap() {
                moved = target.add(part, &moved, rows).await.unwrap();
            }
        }
        target.complete().await.unwrap();
        target.end().await.unwrap();
        let store = Self::connect(&copy.url()).await;
        self.copies.lock().unwrap().push(copy);
        Arc::new(store)
    }

    async fn find_raw(&self, needles: &[Needle]) -> Vec<String> {
        let client = raw(&self.database.url()).await;
        let sql = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";
        let mut rows = Vec::new();
        for table in client.query(sql, &[]).await.unwrap() {
            let table: String = table.get(0);
            let sql = format!("SELECT lower(t::text) FROM \"{table}\" t");
            for row in client.query(&sql, &[]).await.unwrap() {
                rows.push((table.clone(), row.get::<_, String>(0)));
            }
        }
        let mut found = Vec::new();
        for needle in needles {
            let text = match needle {
                Needle::Text(text) => text.clone(),
                Needle::Id(id) => id.to_string(),
                Needle::Hash(hash) => hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            };
            let row = rows.iter().find(|(_, row)| row.contains(&text));
            found.extend(row.map(|(table, _)| format!("{needle:?} in {table}")));
        }
        found
    }
}

suite!(Server::new());

/// Two nodes that share one database.
mod two_handles {
    use super::*;

    concurrent_suite!(TwoHandles(Server::new()));
}

const NOW: i64 = 1_800_000_000_000;
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Opens a connection besides the store's own.
async fn raw(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn guest(name: &str) -> NewGuest {
    let entropy: &dyn Entropy = &SystemEntropy;
    NewGuest {
        id: entropy.uuid_v7(1),
        usernames: vec![name.to_owned()],
        session: SessionHash(entropy.bytes()),
        address: "192.0.2.1".into(),
        cap: None,
        awaiting: None,
        now: 1,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_programs_may_start_on_an_empty_database_at_once_a_hundred_times() {
    let database = TestDatabase::new();
    let config = address::parse(&database.url()).unwrap();
    let client = raw(&database.url()).await;
    let start = async |schema: &'static Schema| {
        let config = config.clone();
        let start = async move {
            schema
                .bring_up_to_date(&config, SchemaPolicy::Upgrade)
                .await
        };
        tokio::spawn(start).await.unwrap().unwrap();
    };
    let counts = async || {
        let tables = "SELECT count(*) FROM platform_schema_history
             UNION ALL SELECT count(*) FROM platform_log_schema_history
             UNION ALL SELECT count(*) FROM locks";
        let counts = client.query(tables, &[]).await.unwrap();
        let counts: Vec<i64> = counts.iter().map(|row| row.get(0)).collect();
        // Each migration is applied once, and adds its rows once.
        let all = i64::from(migrations::MAIN.known());
        let of_logs = i64::from(migrations::LOGS.known());
        assert_eq!(counts, [all, of_logs, 3]);
        let empty = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";
        client.batch_execute(empty).await.unwrap();
        counts
    };
    start(&migrations::MAIN).await;
    start(&migrations::LOGS).await;
    let alone = counts().await;
    for _ in 0..100 {
        // Both begin with the schema of the players, as a program does, and continue with that of
        // the log records.
        join(start(&migrations::MAIN), start(&migrations::MAIN)).await;
        join(start(&migrations::LOGS), start(&migrations::LOGS)).await;
        assert_eq!(counts().await, alone);
    }
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused_with_a_sentence() {
    let place = Server::new();
    place.open().await.close().await.unwrap();
    raw(&place.database.url())
        .await
        .batch_execute(
            "INSERT INTO platform_schema_history
             SELECT 9999, 'later', applied_on, checksum FROM platform_schema_history LIMIT 1;
             UPDATE platform_schema_lock SET readable_from = 9999",
        )
        .await
        .unwrap();
    let url = place.database.url();
    let error = PostgresStore::open(&url, None, SchemaPolicy::Upgrade).await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, ConnectError::TooNew { found: 9_999, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("schema version 9999"), "{error}");
}

/// The schema of the next release, with a column more; programs that know `readable_from` can use
/// it.
fn next_schema(readable_from: i32) -> &'static Schema {
    let mut migrations = migrations::MAIN.migrations.to_vec();
    let name = format!("V{}__next", migrations.len() + 1);
    migrations.push((name.leak(), "ALTER TABLE players ADD COLUMN next INTEGER"));
    Box::leak(Box::new(Schema {
        readable_from,
        migrations: migrations.leak(),
        ..migrations::MAIN
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_uses_the_schema_of_a_newer_one_that_only_added_to_it() {
    let place = Server::new();
    let url = place.database.url();
    let before = place.open().await;
    before.add_guest(guest("otter")).await.unwrap();
    let config = address::parse(&url).unwrap();
    let known = migrations::MAIN.known();
    let next = next_schema(known).bring_up_to_date(&config, SchemaPolicy::Upgrade);
    next.await.unwrap();
    // The program that runs goes on, and another one of its version starts, as do its commands.
    before.add_guest(guest("heron")).await.unwrap();
    for policy in [SchemaPolicy::Upgrade, SchemaPolicy::Refuse] {
        let again = PostgresStore::open(&url, None, policy).await.unwrap();
        let name = format!("badger{}", policy == SchemaPolicy::Refuse);
        again.add_guest(guest(&name)).await.unwrap();
    }
    // The release after that one no longer has what this program needs.
    let raise = format!(
        "UPDATE platform_schema_lock SET readable_from = {}",
        known + 1
    );
    raw(&url).await.batch_execute(&raise).await.unwrap();
    let refused = PostgresStore::open(&url, None, SchemaPolicy::Upgrade).await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, ConnectError::TooNew { .. }),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_taken_away_from_a_program_that_runs() {
    let place = Server::new();
    let url = place.database.url();
    let store = place.open().await;
    let config = address::parse(&url).unwrap();
    let entropy: &dyn Entropy = &SystemEntropy;
    let report = NodeReport {
        id: entropy.uuid_v4(),
        address: "10.0.0.11:8787".into(),
        binary: "0.9.0".into(),
        settings: "{}".into(),
        applied: 0,
        clock_offset: None,
        degraded: Vec::new(),
    };
    store.report_node(&report).await.unwrap();
    let next = next_schema(migrations::MAIN.known() + 1);
    let refused = next.bring_up_to_date(&config, SchemaPolicy::Upgrade).await;
    let refused = refused.unwrap_err();
    assert!(
        refused.to_string().contains("10.0.0.11:8787 (0.9.0)"),
        "{refused}"
    );
    // Nothing has changed: the program that runs could be started again.
    place.open().await.close().await.unwrap();
    store.remove_node(report.id).await.unwrap();
    let now = next.bring_up_to_date(&config, SchemaPolicy::Upgrade);
    now.await.unwrap();
    let refused = PostgresStore::open(&url, None, SchemaPolicy::Upgrade).await;
    assert!(matches!(refused, Err(ConnectError::TooNew { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_records_may_lie_in_a_database_of_their_own() {
    let (main, logs) = (TestDatabase::new(), TestDatabase::new());
    let (main_url, logs_url) = (main.url(), logs.url());
    let open = PostgresStore::open(&main_url, Some(&logs_url), SchemaPolicy::Upgrade);
    let store = open.await.unwrap();
    store.add_guest(guest("otter")).await.unwrap();
    assert_eq!(store.log_bytes("demo").await.unwrap(), 0);
    for (url, table, other) in [
        (main_url, "players", "log_records"),
        (logs_url, "log_records", "players"),
    ] {
        let sql = "SELECT to_regclass($1) IS NOT NULL, to_regclass($2) IS NULL";
        let row = raw(&url).await.query_one(sql, &[&table, &other]).await;
        let row = row.unwrap();
        assert_eq!((row.get(0), row.get(1)), (true, true), "{table}");
    }
}

#[tokio::test]
async fn a_database_of_log_records_that_is_down_is_named_by_its_own_setting() {
    let main = TestDatabase::new();
    let closed = ReservedPort::take().unwrap();
    let logs = format!("postgres://platform@{}/logs", closed.address());
    let main_url = main.url();
    let open = PostgresStore::open(&main_url, Some(&logs), SchemaPolicy::Upgrade);
    let error = open.await.unwrap_err();
    let said = platform_domain::errors::chain(&error);
    assert!(said.contains("PLATFORM_LOGS_DATABASE_URL"), "{said}");
    assert!(!said.contains("PLATFORM_DATABASE_URL"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_that_conflicts_with_others_runs_again_five_times() {
    let place = Server::new();
    let store = place.open().await;
    let client = raw(&place.database.url()).await;
    // A sequence keeps counting, even if a transaction is rolled back.
    for (code, failures, succeeds) in [("40P01", 5, true), ("40001", 5, true), ("40P01", 6, false)]
    {
        let fail = format!(
            "DROP SEQUENCE IF EXISTS turns;
             CREATE SEQUENCE turns;
             CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF nextval('turns') <= {failures} THEN RAISE SQLSTATE '{code}'; END IF;
                 RETURN NEW;
             END $$;
             CREATE OR REPLACE TRIGGER fail BEFORE INSERT ON sessions
                 FOR EACH ROW EXECUTE FUNCTION fail()"
        );
        client.batch_execute(&fail).await.unwrap();
        let new = guest(&format!("otter-{code}-{failures}"));
        let added = store.add_guest(new.clone()).await;
        if succeeds {
            assert_eq!(added.unwrap().id, new.id);
        } else {
            assert!(
                matches!(added, Err(StoreError::Unavailable(_))),
                "{added:?}"
            );
            assert_eq!(store.find_player(new.id).await.unwrap(), None);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_whose_connections_were_all_ended_goes_on() {
    let place = Server::new();
    let store = place.open().await;
    let client = raw(&place.database.url()).await;
    for number in 0..10 {
        store
            .add_guest(guest(&format!("otter-{number}")))
            .await
            .unwrap();
        client
            .batch_execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
            .await
            .unwrap();
        // A read runs again, and so does a transaction that was not committed.
        let found = store.find_player_by_name(&format!("otter-{number}")).await;
        assert!(found.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_is_lost_is_not_written_twice() {
    let place = Server::new();
    place.open().await;
    let proxy = Proxy::start(&place.database).await;
    let store = Server::connect(&proxy.url()).await;
    proxy.lose_the_next_commit();
    let new = guest("otter");
    let lost = store.add_guest(new.clone()).await;
    assert!(matches!(lost, Err(StoreError::Uncertain(_))), "{lost:?}");
    // It was written exactly once: a second write would have found its own name taken.
    let player = store.find_player(new.id).await.unwrap().unwrap();
    assert_eq!(player.username, "otter");
    store.add_guest(guest("heron")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_wait_for_the_disk_and_no_limit_of_the_servers_ends_them() {
    let place = Server::new();
    raw(&place.database.url())
        .await
        .batch_execute(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = ''60s''',
                 current_database());
             EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off',
                 current_database()); END $$",
        )
        .await
        .unwrap();
    let store = Server::connect(&place.database.url()).await;
    for (setting, expected) in [("statement_timeout", "0"), ("synchronous_commit", "on")] {
        let sql = "SELECT current_setting($1)";
        let row = store.main.row(sql, &[&setting]).await.unwrap().unwrap();
        assert_eq!(row.get::<_, &str>(0), expected, "{setting}");
    }
}

#[tokio::test]
async fn what_has_u_0000_in_it_is_found_nowhere() {
    let place = Server::new();
    let store = place.open().await;
    store.add_guest(guest("otter")).await.unwrap();
    assert_eq!(store.find_project("a\0b").await.unwrap(), None);
    let file = store
        .find_kept_file("demo", Environment::Prod, "a\0b")
        .await;
    assert_eq!(file.unwrap(), None);
}

fn logged(slug: &str, received_at: i64, messages: usize) -> NewLogRecords {
    let entry = |number: usize| LogEntry {
        time: received_at,
        level: LogLevel::Info,
        source: LogSource::Console,
        message: number.to_string(),
        stack: None,
        url: None,
        line: None,
        column: None,
        metadata: None,
        count: 1,
    };
    NewLogRecords {
        slug: slug.to_owned(),
        environment: Environment::Prod,
        deployment: None,
        player: None,
        page: PageId([9; 16]),
        received_at,
        entries: (0..messages).map(entry).collect(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn days_of_log_records_are_tables_that_go_as_a_whole() {
    let place = Server::new();
    let (store, other) = (place.open().await, place.open().await);
    let client = raw(&place.database.url()).await;
    let tables = async || {
        let sql = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'log_records'::regclass";
        client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    // Two nodes add the first records of a day at once.
    let days: Vec<i64> = (0..4).map(|day| NOW + day * DAY).collect();
    for day in &days {
        let add = |store: &Arc<dyn Store>, slug: &str| {
            let (store, new) = (Arc::clone(store), logged(slug, *day, 30));
            tokio::spawn(async move { store.add_log_records(new).await })
        };
        let (one, two) = join(add(&store, "a"), add(&other, "b")).await;
        one.unwrap().unwrap();
        two.unwrap().unwrap();
    }
    assert_eq!(tables().await, 4);
    let bytes = store.log_bytes("a").await.unwrap();
    // Two whole days are old, and the third in part: its old records are removed one by one.
    let mut removed = Vec::new();
    for _ in 0..5 {
        removed.push(other.sweep_log_records(days[2] + 1, 40).await.unwrap());
    }
    assert_eq!(removed, [60, 60, 40, 20, 0]);
    assert_eq!(tables().await, 2);
    assert_eq!(store.log_bytes("a").await.unwrap(), bytes / 4);
    // A record of a dropped day creates its partition again.
    store.add_log_records(logged("c", NOW, 1)).await.unwrap();
    assert_eq!(tables().await, 3);
    assert_eq!(store.sweep_log_records(days[1], 40).await.unwrap(), 1);
    assert_eq!(store.log_bytes("c").await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_log_records_for_long_holds_no_writer_up() {
    let place = Server::new();
    let store = place.open().await;
    store.add_log_records(logged("a", NOW, 3)).await.unwrap();
    let reader = raw(&place.database.url()).await;
    let read = "BEGIN; SELECT count(*) FROM log_records";
    reader.batch_execute(read).await.unwrap();
    // Meanwhile, a new day is created, and the records of an old one are removed one by one.
    store
        .add_log_records(logged("a", NOW + DAY, 3))
        .await
        .unwrap();
    assert_eq!(store.sweep_log_records(NOW + DAY, 2).await.unwrap(), 2);
    reader.batch_execute("COMMIT").await.unwrap();
    assert_eq!(store.sweep_log_records(NOW + DAY, 2).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_says_nothing_does_not_hide_the_one_that_took_over() {
    let place = Server::new();
    // It accepts connections, as a machine does whose disk is stuck, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = place.database.url();
    let (before, after) = url.split_once('@').unwrap();
    let (socket, name) = after.split_once('/').unwrap();
    let both = format!("{before}@127.0.0.1:{port},{socket}:5432/{name}");
    let begun = Instant::now();
    let store = Server::connect(&both).await;
    let new = guest("otter");
    store.add_guest(new.clone()).await.unwrap();
    assert!(store.find_player(new.id).await.unwrap().is_some());
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_the_server_before_are_not_used_after_another_one_took_over() {
    let place = Server::new();
    let before = Proxy::start(&place.database).await;
    let after = Proxy::start(&place.database).await;
    after.refuse(true);
    let store = Server::connect(&before.url_with(&after)).await;
    store.add_guest(guest("otter")).await.unwrap();
    // It still answers on the connections that it has.
    before.refuse(true);
    after.refuse(false);
    // The idle ones are taken, and another one must be opened.
    let mut held = Vec::new();
    while after.requests() == 0 {
        held.push(store.main.connection().await.unwrap());
    }
    drop(held);
    let asked = before.requests();
    for _ in 0..20 {
        let found = store.find_player_by_name("otter").await.unwrap();
        assert!(found.is_some());
    }
    assert_eq!(before.requests(), asked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_the_server_does_not_complete_leave_room_for_reads_and_do_not_pile_up() {
    let place = Server::new();
    let store = Arc::new(Server::connect(&place.database.url()).await);
    let client = raw(&place.database.url()).await;
    // As a commit waits for a standby that is gone, these wait for a lock.
    client
        .batch_execute(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN NULL; END $$;
             CREATE CONSTRAINT TRIGGER wait AFTER INSERT OR UPDATE ON nodes
                 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait();
             SELECT pg_advisory_lock(42)",
        )
        .await
        .unwrap();
    let entropy: &dyn Entropy = &SystemEntropy;
    let report = || NodeReport {
        id: entropy.uuid_v4(),
        address: "10.0.0.11:8787".into(),
        binary: "0.9.0".into(),
        settings: "{}".into(),
        applied: 0,
        clock_offset: None,
        degraded: Vec::new(),
    };
    let writes: Vec<_> = (0..30)
        .map(|_| {
            let (store, report) = (Arc::clone(&store), report());
            tokio::spawn(async move { store.report_node(&report).await })
        })
        .collect();
    let begun = Instant::now();
    let mut uncertain = 0;
    for write in writes {
        let error = write.await.unwrap().unwrap_err();
        uncertain += usize::from(matches!(error, StoreError::Uncertain(_)));
        assert_eq!(store.find_player_by_name("otter").await.unwrap(), None);
    }
    assert_eq!(uncertain, database::MAIN.writers);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
    // As long as nothing is answered, writes fail at once, reads succeed, and there are no more
    // connections than before.
    let begun = Instant::now();
    for _ in 0..30 {
        let refused = store.report_node(&report()).await;
        assert!(
            matches!(refused, Err(StoreError::Unavailable(_))),
            "{refused:?}"
        );
        assert_eq!(store.find_player_by_name("otter").await.unwrap(), None);
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
               AND application_name = 'platform'";
    let open: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    let most = database::MAIN.connections + database::LOGS.connections;
    assert!(open <= i64::try_from(most).unwrap(), "{open}");
    // When the server answers again, so does the store.
    let unlock = "SELECT pg_advisory_unlock_all()";
    client.batch_execute(unlock).await.unwrap();
    let again = async {
        while store.report_node(&report()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), again)
        .await
        .unwrap();
}
