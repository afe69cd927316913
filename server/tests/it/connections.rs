//! Connections that neither send nor receive anything.

use std::net::SocketAddr;
use std::time::Duration;

use platform_server::app::entry::App;
use platform_server::app::routes::routes;
use platform_server::web::serve::{ConnectionLimits, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::caller::{Caller, archive};
use crate::support::{TestApp, send};

/// Much longer than any limit of these tests; reaching it is a failure.
const NEVER: Duration = Duration::from_secs(20);

/// Serves the same platform on another socket, with its own limits. Dropping the sender stops it.
async fn listen_with(app: &TestApp, limits: ConnectionLimits) -> (SocketAddr, watch::Sender<bool>) {
    let (listener, address) = socket().await;
    let (stopping, stopped) = watch::channel(false);
    tokio::spawn(serve(listener, platform(app), limits, stopped));
    (address, stopping)
}

async fn socket() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn platform(app: &TestApp) -> App {
    let state = app.running.state.clone();
    let routes = routes(&state);
    App::new(state, routes)
}

fn short_head() -> ConnectionLimits {
    ConnectionLimits {
        head: Duration::from_millis(200),
        ..ConnectionLimits::default()
    }
}

/// Reads until the other side closes or resets the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let ended = timeout(NEVER, stream.read_to_end(&mut read)).await;
    assert!(ended.is_ok(), "the connection is still open");
    String::from_utf8_lossy(&read).into_owned()
}

#[tokio::test]
async fn a_connection_without_a_whole_head_is_closed() {
    let app = TestApp::start().await;
    let (address, _stopping) = listen_with(&app, short_head()).await;
    for sent in ["", "P", "PRI * HT", "GET / HTTP/1.1\r\nHost: "] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(!answer.contains("200 OK"), "{sent:?}: {answer}");
    }
}

