//! Names under `localhost`: they never leave this machine (RFC 6761 §6.3), but a plain
//! `getaddrinfo` may not know them. All our clients resolve them with this crate.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

/// Whether the name is `localhost` or ends in `.localhost`. A final dot is ignored.
#[must_use]
pub fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// A resolver for hyper's connector: resolves names under `localhost` to 127.0.0.1 and ::1 without
/// a name server, and all others as the system does.
#[derive(Clone, Copy, Debug)]
pub struct Resolver;

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        Box::pin(async move {
            // The caller replaces port 0 by the port of the address.
            let addresses: Vec<_> = if is_localhost(name.as_str()) {
                let loopback = [
                    IpAddr::V4(Ipv4Addr::LOCALHOST),
                    IpAddr::V6(Ipv6Addr::LOCALHOST),
                ];
                loopback.map(|address| SocketAddr::new(address, 0)).into()
            } else {
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect()
            };
            Ok(addresses.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_under_localhost_are_loopback() {
        for name in [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "auth.platform.localhost",
            "a.localhost.",
            "a.B.LOCALHOST.",
        ] {
            assert!(is_localhost(name), "{name}");
        }
        for name in ["localhost.example", "notlocalhost", "example", "", "."] {
            assert!(!is_localhost(name), "{name}");
        }
    }
}
