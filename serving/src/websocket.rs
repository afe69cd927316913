//! The headers with which a connection becomes a WebSocket (RFC 6455 §4).

use http::{HeaderMap, HeaderValue, header};

use crate::forwarding::elements;

/// Whether a message asks for a WebSocket, or accepts one.
#[must_use]
pub fn is_websocket(headers: &HeaderMap) -> bool {
    let has = |name, wanted: &[u8]| {
        elements(headers, &name).any(|element| element.eq_ignore_ascii_case(wanted))
    };
    has(header::CONNECTION, b"upgrade") && has(header::UPGRADE, b"websocket")
}

/// Whether `Connection` names a header of the handshake: it ends here then, and the next server
/// would get half a handshake.
#[must_use]
pub fn loses_handshake(headers: &HeaderMap) -> bool {
    let prefix = b"sec-websocket-";
    elements(headers, &header::CONNECTION).any(|name| {
        let begins = name.get(..prefix.len());
        begins.is_some_and(|begins| begins.eq_ignore_ascii_case(prefix))
    })
}

/// Sets the hop-by-hop headers of the handshake again, once those of the previous connection are
/// removed.
pub fn upgrade(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}
