//! Alerts about errors: from the records of pages to a receiver that checks the signature.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, Method as Sent, StatusCode, Uri, header};
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use platform_server::clock::Clock as _;
use platform_server::config::Config;
use platform_server::domain::error_alert::WaitingAlert;
use platform_test_ports::ReservedPort;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{interval, timeout};

use crate::caller::{Caller, archive};
use crate::support::{Answer, NOW, TestApp, send};

pub(crate) const WEBHOOK: &str = "/api/projects/game/webhook";
const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const PATIENCE: Duration = Duration::from_secs(20);

/// A request that the receiver got.
pub(crate) struct Got {
    path: String,
    headers: HeaderMap,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub(crate) fn event(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Checks the signature as the specification says, with another library than the platform.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let key = STANDARD
            .decode(secret.strip_prefix("whsec_").unwrap())
            .unwrap();
        assert_eq!(key.len(), 32);
        let (id, seconds) = (self.header("webhook-id"), self.header("webhook-timestamp"));
        let signed = format!("{id}.{seconds}.{}", self.body);
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key);
        let signature = self
            .header("webhook-signature")
            .strip_prefix("v1,")
            .unwrap();
        let signature = STANDARD.decode(signature).unwrap();
        ring::hmac::verify(&key, signed.as_bytes(), &signature).is_ok()
    }
}

/// A receiver on a port of its own. It responds with the statuses of `answers`, and then with 204.
pub(crate) struct Receiver {
    pub(crate) url: String,
    answers: Arc<Mutex<VecDeque<u16>>>,
    got: mpsc::UnboundedReceiver<Got>,
}

impl Receiver {
    pub(crate) async fn start(answers: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook?key=b", listener.local_addr().unwrap());
        let answers = Arc::new(Mutex::new(answers.iter().copied().collect::<VecDeque<_>>()));
        let next = Arc::clone(&answers);
        let (sender, got) = mpsc::unbounded_channel();
        let routes = axum::Router::new().fallback(
            move |method: Sent, uri: Uri, headers: HeaderMap, body: String| {
                assert_eq!(method, Sent::POST);
                let path = uri.to_string();
                let _ = sender.send(Got {
                    path,
                    headers,
                    body,
                });
                let status = next.lock().unwrap().pop_front().unwrap_or(204);
                let status = StatusCode::from_u16(status).unwrap();
                async move { (status, [(header::LOCATION, "/other")], "text").into_response() }
            },
        );
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, answers, got }
    }

    pub(crate) async fn next(&mut self) -> Got {
        let got = timeout(PATIENCE, self.got.recv()).await;
        got.unwrap().unwrap()
    }

    /// Whether nothing else has come.
    fn is_empty(&mut self) -> bool {
        self.got.try_recv().is_err()
    }
}

async fn set(owner: &Caller<'_>, url: &str) -> Value {
    let set = owner.put(WEBHOOK, json!({ "url": url })).await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.text());
    set.json()
}

fn secret(set: &Value) -> String {
    set["secret"].as_str().unwrap().to_owned()
}

async fn webhook(caller: &Caller<'_>) -> Value {
    let read = caller.get(WEBHOOK).await;
    assert_eq!(read.status, StatusCode::OK, "{}", read.text());
    read.json::<Value>()["webhook"].take()
}

/// Logs errors of these messages from a page of the game.
async fn log(app: &TestApp, messages: &[&str]) {
    log_as(app, None, messages).await;
}

/// Logs errors of these messages from a page of the game, as the player with this token.
async fn log_as(app: &TestApp, token: Option<&str>, messages: &[&str]) {
    let record = |message: &&str| json!({ "time": NOW, "level": "error", "source": "report", "message": message });
    let records: Vec<Value> = messages.iter().map(record).collect();
    let body = json!({ "page": "AAAAAAAAAAAAAAAAAAAAAA", "records": records });
    let request = app
        .request(Method::POST, "game", "/__platform/logs")
        .header("content-type", "application/json")
        .body(body.to_string());
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    let sent = send(request).await;
    assert_eq!(sent.status, 204, "{}", sent.text());
}

/// Waits until this is so.
pub(crate) async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let mut looks = interval(Duration::from_millis(20));
    let waiting = async {
        while !is_so().await {
            looks.tick().await;
        }
    };
    let happened = timeout(PATIENCE, waiting).await;
    assert!(happened.is_ok(), "{what}");
}

/// Waits until the alerts that are still to be sent are like this.
async fn until_waiting(app: &TestApp, is_so: impl Fn(&[WaitingAlert]) -> bool) {
    let store = &app.running.state.platform.store;
    eventually("other alerts wait", async || {
        is_so(&store.list_due_alerts(i64::MAX, 100, 100).await.unwrap())
    })
    .await;
}

