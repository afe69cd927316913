//! An S3 server of one test, and a proxy in front of it that counts, cuts off, and stays silent.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use platform_server::config::{S3Settings, Secret};
use platform_test_ports::ReservedPort;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

/// How to get the S3 server, where there is none.
const ADVICE: &str = "these tests need s3s-fs: run `cargo xtask test`, which installs it, or \
     `cargo install s3s-fs --features binary`, or have it on the PATH";
/// Its program.
const PROGRAM: &str = "s3s-fs";
/// The bucket.
pub(crate) const BUCKET: &str = "games";
/// What the names of its objects begin with.
pub(crate) const PREFIX: &str = "a/platform";
/// The key's secret half, which nothing may ever show.
pub(crate) const SECRET: &str = "hunter2-hunter2";
/// How long the server may take to answer for the first time.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts the server, and ends it when its own input ends: with the test process at the latest.
const KEEPER: &str = r#"
    trap : INT TERM
    "$@" </dev/null &
    server=$!
    cat >/dev/null
    kill -KILL "$server"
    wait "$server"
"#;

/// A running S3 server with an empty bucket, behind a proxy whose address stays the same.
pub(crate) struct Bucket {
    folder: tempfile::TempDir,
    process: Mutex<Option<Child>>,
    pub(crate) proxy: Arc<Proxy>,
    /// Where the server listens, also when it is started again.
    port: ReservedPort,
}

/// What the proxy does. Bytes that may still pass are counted in both directions.
pub(crate) struct Proxy {
    address: SocketAddr,
    server: SocketAddr,
    up: AtomicI64,
    down: AtomicI64,
    silent: AtomicBool,
    /// How many bytes each connection receives before nothing more passes.
    each: AtomicI64,
    gets: AtomicUsize,
    /// Whether connections are closed.
    dead: watch::Sender<bool>,
}

impl Bucket {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join(BUCKET)).unwrap();
        let port = ReservedPort::take().unwrap();
        let proxy = Proxy::start(port.address()).await;
        let bucket = Self {
            folder,
            process: Mutex::new(None),
            proxy,
            port,
        };
        bucket.run();
        bucket
    }

    /// Starts the server, the first time or again.
    pub(crate) fn run(&self) {
        let start = Instant::now();
        let mut child = spawn(self.folder.path(), self.port.number());
        while std::net::TcpStream::connect(self.port.address()).is_err() {
            let is_starting = child.try_wait().unwrap().is_none() && start.elapsed() < PATIENCE;
            assert!(is_starting, "{PROGRAM} does not start");
            std::thread::yield_now();
        }
        *self.process.lock().unwrap() = Some(child);
    }

    /// Kills the server, as `kill -9` does.
    pub(crate) fn kill(&self) {
        let mut child = self.process.lock().unwrap().take().unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    /// Returns the settings of a node.
    pub(crate) fn settings(&self) -> S3Settings {
        let variables = [
            ("AWS_ENDPOINT_URL", self.proxy.url()),
            ("AWS_ACCESS_KEY_ID", "platform".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), Secret::new(value)));
        S3Settings {
            bucket: BUCKET.to_owned(),
            prefix: PREFIX.to_owned(),
            variables: variables.into(),
        }
    }

    /// Returns where the server keeps the object of a deployed file.
    pub(crate) fn object(&self, sha256: &str) -> PathBuf {
        let (folder, name) = sha256.split_at(2);
        let prefix = self.folder.path().join(BUCKET).join(PREFIX);
        prefix.join(folder).join(name)
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        if self.process.lock().unwrap().is_some() {
            self.kill();
        }
    }
}

fn spawn(folder: &Path, port: u16) -> Child {
    Command::new("sh")
        .args(["-c", KEEPER, "keeper"])
        .arg(program())
        .args(["--host", "127.0.0.1", "--port", &port.to_string()])
        .args(["--access-key", "platform", "--secret-key", SECRET])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // What the terminal sends to the tests must not end the keeper before its work.
        .process_group(0)
        .spawn()
        .unwrap()
}

