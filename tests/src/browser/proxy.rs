//! An HTTP proxy for an engine without WebDriver BiDi. It resolves every name of a test to the
//! loopback address, records every request, and adds a script to every page that reports what the
//! page logs. Connections over TLS pass through it unread: it records that there is one, and changes
//! nothing in them. So what a page over TLS logs is not seen, nor are its requests, and its cookies
//! cannot be deleted: the browser must not be used for another test.
//!
//! The proxy does not see some things that BiDi reports: the engine's own messages about a policy,
//! a cross-origin response or a failed resource; logs of workers and of pages that were not
//! requested (`data:`, `about:`, `srcdoc`); and requests that were served from a cache. Log texts
//! of pages are cut after 2,000 characters, and objects in them are not read.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName,
    HeaderValue, SET_COOKIE,
};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::engine::LISTED_SUFFIX;
use super::events::{Events, LogEntry, SeenRequest};

/// The proxy's own pages, on every host.
const OWN: &str = "/.well-known/platform-tests/";
/// The tag that loads the script, before everything else in a page.
const TAG: &str = r#"<script src="/.well-known/platform-tests/listener.js"></script>"#;
const LISTENER: &str = include_str!("listener.js");

type Answer = Response<Either<Full<Bytes>, Incoming>>;
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A running proxy for one browser.
#[derive(Debug)]
pub(super) struct Proxy {
    address: SocketAddr,
    seen: Arc<Seen>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
struct Seen {
    events: Arc<Events>,
    authorities: Mutex<BTreeSet<String>>,
    /// Whether there was a connection over TLS.
    tunnelled: AtomicBool,
}

impl Proxy {
    /// Starts a proxy on a free port of the loopback address, which adds its events to `events`.
    pub(super) async fn listen(events: Arc<Events>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port is free");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let seen = Arc::new(Seen {
            events,
            authorities: Mutex::default(),
            tunnelled: AtomicBool::new(false),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&seen)));
        Self {
            address,
            seen,
            accepting,
        }
    }

    /// Returns the address on which it listens.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns an empty page on each host that was requested since the last [`Proxy::forget`].
    /// Cookies do not depend on the port, so one port is enough.
    pub(super) fn empty_pages(&self) -> Vec<String> {
        let authorities = self.seen.authorities();
        let mut hosts = BTreeSet::new();
        let first = |authority: &&String| {
            let host = authority.rsplit_once(':').map_or("", |(host, _)| host);
            hosts.insert(host.to_owned())
        };
        authorities
            .iter()
            .filter(first)
            .map(|authority| format!("http://{authority}{OWN}empty"))
            .collect()
    }

    /// Whether no page was over TLS, so that all cookies can be deleted.
    pub(super) fn saw_everything(&self) -> bool {
        !self.seen.tunnelled.load(Ordering::Relaxed)
    }

    /// Forgets which hosts were requested.
    pub(super) fn forget(&self) {
        self.seen.authorities().clear();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Seen {
    fn authorities(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.authorities
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, seen: Arc<Seen>) {
    while let Ok((stream, _)) = listener.accept().await {
        let seen = Arc::clone(&seen);
        tokio::spawn(async move {
            // Otherwise every small response may wait for a delayed acknowledgement.
            let _ = stream.set_nodelay(true);
            let service = service_fn(move |request| exchange(request, Arc::clone(&seen)));
            // An error means that the browser or the server closed the connection.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades()
                .await;
        });
    }
}

async fn exchange(request: Request<Incoming>, seen: Arc<Seen>) -> Result<Answer, Failure> {
    if request.method() == Method::CONNECT {
        return tunnel(request, &seen).await;
    }
    let (parts, body) = request.into_parts();
    let own = parts.uri.path().strip_prefix(OWN).map(str::to_owned);
    if let Some(own) = own {
        return answer_itself(&own, body, &seen).await;
    }
    seen.events.requested(SeenRequest {
        method: parts.method.to_string(),
        url: parts.uri.to_string(),
    });
    let target = parts.uri.authority().and_then(loopback);
    let (Some(target), Some(authority)) = (target, parts.uri.authority().cloned()) else {
        return Ok(text(StatusCode::BAD_GATEWAY, "text/plain", ""));
    };
    seen.authorities().insert(format!(
        "{}:{}",
        authority.host(),
        authority.port_u16().unwrap_or(80)
    ));
    let page = is_page(&parts);
    let mut answer = pass_on(target, parts, body, page).await?;
    forget_same_site(answer.headers_mut());
    // If a reused connection ends early, the browser would repeat the request.
    answer
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    let kind = answer.headers().get(CONTENT_TYPE);
    let html = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if !page || !html {
        return Ok(answer.map(Either::Right));
    }
    let (mut head, body) = answer.into_parts();
    let html = listened_to(&body.collect().await?.to_bytes());
    head.headers
        .insert(CONTENT_LENGTH, HeaderValue::from(html.len()));
    Ok(Response::from_parts(head, Either::Left(Full::new(html))))
}

/// Connects the browser to a server of this machine (RFC 9110 §9.3.6): for TLS, or for a WebSocket.
async fn tunnel(request: Request<Incoming>, seen: &Seen) -> Result<Answer, Failure> {
    seen.events.requested(SeenRequest {
        method: request.method().to_string(),
        url: format!("https://{}", request.uri()),
    });
    let Some(target) = request.uri().authority().and_then(loopback) else {
        return Ok(text(StatusCode::BAD_GATEWAY, "text/plain", ""));
    };
    seen.tunnelled.store(true, Ordering::Relaxed);
    let Ok(mut server) = TcpStream::connect(target).await else {
        return Ok(text(StatusCode::BAD_GATEWAY, "text/plain", ""));
    };
    server.set_nodelay(true)?;
    tokio::spawn(async move {
        if let Ok(browser) = hyper::upgrade::on(request).await {
            let mut browser = TokioIo::new(browser);
            // Each of them may end it at any time.
            let _ = tokio::io::copy_bidirectional(&mut browser, &mut server).await;
        }
    });
    Ok(Response::new(Either::Left(Full::default())))
}

/// Removes `SameSite` from cookies. In WebKitGTK the names under `localhost` have no public suffix,
/// so each is its own site, and games' requests would not carry the cookie of the auth service.
/// Under a real domain they are one site.
fn forget_same_site(headers: &mut HeaderMap) {
    let cookies: Vec<HeaderValue> = headers.get_all(SET_COOKIE).iter().cloned().collect();
    headers.remove(SET_COOKIE);
    for cookie in cookies {
        let text = cookie.to_str().unwrap_or_default();
        let kept: Vec<&str> = text
            .split(';')
            .filter(|part| {
                !part
                    .trim_start()
                    .to_ascii_lowercase()
                    .starts_with("samesite")
            })
            .collect();
        let kept = HeaderValue::from_str(&kept.join(";"));
        headers.append(SET_COOKIE, kept.unwrap_or(cookie));
    }
}

/// Whether the browser will display the response, so that its scripts run.
fn is_page(parts: &Parts) -> bool {
    let destination = parts.headers.get("sec-fetch-dest");
    parts.method != Method::HEAD
        && destination.is_some_and(|into| {
            ["document", "iframe", "frame"].contains(&into.to_str().unwrap_or_default())
        })
}

/// Returns the address for `authority` if it is this machine (RFC 6761 §6.3), or a name that a test
/// uses: under `example` (RFC 2606 §2) or [`LISTED_SUFFIX`].
fn loopback(authority: &Authority) -> Option<SocketAddr> {
    let port = authority.port_u16().unwrap_or(80);
    let host = authority.host().to_ascii_lowercase();
    let last = host.rsplit('.').next();
    let listed = host.strip_suffix(LISTED_SUFFIX);
    if matches!(last, Some("localhost" | "example"))
        || listed.is_some_and(|rest| rest.ends_with('.'))
    {
        return Some((Ipv4Addr::LOCALHOST, port).into());
    }
    let address: std::net::IpAddr = host.trim_matches(['[', ']']).parse().ok()?;
    address
        .is_loopback()
        .then(|| SocketAddr::new(address, port))
}

async fn pass_on(
    target: SocketAddr,
    mut parts: Parts,
    body: Incoming,
    page: bool,
) -> Result<Response<Incoming>, Failure> {
    let authority = parts.uri.authority().map(Authority::as_str);
    let host = HeaderValue::from_str(authority.unwrap_or_default())?;
    parts.headers.insert(HOST, host);
    parts.headers.remove(CONNECTION);
    parts
        .headers
        .remove(HeaderName::from_static("proxy-connection"));
    if page {
        // The script is added to the uncompressed page.
        parts.headers.remove(ACCEPT_ENCODING);
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    parts.uri = path.parse::<Uri>()?;
    let stream = TcpStream::connect(target).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the response's body, or when the browser gives up.
    tokio::spawn(connection);
    Ok(sender
        .send_request(Request::from_parts(parts, body))
        .await?)
}

/// Returns the page with the script as its first one.
fn listened_to(html: &[u8]) -> Bytes {
    let start = b"<!doctype html>";
    let has_type = html
        .get(..start.len())
        .is_some_and(|first| first.eq_ignore_ascii_case(start));
    let (before, after) = html.split_at(if has_type { start.len() } else { 0 });
    [before, TAG.as_bytes(), after].concat().into()
}

async fn answer_itself(path: &str, body: Incoming, seen: &Seen) -> Result<Answer, Failure> {
    Ok(match path {
        "listener.js" => text(StatusCode::OK, "text/javascript", LISTENER),
        "empty" => text(StatusCode::OK, "text/html", "<!doctype html>"),
        _ => {
            let lines: Vec<LogEntry> = serde_json::from_slice(&body.collect().await?.to_bytes())?;
            lines.into_iter().for_each(|line| seen.events.said(line));
            text(StatusCode::OK, "text/plain", "")
        }
    })
}

fn text(status: StatusCode, kind: &'static str, body: &'static str) -> Answer {
    let mut answer = Response::new(Either::Left(Full::from(body)));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}
