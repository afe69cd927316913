//! The address of Redis: one server, a cluster, or what sentinels name.

use std::net::IpAddr;

use url::Url;

/// The port of Redis.
const REDIS: u16 = 6379;
/// The port of a sentinel.
const SENTINEL: u16 = 26379;

/// What to write; a sentence for the operator.
pub const HOW: &str = "write redis://<user>:<password>@<host>:<port>, \
     redis+cluster://<user>:<password>@<host>:<port>,<host>:<port> or \
     redis+sentinel://<user>:<password>@<host>:<port>,<host>:<port>/<service>, with rediss for TLS";

/// Where Redis is. The addresses are those of single servers, `redis://…` or `rediss://…`, and may
/// contain a password.
#[derive(Clone, PartialEq, Eq)]
pub enum RedisPlace {
    /// One server.
    Single(String),
    /// Some servers of a cluster, which name the others.
    Cluster(Vec<String>),
    /// The primary that sentinels name.
    Sentinel {
        /// The sentinels; user, password and database are those of the primary.
        sentinels: Vec<String>,
        /// The name under which they watch it.
        service: String,
    },
}

impl RedisPlace {
    /// Parses `redis://…`, `redis+cluster://…` or `redis+sentinel://…`, each also with `rediss`.
    /// No parser of URLs takes several hosts.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let (server, kind) = match scheme.split_once('+') {
            Some((server, kind)) => (server, Some(kind)),
            None => (scheme, None),
        };
        if !matches!(server, "redis" | "rediss") {
            return None;
        }
        let Some(kind) = kind else {
            return is_address(text).then(|| Self::Single(text.to_owned()));
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (format!("{user}@"), hosts),
            None => (String::new(), authority),
        };
        let addresses = |port: u16, database: &str| {
            let address = |host: &str| {
                let port = if has_port(host) {
                    String::new()
                } else {
                    format!(":{port}")
                };
                let address = format!("{server}://{user}{host}{port}{database}");
                is_address(&address).then_some(address)
            };
            hosts.split(',').map(address).collect::<Option<Vec<_>>>()
        };
        match kind {
            "cluster" if path.is_empty() => addresses(REDIS, "").map(Self::Cluster),
            "sentinel" => {
                let (service, database) = match path.split_once('/') {
                    Some((service, number)) => {
                        (service, format!("/{}", number.parse::<u8>().ok()?))
                    }
                    None => (path, String::new()),
                };
                let sentinels = addresses(SENTINEL, &database)?;
                let service = service.to_owned();
                (!service.is_empty()).then_some(Self::Sentinel { sentinels, service })
            }
            _ => None,
        }
    }

    /// The addresses of its servers, or of its sentinels.
    fn addresses(&self) -> &[String] {
        match self {
            Self::Single(address) => std::slice::from_ref(address),
            Self::Cluster(addresses)
            | Self::Sentinel {
                sentinels: addresses,
                ..
            } => addresses,
        }
    }

    /// Returns the servers that the address names.
    pub(super) fn servers(&self) -> Vec<(String, u16)> {
        let server = |address: &String| {
            let url = Url::parse(address).ok()?;
            let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
            Some((host, url.port().unwrap_or(REDIS)))
        };
        self.addresses().iter().filter_map(server).collect()
    }

    /// Returns whether connections go over a network without TLS.
    #[must_use]
    pub fn may_be_read(&self) -> bool {
        let has_tls = |address: &String| address.starts_with("rediss://");
        let is_here = |(host, _): &(String, u16)| {
            host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
        };
        !self.addresses().iter().all(has_tls) && !self.servers().iter().all(is_here)
    }
}

/// Whether this is the address of one server.
fn is_address(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| url.has_host())
}

/// Whether a host is followed by a port. An IPv6 address without a port ends with `]`.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':')
        .is_some_and(|(_, port)| !port.ends_with(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(&'static str, Vec<String>)> {
        Some(match RedisPlace::parse(text)? {
            RedisPlace::Single(address) => ("single", vec![address]),
            RedisPlace::Cluster(servers) => ("cluster", servers),
            RedisPlace::Sentinel {
                mut sentinels,
                service,
            } => {
                sentinels.push(service);
                ("sentinel", sentinels)
            }
        })
    }

    #[test]
    fn one_server_a_cluster_and_sentinels_are_told_apart() {
        for (text, kind, expected) in [
            ("redis://localhost", "single", vec!["redis://localhost"]),
            ("rediss://u:p@h:1/3", "single", vec!["rediss://u:p@h:1/3"]),
            (
                "redis+cluster://u:p%40@one,[fd00::1],two:7000",
                "cluster",
                vec![
                    "redis://u:p%40@one:6379",
                    "redis://u:p%40@[fd00::1]:6379",
                    "redis://u:p%40@two:7000",
                ],
            ),
            (
                "rediss+cluster://one/",
                "cluster",
                vec!["rediss://one:6379"],
            ),
            (
                "redis+sentinel://:p@one,two:7/mymaster",
                "sentinel",
                vec!["redis://:p@one:26379", "redis://:p@two:7", "mymaster"],
            ),
            (
                "rediss+sentinel://one/mymaster/2",
                "sentinel",
                vec!["rediss://one:26379/2", "mymaster"],
            ),
        ] {
            let expected = expected.into_iter().map(str::to_owned).collect();
            assert_eq!(parsed(text), Some((kind, expected)), "{text}");
        }
        for text in [
            "",
            "localhost",
            "http://localhost",
            "redis://",
            "redis://host:port",
            "redis+tls://host",
            "http+cluster://host",
            "redis+cluster://",
            "redis+cluster://one,,two",
            "redis+cluster://one:port",
            "redis+cluster://one/3",
            "redis+sentinel://one",
            "redis+sentinel://one/",
            "redis+sentinel://one/mymaster/x",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn a_network_without_tls_is_noticed() {
        for (text, expected) in [
            ("redis://localhost", false),
            ("redis://[::1]:7", false),
            ("redis://10.0.0.1", true),
            ("rediss://10.0.0.1", false),
            ("redis+cluster://localhost,10.0.0.1", true),
            ("rediss+sentinel://one/mymaster", false),
        ] {
            let place = RedisPlace::parse(text).unwrap();
            assert_eq!(place.may_be_read(), expected, "{text}");
        }
    }

    #[test]
    fn every_server_is_named() {
        let place = RedisPlace::parse("redis+cluster://u:p@one,[fd00::1]:7000").unwrap();
        let expected = [("one".to_owned(), 6379), ("fd00::1".to_owned(), 7000)];
        assert_eq!(place.servers(), expected);
    }
}
