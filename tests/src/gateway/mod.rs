//! A reverse proxy in front of the platform, as operators use one. It records every request in
//! order. On demand it holds a request, responds to it itself, or closes its connection without a
//! response. A stream of events is forwarded as it arrives, and cut off where a test wants it.

mod fault;

pub use fault::{Fault, Gate};

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING,
};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A recorded request.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The method.
    pub method: Method,
    /// The `Host` header.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// The request's headers.
    pub headers: HeaderMap,
    /// The request's body.
    pub body: Bytes,
    /// Its position among all arrivals and responses.
    pub arrived: u64,
    /// The position of its response, once it has one.
    pub answered: Option<u64>,
    /// The status of its response, once it has one.
    pub status: Option<StatusCode>,
}

#[derive(Debug)]
struct Rule {
    method: Method,
    path: String,
    fault: Fault,
    times: usize,
}

#[derive(Debug, Default)]
struct State {
    exchanges: Vec<Exchange>,
    order: u64,
    rules: Vec<Rule>,
    stream_bytes: Option<usize>,
}

/// The body of a response to the browser.
type Body = UnsyncBoxBody<Bytes, Dropped>;

/// The proxy. It listens from the start; requests wait until it knows the platform.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    upstream: watch::Sender<Option<SocketAddr>>,
    cuts: watch::Sender<usize>,
    client: reqwest::Client,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Listens on a free port of the loopback address that no gateway of this program has used
    /// before: a browser may still cache what it fetched from there, such as the runtime, for five
    /// minutes or more.
    pub async fn listen() -> Self {
        static HAD: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
        let (listener, address) = loop {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .await
                .expect("a port is free");
            let address = listener
                .local_addr()
                .expect("a bound socket has an address");
            let mut had = HAD.lock().unwrap_or_else(PoisonError::into_inner);
            if had.insert(address.port()) {
                break (listener, address);
            }
        };
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client can be made");
        let upstream = watch::Sender::new(None);
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            upstream,
            cuts: watch::Sender::new(0),
            client,
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            accepting,
        }
    }

    /// Returns the port, which is also the port of the platform's origin.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// Forwards everything to `platform` from now on.
    pub fn lead_to(&self, platform: SocketAddr) {
        self.shared.upstream.send_replace(Some(platform));
    }

    /// Applies `fault` to the next `times` requests of `method` whose path starts with `path`.
    /// Earlier faults are applied first.
    pub fn spoil(&self, method: Method, path: &str, fault: Fault, times: usize) {
        self.shared.state().rules.push(Rule {
            method,
            path: path.to_owned(),
            fault,
            times,
        });
    }

    /// Forwards only `bytes` bytes of each stream of events that begins from now on, even if this
    /// ends within an event. The rest is never forwarded.
    pub fn stop_streams_after(&self, bytes: usize) {
        self.shared.state().stream_bytes = Some(bytes);
    }

    /// Closes each stream that has reached its limit, and running ones as soon as they do. A test
    /// calls this when the browser has received the forwarded bytes: bytes that arrive together
    /// with the end of a connection may be lost.
    pub fn cut_streams(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Removes the faults that have not been applied.
    pub fn heal(&self) {
        let mut state = self.shared.state();
        state.rules.clear();
        state.stream_bytes = None;
    }

    /// Returns every request of `method` so far whose path starts with `path`.
    #[must_use]
    pub fn seen(&self, method: &Method, path: &str) -> Vec<Exchange> {
        let state = self.shared.state();
        let fits = |seen: &&Exchange| seen.method == *method && seen.path.starts_with(path);
        state.exchanges.iter().filter(fits).cloned().collect()
    }

    /// Returns the number of all requests so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.state().exchanges.len()
    }

    /// Returns the number of token requests so far.
    #[must_use]
    pub fn token_requests(&self) -> usize {
        self.seen(&Method::POST, platform_protocol::paths::TOKEN)
            .len()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&shared)));
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Otherwise every small response may wait for a delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| exchange(request, Arc::clone(&shared)));
    // An error means that a browser or a fault closed the connection.
    let _ = hyper::server::conn::http1::Builder::new()
        // The same maximum head size as the platform's.
        .max_buf_size(1 << 20)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// The connection ends without a response.
#[derive(Debug)]
struct Dropped;

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection ends without an answer")
    }
}

impl std::error::Error for Dropped {}

