//! Forwards a request to a backend, and the response to the visitor: without hop-by-hop headers
//! (RFC 9110 §7.6), and with a tunnel for a WebSocket (RFC 6455).

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Version, header};
use axum::response::Response;
use headers::{HeaderMapExt as _, SecWebsocketAccept, SecWebsocketKey};
use hyper::upgrade::OnUpgrade;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{address_policy, tunnel};
use crate::domain::errors::chain;

/// The time limit for taking over both connections for a tunnel.
const HANDED_OVER: Duration = Duration::from_secs(5);

/// The hop-by-hop headers (RFC 9110 §7.6.1). `TE` is one of them as well, unless it asks for
/// trailers, which are forwarded.
const HOP_BY_HOP: [HeaderName; 6] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::TRAILER,
    header::UPGRADE,
];

/// One client for all backends: it pools connections by address.
pub(super) type BackendClient = Client<HttpsConnector<address_policy::Connector>, Body>;

/// Removes the hop-by-hop headers, and those that `Connection` names (RFC 9110 §7.6.1).
pub(super) fn drop_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = elements(headers, &header::CONNECTION)
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    let te = headers.get(header::TE).map(HeaderValue::as_bytes);
    if te.is_some_and(|te| !te.trim_ascii().eq_ignore_ascii_case(b"trailers")) {
        headers.remove(header::TE);
    }
}

/// Sends `request`, which already has its headers for the backend, to the backend at `url`, as the
/// proxy `via`. With a `handshake` it asks for a WebSocket.
///
/// # Errors
/// The reason why there is no response, for the log.
pub(super) async fn send(
    client: &BackendClient,
    via: &str,
    url: &str,
    request: Request<Body>,
    handshake: Option<&Handshake>,
) -> Result<Response, String> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let uri = format!("{url}{path}").parse();
    let mut sent = Request::new(body);
    *sent.uri_mut() = uri.map_err(|error| chain(&error))?;
    *sent.method_mut() = parts.method;
    *sent.headers_mut() = parts.headers;
    append_via(sent.headers_mut(), parts.version, via);
    if handshake.is_some() {
        upgrade(sent.headers_mut());
    }
    let answered = client.request(sent).await;
    let mut response = answered.map_err(|error| chain(&error))?.map(Body::new);
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let accepted = handshake.is_some_and(|shake| shake.is_accepted(response.headers()));
        if !accepted {
            return Err(match handshake {
                None => {
                    "the backend switched to another protocol without being asked to".to_owned()
                }
                Some(_) => "the backend's answer to the WebSocket handshake is wrong: its \
                            Sec-WebSocket-Accept does not match the key, or it chose a \
                            subprotocol that the visitor did not offer"
                    .to_owned(),
            });
        }
    } else {
        // Removes the reason phrase, and the client's information about the connection.
        response.extensions_mut().clear();
    }
    let version = response.version();
    drop_hop_by_hop(response.headers_mut());
    append_via(response.headers_mut(), version, via);
    Ok(response)
}

/// A visitor's request for a WebSocket.
#[derive(Debug)]
pub(super) struct Handshake {
    key: SecWebsocketKey,
    protocols: Vec<Vec<u8>>,
    visitor: OnUpgrade,
}

impl Handshake {
    /// Reads it from a request, before the hop-by-hop headers are removed. Returns `None` if the
    /// request does not ask for a WebSocket (RFC 6455 §4.1).
    pub(super) fn of(request: &mut Request<Body>) -> Option<Self> {
        let headers = request.headers();
        let is_one = is_websocket(headers)
            && headers.contains_key(header::SEC_WEBSOCKET_VERSION)
            && !loses_handshake(headers);
        let key = headers.typed_get().filter(|_| is_one)?;
        let protocols = elements(headers, &header::SEC_WEBSOCKET_PROTOCOL);
        Some(Self {
            key,
            protocols: protocols.map(<[u8]>::to_vec).collect(),
            visitor: hyper::upgrade::on(request),
        })
    }

    /// Whether a response accepts this WebSocket, and selects only a subprotocol that was requested
    /// (RFC 6455 §4.1).
    fn is_accepted(&self, headers: &HeaderMap) -> bool {
        let chosen = headers.get(header::SEC_WEBSOCKET_PROTOCOL);
        is_websocket(headers)
            && headers.typed_get() == Some(SecWebsocketAccept::from(self.key.clone()))
            && chosen.is_none_or(|chosen| self.protocols.iter().any(|asked| chosen == &**asked))
    }

    /// Forwards bytes in both directions once `response`, which [`send`] returned, has been sent.
    /// `held` is dropped with the tunnel, which ends with `end`.
    pub(super) fn tunnel<H: Send + 'static>(
        self,
        response: &mut Response,
        held: H,
        end: CancellationToken,
    ) {
        let backend = hyper::upgrade::on(&mut *response);
        response.extensions_mut().clear();
        upgrade(response.headers_mut());
        tokio::spawn(async move {
            // Dropped last, also if this task is dropped: the connections are closed first.
            let _held = held;
            pass(self.visitor, backend, &end).await;
        });
    }
}

