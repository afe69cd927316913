//! What is known of a request before a handler sees it.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::request_id::RequestId;

/// The facts that the entry found, for handlers as an extractor.
#[derive(Clone, Debug)]
pub struct Context {
    /// The id of this request.
    pub id: RequestId,
    /// The connection's other end.
    pub peer: SocketAddr,
    /// Whether the peer is a trusted proxy.
    pub trusted_peer: bool,
    /// The client's address, behind trusted proxies too.
    pub client: IpAddr,
}

/// The context of a request that did not come through the entry: nobody's.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);

impl<S: Sync> FromRequestParts<S> for Context {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts
            .extensions
            .get::<Context>()
            .cloned()
            .unwrap_or_else(|| Context {
                id: RequestId::unknown(),
                peer: NOBODY,
                trusted_peer: false,
                client: NOBODY.ip(),
            }))
    }
}
