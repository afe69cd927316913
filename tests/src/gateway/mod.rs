//! A reverse proxy in front of the platform, as an operator has one. It
//! remembers every request in order, and on demand holds one, answers it
//! itself, or ends its connection without an answer.

mod fault;

pub use fault::{Fault, Gate};

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// One request that came by.
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
    /// Its place among all arrivals and answers.
    pub arrived: u64,
    /// Place of its answer, once it has one.
    pub answered: Option<u64>,
    /// Status of its answer, once it has one.
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
}

/// The proxy. It listens at once; requests wait until it knows the platform.
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
    client: reqwest::Client,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Listens on a free port of the loopback address.
    pub async fn listen() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port is free");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client can be made");
        let upstream = watch::Sender::new(None);
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            upstream,
            client,
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            accepting,
        }
    }

    /// The port, which is the platform origin's.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// Passes everything on to `platform` from now on.
    pub fn lead_to(&self, platform: SocketAddr) {
        self.shared.upstream.send_replace(Some(platform));
    }

    /// Spoils the next `times` requests of `method` whose path starts with
    /// `path`. Faults that were set earlier come first.
    pub fn spoil(&self, method: Method, path: &str, fault: Fault, times: usize) {
        self.shared.state().rules.push(Rule {
            method,
            path: path.to_owned(),
            fault,
            times,
        });
    }

    /// Forgets the faults that have not happened.
    pub fn heal(&self) {
        self.shared.state().rules.clear();
    }

    /// Every request of `method` so far whose path starts with `path`.
    #[must_use]
    pub fn seen(&self, method: &Method, path: &str) -> Vec<Exchange> {
        let state = self.shared.state();
        let fits = |seen: &&Exchange| seen.method == *method && seen.path.starts_with(path);
        state.exchanges.iter().filter(fits).cloned().collect()
    }

    /// How many requests came by so far, of any kind.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.state().exchanges.len()
    }

    /// How many tokens were asked for so far.
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
    // Without this every small answer may wait for a delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| exchange(request, Arc::clone(&shared)));
    // An error here is a connection that was ended, by a browser or a fault.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// The connection ends without an answer.
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
) -> Result<Response<Full<Bytes>>, Dropped> {
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

/// Remembers an arrival; its place in the list, and the fault that is due.
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

fn made(status: u16, headers: Vec<(&'static str, String)>, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut answer = Response::builder()
        .status(status)
        .header(CONNECTION, "close");
    for (name, value) in headers {
        answer = answer.header(name, value);
    }
    answer
        .body(Full::new(body.into()))
        .expect("a test's answer is well-formed")
}

/// Hands a request to the platform with its `Host`, and the answer back.
///
/// The browser's connection ends after every answer: on a used connection that
/// ends early, browsers repeat the request by themselves, and counts would lie.
async fn pass_on(shared: &Shared, seen: &Exchange) -> Result<Response<Full<Bytes>>, Dropped> {
    let mut upstream = shared.upstream.subscribe();
    let known = *upstream
        .wait_for(Option::is_some)
        .await
        .map_err(|_| Dropped)?;
    let platform = known.ok_or(Dropped)?;
    let mut headers = seen.headers.clone();
    headers.remove(CONNECTION);
    headers.remove(TRANSFER_ENCODING);
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
    let mut response = Response::new(Full::default());
    *response.status_mut() = answer.status();
    *response.headers_mut() = answer.headers().clone();
    response.headers_mut().remove(TRANSFER_ENCODING);
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    *response.body_mut() = Full::new(answer.bytes().await.map_err(|_| Dropped)?);
    Ok(response)
}