async fn test(owner: &Caller<'_>) -> Value {
    let answer: Answer = owner.post(&format!("{WEBHOOK}/test"), json!({})).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.json()
}

#[tokio::test]
async fn a_new_error_and_one_that_came_back_are_told_with_a_signature() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let mut receiver = Receiver::start(&[]).await;
    // Nobody is told what happened before.
    log(&app, &["Nobody knows"]).await;
    let errors = "/api/projects/game/error-groups";
    eventually("no group", async || {
        let listed: Value = owner.get(errors).await.json();
        !listed["groups"].as_array().unwrap().is_empty()
    })
    .await;
    let secret = secret(&set(&owner, &receiver.url).await);
    log(
        &app,
        &["No coins left: 12", "No coins left: 7", "Nobody knows"],
    )
    .await;
    let got = receiver.next().await;
    assert!(got.is_signed_with(&secret));
    assert!(!got.is_signed_with("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="));
    assert_eq!(got.path, "/hook?key=b");
    assert_eq!(got.header("content-type"), "application/json");
    assert_eq!(got.header("webhook-timestamp"), (NOW / SECOND).to_string());
    let event = got.event();
    assert_eq!(event["type"], "error.new");
    assert_eq!(event["timestamp"], "2026-01-01T00:00:00Z");
    let data = &event["data"];
    assert_eq!(
        (&data["project"], &data["environment"]),
        (&json!("game"), &json!("prod"))
    );
    assert_eq!((&data["count"], &data["left_out"]), (&json!(2), &json!(0)));
    assert!(
        data["message"]
            .as_str()
            .unwrap()
            .starts_with("No coins left")
    );
    let id = data["group"].as_str().unwrap();
    let console = app.running.state.platform.origin.to_string();
    let page = format!("{console}/projects/game/errors/{id}?env=prod");
    assert_eq!(data["url"], page);
    let shown = send(app.get("", &format!("/projects/game/errors/{id}?env=prod"))).await;
    assert_eq!(shown.status, StatusCode::OK);
    // It comes back in a later deployment.
    until_waiting(&app, <[_]>::is_empty).await;
    let resolved = owner
        .put(&format!("{errors}/{id}"), json!({ "state": "resolved" }))
        .await;
    assert_eq!(resolved.status, StatusCode::OK);
    app.clock.advance(SECOND);
    let deployed = owner
        .deploy("prod", archive(&[("index.html", b"new")]))
        .await;
    assert_eq!(deployed.status, StatusCode::CREATED);
    app.clock.advance(SECOND);
    log(&app, &["No coins left: 1"]).await;
    let again = receiver.next().await;
    assert_eq!(again.event()["type"], "error.regressed");
    assert_eq!(again.event()["data"]["group"], id);
    assert_ne!(again.header("webhook-id"), got.header("webhook-id"));
    assert!(again.is_signed_with(&secret));
    assert!(receiver.is_empty());
    eventually("no outcome", async || {
        webhook(&owner).await["last"]["status"] == 204
    })
    .await;
}

#[tokio::test]
async fn errors_of_strangers_keep_back_no_alert_about_those_of_a_player() {
    let usual = Config::default();
    let app = TestApp::with(|config| {
        config.log_rate = usual.log_rate;
        config.log_rate_game = usual.log_rate_game;
        config.log_bytes_rate = usual.log_bytes_rate;
        config.log_bytes_rate_game = usual.log_bytes_rate_game;
    })
    .await;
    let (owner, _) = Caller::with_game(&app, "prod").await;
    let mut receiver = Receiver::start(&[]).await;
    set(&owner, &receiver.url).await;
    let letters = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let made_up: Vec<String> = letters
        .iter()
        .flat_map(|one| letters.map(|other| format!("Made up: {one}{other}")))
        .collect();
    let made_up: Vec<&str> = made_up.iter().map(String::as_str).collect();
    for _ in 0..10 {
        log(&app, &made_up).await;
    }
    let store = &app.running.state.platform.store;
    eventually("they are not grouped", async || {
        store.list_ungrouped(9).await.unwrap().is_empty()
    })
    .await;
    let listed: Value = owner.get("/api/projects/game/error-groups").await.json();
    assert_eq!(listed["groups"][0]["count"], 10, "{listed}");

    // A player meets another error, and one that strangers have sent as well.
    let token = app.request(Method::POST, "auth", "/token");
    let token = send(token.header("origin", app.origin("game"))).await;
    let real = ["It broke", made_up[99]];
    log_as(&app, Some(&token.token()), &real).await;
    let mut told = Vec::new();
    while !real.iter().all(|real| told.iter().any(|told| told == real)) {
        let event = receiver.next().await.event();
        told.push(event["data"]["message"].as_str().unwrap().to_owned());
    }
    assert!(told.len() <= 7, "{told:?}");
}

