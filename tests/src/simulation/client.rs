//! An HTTP client that many virtual browsers share: it keeps connections open, and a request that
//! finds none free waits, which counts as its latency.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How many connections it has at most. Each has two ends on this machine, three with a balancer
/// between them.
const CONNECTIONS: usize = 2_000;
/// How long a connection without a request is used again: less than any server keeps it open, so that
/// none is closed just when a request is sent.
const IDLE: Duration = Duration::from_secs(20);
/// How long a player waits for a response.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request of a virtual browser.
pub(super) type Asked = Request<Full<Bytes>>;

/// A complete response.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The client.
#[derive(Debug)]
pub(super) struct Client {
    address: SocketAddr,
    /// The connections without a request, and since when.
    idle: Mutex<Vec<(Instant, SendRequest<Full<Bytes>>)>>,
    room: Semaphore,
}

impl Client {
    /// Creates one for everything that listens on this address.
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            idle: Mutex::default(),
            room: Semaphore::new(CONNECTIONS),
        }
    }

    /// Creates another one for the same address, with connections of its own.
    pub(super) fn another(&self) -> Self {
        Self::new(self.address)
    }

    /// Sends a request and waits for the whole response.
    ///
    /// # Errors
    /// Returns what happened, for a table of failures.
    pub(super) async fn send(&self, request: Asked) -> Result<Answer, &'static str> {
        let answer = tokio::time::timeout(PATIENCE, self.exchange(request));
        answer.await.unwrap_or(Err("no answer in 10 s"))
    }

    async fn exchange(&self, request: Asked) -> Result<Answer, &'static str> {
        let room = self.room.acquire().await;
        let _room = room.map_err(|_| "the client is closed")?;
        loop {
            let (mut connection, is_new) = self.connection().await?;
            let response = match connection.send_request(request.clone()).await {
                Ok(response) => response,
                // The server closed the connection while it was idle, and no byte was sent.
                Err(error) if error.is_canceled() && !is_new => continue,
                Err(_) => return Err("the connection was lost"),
            };
            let (parts, body) = response.into_parts();
            let body = body.collect().await.map_err(|_| "the answer was cut off")?;
            self.idle().push((Instant::now(), connection));
            return Ok(Answer {
                status: parts.status.as_u16(),
                headers: parts.headers,
                body: body.to_bytes(),
            });
        }
    }

    /// Returns a connection that is ready, and whether it is a new one.
    async fn connection(&self) -> Result<(SendRequest<Full<Bytes>>, bool), &'static str> {
        loop {
            let Some((since, mut known)) = self.idle().pop() else {
                break;
            };
            if since.elapsed() < IDLE && known.ready().await.is_ok() {
                return Ok((known, false));
            }
        }
        let stream = TcpStream::connect(self.address).await;
        let stream = stream.map_err(|_| "no connection")?;
        stream.set_nodelay(true).map_err(|_| "no connection")?;
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|_| "no connection")?;
        // It ends when the sender is dropped or the server closes it.
        tokio::spawn(async { drop(connection.await) });
        Ok((sender, true))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Instant, SendRequest<Full<Bytes>>)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