/// Forwards bytes in both directions, until both connections have ended or `end` is cancelled.
async fn pass(visitor: OnUpgrade, backend: OnUpgrade, end: &CancellationToken) {
    let both = timeout(HANDED_OVER, async { tokio::try_join!(visitor, backend) });
    let both = tokio::select! {
        biased;
        () = end.cancelled() => return,
        both = both => both,
    };
    let (visitor, backend) = match both {
        Ok(Ok(both)) => both,
        failed => {
            tracing::debug!(?failed, "a connection did not become a WebSocket");
            return;
        }
    };
    let (visitor, backend) = (TokioIo::new(visitor), TokioIo::new(backend));
    if let Err(error) = tunnel::pass(visitor, backend, end).await {
        tracing::debug!(%error, "a WebSocket was cut off");
    }
}

/// Returns the elements of a header that is a list (RFC 9110 §5.6.1).
fn elements<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    let values = headers.get_all(name).into_iter();
    let elements = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    elements.map(<[u8]>::trim_ascii)
}

/// Whether `Connection` names a header of the handshake: it ends here then, and the
/// backend would get half a handshake.
fn loses_handshake(headers: &HeaderMap) -> bool {
    let prefix = b"sec-websocket-";
    elements(headers, &header::CONNECTION).any(|name| {
        let begins = name.get(..prefix.len());
        begins.is_some_and(|begins| begins.eq_ignore_ascii_case(prefix))
    })
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let has = |name, wanted: &[u8]| {
        elements(headers, &name).any(|element| element.eq_ignore_ascii_case(wanted))
    };
    has(header::CONNECTION, b"upgrade") && has(header::UPGRADE, b"websocket")
}

fn upgrade(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// Adds the platform to the `Via` of a message (RFC 9110 §7.6.3).
fn append_via(headers: &mut HeaderMap, version: Version, name: &str) {
    let version = match version {
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    };
    let before = headers.get_all(header::VIA).into_iter();
    let mut through: Vec<&[u8]> = before.map(HeaderValue::as_bytes).collect();
    let here = format!("{version} {name}");
    through.push(here.as_bytes());
    // One line: some programs read only the first one.
    if let Ok(through) = HeaderValue::from_bytes(&through.join(&b", "[..])) {
        headers.insert(header::VIA, through);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn left(lines: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut headers = headers(lines);
        drop_hop_by_hop(&mut headers);
        headers.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn the_headers_of_one_connection_end_here() {
        let lines = [
            ("connection", "close, X-Secret"),
            ("connection", "keep-alive, cookie,, @"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("trailer", "x-sum"),
            ("upgrade", "h2c"),
            ("x-secret", "1"),
            ("cookie", "a=1"),
            ("x-other", "kept"),
        ];
        assert_eq!(left(&lines), ["x-other"]);
        assert_eq!(left(&[("te", " Trailers ")]), ["te"]);
        assert!(left(&[("te", "trailers, gzip")]).is_empty());
        assert!(left(&[("te", "trailers"), ("connection", "te")]).is_empty());
    }

    #[test]
    fn the_platform_is_the_last_of_those_that_a_message_came_through() {
        let mut headers = headers(&[("via", "1.0 fred, 1.1 other")]);
        append_via(&mut headers, Version::HTTP_10, "platform.localhost:8787");
        let through: Vec<_> = elements(&headers, &header::VIA).collect();
        let expected: [&[u8]; 3] = [b"1.0 fred", b"1.1 other", b"1.0 platform.localhost:8787"];
        assert_eq!(through, expected);
        assert_eq!(headers.get_all(header::VIA).into_iter().count(), 1);
    }

    /// The request of RFC 6455 §1.3, without the lines named `without`.
    fn asked(without: &str) -> Option<Handshake> {
        asked_by("keep-alive, Upgrade", without)
    }

    /// The same with another `Connection`.
    fn asked_by(connection: &'static str, without: &str) -> Option<Handshake> {
        let lines = [
            ("connection", connection),
            ("upgrade", "WebSocket"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
            ("sec-websocket-protocol", "chat, superchat"),
        ];
        let mut request = Request::new(Body::empty());
        *request.headers_mut() = headers(&lines);
        request.headers_mut().remove(without);
        Handshake::of(&mut request)
    }

    #[test]
    fn a_websocket_is_asked_for_with_all_that_belongs_to_it() {
        assert!(asked("nothing").is_some());
        for without in [
            "connection",
            "upgrade",
            "sec-websocket-key",
            "sec-websocket-version",
        ] {
            assert!(asked(without).is_none(), "{without}");
        }
        for connection in [
            "Upgrade, Sec-WebSocket-Key",
            "sec-websocket-version, upgrade",
            "upgrade,sec-websocket-protocol",
        ] {
            assert!(asked_by(connection, "nothing").is_none(), "{connection}");
        }
    }

    #[test]
    fn only_the_answer_to_the_visitors_own_key_opens_a_websocket() {
        let accepted = |changed: &'static str, value: &'static str| {
            let mut headers = headers(&[
                ("connection", "Upgrade"),
                ("upgrade", "websocket"),
                ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
                ("sec-websocket-protocol", "superchat"),
            ]);
            headers.insert(changed, HeaderValue::from_static(value));
            asked("nothing").unwrap().is_accepted(&headers)
        };
        assert!(accepted("x-other", "1"));
        assert!(accepted("sec-websocket-protocol", "chat"));
        for (changed, value) in [
            ("connection", "close"),
            ("upgrade", "h2c"),
            ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOp="),
            ("sec-websocket-protocol", "other"),
            ("sec-websocket-protocol", "chat, superchat"),
        ] {
            assert!(!accepted(changed, value), "{changed}: {value}");
        }
    }
}
