//! A name server that falls silent: whatever needs a name fails in time, everything else goes on, and it heals by
//! itself. The system's resolver keeps a thread for ten seconds for every name that nobody answers.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use futures_util::future::join_all;
use platform_test_dns::{A, RData, TestDns};
use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

use super::own_machine::OwnMachine;
use crate::browser::Browser;
use crate::caller::{Caller, archive};
use crate::proxy::certified;
use crate::sign_in::{good, named};
use crate::support::{Answer, TestApp, send};

const BACKEND: &str = "game.example";
const PROVIDER: &str = "id.example";
/// Who signs in at the same time: more than there are threads.
const CROWD: usize = 100;
/// The threads for blocking work. A program has 512.
const THREADS: usize = 64;
/// The questions of thirty lookups, each for an address of both kinds: the crowd has begun to wait.
const QUESTIONS: usize = 60;
/// How long it may take until somebody is told that a name has no address: ten seconds, on a busy machine.
const IN_TIME: Duration = Duration::from_secs(25);
/// How long anything else may take: less than the resolver keeps a thread.
const AT_ONCE: Duration = Duration::from_secs(8);

/// Starts a provider whose token endpoint takes no code, and returns its issuer.
async fn provide(machine: &OwnMachine) -> String {
    let (acceptor, authority) = certified(PROVIDER);
    machine.trust(&authority);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!(
        "https://{PROVIDER}:{}",
        listener.local_addr().unwrap().port()
    );
    let metadata = good(&issuer).to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, metadata) = (acceptor.clone(), metadata.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else {
                        return;
                    };
                    head.push(byte);
                }
                let (status, body) = match std::str::from_utf8(&head).unwrap() {
                    head if head.starts_with("GET /.well-known/") => ("200 OK", &*metadata),
                    head if head.starts_with("GET /jwks ") => ("200 OK", r#"{"keys":[]}"#),
                    _ => ("400 Bad Request", r#"{"error":"invalid_grant"}"#),
                };
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n\
                     Content-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
                let _ = stream.shutdown().await;
                // What has not been read would reset the connection.
                let _ = stream.read_to_end(&mut Vec::new()).await;
            });
        }
    });
    issuer
}

/// A platform with a provider and a backend that have names.
struct Scene {
    dns: TestDns,
    app: TestApp,
    game: String,
    issuer: String,
}

impl Scene {
    async fn set(machine: &OwnMachine) -> Self {
        let dns = TestDns::start_at("127.0.0.1:53").await;
        for name in [BACKEND, PROVIDER] {
            dns.add(name, RData::A(A(Ipv4Addr::LOCALHOST)));
        }
        let issuer = provide(machine).await;
        let providers = vec![named("one", &issuer)];
        let app = TestApp::with(|config| config.identity_providers = providers).await;
        let backend = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = backend.local_addr().unwrap().port();
        let routes = Router::new().route("/api/x", get(|| async { "here" }));
        tokio::spawn(async move { axum::serve(backend, routes).await });
        let address = format!("http://{BACKEND}:{port}");
        app.set_backend(&address, &["/api/"]).await;
        let game = format!("{}/level", app.origin("demo"));
        Self {
            dns,
            app,
            game,
            issuer,
        }
    }

    /// Goes to the provider, and returns the address at which it sends the browser back.
    async fn begin(&self, browser: &mut Browser<'_>) -> String {
        let chosen = browser.choose("one", &self.game).await;
        assert!(chosen.location().starts_with(&self.issuer), "{chosen:?}");
        let state = &chosen.location_query()["state"];
        let auth = self.app.origin("auth");
        format!("{auth}/callback/one?code=c&state={state}")
    }

    /// Asserts that a sign-in went back to its page with this problem, in time.
    fn assert_set_back(&self, back: &Answer, begun: Instant, problem: &str) {
        let expected = (problem.to_owned(), Some(self.game.clone()));
        assert_eq!(back.setback(), expected);
        assert!(begun.elapsed() < IN_TIME, "{:?}", begun.elapsed());
    }

    async fn ask_backend(&self) -> Answer {
        send(self.app.get("demo", "/api/x")).await
    }

