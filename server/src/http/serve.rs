//! Listening, connections and their limits, and the graceful stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::entry::App;

/// Connections at one time; further ones wait in the system's queue.
const CONNECTIONS: usize = 8_192;
/// How long a request's head may take, and how long a connection may idle
/// between two requests.
const HEAD: Duration = Duration::from_secs(30);
/// Bytes of a request's head and of a piece of its body, at most.
const BUFFER: usize = 64 * 1024;
/// How long requests in flight may take to finish once the stop has begun.
pub const DRAIN: Duration = Duration::from_secs(10);
/// The pause after an error of `accept`, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stopping` turns true, then lets requests in flight finish,
/// for [`DRAIN`] at most.
pub async fn serve(listener: TcpListener, app: App, mut stopping: watch::Receiver<bool>) {
    let app = Arc::new(app);
    let protocol = protocol();
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &permits) => accepted,
            _ = stopping.wait_for(|stopping| *stopping) => break,
        };
        let Some((stream, peer, permit)) = accepted else {
            continue;
        };
        let app = Arc::clone(&app);
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let app = Arc::clone(&app);
            async move {
                let answer = app.answer(peer, request.map(Body::new)).await;
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        let connection = protocol
            .serve_connection_with_upgrades(TokioIo::new(stream), service)
            .into_owned();
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("requests were still in flight and are cut off");
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            // Without it an answer in two segments waits for the peer's
            // delayed acknowledgement, 40 ms.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY could not be set");
            }
            Some((stream, peer, permit))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            #[expect(clippy::disallowed_methods, reason = "the system has no event for it")]
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// The protocol of every connection: HTTP/1.1, with limits.
fn protocol() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER);
    builder
}
