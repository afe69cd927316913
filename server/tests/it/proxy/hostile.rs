//! Requests that try to reach forbidden targets, or to be read as two requests.

use std::sync::{Arc, Mutex};

use platform_protocol::problem::Problem;
use platform_server::config::PrivateBackends;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::{answer_raw, read_head, rest, serve_raw, soon};
use crate::support::{TestApp, send};

/// A backend that responds with 204 to every head on a connection, and collects everything that it
/// has read.
async fn listening() -> (std::net::SocketAddr, Arc<Mutex<String>>) {
    let heard = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&heard);
    let address = serve_raw(move |mut stream| {
        let heard = Arc::clone(&heard);
        async move {
            let mut piece = vec![0; 65_536];
            loop {
                let read = match stream.read(&mut piece).await {
                    Ok(0) | Err(_) => return,
                    Ok(read) => read,
                };
                let text = String::from_utf8_lossy(&piece[..read]).into_owned();
                let ends = text.contains("\r\n\r\n");
                heard.lock().unwrap().push_str(&text);
                if ends {
                    let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
                    let _ = stream.write_all(answer).await;
                }
            }
        }
    })
    .await;
    (address, seen)
}

#[tokio::test]
async fn requests_whose_length_is_in_doubt_never_reach_a_backend() {
    let app = TestApp::start().await;
    let (address, heard) = listening().await;
    app.set_api(address).await;
    for (name, headers, body) in [
        (
            "two lengths",
            "Content-Length: 1\r\nContent-Length: 2",
            "ab",
        ),
        ("a list of lengths", "Content-Length: 1, 2", "ab"),
        ("a signed length", "Content-Length: +1", "a"),
        ("a length in hexadecimal", "Content-Length: 0x1", "a"),
        (
            "chunked, but not last",
            "Transfer-Encoding: chunked, identity",
            "",
        ),
        ("another coding", "Transfer-Encoding: xchunked", ""),
        ("no coding", "Transfer-Encoding: identity", ""),
        (
            "a folded header",
            "X-A: b\r\n Transfer-Encoding: chunked",
            "",
        ),
        (
            "a space before the colon",
            "Transfer-Encoding : chunked",
            "",
        ),
        ("a control character", "X-A: b\u{1}c", ""),
        (
            "a bare carriage return",
            "X-A: b\rTransfer-Encoding: chunked",
            "",
        ),
        ("no name", ": b", ""),
    ] {
        let request = format!(
            "POST /api/x HTTP/1.1\r\nHost: {}\r\n{headers}\r\nConnection: close\r\n\r\n{body}",
            app.demo()
        );
        let answer = rest(app.send_raw(&request).await).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{name}: {answer}");
        assert_eq!(*heard.lock().unwrap(), "", "{name}");
    }
}

#[tokio::test]
async fn chunks_of_another_form_end_the_request() {
    let app = TestApp::start().await;
    let (address, heard) = listening().await;
    app.set_api(address).await;
    for body in [
        "g\r\na\r\n0\r\n\r\n",
        "-1\r\na\r\n0\r\n\r\n",
        "0x1\r\na\r\n0\r\n\r\n",
        "1\r\nab\r\n0\r\n\r\n",
        "ffffffffffffffffff\r\na\r\n0\r\n\r\n",
    ] {
        let request = format!(
            "POST /api/x HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n{body}\
             GET /api/smuggled HTTP/1.1\r\nHost: {}\r\n\r\n",
            app.demo(),
            app.demo()
        );
        let answer = rest(app.send_raw(&request).await).await;
        assert!(!answer.contains(" 204 No Content\r\n") || answer.matches("HTTP/1.1").count() == 1);
        assert!(!heard.lock().unwrap().contains("smuggled"), "{body:?}");
    }
}

/// If there is both a length and a transfer coding, the coding counts (RFC 9112 §6.1), and the
/// backend sees only one of them.
#[tokio::test]
async fn a_length_beside_a_coding_is_not_passed_on() {
    for headers in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
    ] {
        let app = TestApp::start().await;
        let (address, heard) = listening().await;
        app.set_api(address).await;
        let request = format!(
            "POST /api/x HTTP/1.1\r\nHost: {}\r\n{headers}\r\nConnection: close\r\n\r\n\
             2\r\nab\r\n0\r\n\r\n",
            app.demo()
        );
        rest(app.send_raw(&request).await).await;
        let heard = heard.lock().unwrap().to_ascii_lowercase();
        assert!(heard.contains("transfer-encoding: chunked\r\n"), "{heard}");
        assert!(!heard.contains("content-length"), "{heard}");
        assert!(heard.ends_with("\r\n\r\n2\r\nab\r\n0\r\n\r\n"), "{heard}");
    }
}

#[tokio::test]
async fn the_platforms_own_paths_never_reach_a_backend() {
    let app = TestApp::start().await;
    let (address, heard) = listening().await;
    app.set_backend(&format!("http://{address}"), &["/"]).await;
    for path in [
        "/__platform",
        "/__platform/",
        "/__platform/nothing",
        "/%5f%5fplatform/logs",
        "/%5F%5Fplatform/nothing",
        "/%255f%255fplatform/nothing",
        "//__platform/nothing",
        "/./__platform/nothing",
        "/api/../__platform/nothing",
        "/api/%2e%2e/__platform/nothing",
        "/api/..%2f__platform/nothing",
        "/%2f__platform/nothing",
        "/__platform%2fnothing",
        "/__platform;a/nothing",
        "/__PLATFORM/nothing",
    ] {
        for method in ["GET", "POST"] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\
                 Connection: close\r\n\r\n",
                app.demo()
            );
            let answer = rest(app.send_raw(&request).await).await;
            assert!(
                answer.starts_with("HTTP/1.1 404"),
                "{method} {path}: {answer}"
            );
            assert!(answer.contains("/not-found\""), "{method} {path}: {answer}");
            assert_eq!(*heard.lock().unwrap(), "", "{method} {path}");
        }
    }
    // The runtime belongs to the platform as well.
    let answer = send(app.get("demo", "/__platform/runtime.js")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(*heard.lock().unwrap(), "");
}

