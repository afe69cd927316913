//! What is known of a request before a handler sees it.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::client_address::Network;
use super::request_id::RequestId;
use platform_domain::audit::{Actor, By, Source};

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

impl Context {
    /// What the log of security events keeps of where a request came from.
    #[must_use]
    pub fn source(&self) -> Source {
        Source {
            network: Network::of(self.client).to_string(),
            request: self.id.as_str().to_owned(),
        }
    }

    /// A player's own act, by this request.
    #[must_use]
    pub fn own(&self) -> By {
        By::request(Actor::Own, self.source())
    }
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
