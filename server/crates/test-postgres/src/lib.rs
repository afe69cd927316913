//! A PostgreSQL server for this test process only: a new cluster in a temporary folder, which is
//! reachable only through a Unix socket in that folder, with a database for each test. It ends with
//! the process, however that ends.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "everything here is for tests"
)]

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use tokio::time::Instant;

/// How to get PostgreSQL, if there is none.
const ADVICE: &str = "these tests need PostgreSQL 15 or later: run `cargo xtask test`, which installs it, or \
     `sudo apt-get install postgresql`, or have its `initdb` and `postgres` on the PATH";
/// Where Debian's packages install the programs, in a folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// The oldest version that supports the collation of the test databases.
const OLDEST: u32 = 15;
/// The user that runs the programs if the tests run as root: PostgreSQL refuses to run as root.
const USER: &str = "postgres";
/// The name of the socket in its folder.
pub const SOCKET: &str = ".s.PGSQL.5432";
/// How long the server may take to answer for the first time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the server, waits until its own input is closed, then stops the server and removes
/// everything. The test process has the other end of the input, so its end is noticed even after a
/// `kill -9`.
const KEEPER: &str = r#"
    trap : INT TERM
    "$@" </dev/null &
    server=$!
    cat >/dev/null
    kill -QUIT "$server"
    wait "$server"
    rm -rf "$FOLDER"
"#;

/// The server's settings. They are fast, and would lose data after a power failure, but nothing
/// here outlives the process.
const SETTINGS: &[&str] = &[
    "listen_addresses=",
    "port=5432",
    "max_connections=1000",
    "fsync=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "shared_buffers=128MB",
    "jit=off",
];

/// The running cluster.
struct Cluster {
    folder: PathBuf,
    /// Its input stays open until the process ends.
    _keeper: Child,
}

/// The cluster of this process. If it does not start, every test fails with that reason.
static CLUSTER: LazyLock<Cluster> = LazyLock::new(Cluster::start);

/// Databases that no test uses: emptying one costs much less than creating another.
static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The database of one test. When it is dropped, it is emptied for the next test.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
}

impl TestDatabase {
    /// Takes an empty database. The first one starts the cluster.
    ///
    /// # Panics
    /// There is no PostgreSQL; the message says how to get it.
    #[must_use]
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let free = FREE.lock().unwrap().pop();
        let name = free.unwrap_or_else(|| {
            let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
            // The collation of a language, as most servers have: the schema names "C" where it
            // matters.
            let sql = format!(
                "CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en'"
            );
            send(&CLUSTER.url("postgres"), &sql).unwrap();
            name
        });
        Self { name }
    }

    /// Returns its address.
    #[must_use]
    pub fn url(&self) -> String {
        CLUSTER.url(&self.name)
    }

    /// Returns the first value of the first row of a query as a text; `None` if there is none, or
    /// the query failed.
    #[must_use]
    pub fn ask(&self, sql: &str) -> Option<String> {
        let ask = async {
            let connected = tokio_postgres::connect(&self.url(), tokio_postgres::NoTls).await;
            let (client, connection) = connected.ok()?;
            let connection = tokio::spawn(connection);
            let rows = client.simple_query(sql).await.ok()?;
            drop(client);
            let _ = connection.await;
            rows.iter().find_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            })
        };
        on_thread(ask)
    }

    /// Runs statements.
    ///
    /// # Panics
    /// One of them fails.
    pub fn run(&self, sql: &str) {
        send(&self.url(), sql).unwrap();
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path of its server's socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        CLUSTER.folder.join(SOCKET)
    }
}

impl Default for TestDatabase {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // What a failed test left behind may still be in use.
        if std::thread::panicking() {
            return;
        }
        let name = &self.name;
        let empty = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = '{name}' AND pid <> pg_backend_pid();
             ALTER DATABASE {name} RESET ALL;
             DROP SCHEMA public CASCADE;
             CREATE SCHEMA public"
        );
        send(&self.url(), &empty).unwrap();
        FREE.lock().unwrap().push(name.clone());
    }
}

impl Cluster {
    fn start() -> Self {
        let bin = programs();
        let mktemp =
            run(as_user("mktemp").args(["-d", "--tmpdir=/tmp", "--suffix=.platform-postgres"]));
        let folder = PathBuf::from(String::from_utf8(mktemp.stdout).unwrap().trim());
        let data = folder.join("data");
        run(as_user(bin.join("initdb"))
            .arg("--pgdata")
            .arg(&data)
            .args(["--username=platform", "--auth=trust", "--encoding=UTF8"])
            .args(["--locale=C.UTF-8", "--no-sync", "--no-instructions"]));
        let mut server = as_user(bin.join("postgres"));
        server.arg("-D").arg(&data).arg("-k").arg(&folder);
        for setting in SETTINGS {
            server.args(["-c", setting]);
        }
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(server.get_program())
            .args(server.get_args())
            .env("FOLDER", &folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("keeper.log")).unwrap())
            // Signals from the terminal to the tests must not end the keeper before its work is
            // done.
            .process_group(0)
            .spawn()
            .unwrap();
        let cluster = Self {
            folder,
            _keeper: keeper,
        };
        cluster.wait();
        cluster
    }

    fn url(&self, database: &str) -> String {
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://platform@{folder}/{database}")
    }

    /// Waits for the server's first answer.
    fn wait(&self) {
        let start = Instant::now();
        let url = self.url("postgres");
        while let Err(error) = send(&url, "SELECT 1") {
            if start.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(self.folder.join("keeper.log"));
                panic!("PostgreSQL does not answer: {error}\n{}", log.unwrap());
            }
            std::thread::yield_now();
        }
    }
}

/// Sends a statement.
fn send(url: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    let send = async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        let connection = tokio::spawn(connection);
        client.batch_execute(sql).await?;
        drop(client);
        connection.await.unwrap()
    };
    on_thread(send)
}

/// Waits for `work` on a thread of its own: a test's thread already drives other futures.
fn on_thread<T: Send>(work: impl Future<Output = T> + Send) -> T {
    let run = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(work)
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

/// Returns the command for a program, as a user that PostgreSQL agrees to run as.
fn as_user(program: impl AsRef<Path>) -> Command {
    let is_root = run(Command::new("id").arg("-u")).stdout == b"0\n";
    let mut command = if is_root {
        // Unlike `runuser`, `setpriv` replaces itself by the program, so that signals reach the
        // program.
        let mut command = Command::new("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--init-groups"]);
        command.arg(program.as_ref());
        command
    } else {
        Command::new(program.as_ref())
    };
    command.current_dir("/");
    command
}

fn run(command: &mut Command) -> Output {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}; {ADVICE}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}; {ADVICE}");
    output
}

#[expect(
    clippy::disallowed_methods,
    reason = "where programs are is no setting of the platform's"
)]
/// Returns the folder of PostgreSQL's programs: on the `PATH`, or the newest of Debian's.
fn programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).find(|folder| folder.join("initdb").is_file());
    let found = on_path.or_else(|| {
        let versions = std::fs::read_dir(DEBIAN).ok()?;
        let versions = versions.filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.parse::<u32>().ok()
        });
        let newest = versions.filter(|version| *version >= OLDEST).max()?;
        let folder = Path::new(DEBIAN).join(newest.to_string()).join("bin");
        folder.join("initdb").is_file().then_some(folder)
    });
    found.unwrap_or_else(|| panic!("PostgreSQL was not found; {ADVICE}"))
}
