//! Forwards a request to a backend, and the response to the visitor: without hop-by-hop headers
//! (RFC 9110 §7.6), and with a tunnel for a WebSocket (RFC 6455).

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::Response;
use headers::{HeaderMapExt as _, SecWebsocketAccept, SecWebsocketKey};
use hyper::upgrade::OnUpgrade;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioIo;
use platform_serving::forwarding::{append_via, drop_hop_by_hop, elements};
use platform_serving::websocket::{is_websocket, loses_handshake, upgrade};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{address_policy, tunnel};
use crate::domain::errors::chain;

/// The time limit for taking over both connections for a tunnel.
const HANDED_OVER: Duration = Duration::from_secs(5);

/// One client for all backends: it pools connections by address.
pub(super) type BackendClient = Client<HttpsConnector<address_policy::Connector>, Body>;

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

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
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
