//! Listening, connections and their limits, and graceful shutdown.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

use super::client_address::Network;
use super::connection_state::{Answering, Turn};
use super::head_budget::{HeadMeter, MAX_HEAD, Metered};
use super::head_timer::HeadTimer;
use super::http2::{self, unread::NetworkShare};
use super::https::{Https, ShownCertificate};
use super::memory_budget::MemoryBudget;
use super::minimum_rate::Pace;
use super::open_files;
use super::places::{Group, LONG, Place, Places, Stay};
use super::rarely::Rarely;
use super::request_id::RequestId;
use super::unreadable_head::Explained;

/// The maximum number of connections, however many files may be open.
const MOST: usize = 16_384;
/// The minimum number of connections, however few files may be open.
const LEAST: usize = 64;
/// If there are fewer than this, the operator is warned.
const FEW: usize = 1_024;
/// The part of all connections that one network may hold, and the part for its surrounding network.
const SHARES: (usize, usize) = (8, 4);
/// How long a connection is silent before the system checks whether its peer still exists, and the
/// time between two checks; after three the connection is closed. A phone that loses its network
/// sends nothing, and its WebSocket would stay open forever.
pub const SILENT: Duration = Duration::from_secs(60);
const ASK_AGAIN: Duration = Duration::from_secs(20);
const QUESTIONS: u32 = 3;
/// How many bytes the system takes for a peer beyond what is on its way.
const UNSENT: u32 = 64 * 1_024;
/// How long requests in progress may take to finish after the shutdown has begun.
pub const DRAIN: Duration = Duration::from_secs(10);
/// The pause after an error of `accept`, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Limits for one connection, and for the connections of one network. No client may use up shared
/// resources by being slow or silent.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The time limit for the handshake of TLS. The time in which a certificate is obtained for it does
    /// not count.
    pub handshake: Duration,
    /// The time limit for a request's head, and for a connection that is idle between two requests.
    pub head: Duration,
    /// The time limit for a peer to read 64 KiB, or the rest, of a response. Time in which no data
    /// waits to be sent does not count.
    pub stall: Duration,
    /// How long a request may take before its connection counts as long-lived. This is also the
    /// interval for checking whether its peer still reads.
    pub long: Duration,
    /// The maximum number of connections. If all are in use, the one that has waited longest for a
    /// request is closed for the next one, or one whose peer does not read; if there is none, new
    /// connections stay in the system's queue.
    pub all: usize,
    /// The maximum number of connections per network.
    pub per_network: usize,
    /// The maximum number of connections per surrounding network: the /24 of an IPv4 address, or
    /// the /48 of an IPv6 address.
    pub per_neighbourhood: usize,
    /// The maximum number of connections from this machine: programs that measure, and tests,
    /// simulate many visitors.
    pub per_loopback: usize,
    /// The maximum number of bytes of large heads of all connections.
    pub heads: usize,
    /// The maximum number of bytes of large heads of the connections of one network.
    pub heads_per_network: usize,
    /// How many bytes of responses the peers of all connections of HTTP/2 may leave unread. Beyond it,
    /// each connection has one response at a time.
    pub unread: usize,
    /// How many of these bytes the connections of one network may have.
    pub unread_per_network: usize,
    /// How long requests in progress may take to finish after the shutdown has begun.
    pub drain: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(30),
            stall: Duration::from_secs(30),
            long: LONG,
            all: MOST,
            per_network: 512,
            per_neighbourhood: 2_048,
            per_loopback: 2_048,
            heads: 128 * 1_024 * 1_024,
            heads_per_network: 16 * 1_024 * 1_024,
            unread: 256 * 1_024 * 1_024,
            unread_per_network: 4 * 1_024 * 1_024,
            drain: DRAIN,
        }
    }
}

impl ConnectionLimits {
    /// How fast a peer must read what is sent to it.
    pub(super) fn pace(&self) -> Pace {
        Pace {
            within: self.stall,
            ..Pace::default()
        }
    }