#[tokio::test]
async fn a_backend_answers_its_paths_and_no_others() {
    let app = TestApp::start().await;
    for (paths, asked, reached) in [
        (["/api/"], "/api/x", true),
        (["/api/"], "/api/", true),
        (["/api/"], "/api", false),
        (["/api/"], "/apix", false),
        (["/api"], "/api", true),
        (["/api"], "/api?x", true),
        (["/api"], "/api/x", true),
        (["/api"], "/apix", false),
        (["/api"], "/api%2fx", false),
        (["/api/"], "/API/x", false),
        (["/api/"], "/api/../x", false),
        (["/api/"], "/api/%2e%2e/x", false),
        (["/api/"], "/x/../api/x", false),
    ] {
        let (address, heard) = listening().await;
        app.set_backend(&format!("http://{address}"), &paths).await;
        let request = format!(
            "GET {asked} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            app.demo()
        );
        rest(app.send_raw(&request).await).await;
        let heard = heard.lock().unwrap();
        assert_eq!(!heard.is_empty(), reached, "{paths:?} {asked}: {heard}");
    }
}

#[tokio::test]
async fn hop_by_hop_headers_and_cookies_for_others_end_at_the_platform() {
    let app = TestApp::start().await;
    let answer = "HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\
                  Keep-Alive: timeout=5\r\nProxy-Connection: close\r\nX-Request-Id: theirs\r\n\
                  Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2; Domain=platform.localhost\r\n\
                  Set-Cookie: platform-session=x\r\nSet-Cookie: c=3; Domain=demo.platform.localhost\r\n\
                  X-Kept: 1\r\nContent-Length: 2\r\n\r\nok";
    app.set_api(answer_raw(answer).await).await;
    let answer = send(app.get("demo", "/api/x")).await;
    assert_eq!(answer.text(), "ok");
    for gone in ["x-hop", "keep-alive", "proxy-connection"] {
        assert_eq!(answer.header(gone), None, "{gone}");
    }
    assert_eq!(answer.header("x-kept"), Some("1"));
    assert_ne!(answer.header("x-request-id"), Some("theirs"));
    let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
    assert_eq!(
        cookies,
        ["a=1; Path=/", "c=3; Domain=demo.platform.localhost"]
    );
}

#[tokio::test]
async fn a_backend_never_gets_the_players_session() {
    let app = TestApp::start().await;
    let (heads, mut seen) = mpsc::unbounded_channel();
    let backend = serve_raw(move |mut stream| {
        let heads = heads.clone();
        async move {
            let _ = heads.send(read_head(&mut stream).await);
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    });
    app.set_api(backend.await).await;
    let cookie = app.sign_in("somebody", None).await;
    let request = app
        .get("demo", "/api/x")
        .header("cookie", format!("a=1; {cookie}; b=2"));
    send(request).await;
    let head = soon(seen.recv()).await.unwrap();
    assert!(head.contains("\r\ncookie: a=1; b=2\r\n"), "{head}");
    assert!(!head.contains(&cookie), "{head}");
}

#[tokio::test]
async fn private_networks_are_refused_when_the_operator_says_so() {
    let app = TestApp::with(|config| {
        config.private_backends = Some(PrivateBackends::None);
    })
    .await;
    let (address, heard) = listening().await;
    let port = address.port();
    for host in [
        "127.0.0.1",
        "localhost",
        "x.localhost",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "0.0.0.0",
        "169.254.169.254",
    ] {
        // As a setting that was made while it was still allowed.
        app.set_backend(&format!("http://{host}:{port}"), &["/api/"])
            .await;
        let answer = soon(send(app.get("demo", "/api/x"))).await;
        assert_eq!(answer.problem(), "backend-unreachable", "{host}");
        assert_eq!(*heard.lock().unwrap(), "", "{host}");
    }
    let some = vec!["127.0.0.0/8".parse().unwrap()];
    let app = TestApp::with(|config| {
        config.private_backends = Some(PrivateBackends::Networks(some));
    })
    .await;
    app.set_api(address).await;
    assert_eq!(send(app.get("demo", "/api/x")).await.status, 204);
}

#[tokio::test]
async fn a_backend_that_leads_back_to_the_platform_is_refused_with_a_sentence() {
    let app = TestApp::start().await;
    let platform = app.running.address;
    // Directly back to the platform.
    app.set_backend(&format!("http://{platform}"), &["/api/"])
        .await;
    let answer = soon(send(app.get("demo", "/api/x"))).await;
    assert_eq!(answer.problem(), "backend-unreachable");
    // Through another server.
    let detour = serve_raw(move |mut stream| async move {
        let mut onwards = TcpStream::connect(platform).await.unwrap();
        let _ = copy_bidirectional(&mut stream, &mut onwards).await;
    });
    app.set_api(detour.await).await;
    let answer = soon(send(app.get("demo", "/api/x"))).await;
    // The problem of the inner request, with its own id.
    assert_eq!(answer.status, 502);
    let problem: Problem = answer.json();
    assert!(problem.type_uri.ends_with("/backend-unreachable"));
    assert!(
        answer.text().contains("leads back to the platform"),
        "{}",
        answer.text()
    );
}