#[tokio::test]
async fn a_connection_that_idles_between_requests_is_closed() {
    let app = TestApp::start().await;
    let (address, _stopping) = listen_with(&app, short_head()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET /healthz HTTP/1.1\r\nHost: demo.platform.localhost:{}\r\n\r\n",
        app.port()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
}

#[tokio::test]
async fn the_preface_of_http_2_is_refused_at_once() {
    let app = TestApp::start().await;
    // The head timeout of 30 s is too long for this test.
    let (address, _stopping) = listen_with(&app, ConnectionLimits::default()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(!answer.as_bytes().contains(&0), "no frame is answered");
}

#[tokio::test]
async fn a_peer_that_never_reads_is_cut_off() {
    let app = TestApp::start().await;
    let limits = ConnectionLimits {
        stall: Duration::from_millis(200),
        ..ConnectionLimits::default()
    };
    let (address, _stopping) = listen_with(&app, limits).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let head = format!(
        "GET /game.js HTTP/1.1\r\nHost: demo.platform.localhost:{}\r\n\r\n",
        app.port()
    );
    let asking = async {
        loop {
            if let Err(error) = stream.write_all(head.as_bytes()).await {
                return error;
            }
        }
    };
    let cut = timeout(NEVER, asking).await;
    assert!(cut.is_ok(), "the server still waits for the peer to read");
}

#[tokio::test]
async fn a_peer_that_reads_a_little_now_and_then_is_cut_off() {
    let app = TestApp::start().await;
    let limits = ConnectionLimits {
        stall: Duration::from_millis(300),
        ..ConnectionLimits::default()
    };
    // Small buffers on both sides, so that data moves all the time.
    let listener = TcpSocket::new_v4().unwrap();
    listener.set_send_buffer_size(4_096).unwrap();
    listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = listener.listen(8).unwrap();
    let address = listener.local_addr().unwrap();
    let (_stopping, stopped) = watch::channel(false);
    tokio::spawn(serve(listener, platform(&app), limits, stopped));
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let head = format!(
        "GET /game.js HTTP/1.1\r\nHost: demo.platform.localhost:{}\r\n\r\n",
        app.port()
    );
    let asking = async { while writing.write_all(head.as_bytes()).await.is_ok() {} };
    let sipping = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        let mut sip = [0; 512];
        while reading.read_exact(&mut sip).await.is_ok() {
            ticks.tick().await;
        }
    };
    let cut = timeout(NEVER, async {
        tokio::select! {
            () = asking => {}
            () = sipping => {}
        }
    });
    assert!(
        cut.await.is_ok(),
        "the server still waits for the peer to read"
    );
}

/// Opens a connection with a request in progress: the server has asked for the body, and waits for
/// it.
async fn in_use(app: &TestApp, address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /token HTTP/1.1\r\nHost: auth.platform.localhost:{}\r\nOrigin: {}\r\n\
         Content-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
        app.port(),
        app.origin("demo")
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut asked = [0; 25];
    let asking = timeout(NEVER, stream.read_exact(&mut asked)).await;
    asking.unwrap().unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

/// Returns the response to a request that [`in_use`] has begun.
async fn go_on(mut stream: TcpStream) -> String {
    stream.write_all(b"{}").await.unwrap();
    rest(&mut stream).await
}

/// A visitor who connects, requests, and disconnects.
async fn visit(app: &TestApp, address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET / HTTP/1.1\r\nHost: platform.localhost:{}\r\nConnection: close\r\n\r\n",
        app.port()
    );
    match stream.write_all(head.as_bytes()).await {
        Ok(()) => rest(&mut stream).await,
        Err(_) => String::new(),
    }
}

/// Serves the platform on another socket with small send buffers, and the game `game` with a large
/// file.
async fn with_large_file(
    app: &TestApp,
    bytes: usize,
    limits: ConnectionLimits,
) -> (SocketAddr, watch::Sender<bool>) {
    let owner = Caller::with_project(app).await;
    let page: (&str, &[u8]) = ("index.html", b"<!doctype html>game");
    let files = archive(&[page, ("large.bin", &vec![0; bytes])]);
    let deployed = owner.deploy("prod", files).await;
    assert_eq!(deployed.status, 201, "{}", deployed.text());
    let listener = TcpSocket::new_v4().unwrap();
    listener.set_send_buffer_size(4_096).unwrap();
    listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = listener.listen(64).unwrap();
    let address = listener.local_addr().unwrap();
    let (stopping, stopped) = watch::channel(false);
    tokio::spawn(serve(listener, platform(app), limits, stopped));
    (address, stopping)
}

/// Requests the large file, and reads only the beginning of the response.
async fn ask_for_large(app: &TestApp, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let head = format!(
        "GET /large.bin HTTP/1.1\r\nHost: game.platform.localhost:{}\r\nConnection: close\r\n\r\n",
        app.port()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut begun = [0; 12];
    let reading = timeout(NEVER, stream.read_exact(&mut begun));
    reading.await.unwrap().unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn those_who_read_nothing_give_way_to_newcomers() {
    let app = TestApp::start().await;
    let limits = ConnectionLimits {
        all: 4,
        long: Duration::from_millis(200),
        ..ConnectionLimits::default()
    };
    let (address, _stopping) = with_large_file(&app, 4_000_000, limits).await;
    let mut silent = Vec::new();
    for _ in 0..4 {
        silent.push(ask_for_large(&app, address).await);
    }
    // They would be closed after 30 s, which is too long for this test.
    for _ in 0..4 {
        let answer = timeout(NEVER, visit(&app, address)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[tokio::test]
async fn a_download_that_lies_in_memory_gives_way_to_nobody() {
    let app = TestApp::start().await;
    let limits = ConnectionLimits {
        all: 2,
        ..ConnectionLimits::default()
    };
    let (address, _stopping) = with_large_file(&app, 800_000, limits).await;
    let mut download = ask_for_large(&app, address).await;
    for _ in 0..20 {
        // Each replaces the previous one.
        let mut idle = TcpStream::connect(address).await.unwrap();
        let _ = idle.write_all(b"GET / HT").await;
        let answer = timeout(NEVER, visit(&app, address)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let answer = rest(&mut download).await;
    assert!(answer.len() > 800_000, "cut off after {}", answer.len());
}

#[tokio::test]
async fn one_network_holds_only_so_many_connections() {
    let app = TestApp::start().await;
    let limits = ConnectionLimits {
        per_loopback: 2,
        ..ConnectionLimits::default()
    };
    let (address, _stopping) = listen_with(&app, limits).await;
    let first = in_use(&app, address).await;
    let second = in_use(&app, address).await;
    let mut third = TcpStream::connect(address).await.unwrap();
    assert_eq!(rest(&mut third).await, "");
    drop(first);
    // The server notices the end of the first connection a moment later.
    let again = async { while !visit(&app, address).await.starts_with("HTTP/1.1 200") {} };
    timeout(NEVER, again).await.unwrap();
    assert!(go_on(second).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn heads_that_are_never_finished_keep_no_visitor_out() {
    let app = TestApp::start().await;
    for limits in [
        ConnectionLimits {
            all: 8,
            ..ConnectionLimits::default()
        },
        ConnectionLimits {
            per_loopback: 8,
            ..ConnectionLimits::default()
        },
    ] {
        let (address, _stopping) = listen_with(&app, limits).await;
        let busy = in_use(&app, address).await;
        let mut heads = Vec::new();
        for begun in ["", "G", "GET / HTTP/1.1\r\nHost: "].repeat(20) {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // The first connections may have been closed already.
            let _ = stream.write_all(begun.as_bytes()).await;
            heads.push(stream);
        }
        for _ in 0..20 {
            let answer = visit(&app, address).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        // The connection that had waited longest was closed first.
        assert_eq!(rest(&mut heads[0]).await, "");
        // The request that came before all of them gets its response.
        let answer = go_on(busy).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[tokio::test]
async fn requests_behind_one_another_are_answered_while_heads_flood_in() {
    let app = TestApp::start().await;
    let limits = ConnectionLimits {
        all: 4,
        ..ConnectionLimits::default()
    };
    let (address, _stopping) = listen_with(&app, limits).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let host = format!("Host: platform.localhost:{}", app.port());
    let pipelined = format!("GET / HTTP/1.1\r\n{host}\r\n\r\n").repeat(50)
        + &format!("GET / HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n");
    stream.write_all(pipelined.as_bytes()).await.unwrap();
    let flood = async {
        for _ in 0..100 {
            let _ = TcpStream::connect(address).await;
        }
    };
    let (answers, ()) = tokio::join!(rest(&mut stream), flood);
    // It waits between two requests, but for no time at all.
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 51);
}

#[tokio::test]
async fn a_visitor_waits_where_all_connections_are_in_use() {
    let app = TestApp::start().await;
    let limits = ConnectionLimits {
        all: 2,
        ..ConnectionLimits::default()
    };
    let (address, _stopping) = listen_with(&app, limits).await;
    let first = in_use(&app, address).await;
    let second = in_use(&app, address).await;
    let (visited, answered) = tokio::join!(visit(&app, address), go_on(first));
    assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");
    assert!(visited.starts_with("HTTP/1.1 200"), "{visited}");
    assert!(go_on(second).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn requests_in_flight_are_cut_off_when_the_stop_has_waited_for_long_enough() {
    let app = TestApp::start().await;
    let limits = ConnectionLimits {
        drain: Duration::from_millis(200),
        ..ConnectionLimits::default()
    };
    let (listener, address) = socket().await;
    let (stopping, stopped) = watch::channel(false);
    let serving = tokio::spawn(serve(listener, platform(&app), limits, stopped));
    let hanging = in_use(&app, address).await;
    stopping.send_replace(true);
    let ended = timeout(NEVER, serving).await;
    assert!(ended.is_ok(), "the stop waits for a request without end");
    drop(hanging);
}

#[tokio::test]
async fn as_many_cookies_as_a_browser_keeps_lock_no_player_out() {
    let app = TestApp::start().await;
    // The maximum that Chromium stores for the sites under one domain, each cookie as long as
    // possible.
    let cookies: Vec<String> = (0..180)
        .map(|number| format!("c{number:03}={}", "x".repeat(4_092)))
        .collect();
    let cookies = cookies.join("; ");
    assert!(cookies.len() > 730_000);
    let token = send(app.post_token().header("cookie", &cookies)).await;
    assert_ne!(token.status, 431, "{token:?}");
    for (label, path) in [("auth", "/login"), ("", "/"), ("demo", "/")] {
        let page = send(app.get(label, path).header("cookie", &cookies)).await;
        assert_eq!(page.status, 200, "{label}{path}");
    }
}

#[tokio::test]
async fn large_heads_share_a_budget_and_small_ones_need_none() {
    let app = TestApp::start().await;
    let limits = ConnectionLimits {
        heads: 300_000,
        ..ConnectionLimits::default()
    };
    let (address, _stopping) = listen_with(&app, limits).await;
    let head = |bytes: usize| {
        format!(
            "GET / HTTP/1.1\r\nHost: platform.localhost:{}\r\nConnection: close\r\nCookie: a={}",
            app.port(),
            "x".repeat(bytes)
        )
    };
    // Two heads that do not end: there is no capacity for the second one.
    let mut first = TcpStream::connect(address).await.unwrap();
    first.write_all(head(250_000).as_bytes()).await.unwrap();
    let second = async {
        loop {
            // The server reads the first one a moment later.
            let mut stream = TcpStream::connect(address).await.unwrap();
            let whole = format!("{}\r\n\r\n", head(250_000));
            let mut answer = String::new();
            let sent = stream.write_all(whole.as_bytes()).await.is_ok();
            if !sent || stream.read_to_string(&mut answer).await.is_err() || answer.is_empty() {
                return;
            }
        }
    };
    timeout(NEVER, second).await.unwrap();
    let answered = async |bytes: usize| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let whole = format!("{}\r\n\r\n", head(bytes));
        stream.write_all(whole.as_bytes()).await.is_ok() && {
            let mut answer = String::new();
            let read = stream.read_to_string(&mut answer).await;
            read.is_ok() && answer.starts_with("HTTP/1.1 200")
        }
    };
    assert!(answered(1_000).await, "a small head");
    first.write_all(b"\r\n\r\n").await.unwrap();
    assert!(rest(&mut first).await.starts_with("HTTP/1.1 200"));
    assert!(answered(250_000).await, "the room came back");
}

#[tokio::test]
async fn a_silent_connection_does_not_hold_up_the_stop() {
    let app = TestApp::start().await;
    let mut stream = TcpStream::connect(app.running.address).await.unwrap();
    app.running.stop().await.unwrap();
    assert_eq!(rest(&mut stream).await, "");
}