async fn exchange(
    request: Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<Body>, Dropped> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Dropped)?.to_bytes();
    let path = parts
        .uri
        .path_and_query()
        .map_or("/", |path| path.as_str())
        .to_owned();
    let host = parts
        .headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let seen = Exchange {
        method: parts.method,
        host: host.to_owned(),
        path,
        headers: parts.headers,
        body,
        arrived: 0,
        answered: None,
        status: None,
    };
    let (place, fault) = take_down(&shared, &seen);
    let answer = match fault {
        Some(Fault::Drop) => Err(Dropped),
        Some(Fault::Answer {
            status,
            headers,
            body,
        }) => Ok(made(status, headers, body)),
        Some(Fault::Endless(part)) => Ok(endless(part)),
        Some(Fault::Hold(gate)) => {
            gate.pass().await;
            pass_on(&shared, &seen).await
        }
        None => pass_on(&shared, &seen).await,
    };
    let mut state = shared.state();
    state.order += 1;
    let order = state.order;
    state.exchanges[place].answered = Some(order);
    state.exchanges[place].status = answer.as_ref().ok().map(Response::status);
    answer
}

/// Records an arrival, and returns its position in the list and the fault to apply.
fn take_down(shared: &Shared, seen: &Exchange) -> (usize, Option<Fault>) {
    let mut state = shared.state();
    state.order += 1;
    let arrived = state.order;
    state.exchanges.push(Exchange {
        arrived,
        ..seen.clone()
    });
    let place = state.exchanges.len() - 1;
    let due = state.rules.iter_mut().find(|rule| {
        rule.times > 0 && rule.method == seen.method && seen.path.starts_with(&rule.path)
    });
    let fault = due.map(|rule| {
        rule.times -= 1;
        rule.fault.clone()
    });
    (place, fault)
}

fn made(status: u16, headers: Vec<(&'static str, String)>, body: Vec<u8>) -> Response<Body> {
    let mut answer = Response::builder()
        .status(status)
        .header(CONNECTION, "close");
    for (name, value) in headers {
        answer = answer.header(name, value);
    }
    answer
        .body(whole(body.into()))
        .expect("a test's answer is well-formed")
}

fn endless(part: &'static [u8]) -> Response<Body> {
    let mut answer = made(
        200,
        vec![("access-control-allow-origin", "*".into())],
        vec![],
    );
    let parts =
        futures_util::stream::repeat_with(move || Ok(Frame::data(Bytes::from_static(part))));
    *answer.body_mut() = StreamBody::new(parts).boxed_unsync();
    answer
}

/// Forwards a request to the platform with its `Host`, and returns the response.
///
/// The browser's connection ends after every response: if a reused connection ends early, browsers
/// repeat the request on their own, and the counts would be wrong.
async fn pass_on(shared: &Shared, seen: &Exchange) -> Result<Response<Body>, Dropped> {
    let mut upstream = shared.upstream.subscribe();
    let known = *upstream
        .wait_for(Option::is_some)
        .await
        .map_err(|_| Dropped)?;
    let platform = known.ok_or(Dropped)?;
    let mut headers = seen.headers.clone();
    headers.remove(CONNECTION);
    headers.remove(TRANSFER_ENCODING);
    if shared.state().stream_bytes.is_some() {
        // Cut streams are counted in uncompressed bytes, which no browser buffers to decompress
        // them.
        headers.remove(ACCEPT_ENCODING);
    }
    let answer = shared
        .client
        .request(
            seen.method.clone(),
            format!("http://{platform}{}", seen.path),
        )
        .headers(headers)
        .body(seen.body.clone())
        .send()
        .await
        .map_err(|_| Dropped)?;
    let mut response = Response::new(whole(Bytes::new()));
    *response.status_mut() = answer.status();
    *response.headers_mut() = answer.headers().clone();
    response.headers_mut().remove(TRANSFER_ENCODING);
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    let kind = response.headers().get(CONTENT_TYPE);
    *response.body_mut() = if kind.is_some_and(|kind| kind == "text/event-stream") {
        let left = shared.state().stream_bytes;
        passed(answer, left.unwrap_or(usize::MAX), shared.cuts.subscribe())
    } else {
        whole(answer.bytes().await.map_err(|_| Dropped)?)
    };
    Ok(response)
}

fn whole(body: Bytes) -> Body {
    Full::new(body)
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Returns the body of `answer` as it arrives. After `left` bytes it stalls until the connection is
/// closed by the next of `cuts`.
fn passed(answer: reqwest::Response, left: usize, cuts: watch::Receiver<usize>) -> Body {
    let chunks = futures_util::stream::unfold(Some((answer, left, cuts)), async |state| {
        let (mut answer, left, mut cuts) = state?;
        if left == 0 {
            // An error means that the gateway was dropped.
            let _ = cuts.changed().await;
            return Some((Err(Dropped), None));
        }
        match answer.chunk().await {
            Ok(Some(mut chunk)) => {
                chunk.truncate(left);
                let left = left - chunk.len();
                Some((Ok(Frame::data(chunk)), Some((answer, left, cuts))))
            }
            Ok(None) => None,
            Err(_) => Some((Err(Dropped), None)),
        }
    });
    StreamBody::new(chunks).boxed_unsync()
}
