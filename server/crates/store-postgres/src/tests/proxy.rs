//! A proxy for a database, which can lose the reply to a commit, and refuse new connections.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use platform_test_postgres::{SOCKET, TestDatabase};

/// Forwards bytes between clients and the server.
pub(super) struct Proxy {
    folder: TempDir,
    database: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Whether the reply to the next commit is lost.
    loses: AtomicBool,
    /// Whether new connections are closed at once.
    refuses: AtomicBool,
    /// How often a client sent something.
    requests: AtomicUsize,
}

impl Proxy {
    /// Listens on a socket of its own.
    pub(super) async fn start(database: &TestDatabase) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let (server, state) = (database.socket(), Arc::new(State::default()));
        let proxy = Self {
            folder,
            database: database.name().to_owned(),
            state: Arc::clone(&state),
        };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !state.refuses.load(Ordering::Relaxed) {
                    tokio::spawn(pass(client, server.clone(), Arc::clone(&state)));
                }
            }
        });
        proxy
    }

    /// Returns the address of the database through this proxy.
    pub(super) fn url(&self) -> String {
        format!("postgres://platform@{}/{}", self.host(), self.database)
    }

    /// Returns the address of the database through this proxy or another one.
    pub(super) fn url_with(&self, other: &Self) -> String {
        let hosts = format!("{},{}", self.host(), other.host());
        format!("postgres://platform@{hosts}/{}", self.database)
    }

    fn host(&self) -> String {
        self.folder.path().display().to_string().replace('/', "%2F")
    }

    /// Closes new connections at once from now on, or no longer does.
    pub(super) fn refuse(&self, refuses: bool) {
        self.state.refuses.store(refuses, Ordering::Relaxed);
    }

    /// Returns how often a client sent something.
    pub(super) fn requests(&self) -> usize {
        self.state.requests.load(Ordering::Relaxed)
    }

    /// Lets the next commit reach the server, but loses the reply.
    pub(super) fn lose_the_next_commit(&self) {
        self.state.loses.store(true, Ordering::Relaxed);
    }
}

async fn pass(mut client: UnixStream, server: PathBuf, state: Arc<State>) {
    let mut server = UnixStream::connect(server).await.unwrap();
    let (mut asked, mut answered) = ([0; 8_192], [0; 8_192]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(Some(part)) = read.map(|read| asked.get(..read)) else { return };
                if part.is_empty() || server.write_all(part).await.is_err() {
                    return;
                }
                state.requests.fetch_add(1, Ordering::Relaxed);
                // The text of a query ends with a zero byte.
                let is_commit = part.windows(7).any(|word| word == b"COMMIT\0");
                if is_commit && state.loses.swap(false, Ordering::Relaxed) {
                    // When the server replies, the commit is done.
                    let _ = server.read(&mut answered).await;
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(Some(part)) = read.map(|read| answered.get(..read)) else { return };
                if part.is_empty() || client.write_all(part).await.is_err() {
                    return;
                }
            }
        }
    }
}
