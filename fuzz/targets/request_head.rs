//! The head of a request: its host, cookies, origin, client address, range and accepted encodings. The
//! first line is the target, each other line a header.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use axum::http::{HeaderName, HeaderValue, Request};
use libfuzzer_sys::fuzz_target;
use platform_domain::origin::PlatformOrigin;
use platform_web::byte_range::{Wanted, wanted};
use platform_web::client_address::{Network, client_address};
use platform_web::requested_host::requested_host;
use platform_web::{browser, cookies, cors, encoding, foreign_cookies, navigation};

/// The size of the file of which a part is asked for.
const SIZE: u64 = 1_000;

fuzz_target!(|bytes: &[u8]| {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut request = Request::builder().uri(lines.next().unwrap_or_default());
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            request = request.header(name, value);
        }
    }
    let Ok(request) = request.body(()) else {
        return;
    };
    let (parts, ()) = request.into_parts();
    let headers = &parts.headers;
    for believed in [false, true] {
        let _ = requested_host(&parts, believed);
    }
    for secure in [false, true] {
        let _ = cookies::read_session(headers, secure);
        let _ = cookies::read_left(headers, secure);
        let _ = cookies::read_panes(headers, secure);
        let _ = foreign_cookies::are_many(headers, secure);
    }
    let kept = ["kept".to_owned()];
    let expired = foreign_cookies::expire(
        headers,
        &PlatformOrigin::local(8787),
        parts.uri.path(),
        &kept,
        || u16::from(bytes.first().copied().unwrap_or_default()),
    );
    assert!(expired.len() <= 40, "too many lines for one response");
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let client = client_address(peer, headers, |address| address.is_loopback());
    let _ = Network::of(client).to_string();
    assert_eq!(client_address(peer, headers, |_| false), peer);
    let _ = cors::single_origin(headers);
    let _ = navigation::is_navigation(headers);
    let _ = encoding::choose(headers, |_| true);
    if let Some(name) = browser::describe(headers) {
        assert!(name.len() <= 100, "the name of a browser is short: {name}");
    }
    match wanted(headers, &HeaderValue::from_static("\"tag\""), SIZE) {
        Wanted::Part(first, last) => assert!(first <= last && last < SIZE),
        Wanted::Whole | Wanted::Outside => {}
    }
});
