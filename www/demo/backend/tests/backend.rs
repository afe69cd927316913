//! The backend over real HTTP, with tokens of a test issuer and its key set
//! served over real HTTP as well.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use platform_demo_backend::{DemoConfig, DemoError, serve_with_clock};
use platform_verifier::Clock;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const ISSUER: &str = "http://auth.platform.localhost:8787";
const NOW: u64 = 1_767_225_600;
const ALICE: &str = "0197a1c0-7e3b-7c3e-9f4a-00000000000a";
const BOB: &str = "0197a1c0-7e3b-7c3e-9f4a-00000000000b";

#[derive(Debug)]
struct ManualClock(AtomicU64);

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

struct Issuer {
    key: SigningKey,
    jwks_url: String,
}

impl Issuer {
    async fn start() -> Self {
        let key = SigningKey::from_slice(&[5; 32]).unwrap();
        let point = key.verifying_key().to_sec1_point(false);
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let document = json!({ "keys": [{
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "test",
            "x": encode(point.x().unwrap()), "y": encode(point.y().unwrap()),
        }]});
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = move || async move { axum::Json(document) };
        let app = axum::Router::new().route("/jwks.json", axum::routing::get(answer));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self {
            key,
            jwks_url: format!("http://auth.platform.localhost:{port}/jwks.json"),
        }
    }

    fn token(&self, sub: &str, username: &str, audience: &str) -> String {
        let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = encode(json!({ "alg": "ES256", "typ": "JWT", "kid": "test" }));
        let payload = encode(json!({
            "sub": sub, "username": username, "aud": audience, "iss": ISSUER, "is_anon": true,
            "principal_kind": "human", "exp": NOW + 900, "iat": NOW, "jti": format!("{sub}-1"),
        }));
        let input = format!("{header}.{payload}");
        let signature: Signature = self.key.sign(input.as_bytes());
        // As the platform signs: the verifier accepts no other form.
        let signature = signature.normalize_s();
        format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
    }
}

struct Backend {
    origin: String,
    issuer: Issuer,
    clock: Arc<ManualClock>,
    directory: tempfile::TempDir,
    client: reqwest::Client,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Result<(), DemoError>>,
}

impl Backend {
    async fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap()).await
    }

    async fn start_in(directory: tempfile::TempDir) -> Self {
        let issuer = Issuer::start().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let config = DemoConfig {
            issuer: ISSUER.into(),
            audience: "game:demo".into(),
            jwks_url: issuer.jwks_url.clone(),
            database: directory.path().join("scores.db"),
        };
        let clock = Arc::new(ManualClock(AtomicU64::new(NOW)));
        let (stop, stopped) = oneshot::channel();
        let shutdown = async move { stopped.await.unwrap_or_default() };
        let served = tokio::spawn(serve_with_clock(listener, config, clock.clone(), shutdown));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self {
            origin,
            issuer,
            clock,
            directory,
            client,
            stop,
            served,
        }
    }

    fn anonymous(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.origin))
    }

    /// A request by the player with this id and name.
    fn by(&self, sub: &str, name: &str, method: Method, path: &str) -> reqwest::RequestBuilder {
        let token = self.issuer.token(sub, name, "game:demo");
        self.anonymous(method, path)
            .header("authorization", format!("Bearer {token}"))
    }

    fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.by(ALICE, "alice", Method::GET, path)
    }

    fn post(&self, path: &str) -> reqwest::RequestBuilder {
        self.by(ALICE, "alice", Method::POST, path)
    }

    /// Submits a score a second after the last one and returns the answer.
    async fn play(&self, sub: &str, name: &str, score: u32) -> Value {
        self.clock.0.fetch_add(1, Ordering::SeqCst);
        let request = self.by(sub, name, Method::POST, "/api/score");
        json_of(with_json(request, &json!({ "score": score }))).await
    }

    /// Stops the backend and returns what it leaves behind.
    async fn stop(self) -> tempfile::TempDir {
        self.stop.send(()).unwrap();
        drop(self.client);
        tokio::time::timeout(Duration::from_secs(30), self.served)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        self.directory
    }
}

fn with_json(request: reqwest::RequestBuilder, body: &Value) -> reqwest::RequestBuilder {
    request
        .header("content-type", "application/json")
        .body(body.to_string())
}

async fn json_of(request: reqwest::RequestBuilder) -> Value {
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["cache-control"], "no-store");
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// Sends the request and returns the problem's slug and status.
async fn problem_of(request: reqwest::RequestBuilder) -> (String, u16) {
    let response = request
        .header("x-request-id", "req-1")
        .send()
        .await
        .unwrap();
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    let status = response.status().as_u16();
    let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(body["status"], status);
    assert_eq!(body["request_id"], "req-1");
    assert!(
        body["detail"]
            .as_str()
            .is_some_and(|detail| detail.ends_with('.'))
    );
    let slug = body["type"]
        .as_str()
        .unwrap()
        .rsplit('/')
        .next()
        .unwrap()
        .to_owned();
    (slug, status)
}

