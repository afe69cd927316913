//! Limits of connections over TLS: peers that are slow, silent, or send floods of frames.

use std::net::SocketAddr;
use std::time::Duration;

use platform_server::web::serve::ConnectionLimits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use super::raw::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, Peer, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, frame, get, setting,
};
use super::{HTTP_1, Secure, request, soon, whole};

const INITIAL_WINDOW: u16 = 4;
const ENHANCE_YOUR_CALM: u8 = 11;
const SOME: Duration = Duration::from_millis(200);

/// A large file of the demo.
const LARGE: &str = "/__platform/runtime.js";

/// Serves a platform with small send buffers and these limits.
async fn serve(limits: ConnectionLimits) -> (Secure, SocketAddr, watch::Sender<bool>) {
    let secure = Secure::start().await;
    let (address, stopping, _) = secure.listen_with(socket(), limits).await;
    (secure, address, stopping)
}

/// A socket with a small send buffer.
fn socket() -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(4_096).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket.listen(64).unwrap()
}

async fn usual() -> (Secure, SocketAddr, watch::Sender<bool>) {
    serve(ConnectionLimits::default()).await
}

/// Whether a visitor with good manners is answered.
async fn is_served(secure: &Secure, address: SocketAddr) -> bool {
    let mut sender = secure.http2(address).await;
    let page = request("GET", "https://demo.platform.localhost/", &[]);
    soon(sender.send_request(page)).await.unwrap().status() == 200
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_cut_off() {
    let limits = ConnectionLimits {
        handshake: SOME,
        ..ConnectionLimits::default()
    };
    let (_secure, address, _stopping) = serve(limits).await;
    for begun in [&b""[..], b"\x16\x03\x01\x02", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(begun).await.unwrap();
        let mut read = Vec::new();
        let _ = soon(stream.read_to_end(&mut read)).await;
    }
}

#[tokio::test]
async fn a_connection_of_http_2_without_a_request_is_closed() {
    let limits = ConnectionLimits {
        head: SOME,
        stall: SOME,
        ..ConnectionLimits::default()
    };
    let (secure, address, _stopping) = serve(limits).await;
    let mut silent = Peer::connect(&secure, address, &[]).await;
    assert_eq!(silent.end().await, Some(0));
    let mut answered = Peer::connect(&secure, address, &[]).await;
    answered.ask(1, "/missing").await;
    assert_eq!(answered.end().await, Some(0));
    // The end of a response that nobody takes.
    let mut full = Peer::connect(&secure, address, &setting(INITIAL_WINDOW, 1)).await;
    full.ask(1, "/").await;
    assert_eq!(full.end().await, Some(0));
    // A head that does not end is no request.
    let mut begun = Peer::connect(&secure, address, &[]).await;
    let head = get("demo.platform.localhost", "/");
    begun.send(&frame(HEADERS, 0, 1, &head)).await;
    begun.end().await;
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_cut_off_in_both_protocols() {
    let limits = ConnectionLimits {
        stall: SOME,
        ..ConnectionLimits::default()
    };
    let (secure, address, _stopping) = serve(limits).await;
    let stream = secure
        .authority
        .connect(address, "demo.platform.localhost", HTTP_1);
    let mut stream = stream.await.unwrap();
    let head = "GET /game.js HTTP/1.1\r\nHost: demo.platform.localhost\r\n\r\n";
    soon(async {
        while stream.write_all(head.as_bytes()).await.is_ok() && stream.flush().await.is_ok() {}
    })
    .await;

    let all = setting(INITIAL_WINDOW, u32::MAX >> 1);
    let mut peer = Peer::connect(&secure, address, &all).await;
    let window = frame(WINDOW_UPDATE, 0, 0, &(u32::MAX >> 2).to_be_bytes());
    peer.send(&window).await;
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    soon(async {
        let mut stream = 1;
        while peer.ask(stream, "/game.js").await {
            stream += 2;
            ticks.tick().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_request_whose_window_stays_shut_is_reset_and_others_go_on() {
    let limits = ConnectionLimits {
        stall: SOME,
        ..ConnectionLimits::default()
    };
    let (secure, address, _stopping) = serve(limits).await;
    let mut peer = Peer::connect(&secure, address, &setting(INITIAL_WINDOW, 0)).await;
    peer.ask(1, LARGE).await;
    let reset = peer.find(|frame| frame.kind == RST_STREAM).await.unwrap();
    assert_eq!(reset.stream, 1);
    peer.ask(3, LARGE).await;
    peer.send(&frame(WINDOW_UPDATE, 0, 3, &65_535_u32.to_be_bytes()))
        .await;
    let last = |frame: &super::raw::Frame| frame.kind == DATA && frame.flags & END_STREAM != 0;
    assert_eq!(peer.find(last).await.unwrap().stream, 3);
}

#[tokio::test]
async fn a_peer_that_reads_many_responses_as_fast_as_it_can_loses_none() {
    const RESPONSES: usize = 16;
    // It reads twice as fast as it must, and each response moves more slowly than that.
    const BYTES_PER_TICK: usize = 6_400;
    let limits = ConnectionLimits {
        stall: Duration::from_secs(2),
        ..ConnectionLimits::default()
    };
    let (secure, address, _stopping) = serve(limits).await;
    let all = setting(INITIAL_WINDOW, u32::MAX >> 1);
    let mut peer = Peer::connect(&secure, address, &all).await;
    let window = frame(WINDOW_UPDATE, 0, 0, &(u32::MAX >> 2).to_be_bytes());
    peer.send(&window).await;
    let begun = tokio::time::Instant::now();
    for stream in (1..).step_by(2).take(RESPONSES) {
        peer.ask(stream, LARGE).await;
    }
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    let (mut read, mut ended) = (0, 0);
    while ended < RESPONSES {
        let frame = peer.next().await.unwrap();
        assert_ne!(frame.kind, RST_STREAM, "after {:?}", begun.elapsed());
        ended += usize::from(frame.kind == DATA && frame.flags & END_STREAM != 0);
        read += frame.content.len();
        while read >= BYTES_PER_TICK {
            read -= BYTES_PER_TICK;
            ticks.tick().await;
        }
    }
    assert!(
        begun.elapsed() > 2 * limits.stall,
        "they waited long enough"
    );
}

#[tokio::test]
async fn requests_beyond_the_limit_are_refused_while_others_wait() {
    let (secure, address, _stopping) = usual().await;
    let mut peer = Peer::connect(&secure, address, &setting(INITIAL_WINDOW, 0)).await;
    let advertised = peer.find(|frame| frame.kind == SETTINGS).await.unwrap();
    let concurrent = setting(3, 100);
    assert!(advertised.content.chunks(6).any(|one| one == concurrent));
    for number in 0..=100 {
        peer.ask(2 * number + 1, LARGE).await;
    }
    let refused = peer.find(|frame| frame.kind == RST_STREAM).await.unwrap();
    assert_eq!((refused.stream, refused.content[3]), (201, 7));
}

#[tokio::test]
async fn floods_end_the_connection_and_nobody_elses() {
    let (secure, address, _stopping) = usual().await;
    let head = get("demo.platform.localhost", "/");
    let asked = |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &head);
    let rapid_reset = (0..5_000).flat_map(|number| {
        let stream = 2 * number + 1;
        [
            asked(stream),
            frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()),
        ]
        .concat()
    });
    let floods: [(&str, Vec<u8>); 5] = [
        ("resets", rapid_reset.collect()),
        ("settings", frame(SETTINGS, 0, 0, &[]).repeat(5_000)),
        ("pings", frame(PING, 0, 0, &[0; 8]).repeat(5_000)),
        ("unknown frames", frame(77, 0, 0, &[]).repeat(5_000)),
        (
            "empty data",
            [
                frame(HEADERS, END_HEADERS, 1, &head),
                frame(DATA, 0, 1, &[]).repeat(5_000),
            ]
            .concat(),
        ),
    ];
    for (name, flood) in floods {
        let mut peer = Peer::connect(&secure, address, &[]).await;
        let (mut reading, mut writing) = tokio::io::split(peer.stream);
        let mut read = Vec::new();
        let _ =
            soon(async { tokio::join!(reading.read_to_end(&mut read), writing.write_all(&flood)) })
                .await;
        peer = Peer {
            stream: reading.unsplit(writing),
        };
        assert!(
            !peer.send(&frame(PING, 0, 0, &[0; 8])).await || peer.next().await.is_none(),
            "{name}"
        );
        assert!(is_served(&secure, address).await, "{name}");
    }
}

#[tokio::test]
async fn continuations_without_end_close_the_connection() {
    let (secure, address, _stopping) = usual().await;
    let mut peer = Peer::connect(&secure, address, &[]).await;
    let head = get("demo.platform.localhost", "/");
    peer.send(&frame(HEADERS, END_STREAM, 1, &head)).await;
    peer.send(&frame(CONTINUATION, 0, 1, &[]).repeat(1_000))
        .await;
    let goaway = peer.find(|frame| frame.kind == GOAWAY).await.unwrap();
    assert_eq!(goaway.content[7], ENHANCE_YOUR_CALM);
    assert!(is_served(&secure, address).await);
}

#[tokio::test]
async fn heads_over_http_2_have_the_limits_of_http_1() {
    let limits = ConnectionLimits {
        heads: 300_000,
        ..ConnectionLimits::default()
    };
    let (secure, address, _stopping) = serve(limits).await;
    let mut sender = secure.http2(address).await;
    let url = "https://demo.platform.localhost/";
    let mut status = async |cookies: usize, bytes: usize| {
        let value = format!("a={}", "x".repeat(bytes));
        let mut asked = request("GET", url, &[]);
        for _ in 0..cookies {
            let value = axum::http::HeaderValue::try_from(&value).unwrap();
            asked.headers_mut().append("cookie", value);
        }
        let response = whole(soon(sender.send_request(asked)).await.unwrap()).await;
        assert_eq!(response.headers()["x-request-id"].len(), 22);
        if response.status() == 431 {
            assert!(response.body().contains("too large"), "{}", response.body());
        }
        response.status().as_u16()
    };
    assert_eq!(status(40, 4_000).await, 200);
    assert_eq!(status(90, 4_000).await, 431, "the room for all is used up");
    let mut asked = request("GET", url, &[]);
    for number in 0..120 {
        let name = axum::http::HeaderName::try_from(format!("x-{number}")).unwrap();
        asked
            .headers_mut()
            .insert(name, axum::http::HeaderValue::from_static("1"));
    }
    let many = whole(soon(sender.send_request(asked)).await.unwrap()).await;
    assert_eq!(many.status(), 431);
}

#[tokio::test]
async fn a_browser_with_all_the_cookies_that_it_keeps_is_served_over_http_2() {
    let (secure, address, _stopping) = usual().await;
    let mut sender = secure.http2(address).await;
    let mut asked = request("GET", "https://demo.platform.localhost/", &[]);
    for number in 0..180 {
        let cookie = format!("c{number:03}={}", "x".repeat(4_092));
        let cookie = axum::http::HeaderValue::try_from(cookie).unwrap();
        asked.headers_mut().append("cookie", cookie);
    }
    assert_eq!(
        soon(sender.send_request(asked)).await.unwrap().status(),
        200
    );
}

#[tokio::test]
async fn connections_without_a_request_give_way_and_those_with_one_do_not() {
    let limits = ConnectionLimits {
        all: 2,
        ..ConnectionLimits::default()
    };
    let (secure, address, _stopping) = serve(limits).await;
    for (window, path) in [(0, LARGE), (1, "/")] {
        is_left_alone(&secure, address, window, path).await;
    }
}

/// Asks for a path while its window has only this many bytes, and for the rest after others have come.
async fn is_left_alone(secure: &Secure, address: SocketAddr, window: u32, path: &str) {
    let settings = setting(INITIAL_WINDOW, window);
    let mut busy = Peer::connect(secure, address, &settings).await;
    busy.ask(1, path).await;
    busy.find(|frame| frame.kind == HEADERS).await.unwrap();
    for _ in 0..5 {
        // Each replaces the previous one.
        let mut idle = Peer::connect(secure, address, &[]).await;
        idle.find(|frame| frame.kind == SETTINGS).await;
        assert!(is_served(secure, address).await);
        let _half_open = TcpStream::connect(address).await.unwrap();
    }
    busy.send(&frame(WINDOW_UPDATE, 0, 1, &65_535_u32.to_be_bytes()))
        .await;
    let last = |frame: &super::raw::Frame| frame.kind == DATA && frame.flags & END_STREAM != 0;
    assert!(busy.find(last).await.is_some(), "{path}");
}

#[tokio::test]
async fn the_stop_waits_for_requests_of_http_2_and_not_for_silent_peers() {
    let limits = ConnectionLimits {
        drain: Duration::from_secs(60),
        ..ConnectionLimits::default()
    };
    let secure = Secure::start().await;
    let (address, stopping, serving) = secure.listen_with(socket(), limits).await;
    let mut silent = Peer::connect(&secure, address, &[]).await;
    silent.find(|frame| frame.kind == SETTINGS).await.unwrap();
    let mut busy = Peer::connect(&secure, address, &setting(INITIAL_WINDOW, 0)).await;
    busy.ask(1, LARGE).await;
    busy.find(|frame| frame.kind == HEADERS).await.unwrap();
    let half_open = TcpStream::connect(address).await.unwrap();
    stopping.send_replace(true);
    assert_eq!(silent.end().await, Some(0));
    busy.find(|frame| frame.kind == GOAWAY).await.unwrap();
    busy.send(&frame(WINDOW_UPDATE, 0, 1, &65_535_u32.to_be_bytes()))
        .await;
    let last = |frame: &super::raw::Frame| frame.kind == DATA && frame.flags & END_STREAM != 0;
    assert!(busy.find(last).await.is_some());
    drop(busy);
    soon(serving).await.unwrap();
    drop(half_open);
}