    /// Returns limits for as many connections as this process can have open. It raises the system's
    /// limit as far as it may.
    #[must_use]
    pub fn of_this_process() -> Self {
        let descriptors = open_files::raise();
        let limits = Self::of(open_files::connections(descriptors));
        if limits.all < FEW {
            tracing::warn!(
                descriptors,
                connections = limits.all,
                "this process may have few files and connections open; raise the limit, for \
                 example with LimitNOFILE= of systemd or `ulimit -n`"
            );
        }
        limits
    }

    /// Returns limits for `all` connections, with the parts for each network.
    fn of(all: usize) -> Self {
        let usual = Self::default();
        let all = all.clamp(LEAST, usual.all);
        Self {
            all,
            per_network: usual.per_network.min(all / SHARES.0),
            per_neighbourhood: usual.per_neighbourhood.min(all / SHARES.1),
            ..usual
        }
    }

    /// Returns the groups by which a network's connections are counted, and their limits.
    fn groups(&self, peer: SocketAddr) -> Vec<(Group, usize)> {
        let address = peer.ip().to_canonical();
        let network = Group::Network(Network::of(address));
        if address.is_loopback() {
            return vec![(network, self.per_loopback)];
        }
        vec![
            (network, self.per_network),
            (Group::around(address), self.per_neighbourhood),
        ]
    }
}

/// Responds to the requests of connections.
pub trait Application: Send + Sync + 'static {
    /// Responds to a request of `peer`.
    fn answer(
        &self,
        peer: SocketAddr,
        request: Request<Body>,
    ) -> impl Future<Output = Response> + Send;

    /// Returns the id and the problem body of a response to a head that could not be parsed.
    fn explain_unread(&self, status: StatusCode) -> (RequestId, Vec<u8>);

    /// Whether this is the address of a trusted proxy.
    fn trusts(&self, address: IpAddr) -> bool;

    /// Connections are accepted from now on, and `open` knows how many there are.
    fn accepts(&self, _open: OpenConnections) {}
}

/// Knows how many connections a socket has.
#[derive(Clone, Debug)]
pub struct OpenConnections(Places);

impl OpenConnections {
    /// Returns the number of open connections, those that have become WebSockets included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.held()
    }

    /// Returns the maximum number.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.all()
    }
}

/// Serves until `stopping` becomes true, then lets requests in progress finish, within the limit.
pub async fn serve<A: Application>(
    listener: TcpListener,
    app: A,
    limits: ConnectionLimits,
    stopping: watch::Receiver<bool>,
) {
    serve_with(listener, None, app, limits, stopping).await;
}

/// Serves as [`serve`] does, over TLS if there is `https`: then also HTTP/2.
pub async fn serve_with<A: Application>(
    listener: TcpListener,
    https: Option<Https>,
    app: A,
    limits: ConnectionLimits,
    mut stopping: watch::Receiver<bool>,
) {
    let app = Arc::new(app);
    let protocol = protocol(&limits);
    let places = Places::new(limits.all);
    app.accepts(OpenConnections(places.clone()));
    let heads = MemoryBudget::new(limits.heads, limits.heads_per_network);
    let unread = MemoryBudget::new(limits.unread, limits.unread_per_network);
    loop {
        let next = next(&listener, &places, &*app, &limits);
        let accepted = tokio::select! {
            accepted = next => accepted,
            _ = stopping.wait_for(|stopping| *stopping) => break,
        };
        let Some((stream, peer, place)) = accepted else {
            continue;
        };
        let network = network_of(peer, &*app);
        let visitor = Visitor {
            peer,
            place,
            meter: heads.meter(network),
            answers: NetworkShare::new(Arc::clone(&unread), network),
            limits,
            app: Arc::clone(&app),
            stopping: stopping.clone(),
            shown: None,
        };
        match &https {
            None => tokio::spawn(connection(protocol.clone(), stream, visitor)),
            Some(https) => tokio::spawn(secure(https.clone(), protocol.clone(), stream, visitor)),
        };
    }
    drop(listener);
    if tokio::time::timeout(limits.drain, places.empty())
        .await
        .is_err()
    {
        tracing::warn!("requests were still running and are aborted");
    }
}

