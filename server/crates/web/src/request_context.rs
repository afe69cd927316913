//! Facts about a request that are known before a handler runs.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::client_address::Network;
use super::request_id::RequestId;
use platform_domain::audit::{Actor, By, Source};

/// The facts that the entry determined, as an extractor for handlers.
#[derive(Clone, Debug)]
pub struct Context {
    /// The id of this request.
    pub id: RequestId,
    /// The address of the connection's peer.
    pub peer: SocketAddr,
    /// Whether the peer is a trusted proxy.
    pub trusted_peer: bool,
    /// The client's address, also behind trusted proxies.
    pub client: IpAddr,
}

impl Context {
    /// Returns what the audit log records about the origin of a request.
    #[must_use]
    pub fn source(&self) -> Source {
        Source {
            network: Network::of(self.client).to_string(),
            request: self.id.as_str().to_owned(),
        }
    }

    /// Returns the actor for a player's own act in this request.
    #[must_use]
    pub fn own(&self) -> By {
        By::request(Actor::Own, self.source())
    }
}

/// The peer of a request that did not come through the entry.
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