#[tokio::test]
async fn what_was_not_taken_is_sent_again_later_with_the_same_id() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let mut receiver = Receiver::start(&[500, 302]).await;
    let secret = secret(&set(&owner, &receiver.url).await);
    log(&app, &["It broke"]).await;
    let first = receiver.next().await;
    // The first delay is 5 s, the second 5 min, and a tenth of it may be added.
    for (tries, early, rest) in [(1, 4 * SECOND, 2 * SECOND), (2, 4 * MINUTE, 2 * MINUTE)] {
        until_waiting(&app, |waiting| waiting[0].tries == tries).await;
        app.clock.advance(early);
        let now = app.clock.now();
        let store = &app.running.state.platform.store;
        assert_eq!(store.list_due_alerts(now, 9, 9).await.unwrap(), []);
        app.clock.advance(rest);
        let again = receiver.next().await;
        assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
        assert_eq!(again.path, "/hook?key=b", "no redirect is followed");
        assert_eq!(again.body, first.body);
        assert!(again.header("webhook-timestamp") > first.header("webhook-timestamp"));
        assert!(again.is_signed_with(&secret));
    }
    until_waiting(&app, <[_]>::is_empty).await;
    assert!(receiver.is_empty());
}

#[tokio::test]
async fn what_is_not_taken_for_a_day_is_given_up() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let mut receiver = Receiver::start(&[503; 100]).await;
    set(&owner, &receiver.url).await;
    log(&app, &["It broke"]).await;
    for tries in 1..=7 {
        receiver.next().await;
        until_waiting(&app, |waiting| waiting[0].tries == tries).await;
        app.clock.advance(12 * HOUR);
    }
    receiver.next().await;
    until_waiting(&app, <[_]>::is_empty).await;
    // It is not turned off: the next alert is sent.
    receiver.answers.lock().unwrap().clear();
    log(&app, &["Another one"]).await;
    assert_eq!(
        receiver.next().await.event()["data"]["message"],
        "Another one"
    );
}

#[tokio::test]
async fn a_receiver_that_is_gone_turns_the_webhook_off() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let mut receiver = Receiver::start(&[410]).await;
    let before = secret(&set(&owner, &receiver.url).await);
    log(&app, &["One", "Two"]).await;
    receiver.next().await;
    until_waiting(&app, <[_]>::is_empty).await;
    let off = webhook(&owner).await;
    assert!(off["off_at"].is_string());
    assert_eq!(off["last"]["status"], 410);
    log(&app, &["Three"]).await;
    // Saving turns it on again, with the same secret.
    let store = &app.running.state.platform.store;
    eventually("it is not grouped", async || {
        store.list_ungrouped(9).await.unwrap().is_empty()
    })
    .await;
    let saved = set(&owner, &receiver.url).await;
    assert_eq!(
        (&saved["secret"], &saved["webhook"]["off_at"]),
        (&Value::Null, &Value::Null)
    );
    log(&app, &["Four"]).await;
    let got = receiver.next().await;
    assert_eq!(got.event()["data"]["message"], "Four");
    assert!(got.is_signed_with(&before));
}

#[tokio::test]
async fn a_test_says_at_once_what_came_of_it() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let none = owner.post(&format!("{WEBHOOK}/test"), json!({})).await;
    assert_eq!(none.problem(), "not-found");
    let mut receiver = Receiver::start(&[200, 500, 307, 410]).await;
    let old = secret(&set(&owner, &receiver.url).await);
    for (status, words) in [
        (200, "It responded with 200"),
        (500, "would be sent again"),
        (307, "redirects are not followed"),
        (410, "turned off"),
    ] {
        let told = test(&owner).await;
        assert_eq!(told["status"], status);
        let sentence = told["sentence"].as_str().unwrap();
        assert!(sentence.contains(words), "{sentence}");
        assert!(!sentence.contains("text"), "the body is not told");
        let got = receiver.next().await;
        assert_eq!(
            (got.path.as_str(), got.is_signed_with(&old)),
            ("/hook?key=b", true)
        );
        assert_eq!(got.event()["type"], "test");
        assert_eq!(got.event()["data"], json!({ "project": "game" }));
        assert_eq!(webhook(&owner).await["last"]["status"], status);
    }
    assert!(webhook(&owner).await["off_at"].is_string());
    // A new secret holds at once.
    let body = json!({ "url": receiver.url, "new_secret": true });
    let new = secret(&owner.put(WEBHOOK, body).await.json());
    test(&owner).await;
    let got = receiver.next().await;
    assert!(got.is_signed_with(&new) && !got.is_signed_with(&old));
    // Nobody listens there.
    let closed = ReservedPort::take().unwrap();
    let url = format!("http://{}/", closed.address());
    set(&owner, &url).await;
    let told = test(&owner).await;
    assert_eq!(told["status"], Value::Null);
    let sentence = told["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("There was no response: "),
        "{sentence}"
    );
    assert!(webhook(&owner).await["last"]["error"].is_string());
}

