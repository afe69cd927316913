//! Who may ask a dev server for something: pages of this machine, and for a token only the game's
//! own page.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::{HeaderMap, Uri, header};
use platform_loopback::is_localhost;

/// The host and port that a request names, if browsers use the name for this machine: `localhost`, a
/// name under it, or an IP address. Any other name may belong to a page that made it resolve to this
/// machine (DNS rebinding), and the browser would treat that page as the game's own.
pub(super) fn local_host<'a>(uri: &Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let mut hosts = headers.get_all(header::HOST).into_iter();
    let host = hosts.next()?.to_str().ok()?;
    // A second `Host`, or another one in the address (RFC 9112 §3.2.2), could be the one that counts.
    let is_other = uri.authority().is_some_and(|named| named.as_str() != host);
    (hosts.next().is_none() && !is_other && is_local(host)).then_some(host)
}

fn is_local(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        // The last colon of `[::1]` is not that of a port.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let six = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let is_name = match six {
        Some(six) => six.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<Ipv4Addr>().is_ok() || is_localhost(name),
    };
    is_name && port.is_none_or(digits)
}

/// Whether a request to `host` comes from a page of the same address, or from no page at all: no
/// other site that is open in the browser may get a token. A browser without `Sec-Fetch-Site` sends
/// `Origin`.
pub(super) fn is_own_page(host: &str, headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    site.is_none_or(|site| site == "same-origin")
        && headers
            .get_all(header::ORIGIN)
            .iter()
            .all(|origin| is_origin_of(host, origin.as_bytes()))
}

/// Whether `origin` is that of a page at `host`.
pub(super) fn is_origin_of(host: &str, origin: &[u8]) -> bool {
    let of = |scheme: &[u8]| origin.strip_prefix(scheme);
    of(b"http://").or_else(|| of(b"https://")) == Some(host.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use http::HeaderValue;

    use super::*;

    /// The plugin for Vite is tested with the same names, so that both have one rule.
    #[test]
    fn only_names_of_this_machine_are_local() {
        let hosts = include_str!("../../../../tests/local_hosts.json");
        let hosts: BTreeMap<String, Vec<String>> = serde_json::from_str(hosts).unwrap();
        for host in &hosts["local"] {
            assert!(is_local(host), "{host}");
        }
        for host in &hosts["others"] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn two_hosts_are_none() {
        let one = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("localhost:1"))]);
        let path = Uri::from_static("/x");
        assert_eq!(local_host(&path, &one), Some("localhost:1"));
        let mut two = one.clone();
        two.append(header::HOST, HeaderValue::from_static("localhost:1"));
        assert_eq!(local_host(&path, &two), None);
        assert_eq!(local_host(&path, &HeaderMap::new()), None);
        let other = Uri::from_static("http://evil.example/x");
        assert_eq!(local_host(&other, &one), None);
        let same = Uri::from_static("http://localhost:1/x");
        assert_eq!(local_host(&same, &one), Some("localhost:1"));
    }

    #[test]
    fn a_token_is_for_the_games_own_page() {
        let headers = |lines: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, HeaderValue::from_static(value));
            }
            headers
        };
        let own = ("origin", "http://localhost:5174");
        for lines in [
            &[][..],
            &[own],
            &[("origin", "https://localhost:5174")],
            &[own, ("sec-fetch-site", "same-origin")],
        ] {
            assert!(is_own_page("localhost:5174", &headers(lines)), "{lines:?}");
        }
        for lines in [
            &[("sec-fetch-site", "cross-site")][..],
            &[own, ("sec-fetch-site", "same-site")],
            &[own, ("sec-fetch-site", "none")],
            &[("origin", "null")],
            &[("origin", "http://localhost")],
            &[("origin", "http://localhost:5173")],
            &[("origin", "ftp://localhost:5174")],
            &[("origin", "http://localhost:5174.evil.example")],
            &[
                ("origin", "http://evil.example"),
                ("sec-fetch-site", "same-origin"),
            ],
            &[own, ("origin", "http://evil.example")],
        ] {
            assert!(!is_own_page("localhost:5174", &headers(lines)), "{lines:?}");
        }
    }
}
