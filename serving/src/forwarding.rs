//! The headers of forwarded requests and responses: those of one connection (RFC 9110 §7.6), and
//! those that a backend may trust.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use platform_protocol::claims::ASSERTION_HEADER;

/// Headers that a backend may trust, and that only the platform may therefore set, in addition to
/// all names that begin with `x-forwarded-`; and headers for proxies.
const OURS: [HeaderName; 22] = [
    // The platform's signed statement.
    ASSERTION,
    // Programs that convert headers to variables read it as a proxy's address (RFC 3875 §4.1.18,
    // "httpoxy").
    HeaderName::from_static("proxy"),
    header::FORWARDED,
    HeaderName::from_static("forwarded-for"),
    HeaderName::from_static("forwarded-host"),
    HeaderName::from_static("x-forwarded"),
    HeaderName::from_static("x-cluster-client-ip"),
    HeaderName::from_static("fastly-client-ip"),
    HeaderName::from_static("fly-client-ip"),
    HeaderName::from_static("cf-connecting-ipv6"),
    HeaderName::from_static("x-remote-addr"),
    HeaderName::from_static("x-originating-ip"),
    HeaderName::from_static("x-host"),
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-client-ip"),
    HeaderName::from_static("true-client-ip"),
    HeaderName::from_static("cf-connecting-ip"),
    HeaderName::from_static("x-original-host"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-rewrite-url"),
];

/// The header with the platform's signed statement.
const ASSERTION: HeaderName = HeaderName::from_static(ASSERTION_HEADER);

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The hop-by-hop headers (RFC 9110 §7.6.1). `TE` is one of them as well, unless it asks for
/// trailers, which are forwarded.
const HOP_BY_HOP: [HeaderName; 6] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::TRAILER,
    header::UPGRADE,
];

/// Removes the hop-by-hop headers, and those that `Connection` names (RFC 9110 §7.6.1).
pub fn drop_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = elements(headers, &header::CONNECTION)
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    let te = headers.get(header::TE).map(HeaderValue::as_bytes);
    if te.is_some_and(|te| !te.trim_ascii().eq_ignore_ascii_case(b"trailers")) {
        headers.remove(header::TE);
    }
}

/// Removes headers that a backend might trust, but that anyone could have set.
pub fn drop_spoofed(headers: &mut HeaderMap) {
    let spoofed: Vec<HeaderName> = headers
        .keys()
        .filter(|name| {
            // Programs that convert headers to variables do not distinguish an underscore from a
            // hyphen (RFC 3875 §4.1.18).
            name.as_str().starts_with("x-forwarded-")
                || name.as_str().contains('_')
                || OURS.contains(name)
        })
        .cloned()
        .collect();
    for name in spoofed {
        headers.remove(name);
    }
}

/// Sets the headers about the client and the game's address, `origin`, both in the format of RFC 7239 and in the older one.
pub fn introduce(headers: &mut HeaderMap, origin: &str, client: IpAddr) {
    let (scheme, host) = origin.split_once("://").unwrap_or_default();
    // An IPv6 address is in brackets and quotes (RFC 7239 §6).
    let node = match client {
        IpAddr::V4(client) => client.to_string(),
        IpAddr::V6(client) => format!("\"[{client}]\""),
    };
    let lines = [
        (
            header::FORWARDED,
            format!("for={node};host=\"{host}\";proto={scheme}"),
        ),
        (X_FORWARDED_FOR, client.to_string()),
        (X_FORWARDED_HOST, host.to_owned()),
        (X_FORWARDED_PROTO, scheme.to_owned()),
    ];
    for (name, value) in lines {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
}

/// Whether a request has already been through the platform with this name (RFC 9110 §7.6.3).
#[must_use]
pub fn came_through(headers: &HeaderMap, name: &str) -> bool {
    let elements = headers
        .get_all(header::VIA)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    elements
        .filter_map(|element| std::str::from_utf8(element).ok())
        .any(|element| element.split_ascii_whitespace().nth(1) == Some(name))
}

/// Adds a proxy, `name`, to the `Via` of a message (RFC 9110 §7.6.3).
pub fn append_via(headers: &mut HeaderMap, version: Version, name: &str) {
    let version = match version {
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    };
    let before = headers.get_all(header::VIA).into_iter();
    let mut through: Vec<&[u8]> = before.map(HeaderValue::as_bytes).collect();
    let here = format!("{version} {name}");
    through.push(here.as_bytes());
    // One line: some programs read only the first one.
    if let Ok(through) = HeaderValue::from_bytes(&through.join(&b", "[..])) {
        headers.insert(header::VIA, through);
    }
}

/// Returns the elements of a header that is a list (RFC 9110 §5.6.1).
pub fn elements<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    let values = headers.get_all(name).into_iter();
    let elements = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    elements.map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn left(lines: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut headers = headers(lines);
        drop_hop_by_hop(&mut headers);
        headers.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn the_headers_of_one_connection_end_here() {
        let lines = [
            ("connection", "close, X-Secret"),
            ("connection", "keep-alive, cookie,, @"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("trailer", "x-sum"),
            ("upgrade", "h2c"),
            ("x-secret", "1"),
            ("cookie", "a=1"),
            ("x-other", "kept"),
        ];
        assert_eq!(left(&lines), ["x-other"]);
        assert_eq!(left(&[("te", " Trailers ")]), ["te"]);
        assert!(left(&[("te", "trailers, gzip")]).is_empty());
        assert!(left(&[("te", "trailers"), ("connection", "te")]).is_empty());
    }

    #[test]
    fn the_platform_is_the_last_of_those_that_a_message_came_through() {
        let mut headers = headers(&[("via", "1.0 fred, 1.1 other")]);
        append_via(&mut headers, Version::HTTP_10, "platform.localhost:8787");
        let through: Vec<_> = elements(&headers, &header::VIA).collect();
        let expected: [&[u8]; 3] = [b"1.0 fred", b"1.1 other", b"1.0 platform.localhost:8787"];
        assert_eq!(through, expected);
        assert_eq!(headers.get_all(header::VIA).into_iter().count(), 1);
    }

    #[test]
    fn a_request_that_was_here_before_is_known() {
        let headers =
            |value| HeaderMap::from_iter([(header::VIA, HeaderValue::from_static(value))]);
        let name = "platform.localhost:8787";
        for value in [
            "1.1 platform.localhost:8787",
            "1.0 fred, 1.1 platform.localhost:8787 (x)",
        ] {
            assert!(came_through(&headers(value), name), "{value}");
        }
        for value in [
            "1.1 fred",
            "1.1 platform.localhost:87",
            "platform.localhost:8787",
        ] {
            assert!(!came_through(&headers(value), name), "{value}");
        }
    }
}