    /// Asserts that everybody who needs no name is served at once: known and new players, pages, deploys, other
    /// games' backends.
    async fn assert_all_else_goes_on(&self, browser: &mut Browser<'_>, owner: &Caller<'_>) {
        let all = async {
            assert_eq!(browser.token().await.status, 200);
            assert_eq!(send(self.app.post_token()).await.status, 200);
            assert_eq!(send(self.app.get("demo", "/")).await.status, 200);
            let other = send(self.app.get("dev-demo", "/api/me")).await;
            assert_eq!(other.status, 401, "a backend without a name answers");
            let deployed = owner.deploy("prod", archive(&[("index.html", b"new")]));
            assert_eq!(deployed.await.status, 201);
            assert_eq!(send(self.app.get("game", "/")).await.text(), "new");
        };
        let served = timeout(AT_ONCE, all).await;
        assert!(served.is_ok(), "nobody else waits");
    }

    /// Asks what needs a name of a silent name server.
    async fn fail(&self, browser: &mut Browser<'_>, owner: &Caller<'_>) {
        let mut callbacks = Vec::new();
        for _ in 0..CROWD {
            callbacks.push(self.begin(browser).await);
        }
        self.dns.silence(true);
        let (asked, begun) = (self.dns.asked(), Instant::now());
        let failed = Cell::new(0);
        let requests: Vec<_> = callbacks
            .iter()
            .map(|callback| browser.request(Method::GET, callback))
            .collect();
        let crowd = join_all(requests.into_iter().map(async |request| {
            let back = send(request).await;
            failed.set(failed.get() + 1);
            self.assert_set_back(&back, begun, "provider-unavailable");
        }));
        let players = async {
            let answer = self.ask_backend().await;
            assert_eq!(answer.status, 502, "{answer:?}");
            assert_eq!(answer.problem(), "backend-unreachable");
            assert!(begun.elapsed() < IN_TIME, "{:?}", begun.elapsed());
        };
        let others = async {
            while self.dns.asked() < asked + QUESTIONS {
                assert!(begun.elapsed() < AT_ONCE, "the name server is asked");
                tokio::task::yield_now().await;
            }
            self.assert_all_else_goes_on(browser, owner).await;
            assert_eq!(failed.get(), 0, "they were served while others waited");
        };
        tokio::join!(crowd, players, others);
    }

    /// Waits until names have addresses again for everybody.
    async fn heal(&self, browser: &mut Browser<'_>) {
        self.dns.silence(false);
        let begun = Instant::now();
        while self.ask_backend().await.status != 200 {
            assert!(begun.elapsed() < IN_TIME, "the backend is found again");
        }
        // The metadata are asked for again.
        self.app.clock.advance(600_000);
        let callback = loop {
            let chosen = browser.choose("one", &self.game).await;
            if chosen.location().starts_with(&self.issuer) {
                break self.begin(browser).await;
            }
            assert!(begun.elapsed() < IN_TIME, "the provider is found again");
        };
        let back = browser.get(&callback).await;
        assert_eq!(back.setback().0, "failed", "it refuses the code itself");
    }
}

async fn play(machine: &OwnMachine) {
    let scene = Scene::set(machine).await;
    let owner = Caller::with_project(&scene.app).await;
    let mut browser = Browser::new(&scene.app);
    let guest = browser.token().await.claims().sub;
    scene.fail(&mut browser, &owner).await;
    // Nobody is sent to a provider whose metadata are old.
    scene.app.clock.advance(600_000);
    let begun = Instant::now();
    let back = browser.choose("one", &scene.game).await;
    scene.assert_set_back(&back, begun, "provider-unavailable");
    scene.heal(&mut browser).await;
    assert_eq!(browser.token().await.claims().sub, guest);
}

#[test]
fn while_the_name_server_is_silent_only_what_needs_a_name_fails_and_it_heals_by_itself() {
    let name = "faults::name_server::while_the_name_server_is_silent_only_what_needs_a_name_fails_and_it_heals_by_itself";
    let Some(machine) = OwnMachine::enter(name) else {
        return;
    };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).max_blocking_threads(THREADS);
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(play(&machine));
    // Lookups may still wait.
    runtime.shutdown_background();
}
