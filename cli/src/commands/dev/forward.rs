//! Passes a request on to another server, and its response back: streaming in both directions, and
//! WebSockets.

use std::fmt;
use std::str::FromStr;

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, Version, header};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use platform_loopback::Resolver;
use platform_serving::forwarding::{append_via, came_through, drop_hop_by_hop};
use platform_serving::websocket::{is_websocket, loses_handshake, upgrade};
use std::time::Duration;
use url::Url;

use crate::client::{Body, BoxError, empty};

/// How long an idle connection is kept. Node closes its own after 5 s, and a request that is sent at
/// that moment is lost.
const KEPT: Duration = Duration::from_secs(4);
/// For one connection attempt, at most.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections to other servers of this machine or its network.
pub(super) type Connections = legacy::Client<HttpConnector<Resolver>, Body>;

/// No connections yet.
pub(super) fn connections() -> Connections {
    let mut connector = HttpConnector::new_with_resolver(Resolver::default());
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_nodelay(true);
    legacy::Client::builder(TokioExecutor::new())
        .pool_idle_timeout(KEPT)
        .pool_timer(TokioTimer::new())
        .build(connector)
}

/// Another server: host and port, over http.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// A server of this machine.
    pub(super) fn local(port: u16) -> Self {
        Self {
            host: "localhost".to_owned(),
            port,
        }
    }

    /// Its port.
    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// `host:port`.
    pub(super) fn authority(&self) -> String {
        match self.port {
            80 => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }

    /// Whether it is on this machine.
    pub(super) fn is_local(&self) -> bool {
        is_this_machine(&self.host)
    }

    /// Whether a URL leads to this server. Different names of this machine count as the same.
    fn is_address_of(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        url.scheme() == "http"
            && url.port_or_known_default() == Some(self.port)
            && (host == self.host || (self.is_local() && is_this_machine(host)))
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let address = address.parse::<std::net::IpAddr>();
    host == "localhost"
        || address.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority())
    }
}

impl FromStr for Address {
    /// A sentence that says what to write instead.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || format!("{text} is not an address: write it as http://localhost:5173.");
        let url = Url::parse(text).map_err(|_| form())?;
        if url.scheme() == "https" {
            return Err(format!(
                "{text} is passed on to without TLS only: let that server listen on http."
            ));
        }
        let bare = url.scheme() == "http"
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        let host = url.host_str().filter(|_| bare).ok_or_else(form)?;
        Ok(Self {
            host: host.to_owned(),
            port: url.port_or_known_default().ok_or_else(form)?,
        })
    }
}

/// Where a request came in, and what names this server in `Via`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit<'a> {
    /// `Host` of the request.
    pub(super) host: &'a str,
    /// The name of this server.
    pub(super) via: &'a str,
}

/// Whether the request has been here before: a server that leads back here would cause an endless
/// loop.
pub(super) fn is_loop(headers: &HeaderMap, via: &str) -> bool {
    came_through(headers, via)
}

/// Sends a request to `address`. `prepare` changes its headers after those of the connection are
/// removed.
///
/// # Errors
/// There is no response.
pub(super) async fn send(
    connections: &Connections,
    address: &Address,
    via: &str,
    mut request: Request<Incoming>,
    body: impl FnOnce(Incoming) -> Body,
    prepare: impl FnOnce(&mut HeaderMap),
) -> Result<Response<Body>, BoxError> {
    let visitor = handshake(&mut request);
    let (mut parts, incoming) = request.into_parts();
    drop_hop_by_hop(&mut parts.headers);
    append_via(&mut parts.headers, parts.version, via);
    prepare(&mut parts.headers);
    if visitor.is_some() {
        upgrade(&mut parts.headers);
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    parts.uri = format!("{address}{path}").parse::<Uri>()?;
    parts.version = Version::HTTP_11;
    let sent = Request::from_parts(parts, body(incoming));
    let mut response = connections.request(sent).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        drop_hop_by_hop(response.headers_mut());
        return Ok(response.map(|body| {
            use http_body_util::BodyExt as _;
            body.map_err(Into::into).boxed_unsync()
        }));
    }
    let visitor = visitor.ok_or("it switched to another protocol without being asked to")?;
    if !is_websocket(response.headers()) {
        return Err("it switched to another protocol than a WebSocket".into());
    }
    let server = hyper::upgrade::on(&mut response);
    tokio::spawn(tunnel(visitor, server));
    drop_hop_by_hop(response.headers_mut());
    upgrade(response.headers_mut());
    Ok(response.map(|_| empty()))
}

/// The visitor's side of a WebSocket, if the request asks for one (RFC 6455 §4.1).
fn handshake(request: &mut Request<Incoming>) -> Option<OnUpgrade> {
    let headers = request.headers();
    let is_one = is_websocket(headers)
        && headers.contains_key(header::SEC_WEBSOCKET_KEY)
        && !loses_handshake(headers);
    is_one.then(|| hyper::upgrade::on(request))
}

/// Passes bytes in both directions, until both sides have ended.
async fn tunnel(visitor: OnUpgrade, server: OnUpgrade) {
    let Ok((visitor, server)) = tokio::try_join!(visitor, server) else {
        return;
    };
    let (mut visitor, mut server) = (TokioIo::new(visitor), TokioIo::new(server));
    // How a WebSocket ends is told to both sides, and concerns nobody else.
    let _ = tokio::io::copy_bidirectional(&mut visitor, &mut server).await;
}

/// Changes the address in a redirect that leads to `address` itself: the game is at `host` here.
pub(super) fn lead_back(headers: &mut HeaderMap, address: &Address, host: &str) {
    let location = headers.get(header::LOCATION);
    let location = location.and_then(|location| Url::parse(location.to_str().ok()?).ok());
    let Some(location) = location.filter(|location| address.is_address_of(location)) else {
        return;
    };
    let rest = &location[url::Position::BeforePath..];
    if let Ok(location) = HeaderValue::try_from(format!("http://{host}{rest}")) {
        headers.insert(header::LOCATION, location);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_scheme_host_and_port() {
        for (text, authority, is_local) in [
            ("http://localhost:5173", "localhost:5173", true),
            ("http://127.0.0.1:80/", "127.0.0.1", true),
            ("http://[::1]:5173", "[::1]:5173", true),
            ("http://192.168.1.20:3000", "192.168.1.20:3000", false),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.authority(), authority);
            assert_eq!(address.is_local(), is_local, "{text}");
        }
        for text in [
            "localhost:5173",
            "5173",
            "https://localhost:5173",
            "http://localhost:5173/game",
            "http://me@localhost:5173",
            "ws://localhost:5173",
            "",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_redirect_to_the_other_server_leads_here() {
        let address = Address::local(5173);
        for (location, expected) in [
            ("http://localhost:5173/a?b#c", "http://127.0.0.1:5174/a?b#c"),
            ("http://127.0.0.1:5173//a", "http://127.0.0.1:5174//a"),
            ("http://[::1]:5173", "http://127.0.0.1:5174/"),
            ("http://localhost:3000/a", "http://localhost:3000/a"),
            ("https://localhost:5173/a", "https://localhost:5173/a"),
            ("http://games.example/a", "http://games.example/a"),
            ("/a", "/a"),
            ("a", "a"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::LOCATION, HeaderValue::from_static(location));
            lead_back(&mut headers, &address, "127.0.0.1:5174");
            assert_eq!(headers[header::LOCATION], expected, "{location}");
        }
    }
}
