//! Forwarding to a game's backend and back, with real sockets on all three sides.

mod crowd;
mod failing_backends;
mod hostile;
mod limits;
mod secure;
mod sockets;
mod streaming;
mod takedown;

pub(crate) use self::secure::certified;
pub(crate) use self::sockets::echo;

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use platform_protocol::names::Environment;
use platform_server::domain::audit::Actor;
use platform_server::domain::environment_setting::EnvironmentSetting;
use platform_server::domain::project::BackendSettings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::TestApp;

/// Much longer than anything here takes; reaching it is a failure.
const NEVER: Duration = Duration::from_secs(20);

/// Waits for something that must happen.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(NEVER, what)
        .await
        .unwrap_or_else(|_| panic!("it did not happen in {NEVER:?}"))
}

/// A backend that is an axum router.
async fn serve(routes: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

/// A backend with a custom handler for every connection.
async fn serve_raw<F, R>(handle: F) -> SocketAddr
where
    F: Fn(TcpStream) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(handle(stream));
        }
    });
    address
}

/// Reads a request head.
async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// A backend that reads a request head, responds with these bytes on every connection, and closes
/// it.
async fn answer_raw(answer: &'static str) -> SocketAddr {
    serve_raw(move |mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(answer.as_bytes()).await;
    })
    .await
}

impl TestApp {
    /// Sets a backend for these paths of the demo, as its owner would.
    pub(crate) async fn set_backend(&self, url: &str, paths: &[&str]) {
        let settings = BackendSettings {
            url: url.to_owned(),
            paths: paths.iter().map(ToString::to_string).collect(),
        };
        let state = &self.running.state;
        state
            .platform
            .store
            .set_environment(
                "demo",
                Environment::Prod,
                EnvironmentSetting::Backend(Some(settings)),
                Actor::Own.into(),
                0,
            )
            .await
            .unwrap();
        state.hosting.refresh_all().await.unwrap();
    }

    /// Sets a backend for the demo's `/api/`.
    async fn set_api(&self, backend: SocketAddr) {
        self.set_backend(&format!("http://{backend}"), &["/api/"])
            .await;
    }

    /// `demo.platform.localhost:<port>`
    fn demo(&self) -> String {
        format!("demo.platform.localhost:{}", self.port())
    }

    /// Opens a connection to the platform and sends these bytes.
    async fn send_raw(&self, bytes: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.running.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream
    }
}

/// Returns everything until the other side closes the connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut read = Vec::new();
    // The connection may end with a reset.
    let _ = soon(stream.read_to_end(&mut read)).await;
    String::from_utf8_lossy(&read).into_owned()
}
