//! A connection of a stranger. The first byte says what the rest is: what arrives over HTTP/1.1 or
//! HTTP/2, frames alone, a response that may be hyper's own, or the headers of a trace; the second, in
//! what pieces it arrives. Every response has a request id, frames are counted however they are cut, and
//! a trace stays the same on its way.

#![no_main]

use std::net::{IpAddr, SocketAddr};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode};
use axum::response::Response;
use libfuzzer_sys::fuzz_target;
use platform_telemetry::trace_context::{TRACEPARENT, TRACESTATE, passed_on};
use platform_web::body;
use platform_web::fuzzing::{Counted, Version, converse, count_frames, own_answer};
use platform_web::request_id::{RequestId, X_REQUEST_ID};
use platform_web::serve::Application;
use tokio::runtime::Builder;

/// What a client of HTTP/2 sends first (RFC 9113 §3.4), with settings of its own.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const FRAME_HEAD: usize = 9;

fuzz_target!(|bytes: &[u8]| {
    let [kind, piece, rest @ ..] = bytes else {
        return;
    };
    let piece = usize::from(*piece);
    match kind {
        b'1' => check_http1(&converse_over(Version::Http1, rest.to_vec(), piece)),
        b'2' => check_http2(&converse_over(
            Version::Http2,
            [PREFACE, rest].concat(),
            piece,
        )),
        b'o' => check_own_answer(rest),
        b't' => check_trace(rest),
        _ => check_count(rest, piece),
    }
});

/// Reads the body of a request, and says whether it could.
struct App;

impl Application for App {
    async fn answer(&self, _: SocketAddr, request: Request<Body>) -> Response {
        let read = body::read(request.into_body(), 1_024).await;
        let mut response = Response::new(Body::from("read"));
        if read.is_err() {
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, HeaderValue::from_static("app"));
        response
    }

    fn explain_unread(&self, status: StatusCode) -> (RequestId, Vec<u8>) {
        (RequestId::unknown(), status.as_str().into())
    }

    fn trusts(&self, _: IpAddr) -> bool {
        false
    }
}

fn converse_over(version: Version, bytes: Vec<u8>, piece: usize) -> Vec<u8> {
    let runtime = Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime can be made");
    runtime.block_on(converse(version, Bytes::from(bytes), piece, App))
}

fn check_http1(sent: &[u8]) {
    let sent = String::from_utf8_lossy(sent);
    let responses = sent.matches("HTTP/1.").count() - sent.matches(" 100 Continue\r\n").count();
    let ids = sent.matches("\r\nx-request-id: ").count();
    assert_eq!(ids, responses, "a response has no request id: {sent}");
    assert!(sent.is_empty() || sent.starts_with("HTTP/1."), "{sent}");
}

/// What is sent consists of whole frames; the first one has the server's settings.
fn check_http2(sent: &[u8]) {
    let mut rest = sent;
    let mut is_first = true;
    while !rest.is_empty() {
        let [high, middle, low, kind, ..] = rest else {
            panic!("{} bytes are no frame", rest.len());
        };
        assert!(!is_first || *kind == 4, "settings come first");
        is_first = false;
        let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        assert!(length <= 16_384, "a frame is as large as every peer takes");
        rest = rest.get(FRAME_HEAD + length..).expect("a frame is whole");
    }
}

fn check_own_answer(bytes: &[u8]) {
    if let Some((status, before, after)) = own_answer(bytes) {
        assert!(status.is_client_error());
        assert_eq!([before, b"content-length: 0\r\n", after].concat(), bytes);
    }
}

/// The first line is the parent, each other one a state.
fn check_trace(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let name = if at == 0 { TRACEPARENT } else { TRACESTATE };
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(name, value);
        }
    }
    let passed = passed_on(&headers);
    let Some(parent) = passed.get(TRACEPARENT) else {
        assert!(passed.is_empty());
        return;
    };
    assert_eq!(passed.len(), 1, "what others add is left out");
    assert_eq!(parent.len(), 55);
    // Version, trace and span are those that came; of the flags only one is known.
    let given = headers[TRACEPARENT].to_str().unwrap_or_default();
    assert!(
        given.contains(&parent.to_str().unwrap_or_default()[2..53]),
        "{given}"
    );
    assert_eq!(passed_on(&passed), passed);
}

/// Compares with a simple count of the whole.
fn check_count(bytes: &[u8], piece: usize) {
    let budget = 64 * 1_024;
    let counted = count_frames(bytes, piece, budget);
    assert_eq!(count_frames(bytes, bytes.len(), budget), counted);
    if counted.is_flood {
        return;
    }
    let mut expected = Counted {
        requests: 0,
        resets: 0,
        empty: 0,
        body_bytes: 0,
        is_flood: false,
    };
    let mut rest = bytes.get(24..).unwrap_or_default();
    let mut last_stream = 0;
    while let [high, middle, low, kind, flags, stream @ ..] = rest
        && let Some(stream) = stream.first_chunk()
    {
        let length = u32::from_be_bytes([0, *high, *middle, *low]);
        match kind {
            0 if length > 0 || flags & 1 != 0 => expected.body_bytes += u64::from(length),
            1 => {
                let stream = u32::from_be_bytes(*stream) & (u32::MAX >> 1);
                if stream > 0 && stream <= last_stream {
                    // A trailer.
                    expected.empty += 1;
                } else {
                    expected.requests += 1;
                    last_stream = stream.max(last_stream);
                }
            }
            3 => expected.resets += 1,
            9 => {}
            _ => expected.empty += 1,
        }
        rest = rest.get(FRAME_HEAD + length as usize..).unwrap_or_default();
    }
    assert_eq!(counted, expected);
}
