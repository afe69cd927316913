//! The backend of one game cannot use up the capacity of another's.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use futures_util::stream;
use platform_protocol::names::Environment;
use platform_server::config::Config;
use platform_server::games::catalogue::Game;
use platform_server::hosting::backends::{Backends, Settings};
use platform_server::origin::PlatformOrigin;
use platform_server::web::api_error::ApiError;
use platform_server::web::request_context::Context;
use platform_server::web::request_id::RequestId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{read_head, serve, serve_raw, soon};
use crate::support::{TestApp, send};

fn game(slug: &str) -> Game {
    Game {
        slug: slug.into(),
        environment: Environment::Prod,
        preview: None,
        audience: format!("game:{slug}").into(),
        origin: PlatformOrigin::local(8787).sub_domain(slug),
        is_apart: false,
        canonical: None,
        deployment: None,
        lasting: std::sync::Arc::default(),
        isolated: false,
        traced: false,
        taken_down: false,
        forget_from: None,
        framing: None,
        listing: Arc::default(),
        backend: None,
        caller: None,
    }
}

async fn ask(backends: &Backends, slug: &str) -> Result<axum::response::Response, ApiError> {
    ask_from([127, 0, 0, 1], backends, slug).await
}

async fn ask_from(
    address: impl Into<IpAddr>,
    backends: &Backends,
    slug: &str,
) -> Result<axum::response::Response, ApiError> {
    post_from(address, backends, slug, Body::empty()).await
}

async fn post_from(
    address: impl Into<IpAddr>,
    backends: &Backends,
    slug: &str,
    body: Body,
) -> Result<axum::response::Response, ApiError> {
    let game = game(slug);
    let backend = backends.find(&game, "/api/x").unwrap();
    let peer = SocketAddr::new(address.into(), 9);
    let context = Context {
        id: RequestId::unknown(),
        peer,
        trusted_peer: false,
        client: peer.ip(),
    };
    let request = axum::http::Request::post("/api/x").body(body);
    let request = request.unwrap();
    backends.forward(&backend, &game, &context, request).await
}

/// Creates backends with these settings, and a receiver that reports when `slow`, which never
/// responds, has accepted a request.
async fn slow(change: impl FnOnce(&mut Settings)) -> (Arc<Backends>, mpsc::UnboundedReceiver<()>) {
    let (arrived, seen) = mpsc::unbounded_channel();
    let slow = serve_raw(move |mut stream| {
        let arrived = arrived.clone();
        async move {
            read_head(&mut stream).await;
            let _ = arrived.send(());
            std::future::pending::<()>().await;
        }
    });
    let origin = PlatformOrigin::local(8787);
    let listening = vec!["127.0.0.1:8787".parse().unwrap()];
    let mut settings = Settings::new(&Config::default(), (&origin, &origin), listening);
    change(&mut settings);
    let backends = Arc::new(Backends::new(&origin, settings).unwrap());
    backends.add("slow", Environment::Prod, slow.await);
    (backends, seen)
}

/// The waiting requests of a test to `slow`.
struct Crowd {
    backends: Arc<Backends>,
    seen: mpsc::UnboundedReceiver<()>,
    waiting: JoinSet<bool>,
}

impl Crowd {
    /// Creates an empty crowd, at a backend with 32 slots.
    async fn gather() -> Self {
        let (backends, seen) = slow(|settings| settings.in_flight = 32).await;
        Self {
            backends,
            seen,
            waiting: JoinSet::new(),
        }
    }

    /// Lets `count` requests of this client reach the backend.
    async fn join(&mut self, client: &str, count: usize) {
        let client = client.parse::<IpAddr>().unwrap();
        for _ in 0..count {
            let backends = Arc::clone(&self.backends);
            let asking = async move { ask_from(client, &backends, "slow").await.is_ok() };
            self.waiting.spawn(asking);
            soon(self.seen.recv()).await.unwrap();
        }
    }

    /// Asserts that the next request of this client is refused, because of its network.
    async fn refuse(&self, client: &str) {
        let client = client.parse::<IpAddr>().unwrap();
        let refusal = soon(ask_from(client, &self.backends, "slow")).await;
        let refusal = refusal.unwrap_err();
        assert_eq!(refusal.slug().as_str(), "unavailable");
        assert!(refusal.detail().contains("network"), "{}", refusal.detail());
    }
}

#[tokio::test]
async fn a_network_has_only_its_share_of_a_backend_that_is_more_than_half_taken() {
    let mut crowd = Crowd::gather().await;
    crowd.join("127.0.0.1", 16).await;
    crowd.join("192.0.2.1", 2).await;
    crowd.join("192.0.2.2", 1).await;
    crowd.refuse("192.0.2.1").await;
    // This machine has no share, and a client that gives up frees its slot.
    crowd.join("127.0.0.1", 13).await;
    crowd.waiting.shutdown().await;
    crowd.join("192.0.2.1", 1).await;
}

