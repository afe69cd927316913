//! A receiver that does not answer, or is not there.

use std::net::SocketAddr;
use std::time::Duration;

use platform_test_ports::ReservedPort;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

use crate::metrics::Scrape;
use crate::support::{TestApp, send};
use crate::webhooks::eventually;

const ITEMS: &str = "platform_telemetry_items_total";

/// Starts a platform that traces every request for this receiver.
async fn traced_for(receiver: SocketAddr) -> (TestApp, SocketAddr) {
    let app = TestApp::with(|config| {
        config.operations_listen = Some("127.0.0.1:0".parse().unwrap());
        config.otlp.endpoint = Some(format!("http://{receiver}").parse().unwrap());
        config.otlp.sample = 1.0;
    })
    .await;
    let operations = app.running.operations.unwrap();
    (app, operations)
}

async fn spans(operations: SocketAddr, outcome: &str) -> f64 {
    let scrape = Scrape::of(operations).await;
    scrape.value(ITEMS, &[("signal", "spans"), ("outcome", outcome)])
}

#[tokio::test]
async fn a_receiver_that_does_not_answer_delays_nobody_and_what_it_misses_is_counted() {
    // Its connections are accepted by the system, and never read.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (app, operations) = traced_for(silent.local_addr().unwrap()).await;
    // More than may wait.
    for _ in 0..2_200 {
        let answered = timeout(Duration::from_secs(5), send(app.get("nobody", "/"))).await;
        assert_eq!(answered.unwrap().status, 404);
    }
    assert_eq!(send(app.post_token()).await.status, 200);
    assert!(spans(operations, "dropped").await > 0.0);
    assert!(spans(operations, "sent").await < 1.0);
    // The end waits for two seconds at most.
    let begun = Instant::now();
    app.running.stop().await.unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}",
        begun.elapsed()
    );
    drop(silent);
}

#[tokio::test]
async fn a_receiver_that_is_not_there_is_missed_by_nobody() {
    let gone = ReservedPort::take().unwrap();
    let (app, operations) = traced_for(gone.address()).await;
    assert_eq!(send(app.post_token()).await.status, 200);
    eventually("nothing failed", async || {
        spans(operations, "failed").await > 0.0
    })
    .await;
    assert_eq!(send(app.post_token()).await.status, 200);
    app.running.stop().await.unwrap();
}

#[tokio::test]
async fn without_a_receiver_nothing_is_made() {
    let app = TestApp::with(|config| {
        config.operations_listen = Some("127.0.0.1:0".parse().unwrap());
        config.otlp.sample = 1.0;
    })
    .await;
    assert_eq!(send(app.post_token()).await.status, 200);
    let telemetry = &app.running.state.platform.telemetry;
    assert!(!telemetry.is_on());
    assert!(telemetry.request(None).is_none());
    let scrape = Scrape::of(app.running.operations.unwrap()).await;
    assert!(!scrape.text.contains(ITEMS));
}