/// Returns the next connection that has a slot. It is taken from the system's queue first: only a
/// new connection causes another one to be closed.
async fn next<A: Application>(
    listener: &TcpListener,
    places: &Places,
    app: &A,
    limits: &ConnectionLimits,
) -> Option<(TcpStream, SocketAddr, Place)> {
    let (stream, peer) = accept(listener).await?;
    let groups = network_of(peer, app).map_or_else(Vec::new, |_| limits.groups(peer));
    let place = places.take(&groups).await;
    if place.is_none() {
        tracing::debug!(%peer, "a network holds too many connections");
    }
    Some((stream, peer, place?))
}

/// Returns the network for which a connection counts. A trusted proxy serves many visitors, so its
/// connections count for none.
fn network_of<A: Application>(peer: SocketAddr, app: &A) -> Option<Network> {
    let address = peer.ip().to_canonical();
    (!app.trusts(address)).then(|| Network::of(address))
}

async fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok((stream, peer)) => {
            // Otherwise a response in two segments waits for the peer's delayed acknowledgement, 40
            // ms.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY could not be set");
            }
            // Otherwise the system takes a megabyte for a slow peer at once, and then no more for a minute,
            // which looks as if the peer had stopped to read.
            #[cfg(target_os = "linux")]
            if let Err(error) = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT) {
                tracing::debug!(%error, "TCP_NOTSENT_LOWAT could not be set");
            }
            let alive = TcpKeepalive::new().with_time(SILENT);
            let alive = alive.with_interval(ASK_AGAIN).with_retries(QUESTIONS);
            if let Err(error) = SockRef::from(&stream).set_tcp_keepalive(&alive) {
                tracing::debug!(%error, "SO_KEEPALIVE could not be set");
            }
            Some((stream, peer))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            #[expect(clippy::disallowed_methods, reason = "the system has no event for it")]
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// The protocol of every connection: HTTP/1.1, with limits. A builder that detects the protocol
/// first would wait for a silent peer forever.
pub(super) fn protocol(limits: &ConnectionLimits) -> Builder {
    let mut builder = Builder::new();
    builder
        // With the timer of each connection.
        .header_read_timeout(limits.head)
        .max_buf_size(MAX_HEAD);
    builder
}

/// Why a connection ends that its peer does not end.
enum End {
    /// A new one needs its slot.
    Dismissed,
    /// The shutdown has begun.
    Stopping,
}

/// Who connected, and what they may use.
pub(super) struct Visitor<A> {
    pub(super) peer: SocketAddr,
    pub(super) place: Place,
    pub(super) meter: Arc<HeadMeter>,
    pub(super) answers: NetworkShare,
    pub(super) limits: ConnectionLimits,
    pub(super) app: Arc<A>,
    pub(super) stopping: watch::Receiver<bool>,
    /// The certificate that was shown, if there was one.
    pub(super) shown: Option<ShownCertificate>,
}

/// Responds to the requests of one connection over TLS, in the protocol that the peer chooses.
async fn secure<A: Application>(
    https: Https,
    protocol: Builder,
    stream: TcpStream,
    mut visitor: Visitor<A>,
) {
    let peer = visitor.peer;
    let accepted = tokio::select! {
        biased;
        () = visitor.place.dismissed() => return,
        _ = visitor.stopping.wait_for(|stopping| *stopping) => return,
        accepted = https.accept(stream, visitor.limits.handshake) => accepted,
    };
    match accepted {
        Ok(Some(accepted)) => {
            visitor.shown = accepted.shown();
            if accepted.speaks_http2() {
                Box::pin(http2::connection(accepted.into_stream(), visitor)).await;
            } else {
                connection(protocol, accepted.into_stream(), visitor).await;
            }
        }
        Ok(None) => tracing::debug!(%peer, "a challenge for a certificate was answered"),
        Err(error) => tracing::debug!(%peer, %error, "a handshake of TLS failed"),
    }
}

