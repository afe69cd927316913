//! How long security events and addresses are kept.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::clock::Millis;

/// What is too old, as times before which something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Security events are removed; `None` keeps them.
    pub events_before: Option<Millis>,
    /// Addresses of events, devices and deployments are shortened.
    pub addresses_before: Millis,
    /// The address of a guest that was last seen before is removed: the guest counts for it no more.
    pub guests_before: Millis,
}

/// Returns an address as it is kept for longer: the /24 of an IPv4 address, or the /48 of an IPv6
/// address, in which one customer of a provider can have many. `None` for one that is short already,
/// and for any other text.
#[must_use]
pub fn shorten(network: &str) -> Option<String> {
    let address = network.strip_suffix("/64").unwrap_or(network);
    Some(match address.parse::<IpAddr>().ok()? {
        IpAddr::V4(address) => {
            let short = Ipv4Addr::from_bits(address.to_bits() & (u32::MAX << 8));
            format!("{short}/24")
        }
        IpAddr::V6(address) => {
            let short = Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 80));
            format!("{short}/48")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shortened_once() {
        for (network, short) in [
            ("203.0.113.77", Some("203.0.113.0/24")),
            ("2001:db8:1:2::/64", Some("2001:db8:1::/48")),
            ("2001:db8::/64", Some("2001:db8::/48")),
            ("203.0.113.0/24", None),
            ("2001:db8:1::/48", None),
            ("", None),
            ("nowhere", None),
        ] {
            assert_eq!(shorten(network).as_deref(), short, "{network}");
        }
    }
}