#[tokio::test]
async fn me_says_who_plays() {
    let backend = Backend::start().await;
    let me = json_of(backend.get("/api/me")).await;
    assert_eq!(
        me,
        json!({ "sub": ALICE, "username": "alice", "is_anon": true })
    );
}

#[tokio::test]
async fn every_call_wants_a_token_for_this_game() {
    let backend = Backend::start().await;
    let calls = [
        (Method::GET, "/api/me"),
        (Method::POST, "/api/echo"),
        (Method::GET, "/api/score"),
        (Method::POST, "/api/score"),
    ];
    for (method, path) in calls {
        let anonymous = problem_of(backend.anonymous(method.clone(), path)).await;
        assert_eq!(
            anonymous,
            ("not-signed-in".to_owned(), 401),
            "{method} {path}"
        );
        let other = backend.issuer.token(ALICE, "alice", "game:dev-demo");
        let request = backend.anonymous(method, path);
        let request = request.header("authorization", format!("Bearer {other}"));
        assert_eq!(
            problem_of(request).await,
            ("not-signed-in".to_owned(), 401),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_token_is_judged_by_the_clock_that_was_handed_in() {
    let backend = Backend::start().await;
    backend.clock.0.fetch_add(900 + 59, Ordering::SeqCst);
    json_of(backend.get("/api/me")).await;
    backend.clock.0.fetch_add(1, Ordering::SeqCst);
    assert_eq!(
        problem_of(backend.get("/api/me")).await,
        ("not-signed-in".to_owned(), 401)
    );
}

#[tokio::test]
async fn echo_answers_text_as_it_came() {
    let backend = Backend::start().await;
    let request = backend
        .post("/api/echo")
        .header("content-type", "text/plain; charset=utf-8");
    let echo = json_of(request.body("žluťoučký\r\n\u{0} kůň")).await;
    assert_eq!(
        echo,
        json!({
            "sub": ALICE, "content_type": "text/plain; charset=utf-8",
            "body": "žluťoučký\r\n\u{0} kůň", "body_base64": null,
        })
    );
    let empty = json_of(backend.post("/api/echo")).await;
    assert_eq!(
        empty,
        json!({ "sub": ALICE, "content_type": null, "body": "", "body_base64": null })
    );
}

#[tokio::test]
async fn echo_answers_multipart_and_bytes_whole() {
    let backend = Backend::start().await;
    let multipart = "--b\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n";
    let request = backend
        .post("/api/echo")
        .header("content-type", "multipart/form-data; boundary=b");
    let echo = json_of(request.body(multipart)).await;
    assert_eq!(echo["body"], multipart);
    assert_eq!(echo["content_type"], "multipart/form-data; boundary=b");
    let bytes: Vec<u8> = (0..=255).cycle().take(1024 * 1024).collect();
    let echo = json_of(backend.post("/api/echo").body(bytes.clone())).await;
    assert_eq!(echo["body"], Value::Null);
    assert_eq!(
        STANDARD
            .decode(echo["body_base64"].as_str().unwrap())
            .unwrap(),
        bytes
    );
}

#[tokio::test]
async fn what_does_not_fit_is_answered_with_a_problem() {
    let backend = Backend::start().await;
    let too_large = backend.post("/api/echo").body(vec![b'x'; 1024 * 1024 + 1]);
    assert_eq!(
        problem_of(too_large).await,
        ("payload-too-large".to_owned(), 413)
    );
    let too_large = with_json(
        backend.post("/api/score"),
        &json!({ "pad": "x".repeat(5_000) }),
    );
    assert_eq!(
        problem_of(too_large).await,
        ("payload-too-large".to_owned(), 413)
    );
    let plain = backend
        .post("/api/score")
        .header("content-type", "text/plain")
        .body("{}");
    assert_eq!(
        problem_of(plain).await,
        ("unsupported-media-type".to_owned(), 415)
    );
    for body in [
        json!({}),
        json!({ "score": -1 }),
        json!({ "score": 1.5 }),
        json!({ "score": 1_000_001 }),
    ] {
        let request = with_json(backend.post("/api/score"), &body);
        assert_eq!(
            problem_of(request).await,
            ("invalid-request".to_owned(), 400),
            "{body}"
        );
    }
    let broken = backend
        .post("/api/score")
        .header("content-type", "application/json")
        .body("{");
    assert_eq!(
        problem_of(broken).await,
        ("invalid-request".to_owned(), 400)
    );
    assert_eq!(
        problem_of(backend.get("/api/none")).await,
        ("not-found".to_owned(), 404)
    );
    assert_eq!(
        problem_of(backend.get("/")).await,
        ("not-found".to_owned(), 404)
    );
}

#[tokio::test]
async fn another_method_is_refused_with_the_ones_that_are_allowed() {
    let backend = Backend::start().await;
    for (method, path, allowed) in [
        (Method::POST, "/api/me", "GET,HEAD"),
        (Method::GET, "/api/echo", "POST"),
        (Method::DELETE, "/api/score", "GET,HEAD,POST"),
    ] {
        let request = backend.by(ALICE, "alice", method.clone(), path);
        let response = request
            .try_clone()
            .unwrap()
            .header("x-request-id", "r")
            .send()
            .await
            .unwrap();
        assert_eq!(response.headers()["allow"], allowed, "{method} {path}");
        assert_eq!(
            problem_of(request).await,
            ("method-not-allowed".to_owned(), 405)
        );
    }
}

#[tokio::test]
async fn the_best_score_is_kept_and_ranked() {
    let backend = Backend::start().await;
    let before = json_of(backend.get("/api/score")).await;
    assert_eq!(before, json!({ "best": 0, "rank": null, "top": [] }));
    assert_eq!(backend.play(ALICE, "alice", 50).await["best"], 50);
    assert_eq!(
        backend.play(ALICE, "alice", 20).await["best"],
        50,
        "a lower score changes nothing"
    );
    // Of equal scores the earlier one is ahead, even after a lower one later.
    let bobs = backend.play(BOB, "bob", 50).await;
    assert_eq!(
        bobs,
        json!({ "best": 50, "rank": 2, "top": [
            { "username": "alice", "best": 50, "you": false },
            { "username": "bob", "best": 50, "you": true },
        ]})
    );
    let bobs = backend.play(BOB, "bob", 60).await;
    assert_eq!(
        (&bobs["rank"], &bobs["top"][0]["username"]),
        (&json!(1), &json!("bob"))
    );
    assert!(
        !bobs.to_string().contains(ALICE),
        "a player's id is nobody else's business"
    );
}

#[tokio::test]
async fn a_changed_name_is_shown_and_the_score_stays_with_the_player() {
    let backend = Backend::start().await;
    backend.play(ALICE, "alice", 50).await;
    let renamed = json_of(backend.by(ALICE, "al", Method::GET, "/api/score")).await;
    assert_eq!(
        renamed["top"],
        json!([{ "username": "al", "best": 50, "you": true }])
    );
    // Another player's former name does not identify that player.
    let other = json_of(backend.by(BOB, "alice", Method::GET, "/api/score")).await;
    assert_eq!((&other["best"], &other["rank"]), (&json!(0), &Value::Null));
}

#[tokio::test]
async fn the_top_list_ends_after_ten() {
    let backend = Backend::start().await;
    for number in 0..12_u32 {
        let sub = format!("0197a1c0-7e3b-7c3e-9f4a-0000000001{number:02}");
        backend
            .play(&sub, &format!("player-{number}"), 100 + number)
            .await;
    }
    let mine = backend.play(ALICE, "alice", 1).await;
    assert_eq!(mine["rank"], 13);
    let top = mine["top"].as_array().unwrap();
    let scores: Vec<_> = top
        .iter()
        .map(|entry| entry["best"].as_u64().unwrap())
        .collect();
    assert_eq!(scores, (102..=111).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn simultaneous_scores_of_one_player_end_in_the_best() {
    let backend = Arc::new(Backend::start().await);
    let plays: Vec<_> = (1..=40_u32)
        .map(|score| {
            let backend = backend.clone();
            tokio::spawn(async move { backend.play(ALICE, "alice", score * 7 % 41).await })
        })
        .collect();
    for play in plays {
        play.await.unwrap();
    }
    assert_eq!(json_of(backend.get("/api/score")).await["best"], 40);
}

#[tokio::test]
async fn scores_outlive_a_stop() {
    let backend = Backend::start().await;
    backend.play(ALICE, "alice", 50).await;
    let backend = Backend::start_in(backend.stop().await).await;
    assert_eq!(json_of(backend.get("/api/score")).await["best"], 50);
}

#[tokio::test]
async fn a_stop_waits_for_the_request_in_flight() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let backend = Backend::start().await;
    let token = backend.issuer.token(ALICE, "alice", "game:demo");
    let address = backend.origin.trim_start_matches("http://");
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /api/echo HTTP/1.1\r\nhost: demo\r\nauthorization: Bearer {token}\r\n\
         content-length: 5\r\nexpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The interim answer shows that the handler waits for the body.
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    let stopping = tokio::spawn(backend.stop());
    while tokio::net::TcpStream::connect(address_of(&stream))
        .await
        .is_ok()
    {
        tokio::task::yield_now().await;
    }
    stream.write_all(b"whole").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains(r#""body":"whole""#), "{answer}");
    stopping.await.unwrap();
}

fn address_of(stream: &tokio::net::TcpStream) -> std::net::SocketAddr {
    stream.peer_addr().unwrap()
}