/// Returns the S3 server's program: on the `PATH`, or where the set-up of `cargo xtask` keeps it.
#[expect(
    clippy::disallowed_methods,
    reason = "where programs are is no setting of the platform's"
)]
fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let tools = cache
        .or_else(home)
        .unwrap_or_default()
        .join("platform-xtask");
    let versions = std::fs::read_dir(tools).into_iter().flatten().flatten();
    let kept = versions
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PROGRAM))
        .map(|entry| entry.path().join("bin").join(PROGRAM));
    let found = on_path.chain(kept).find(|program| program.is_file());
    found.unwrap_or_else(|| panic!("{PROGRAM} was not found; {ADVICE}"))
}

impl Proxy {
    async fn start(server: SocketAddr) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Arc::new(Self {
            address: listener.local_addr().unwrap(),
            server,
            up: AtomicI64::new(i64::MAX),
            down: AtomicI64::new(i64::MAX),
            silent: AtomicBool::new(false),
            each: AtomicI64::new(i64::MAX),
            gets: AtomicUsize::new(0),
            dead: watch::Sender::new(false),
        });
        let this = Arc::clone(&proxy);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let this = Arc::clone(&this);
                tokio::spawn(async move {
                    let mut dead = this.dead.subscribe();
                    tokio::select! {
                        _ = dead.wait_for(|dead| *dead) => {}
                        _ = this.pass(client) => {}
                    }
                });
            }
        });
        proxy
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns how many objects were read.
    pub(crate) fn gets(&self) -> usize {
        self.gets.load(Ordering::SeqCst)
    }

    /// Returns how many bytes came for the server since it was started or mended.
    pub(crate) fn asked(&self) -> i64 {
        i64::MAX - self.up.load(Ordering::SeqCst)
    }

    /// Closes every connection once so many bytes more were sent to the server.
    pub(crate) fn cut_after_sent(&self, bytes: i64) {
        self.up.store(bytes, Ordering::SeqCst);
    }

    /// Closes every connection once so many bytes more were received from the server.
    pub(crate) fn cut_after_received(&self, bytes: i64) {
        self.down.store(bytes, Ordering::SeqCst);
    }

    /// Whether connections are closed.
    pub(crate) fn is_cut(&self) -> bool {
        *self.dead.borrow()
    }

    /// Whether nothing passes while connections stay open, as when packets are lost.
    pub(crate) fn be_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::SeqCst);
    }

    /// Lets each connection receive only so many bytes, from its beginning on; then nothing passes
    /// while it stays open, as when a large object comes slowly.
    pub(crate) fn hold_each_after(&self, bytes: i64) {
        self.each.store(bytes, Ordering::SeqCst);
    }

    /// Lets everything pass again.
    pub(crate) fn mend(&self) {
        self.up.store(i64::MAX, Ordering::SeqCst);
        self.down.store(i64::MAX, Ordering::SeqCst);
        self.each.store(i64::MAX, Ordering::SeqCst);
        self.dead.send_replace(false);
    }

    async fn pass(&self, mut client: TcpStream) -> std::io::Result<()> {
        let mut server = TcpStream::connect(self.server).await?;
        let (mut sent, mut received) = (vec![0; 65_536], vec![0; 65_536]);
        let mut passed = 0;
        loop {
            tokio::select! {
                read = client.read(&mut sent) => {
                    let Some(part) = sent.get(..read?).filter(|part| !part.is_empty()) else {
                        return Ok(());
                    };
                    let gets = part.windows(5).filter(|word| word == b"GET /").count();
                    self.gets.fetch_add(gets, Ordering::SeqCst);
                    self.count(&self.up, part.len());
                    self.speak().await;
                    server.write_all(part).await?;
                }
                read = server.read(&mut received) => {
                    let Some(part) = received.get(..read?).filter(|part| !part.is_empty()) else {
                        return Ok(());
                    };
                    self.count(&self.down, part.len());
                    passed += i64::try_from(part.len()).unwrap();
                    while passed > self.each.load(Ordering::SeqCst) {
                        tokio::task::yield_now().await;
                    }
                    self.speak().await;
                    client.write_all(part).await?;
                }
            }
        }
    }

    fn count(&self, left: &AtomicI64, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap();
        if left.fetch_sub(bytes, Ordering::SeqCst) < bytes {
            self.dead.send_replace(true);
        }
    }

    /// Waits until something may pass; forever if the connection is closed meanwhile.
    async fn speak(&self) {
        while self.silent.load(Ordering::SeqCst) || self.is_cut() {
            tokio::task::yield_now().await;
        }
    }
}