#[tokio::test]
async fn a_slow_receiver_holds_up_nobody_else() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let slow = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", slow.local_addr().unwrap());
    set(&owner, &url).await;
    let mut receiver = Receiver::start(&[]).await;
    owner.create("other").await;
    let path = "/api/projects/other/webhook";
    let other = owner.put(path, json!({ "url": receiver.url })).await;
    assert_eq!(other.status, StatusCode::OK);
    log(&app, &["It broke"]).await;
    let (mut held, _) = timeout(PATIENCE, slow.accept()).await.unwrap().unwrap();
    let body = json!({ "page": "AAAAAAAAAAAAAAAAAAAAAA", "records": [
        { "time": NOW, "level": "error", "source": "report", "message": "Other" }
    ] });
    let request = app
        .request(Method::POST, "other", "/__platform/logs")
        .header("content-type", "application/json")
        .body(body.to_string());
    assert_eq!(send(request).await.status, 204);
    assert_eq!(receiver.next().await.event()["data"]["message"], "Other");
    // It is given up after five seconds, not kept open.
    let mut rest = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut held, &mut rest);
    let _ = timeout(PATIENCE, read).await.unwrap();
    until_waiting(&app, |waiting| waiting.len() == 1 && waiting[0].tries == 1).await;
    let last = webhook(&owner).await["last"]["error"].take();
    assert_eq!(last, "no answer came within 5 seconds");
}

#[tokio::test]
async fn the_platform_itself_and_private_addresses_are_refused() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let refused = async |url: &str| {
        let answer = owner.put(WEBHOOK, json!({ "url": url })).await;
        assert_eq!(answer.problem(), "invalid-request", "{url}");
    };
    for url in [
        format!("http://{}/", app.running.address),
        format!("http://localhost:{}/", app.port()),
        format!("http://platform.localhost:{}/", app.port()),
        "ftp://hooks.example/".to_owned(),
        "https://user:word@hooks.example/".to_owned(),
        format!("https://hooks.example/{}", "a".repeat(500)),
    ] {
        refused(&url).await;
    }
    // One that was set before the rules became stricter is not connected to either.
    let receiver = Receiver::start(&[]).await;
    let directory = {
        set(&owner, &receiver.url).await;
        let TestApp {
            running, directory, ..
        } = app;
        running.stop().await.unwrap();
        directory
    };
    let strict = TestApp::in_directory(directory, |config| {
        config.private_backends = Some(platform_server::config::PrivateBackends::None);
    })
    .await;
    log(&strict, &["It broke"]).await;
    until_waiting(&strict, |waiting| {
        waiting.len() == 1 && waiting[0].tries == 1
    })
    .await;
    let mut receiver = receiver;
    assert!(receiver.is_empty());
}

#[tokio::test]
async fn a_viewer_sees_that_there_is_a_webhook_and_not_where() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let receiver = Receiver::start(&[]).await;
    let viewer = Caller::account(&app).await;
    let made = owner
        .post(
            "/api/projects/game/invitations",
            json!({ "role": "viewer" }),
        )
        .await
        .json::<Value>();
    let secret = made["link"]
        .as_str()
        .unwrap()
        .split_once('#')
        .unwrap()
        .1
        .to_owned();
    let joined = viewer
        .post("/api/invitations/accept", json!({ "secret": secret }))
        .await;
    assert_eq!(joined.status, StatusCode::OK);
    assert_eq!(webhook(&viewer).await, Value::Null);
    let set = set(&owner, &receiver.url).await;
    assert_eq!(set["webhook"]["url"], receiver.url);
    let seen = webhook(&viewer).await;
    assert_eq!(seen["url"], Value::Null);
    assert_eq!(seen["created_at"], set["webhook"]["created_at"]);
    for caller in [&viewer, &owner] {
        let text = caller.get(WEBHOOK).await.text().to_owned();
        assert!(!text.contains("whsec_"), "{text}");
    }
    let answer = viewer.put(WEBHOOK, json!({ "url": receiver.url })).await;
    assert_eq!(answer.problem(), "not-allowed");
    let removed = send(owner.ask(Method::DELETE, WEBHOOK)).await;
    assert_eq!(removed.json::<Value>(), json!({ "webhook": null }));
    assert_eq!(webhook(&owner).await, Value::Null);
}
