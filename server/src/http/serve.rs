//! Listening, connections and their limits, and the graceful stop.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{StatusCode, header};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

use super::client_address::Network;
use super::entry::App;
use super::head_budget::{HeadBudget, HeadMeter, MAX_HEAD, Metered};
use crate::backends::Held;

/// Connections at one time; further ones wait in the system's queue.
const CONNECTIONS: u32 = 8_192;
/// How long a connection is silent before the system asks whether its peer is
/// still there, and between two questions; after three it is over. A phone that
/// loses its network says nothing, and its WebSocket would stay for good.
pub(crate) const SILENT: Duration = Duration::from_secs(60);
const ASK_AGAIN: Duration = Duration::from_secs(20);
const QUESTIONS: u32 = 3;
/// How long requests in flight may take to finish once the stop has begun.
pub const DRAIN: Duration = Duration::from_secs(10);
/// The pause after an error of `accept`, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What one connection may take, and how many one network may hold. Nobody
/// may use up what all share by being slow or silent.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// How long a request's head may take, and how long a connection may idle
    /// between two requests.
    pub head: Duration,
    /// How long a write may make no progress, as with a peer that does not
    /// read what it asked for.
    pub stall: Duration,
    /// Connections of one network at one time.
    pub per_network: usize,
    /// Connections of this machine at one time: programs that measure, and
    /// tests, are many visitors in one.
    pub per_loopback: usize,
    /// Bytes of large heads that all connections hold at one time.
    pub heads: usize,
    /// Bytes of large heads that the connections of one network hold.
    pub heads_per_network: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            stall: Duration::from_secs(30),
            per_network: 512,
            per_loopback: 2_048,
            heads: 128 * 1_024 * 1_024,
            heads_per_network: 16 * 1_024 * 1_024,
        }
    }
}

/// Serves until `stopping` turns true, then lets requests in flight finish,
/// for [`DRAIN`] at most.
pub async fn serve(
    listener: TcpListener,
    app: App,
    limits: ConnectionLimits,
    mut stopping: watch::Receiver<bool>,
) {
    let app = Arc::new(app);
    let protocol = protocol(&limits);
    let permits = Arc::new(Semaphore::new(CONNECTIONS as usize));
    let peers = Peers::default();
    let heads = HeadBudget::new(limits.heads, limits.heads_per_network);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &permits) => accepted,
            _ = stopping.wait_for(|stopping| *stopping) => break,
        };
        let Some((stream, peer, permit)) = accepted else {
            continue;
        };
        let Some(place) = peers.admit(peer, &app, &limits) else {
            tracing::debug!(%peer, "a network holds too many connections");
            continue;
        };
        let mut io = TimeoutStream::new(stream);
        io.set_write_timeout(Some(limits.stall));
        let meter = heads.meter(place.network());
        // A WebSocket goes on holding them when the connection is out of our
        // hands.
        let held = Held::new(Arc::new((permit, place)));
        let app = Arc::clone(&app);
        tokio::spawn(connection(
            protocol.clone(),
            (io, meter),
            (peer, held),
            app,
            stopping.clone(),
        ));
    }
    drop(listener);
    // Every connection holds one, so all of them are there when the last ends.
    let ended = permits.acquire_many(CONNECTIONS);
    if tokio::time::timeout(DRAIN, ended).await.is_err() {
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
            let alive = TcpKeepalive::new().with_time(SILENT);
            let alive = alive.with_interval(ASK_AGAIN).with_retries(QUESTIONS);
            if let Err(error) = SockRef::from(&stream).set_tcp_keepalive(&alive) {
                tracing::debug!(%error, "SO_KEEPALIVE could not be set");
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

/// The protocol of every connection: HTTP/1.1, with limits. A builder that
/// first finds out the protocol would wait for a silent peer for ever.
fn protocol(limits: &ConnectionLimits) -> Builder {
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(MAX_HEAD);
    builder
}

/// Answers the requests of one connection, and after the stop no further one.
async fn connection(
    protocol: Builder,
    (io, meter): (TimeoutStream<TcpStream>, Arc<HeadMeter>),
    (peer, held): (SocketAddr, Held),
    app: Arc<App>,
    mut stopping: watch::Receiver<bool>,
) {
    let io = Metered::new(Box::pin(io), Arc::clone(&meter));
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let (app, meter) = (Arc::clone(&app), Arc::clone(&meter));
        let answering = meter.answer();
        let mut request = request.map(Body::new);
        if request.headers().contains_key(header::UPGRADE) {
            request.extensions_mut().insert(held.clone());
        }
        async move {
            let response = app.answer(peer, request).await;
            drop(answering);
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                meter.retire();
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = protocol
        .serve_connection(TokioIo::new(io), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let stop = async {
        // An error means that the server is gone, which is a stop too.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    };
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = stop => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

/// How many connections each network holds. Networks with none are not in it.
#[derive(Clone, Debug, Default)]
struct Peers(Arc<Mutex<HashMap<Network, usize>>>);

impl Peers {
    /// A place for one more connection, if the network may have it. Behind a
    /// trusted proxy are many visitors, so those are not counted.
    fn admit(&self, peer: SocketAddr, app: &App, limits: &ConnectionLimits) -> Option<Place> {
        let address = peer.ip().to_canonical();
        if app.state.config.trusts(address) {
            return Some(Place(None));
        }
        let limit = if address.is_loopback() {
            limits.per_loopback
        } else {
            limits.per_network
        };
        self.take(Network::of(address), limit)
    }

    fn take(&self, network: Network, limit: usize) -> Option<Place> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(network).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(Place(Some((self.clone(), network))))
    }
}

/// One connection's place; dropping it gives it back.
#[derive(Debug)]
struct Place(Option<(Peers, Network)>);

impl Place {
    /// Which network it counts for; none behind a trusted proxy.
    fn network(&self) -> Option<Network> {
        self.0.as_ref().map(|(_, network)| *network)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((peers, network)) = self.0.take() else {
            return;
        };
        let mut held = peers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = held.entry(network) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_answers_at_once_and_is_asked_whether_it_lives() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let permits = Arc::new(Semaphore::new(1));
        let (accepted, _client) =
            tokio::join!(accept(&listener, &permits), TcpStream::connect(address));
        let (stream, ..) = accepted.unwrap();
        assert!(stream.nodelay().unwrap());
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), SILENT);
    }

    #[test]
    fn a_place_is_given_back() {
        let peers = Peers::default();
        let network = |text: &str| Network::of(text.parse().unwrap());
        let first = peers.take(network("192.0.2.1"), 2);
        let second = peers.take(network("192.0.2.1"), 2);
        assert!(first.is_some() && second.is_some());
        assert!(peers.take(network("192.0.2.1"), 2).is_none());
        assert!(peers.take(network("192.0.2.2"), 2).is_some());
        drop(first);
        assert!(peers.take(network("192.0.2.1"), 2).is_some());
        drop(second);
        assert!(peers.0.lock().unwrap().is_empty(), "nothing is left over");
    }
}
