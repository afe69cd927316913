//! A server with more requests than it can answer.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use axum::response::Response;
use futures_util::future::join_all;
use http_body_util::BodyExt as _;
use platform_server::app::entry::App;
use platform_server::app::routes::routes;
use platform_server::web::serve::Application as _;
use reqwest::Method;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::support::{Answer, TestApp, send};

/// Sends a request without a connection, with the origin of a game's page.
async fn ask(platform: &App, app: &TestApp, method: &str, label: &str, path: &str) -> Response {
    let address = app.origin(label);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address.trim_start_matches("http://"))
        .header(header::ORIGIN, app.origin("demo"));
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    platform
        .answer(peer, request.body(Body::empty()).unwrap())
        .await
}

#[tokio::test]
async fn a_refused_page_is_told_when_to_come_again_and_all_is_served_afterwards() {
    let app = TestApp::with(|config| config.overload_millis = 20).await;
    let state = app.running.state.clone();
    let platform = App::new(state.clone(), routes(&state));
    platform.overload.set_pressure(1.0);
    let logs = ask(&platform, &app, "POST", "demo", "/__platform/logs").await;
    assert_eq!(logs.status(), 503);
    let page = ask(&platform, &app, "GET", "demo", "/__platform/runtime.js").await;
    assert_eq!(page.status(), 200, "pages come after logs");

    platform.overload.set_pressure(3.0);
    let page = ask(&platform, &app, "GET", "demo", "/__platform/runtime.js").await;
    assert_eq!(page.status(), 503);
    let mut admitted = 0;
    for _ in 0..40 {
        let token = ask(&platform, &app, "POST", "auth", "/token").await;
        if token.status() == 200 {
            admitted += 1;
            continue;
        }
        assert_eq!(token.status(), 503);
        let headers = token.headers();
        let wait: u64 = headers[header::RETRY_AFTER]
            .to_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!((1..=4).contains(&wait), "{wait}");
        let readable = &headers[header::ACCESS_CONTROL_ALLOW_ORIGIN];
        assert_eq!(readable, &app.origin("demo"));
        let body = token.into_body().collect().await.unwrap().to_bytes();
        let problem = String::from_utf8_lossy(&body).into_owned();
        assert!(problem.contains("/problems/unavailable"), "{problem}");
    }
    assert!((2..=3).contains(&admitted), "one of twenty: {admitted}");

    platform.overload.set_pressure(0.0);
    let page = ask(&platform, &app, "GET", "demo", "/__platform/runtime.js").await;
    assert_eq!(page.status(), 200);
}

/// Visitors who ask again as soon as they are answered.
const VISITORS: usize = 60;
/// Slow work that always waits for the server's only thread, in pieces of this length: every request waits for all
/// of it.
const PIECES: usize = 40;
const PIECE: Duration = Duration::from_millis(2);
/// How long the server may take to notice that it is overloaded, or not any more.
const PATIENCE: Duration = Duration::from_secs(90);
/// Requests of every kind that are answered one after the other when nothing is refused.
const ANSWERED: usize = 20;

/// What a visitor asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Log,
    Page,
    Token,
}

const KINDS: [Kind; 3] = [Kind::Log, Kind::Page, Kind::Token];

impl Kind {
    /// Asks, as a player who is known. Returns whether it was refused because of the load.
    async fn is_refused(self, app: &TestApp, cookie: &str) -> bool {
        let request = match self {
            Self::Log => app.request(Method::POST, "demo", "/__platform/logs"),
            Self::Page => app.get("demo", "/nothing-is-here"),
            Self::Token => app.post_token().header("cookie", cookie),
        };
        let answer: Answer = send(request).await;
        if answer.status != 503 {
            assert!(self != Self::Token || answer.status == 200, "{answer:?}");
            return false;
        }
        assert_eq!(answer.problem(), "unavailable");
        let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=4).contains(&wait), "{wait}");
        true
    }
}

/// A server with one thread, as if its machine had half a processor for it.
struct Slow {
    runtime: Runtime,
    app: TestApp,
    cookie: String,
    goes_on: Arc<AtomicBool>,
}

impl Slow {
    fn start() -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let app = runtime.block_on(TestApp::with(|config| config.overload_millis = 1));
        let known = runtime.block_on(send(app.post_token()));
        let cookie = known.cookie().unwrap().to_owned();
        let goes_on = Arc::new(AtomicBool::new(true));
        Self {
            runtime,
            app,
            cookie,
            goes_on,
        }
    }

    /// Gives the server more work than it can do, from a thread of its own, until `goes_on` is false.
    fn slow_down(&self) {
        let (runtime, goes_on) = (self.runtime.handle().clone(), Arc::clone(&self.goes_on));
        let waiting = Arc::new(AtomicUsize::new(0));
        std::thread::spawn(move || {
            while goes_on.load(Ordering::Relaxed) {
                while waiting.load(Ordering::Relaxed) < PIECES {
                    waiting.fetch_add(1, Ordering::Relaxed);
                    let waiting = Arc::clone(&waiting);
                    runtime.spawn(async move {
                        std::thread::park_timeout(PIECE);
                        waiting.fetch_sub(1, Ordering::Relaxed);
                    });
                }
                std::thread::park_timeout(PIECE);
            }
        });
    }

    /// Lets visitors ask until each kind has been refused, and a token was given after one was refused. Returns the
    /// kinds in the order in which they were refused for the first time.
    async fn overload(&self) -> Vec<Kind> {
        let (begun, refused) = (Instant::now(), RefCell::new(Vec::new()));
        let is_over = RefCell::new(false);
        let visit = async |number: usize| {
            let kind = KINDS[number % KINDS.len()];
            while !*is_over.borrow() {
                let is_refused = kind.is_refused(&self.app, &self.cookie).await;
                let mut refused = refused.borrow_mut();
                if is_refused && !refused.contains(&kind) {
                    refused.push(kind);
                }
                *is_over.borrow_mut() |=
                    kind == Kind::Token && !is_refused && refused.len() == KINDS.len();
                assert!(begun.elapsed() < PATIENCE, "refused: {refused:?}");
            }
        };
        join_all((0..VISITORS).map(visit)).await;
        refused.into_inner()
    }

    /// Waits until nothing is refused any more.
    async fn heal(&self) {
        let (begun, mut answered) = (Instant::now(), 0);
        while answered < ANSWERED {
            answered += 1;
            for kind in KINDS {
                if kind.is_refused(&self.app, &self.cookie).await {
                    answered = 0;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "it heals by itself");
        }
    }
}

#[test]
fn a_server_that_is_too_slow_refuses_logs_first_and_tokens_last_until_the_load_ends() {
    let server = Slow::start();
    // Visitors have a thread of their own.
    let visitors = Builder::new_current_thread().enable_all().build().unwrap();
    // At first, nothing is refused.
    visitors.block_on(server.heal());
    server.slow_down();
    let refused = visitors.block_on(server.overload());
    assert_eq!(refused, KINDS, "what matters least is refused first");
    server.goes_on.store(false, Ordering::Relaxed);
    visitors.block_on(server.heal());
    let Slow { runtime, app, .. } = server;
    runtime.block_on(app.running.stop()).unwrap();
}
