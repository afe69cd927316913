//! The address of the client: the peer, or the address that a chain of trusted proxies gives.

use std::net::{AddrParseError, IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Returns the address of the client: the peer, or if the peer is a trusted proxy, the right-most
/// entry of `X-Forwarded-For` that is not itself a trusted proxy. Anybody can forge the entries to
/// the left of it.
#[must_use]
pub fn client_address(
    peer: IpAddr,
    headers: &HeaderMap,
    trusted: impl Fn(IpAddr) -> bool,
) -> IpAddr {
    let mut client = peer.to_canonical();
    if !trusted(client) {
        return client;
    }
    let values = headers.get_all(X_FORWARDED_FOR).iter().rev();
    let entries = values.flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
    for entry in entries {
        // An unreadable entry hides everything to its left, on other lines too.
        let entry = std::str::from_utf8(entry.trim_ascii()).ok();
        let Some(address) = entry.and_then(address_of) else {
            break;
        };
        client = address;
        if !trusted(client) {
            break;
        }
    }
    client
}

/// An entry is an address, and some proxies write the port too.
fn address_of(entry: &str) -> Option<IpAddr> {
    let address = entry
        .parse::<IpAddr>()
        .or_else(|_| entry.parse::<SocketAddr>().map(|socket| socket.ip()))
        .or_else(|_| {
            entry
                .trim_matches(['[', ']'])
                .parse::<Ipv6Addr>()
                .map(IpAddr::V6)
        });
    address.ok().map(|address| address.to_canonical())
}

/// The unit that counts as one address for limits: an IPv4 address, or the /64 of an IPv6 address,
/// since a household can choose from at least that many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network(IpAddr);

impl Network {
    /// Returns the network of an address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(IpAddr::V4(address)),
            IpAddr::V6(address) => {
                let prefix = address.to_bits() & (u128::MAX << 64);
                Self(IpAddr::V6(Ipv6Addr::from_bits(prefix)))
            }
        }
    }

    /// Returns the surrounding network, in which one customer of a provider can have many networks:
    /// the /24 of an IPv4 address, or the /48 of an IPv6 address (RFC 6177 §2).
    #[must_use]
    pub const fn around(self) -> IpAddr {
        match self.0 {
            IpAddr::V4(address) => {
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & (u32::MAX << 8)))
            }
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 80)))
            }
        }
    }
}

impl FromStr for Network {
    type Err = AddrParseError;

    /// Parses an address that a person has written, or a network in the format of this type.
    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        let text = text.trim();
        let address = text.strip_suffix("/64").unwrap_or(text);
        address.parse().map(Self::of)
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            IpAddr::V4(address) => write!(f, "{address}"),
            IpAddr::V6(prefix) => write!(f, "{prefix}/64"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use ipnet::IpNet;

    #[test]
    fn the_right_most_untrusted_entry_is_the_client() {
        let proxies: IpNet = "10.0.0.0/8".parse().unwrap();
        let cases: &[(&str, &[&str], &str)] = &[
            ("203.0.113.9", &["198.51.100.1"], "203.0.113.9"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
            (
                "10.0.0.1",
                &["1.1.1.1, 198.51.100.1, 10.0.0.2"],
                "198.51.100.1",
            ),
            (
                "10.0.0.1",
                &["1.1.1.1", "198.51.100.1 , 10.0.0.2"],
                "198.51.100.1",
            ),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            ("10.0.0.1", &["198.51.100.1, nonsense"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1"),
            ("10.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("10.0.0.1", &["[2001:db8::1]"], "2001:db8::1"),
            ("::ffff:10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
        ];
        for (peer, values, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in *values {
                headers.append(X_FORWARDED_FOR, HeaderValue::from_static(value));
            }
            let client = client_address(peer.parse().unwrap(), &headers, |address| {
                proxies.contains(&address)
            });
            assert_eq!(
                client,
                expected.parse::<IpAddr>().unwrap(),
                "{peer} {values:?}"
            );
        }
    }

    #[test]
    fn a_line_that_is_no_text_hides_everything_before_it() {
        let trusted: IpAddr = "10.0.0.1".parse().unwrap();
        for (lines, expected) in [
            (&[&b"198.51.100.1"[..], b"\xff"][..], "10.0.0.1"),
            (&[b"198.51.100.1", b"\xff, 203.0.113.7"], "203.0.113.7"),
            (&[b"198.51.100.1", b"\xff, 10.0.0.1"], "10.0.0.1"),
            (&[b"\xff", b"203.0.113.7"], "203.0.113.7"),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(X_FORWARDED_FOR, HeaderValue::from_bytes(line).unwrap());
            }
            let client = client_address(trusted, &headers, |address| address == trusted);
            assert_eq!(client.to_string(), expected, "{lines:?}");
        }
    }

    #[test]
    fn neighbours_in_a_slash_64_are_one_network() {
        let network = |text: &str| Network::of(text.parse().unwrap());
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::9"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_eq!(network("2001:db8:1:2::1").to_string(), "2001:db8:1:2::/64");
    }

    #[test]
    fn a_network_is_read_as_people_write_it() {
        for (text, network) in [
            (" 192.0.2.1 ", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:DB8:1:2::9", "2001:db8:1:2::/64"),
            ("2001:db8:1:2::/64", "2001:db8:1:2::/64"),
        ] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), network);
        }
        for text in ["", "nobody", "192.0.2.0/24", "2001:db8::/48"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
