//! A proxy for a database, which can lose the reply to a commit.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use platform_test_postgres::{SOCKET, TestDatabase};

/// Forwards bytes between clients and the server.
pub(super) struct Proxy {
    folder: TempDir,
    database: String,
    loses: Arc<AtomicBool>,
}

impl Proxy {
    /// Listens on a socket of its own.
    pub(super) async fn start(database: &TestDatabase) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let (server, loses) = (database.socket(), Arc::new(AtomicBool::new(false)));
        let proxy = Self {
            folder,
            database: database.name().to_owned(),
            loses: Arc::clone(&loses),
        };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, server.clone(), Arc::clone(&loses)));
            }
        });
        proxy
    }

    /// Returns the address of the database through this proxy.
    pub(super) fn url(&self) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://platform@{folder}/{}", self.database)
    }

    /// Lets the next commit reach the server, but loses the reply.
    pub(super) fn lose_the_next_commit(&self) {
        self.loses.store(true, Ordering::Relaxed);
    }
}

async fn pass(mut client: UnixStream, server: PathBuf, loses: Arc<AtomicBool>) {
    let mut server = UnixStream::connect(server).await.unwrap();
    let (mut asked, mut answered) = ([0; 8_192], [0; 8_192]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(Some(part)) = read.map(|read| asked.get(..read)) else { return };
                if part.is_empty() || server.write_all(part).await.is_err() {
                    return;
                }
                // The text of a query ends with a zero byte.
                let is_commit = part.windows(7).any(|word| word == b"COMMIT\0");
                if is_commit && loses.swap(false, Ordering::Relaxed) {
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
