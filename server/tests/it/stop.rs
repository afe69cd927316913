//! The graceful shutdown.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::TestApp;

#[tokio::test]
async fn requests_in_flight_finish_and_new_connections_are_refused() {
    let app = TestApp::start().await;
    let (address, port) = (app.running.address, app.port());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /token HTTP/1.1\r\nHost: auth.platform.localhost:{port}\r\n\
         Origin: {}\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
        app.origin("demo")
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The handler has begun when the server asks for the body.
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");

    let TestApp {
        running, directory, ..
    } = app;
    let stopping = tokio::spawn(running.stop());
    let mut attempts = 0;
    while TcpStream::connect(address).await.is_ok() {
        attempts += 1;
        assert!(attempts < 100_000, "new connections are still accepted");
        tokio::task::yield_now().await;
    }
    assert!(
        !stopping.is_finished(),
        "the stop waits for the request in flight"
    );

    stream.write_all(b"{}").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("access_token"), "{answer}");
    stopping.await.unwrap().unwrap();
    drop(directory);
}

#[tokio::test]
async fn a_request_that_never_ends_holds_the_stop_up_for_ten_seconds() {
    let app = TestApp::start().await;
    // The owner's backend accepts the request and does not respond; the time limit for backends is
    // a minute.
    let backend = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", backend.local_addr().unwrap());
    app.set_backend(&url, &["/api/"]).await;
    let mut stream = TcpStream::connect(app.running.address).await.unwrap();
    let head = format!(
        "GET /api/x HTTP/1.1\r\nHost: demo.platform.localhost:{}\r\n\r\n",
        app.port()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (_asked, _) = backend.accept().await.unwrap();

    let TestApp {
        running, directory, ..
    } = app;
    let started = tokio::time::Instant::now();
    running.stop().await.unwrap();
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(10), "{took:?}");
    assert!(took < Duration::from_secs(14), "{took:?}");
    drop(directory);
}
