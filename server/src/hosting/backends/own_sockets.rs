//! The sockets of the platform itself. A game whose backend is one of them would speak to the
//! database or to the health checks with the platform's rights.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use arc_swap::ArcSwap;

/// The timeout for resolving one name.
const LOOK_UP: Duration = Duration::from_secs(5);

/// The sockets of this node, of the other nodes, and of the services that the settings name:
/// databases, the bucket.
#[derive(Debug)]
pub struct OwnSockets {
    /// The sockets on which this node listens.
    listening: Vec<SocketAddr>,
    /// The names and ports of the services.
    services: Vec<(String, u16)>,
    /// The addresses of services and of other nodes, as they were resolved last.
    found: ArcSwap<HashSet<SocketAddr>>,
}

impl OwnSockets {
    /// Creates the set for a node that listens on `listening` and uses `services`. Names count
    /// once [`OwnSockets::look_up`] has resolved them, addresses at once.
    #[must_use]
    pub fn new(listening: Vec<SocketAddr>, services: Vec<(String, u16)>) -> Self {
        let literals = services.iter().filter_map(|(host, port)| {
            let address: IpAddr = host.parse().ok()?;
            Some(canonical(SocketAddr::new(address, *port)))
        });
        Self {
            found: ArcSwap::from_pointee(literals.collect()),
            listening,
            services,
        }
    }

    /// Whether this is one of the platform's own sockets.
    #[must_use]
    pub fn contains(&self, address: SocketAddr) -> bool {
        let address = canonical(address);
        let found = self.found.load();
        self.listening
            .iter()
            .chain(found.iter())
            .any(|own| is_same(address, *own))
    }

    /// Whether this is the name and port of a service.
    #[must_use]
    pub fn is_service(&self, host: &str, port: u16) -> bool {
        self.services.iter().any(|(name, service)| {
            *service == port && name.trim_end_matches('.').eq_ignore_ascii_case(host)
        })
    }

    /// Resolves the names of the services and of `nodes` (`<host>:<port>`) again. A name that
    /// cannot be resolved now keeps no address: nobody can be connected to it by this name either.
    pub async fn look_up(&self, nodes: Vec<String>) {
        let services = self.services.iter();
        let services = services.map(|(host, port)| match host.parse::<IpAddr>() {
            Ok(address) => SocketAddr::new(address, *port).to_string(),
            Err(_) => format!("{host}:{port}"),
        });
        let mut found = HashSet::new();
        for name in services.chain(nodes) {
            match tokio::time::timeout(LOOK_UP, tokio::net::lookup_host(&name)).await {
                Ok(Ok(addresses)) => found.extend(addresses.map(canonical)),
                Ok(Err(_)) | Err(_) => tracing::debug!(name, "has no address"),
            }
        }
        self.found.store(found.into());
    }
}

/// Returns an IPv4 address for one that is written as IPv6.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Whether a connection to `address` reaches a program that listens on `own`: `0.0.0.0` is this
/// machine in both.
fn is_same(address: SocketAddr, own: SocketAddr) -> bool {
    let (ip, listens) = (address.ip(), own.ip().to_canonical());
    address.port() == own.port()
        && (ip == listens
            || (ip.is_unspecified() && listens.is_loopback())
            || (listens.is_unspecified() && (ip.is_loopback() || ip.is_unspecified())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn services_and_nodes_are_the_platforms_own() {
        let services = [("10.1.0.5", 5432), ("localhost", 9000), ("::1", 6379)];
        let services = services.map(|(host, port)| (host.to_owned(), port));
        let own = OwnSockets::new(vec![socket("127.0.0.1:8787")], services.to_vec());
        // What is an address already needs no look-up.
        assert!(own.contains(socket("10.1.0.5:5432")));
        assert!(own.contains(socket("[::ffff:10.1.0.5]:5432")));
        assert!(own.contains(socket("[::1]:6379")));
        assert!(!own.contains(socket("10.1.0.5:5433")));
        assert!(!own.contains(socket("127.0.0.1:9000")));
        assert!(own.is_service("LOCALHOST", 9000));
        assert!(!own.is_service("localhost", 9001));
        own.look_up(vec!["127.0.0.9:8787".to_owned(), "no such name".to_owned()])
            .await;
        for address in ["127.0.0.1:9000", "127.0.0.9:8787", "10.1.0.5:5432"] {
            assert!(own.contains(socket(address)), "{address}");
        }
        // A node that is gone is no longer the platform's.
        own.look_up(Vec::new()).await;
        assert!(!own.contains(socket("127.0.0.9:8787")));
        assert!(own.contains(socket("0.0.0.0:8787")));
    }
}