#[tokio::test]
async fn a_network_borrows_what_is_free_of_a_backend_up_to_half() {
    for (school, other) in [
        ("192.0.2.1", "192.0.2.2"),
        ("2001:db8:1:1::1", "2001:db8:1:2::1"),
    ] {
        let mut crowd = Crowd::gather().await;
        crowd.join(school, 16).await;
        crowd.refuse(school).await;
        // This is more than the surrounding network may have together now.
        crowd.refuse(other).await;
        for number in 0..8 {
            crowd.join(&format!("198.51.{number}.1"), 2).await;
        }
        crowd.waiting.shutdown().await;
        crowd.join(other, 16).await;
    }
}

#[tokio::test]
async fn networks_around_one_another_share_an_eighth_of_a_backend() {
    let mut crowd = Crowd::gather().await;
    crowd.join("127.0.0.1", 16).await;
    for ([first, second, third], other) in [
        (["192.0.2.1", "192.0.2.2", "192.0.2.3"], "192.0.3.1"),
        (
            ["2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:1:3::1"],
            "2001:db8:2:1::1",
        ),
    ] {
        crowd.join(first, 2).await;
        crowd.join(second, 2).await;
        crowd.join(other, 1).await;
        crowd.refuse(third).await;
    }
}

#[tokio::test]
async fn a_body_that_trickles_gives_its_place_at_the_backend_back() {
    let (backends, mut seen) = slow(|settings| {
        settings.in_flight = 2;
        settings.limits.pace.within = Duration::from_millis(200);
    })
    .await;
    let asked: Vec<_> = (0..2)
        .map(|_| {
            let backends = Arc::clone(&backends);
            // It is never silent for long.
            let ticks = tokio::time::interval(Duration::from_millis(20));
            let trickle = stream::unfold(ticks, |mut ticks| async move {
                ticks.tick().await;
                Some((Ok::<_, std::io::Error>("x"), ticks))
            });
            let body = Body::from_stream(trickle);
            tokio::spawn(async move { post_from([127, 0, 0, 1], &backends, "slow", body).await })
        })
        .collect();
    for _ in 0..2 {
        soon(seen.recv()).await.unwrap();
    }
    for asked in asked {
        let refusal = soon(asked).await.unwrap().unwrap_err();
        assert_eq!(refusal.status(), 408);
    }
    let again = tokio::spawn(async move { ask(&backends, "slow").await.is_ok() });
    soon(seen.recv()).await.unwrap();
    again.abort();
}

#[tokio::test]
async fn a_backend_has_only_so_many_requests_in_progress_and_others_have_theirs() {
    let (backends, mut seen) = slow(|settings| settings.in_flight = 2).await;
    let quick = serve(Router::new().route("/api/x", post("here"))).await;
    backends.add("quick", Environment::Prod, quick);
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let backends = Arc::clone(&backends);
            tokio::spawn(async move { ask(&backends, "slow").await.is_ok() })
        })
        .collect();
    for _ in 0..2 {
        soon(seen.recv()).await.unwrap();
    }
    let refusal = soon(ask(&backends, "slow")).await.unwrap_err();
    assert_eq!(refusal.slug().as_str(), "unavailable");
    for _ in 0..10 {
        let answer = soon(ask(&backends, "quick")).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    // A client that gives up frees its slot.
    for task in &waiting {
        task.abort();
    }
    for task in waiting {
        assert!(task.await.unwrap_err().is_cancelled());
    }
    let again = Arc::clone(&backends);
    let again = tokio::spawn(async move { ask(&again, "slow").await.is_ok() });
    soon(seen.recv()).await.unwrap();
    again.abort();
}

#[tokio::test]
async fn two_hundred_requests_that_hang_slow_no_other_game() {
    let app = TestApp::start().await;
    let (arrived, mut seen) = mpsc::unbounded_channel();
    let dead = serve_raw(move |mut stream| {
        let arrived = arrived.clone();
        async move {
            read_head(&mut stream).await;
            let _ = arrived.send(());
            std::future::pending::<()>().await;
        }
    });
    app.set_api(dead.await).await;
    let quick = serve(Router::new().route("/api/x", get("here"))).await;
    let backends = &app.running.state.hosting.backends;
    backends.add("demo", Environment::Dev, quick);
    let head = format!("GET /api/x HTTP/1.1\r\nHost: {}\r\n\r\n", app.demo());
    let mut hanging = Vec::new();
    for _ in 0..200 {
        hanging.push(app.send_raw(&head).await);
        soon(seen.recv()).await.unwrap();
    }
    let started = tokio::time::Instant::now();
    for _ in 0..20 {
        let answer = soon(send(app.get("dev-demo", "/api/x"))).await;
        assert_eq!(answer.text(), "here");
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(5));
}
