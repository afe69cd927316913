//! The sockets of the platform itself. A game whose backend is one of them would speak to the
//! database or to the health checks with the platform's rights.

use std::collections::{HashMap, HashSet};
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
    /// The addresses of services and of other nodes, by `<host>:<port>`, as each was resolved last.
    found: ArcSwap<HashMap<String, HashSet<SocketAddr>>>,
}

impl OwnSockets {
    /// Creates the set for a node that listens on `listening` and uses `services`. Names count
    /// once [`OwnSockets::look_up`] has resolved them, addresses at once.
    #[must_use]
    pub fn new(listening: Vec<SocketAddr>, services: Vec<(String, u16)>) -> Self {
        let literals = services.iter().filter_map(|(host, port)| {
            let address: IpAddr = host.parse().ok()?;
            let socket = SocketAddr::new(address, *port);
            Some((socket.to_string(), HashSet::from([canonical(socket)])))
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
            .chain(found.values().flatten())
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
    /// cannot be resolved now keeps its addresses: the platform's sockets are still there, and a
    /// backend may be an address.
    pub async fn look_up(&self, nodes: Vec<String>) {
        let services = self.services.iter();
        let services = services.map(|(host, port)| match host.parse::<IpAddr>() {
            Ok(address) => SocketAddr::new(address, *port).to_string(),
            Err(_) => format!("{host}:{port}"),
        });
        let mut names: Vec<String> = services.chain(nodes).collect();
        names.sort();
        names.dedup();
        let mut answers = Vec::with_capacity(names.len());
        for name in names {
            let look_up = tokio::time::timeout(LOOK_UP, tokio::net::lookup_host(&name)).await;
            let addresses = look_up.ok().and_then(Result::ok);
            let addresses = addresses.map(|addresses| addresses.map(canonical).collect());
            answers.push((name, addresses));
        }
        self.keep(answers);
    }

    /// Replaces what was found before, except for names that have no answer now.
    fn keep(&self, answers: Vec<(String, Option<HashSet<SocketAddr>>)>) {
        let before = self.found.load();
        let mut found = HashMap::with_capacity(answers.len());
        for (name, addresses) in answers {
            let addresses = addresses.or_else(|| {
                tracing::debug!(name, "has no address now");
                before.get(&name).cloned()
            });
            if let Some(addresses) = addresses {
                found.insert(name, addresses);
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

    #[test]
    fn a_name_that_has_no_answer_keeps_its_addresses() {
        let own = OwnSockets::new(Vec::new(), Vec::new());
        let answer = |name: &str, address: Option<&str>| {
            let addresses = address.map(|address| HashSet::from([socket(address)]));
            (name.to_owned(), addresses)
        };
        own.keep(vec![
            answer("db:5432", Some("10.1.0.5:5432")),
            answer("node:8787", Some("10.1.0.6:8787")),
        ]);
        own.keep(vec![answer("db:5432", None), answer("new:1", None)]);
        assert!(own.contains(socket("10.1.0.5:5432")));
        // A node that is gone is no longer the platform's.
        assert!(!own.contains(socket("10.1.0.6:8787")));
        own.keep(vec![answer("db:5432", Some("10.1.0.7:5432"))]);
        assert!(!own.contains(socket("10.1.0.5:5432")), "it moved");
        assert!(own.contains(socket("10.1.0.7:5432")));
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
