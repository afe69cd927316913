//! The sockets of the platform itself. A game whose backend is one of them would speak to the
//! database or to the health checks with the platform's rights.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::address_policy::is_public;
use crate::config::Service;

/// The timeout for resolving one name.
const LOOK_UP: Duration = Duration::from_secs(5);

/// The sockets of this node, of the other nodes, and of the services that the settings name:
/// databases, the bucket.
#[derive(Debug)]
pub struct OwnSockets {
    /// The sockets on which this node listens.
    listening: Vec<SocketAddr>,
    services: Vec<Service>,
    /// The addresses of services and of other nodes, by `<host>:<port>`, as each was resolved last.
    found: ArcSwap<HashMap<String, HashSet<SocketAddr>>>,
}

impl OwnSockets {
    /// Creates the set for a node that listens on `listening` and uses `services`. Names count
    /// once [`OwnSockets::look_up`] has resolved them, addresses at once.
    #[must_use]
    pub fn new(listening: Vec<SocketAddr>, services: Vec<Service>) -> Self {
        let literals = services.iter().filter_map(|service| {
            let address: IpAddr = service.host.parse().ok()?;
            let socket = SocketAddr::new(address, service.port);
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
        self.services.iter().any(|service| {
            let name = service.host.trim_end_matches('.');
            service.port == port && name.eq_ignore_ascii_case(host)
        })
    }

    /// Resolves the names of the services and of `nodes` (`<host>:<port>`) again. A name that
    /// cannot be resolved now keeps its addresses: the platform's sockets are still there, and a
    /// backend may be an address. The public addresses of an https service are left out
    /// ([`Service::is_https`]).
    pub async fn look_up(&self, nodes: Vec<String>) {
        let services = self.services.iter().map(|service| {
            let shares = service.is_https;
            match service.host.parse::<IpAddr>() {
                Ok(address) => (SocketAddr::new(address, service.port).to_string(), false),
                Err(_) => (format!("{}:{}", service.host, service.port), shares),
            }
        });
        let nodes = nodes.into_iter().map(|node| (node, false));
        // What is also reached without https shares nothing.
        let mut names = BTreeMap::new();
        for (name, shares) in services.chain(nodes) {
            *names.entry(name).or_insert(true) &= shares;
        }
        let mut answers = Vec::with_capacity(names.len());
        for (name, shares) in names {
            let look_up = tokio::time::timeout(LOOK_UP, tokio::net::lookup_host(&name)).await;
            let addresses = look_up.ok().and_then(Result::ok);
            let addresses = addresses.map(|addresses| own_addresses(addresses, shares));
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

/// Returns which of the addresses of a name are the platform's own: if the name `shares` its public ones,
/// the others.
fn own_addresses(addresses: impl Iterator<Item = SocketAddr>, shares: bool) -> HashSet<SocketAddr> {
    addresses
        .map(canonical)
        .filter(|address| !(shares && is_public(address.ip())))
        .collect()
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

    #[test]
    fn the_public_addresses_of_an_https_service_are_shared_with_others() {
        let addresses = ["10.1.0.5:443", "[::ffff:10.1.0.6]:443", "203.0.114.7:443"].map(socket);
        let own = own_addresses(addresses.into_iter(), true);
        let private = ["10.1.0.5:443", "10.1.0.6:443"].map(socket);
        assert_eq!(own, HashSet::from(private));
        assert_eq!(own_addresses(addresses.into_iter(), false).len(), 3);
        // An address that the settings name is the platform's, and so is the name itself.
        let services = ["203.0.114.7", "otlp.example"].map(|host| Service {
            host: host.to_owned(),
            port: 443,
            is_https: true,
        });
        let own = OwnSockets::new(Vec::new(), services.to_vec());
        assert!(own.contains(socket("203.0.114.7:443")));
        assert!(own.is_service("otlp.example", 443));
    }

    #[tokio::test]
    async fn services_and_nodes_are_the_platforms_own() {
        let services = [("10.1.0.5", 5432), ("localhost", 9000), ("::1", 6379)];
        let services = services.map(|(host, port)| Service {
            host: host.to_owned(),
            port,
            is_https: false,
        });
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