/// Responds to the requests of one connection, and to no further one after the shutdown has begun.
pub(super) async fn connection<S, A>(mut protocol: Builder, stream: S, visitor: Visitor<A>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Application,
{
    let Visitor {
        peer,
        place,
        meter,
        limits,
        app,
        mut stopping,
        shown,
        ..
    } = visitor;
    let turn = Arc::new(Turn::new(meter.arrived()));
    let explaining = Arc::clone(&app);
    let pace = limits.pace();
    let io = TokioIo::new(Metered::new(stream, Arc::clone(&meter)));
    let io = Explained::new(io, Arc::clone(&turn), pace, move |status| {
        explaining.explain_unread(status)
    });
    let in_use = place.clone();
    let head = HeadTimer::new();
    protocol.timer(head.clone());
    let watching = watch_over(Arc::clone(&turn), head, limits, pace);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let (app, meter) = (Arc::clone(&app), Arc::clone(&meter));
        let metered = meter.answer();
        let stay = Stay::at(&in_use);
        let answering = Answering::begin(&turn, &stay);
        let mut request = request.map(Body::new);
        let is_misdirected = shown
            .as_ref()
            .is_some_and(|shown| shown.is_misdirected(&request));
        // A WebSocket continues to hold the slot after the connection was handed over.
        request.extensions_mut().insert(stay);
        // In a box: it takes some kilobytes, which an idle connection would hold otherwise.
        Box::pin(async move {
            let response = if is_misdirected {
                http2::refuse(&*app, StatusCode::MISDIRECTED_REQUEST)
            } else {
                app.answer(peer, request).await
            };
            drop(metered);
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                meter.retire();
            }
            Ok::<_, Infallible>(answering.go_with(response))
        })
    });
    let connection = protocol.serve_connection(io, service).with_upgrades();
    let mut connection = pin!(connection);
    // None of these happens at a request.
    let mut watching = Rarely::new(watching);
    let mut ending = Rarely::new(async {
        tokio::select! {
            () = place.dismissed() => End::Dismissed,
            // An error means that the server was dropped, which also stops the connection.
            _ = stopping.wait_for(|stopping| *stopping) => End::Stopping,
        }
    });
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        never = &mut watching => match never {},
        end = &mut ending => match end {
            End::Dismissed => {
                tracing::debug!(%peer, "a connection that waited, or did not read, gave way to another");
                return;
            }
            End::Stopping => {
                connection.as_mut().graceful_shutdown();
                // A head that was begun still has its time limit.
                tokio::select! {
                    ended = connection => ended,
                    never = watching => match never {},
                }
            }
        },
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

/// Checks regularly how fast a connection's request progresses, and wakes hyper at the end of the time
/// limit for a head. hyper does not produce more of a response while its peer does not read.
async fn watch_over(
    turn: Arc<Turn>,
    head: HeadTimer,
    limits: ConnectionLimits,
    pace: Pace,
) -> Infallible {
    loop {
        let now = Instant::now();
        let look = turn.look(limits.long, pace);
        // The limit of a head that begins later ends later.
        let end = head.end(now).unwrap_or(now + limits.head);
        tokio::time::sleep_until(look.min(end).min(now + limits.head)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_answers_at_once_and_is_asked_whether_it_lives() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, _client) = tokio::join!(accept(&listener), TcpStream::connect(address));
        let (stream, ..) = accepted.unwrap();
        assert!(stream.nodelay().unwrap());
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), SILENT);
    }

    #[test]
    fn no_network_holds_more_than_its_part_however_few_connections_there_are() {
        for all in [0, 384, 10_000, 1_000_000] {
            let limits = ConnectionLimits::of(all);
            assert!((LEAST..=MOST).contains(&limits.all), "{all}");
            assert!(limits.per_network <= limits.all / 8, "{all}");
            assert!(limits.per_neighbourhood <= limits.all / 4, "{all}");
        }
        let many = ConnectionLimits::of(usize::MAX);
        assert_eq!((many.per_network, many.per_neighbourhood), (512, 2_048));
        assert_eq!(many.drain, Duration::from_secs(10));
    }
}
