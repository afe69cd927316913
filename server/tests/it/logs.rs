//! `POST /__platform/logs`: log records of players' pages.

use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_server::config::{Config, Period, Rate};
use platform_server::domain::audit::Actor;
use platform_server::domain::log::{LogQuery, StoredLogRecord};
use platform_server::logs::WAITING;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::caller::{Caller, archive};
use crate::support::{NOW, TestApp, send};

const PATH: &str = "/__platform/logs";
const PAGE: &str = "AAAAAAAAAAAAAAAAAAAAAA";

fn record(message: &str) -> Value {
    json!({"time": NOW, "level": "info", "source": "console", "message": message})
}

fn body(records: &[Value]) -> Value {
    json!({"page": PAGE, "records": records})
}

/// Log records to the address `label`.
fn post(app: &TestApp, label: &str, body: &Value) -> RequestBuilder {
    app.request(Method::POST, label, PATH)
        .header("content-type", "application/json")
        .body(body.to_string())
}

/// The records of the demo in production, newest first.
async fn records(app: &TestApp) -> Vec<StoredLogRecord> {
    let query = LogQuery {
        slug: "demo".into(),
        environment: Environment::Prod,
        level: LogLevel::Debug,
        before: None,
        limit: 1_000,
        bytes: usize::MAX,
    };
    let store = &app.running.state.platform.store;
    store.list_log_records(query).await.unwrap().records
}

async fn messages(app: &TestApp) -> Vec<String> {
    let records = records(app).await.into_iter();
    records.map(|record| record.entry.message).collect()
}

#[tokio::test]
async fn a_record_is_kept_with_everything_that_the_page_told() {
    let app = TestApp::start().await;
    let full = json!({
        "time": NOW - 1_500, "level": "error", "source": "unhandledrejection",
        "message": "no coins", "stack": "Error: no coins\n at a.js:1:2", "url": "/a.js",
        "line": 1, "column": 2, "metadata": {"level": [1, null, "ä"]}, "count": 3,
        "later": true
    });
    let answer = send(post(&app, "demo", &body(&[record("first"), full]))).await;
    assert_eq!((answer.status.as_u16(), answer.text()), (204, ""));
    assert_eq!(answer.header("cache-control"), Some("no-store"));

    let kept = records(&app).await;
    assert_eq!(kept.len(), 2);
    let entry = &kept[0].entry;
    assert_eq!((entry.time, entry.level), (NOW - 1_500, LogLevel::Error));
    assert_eq!(entry.source, LogSource::UnhandledRejection);
    assert_eq!(entry.message, "no coins");
    assert_eq!(
        entry.stack.as_deref(),
        Some("Error: no coins\n at a.js:1:2")
    );
    assert_eq!(entry.url.as_deref(), Some("/a.js"));
    // The count of a record is only trusted if it comes from a player.
    assert_eq!(
        (entry.line, entry.column, entry.count),
        (Some(1), Some(2), 1)
    );
    let metadata: Value = serde_json::from_str(entry.metadata.as_deref().unwrap()).unwrap();
    assert_eq!(metadata, json!({"level": [1, null, "ä"]}));
    let short = &kept[1].entry;
    assert_eq!(
        (short.count, &short.metadata, &short.stack),
        (1, &None, &None)
    );

    let game = app.running.state.games.catalogue.find("demo").unwrap();
    let deployment = game.deployment.as_ref().map(|deployment| deployment.id);
    assert!(deployment.is_some());
    for record in &kept {
        assert_eq!((record.deployment, record.player), (deployment, None));
        assert_eq!((record.page.0, record.id.received_at()), ([0; 16], NOW));
    }
}

#[tokio::test]
async fn a_good_token_adds_the_player_and_a_bad_one_changes_nothing() {
    let app = TestApp::start().await;
    let token = send(app.post_token()).await;
    let request = app
        .request(Method::POST, "auth", "/token")
        .header("origin", app.origin("dev-demo"));
    let other = send(request).await.token();
    let rows = [
        ("good", format!("Bearer {}", token.token()), true),
        ("of another environment", format!("Bearer {other}"), false),
        ("nonsense", "Bearer nonsense".into(), false),
        ("another scheme", "Basic YTpi".into(), false),
    ];
    for (name, authorization, known) in rows {
        let request = post(&app, "demo", &body(&[record(name)]));
        let answer = send(request.header("authorization", authorization)).await;
        assert_eq!(answer.status, 204, "{name}");
        let newest = records(&app).await.remove(0);
        assert_eq!(newest.entry.message, name);
        let player = known.then(|| token.claims().sub);
        assert_eq!(newest.player.map(|id| id.to_string()), player, "{name}");
    }
}

/// Returns the header of a player who plays at `label`.
async fn bearer(app: &TestApp, label: &str) -> String {
    let request = app.request(Method::POST, "auth", "/token");
    let token = send(request.header("origin", app.origin(label)))
        .await
        .token();
    format!("Bearer {token}")
}

#[tokio::test]
async fn a_record_without_a_token_stands_for_itself_alone() {
    let app = TestApp::start().await;
    let token = bearer(&app, "demo").await;
    let repeated = |count: u32| json!({"time": NOW, "level": "error", "source": "error", "message": "m", "count": count});
    let sent = body(&[repeated(7), repeated(u32::MAX), repeated(5)]);
    let counts = async || -> Vec<u32> {
        let newest = records(&app).await.into_iter().take(3);
        newest.map(|record| record.entry.count).collect()
    };
    assert_eq!(send(post(&app, "demo", &sent)).await.status, 204);
    assert_eq!(counts().await, [1, 1, 1]);
    let known = post(&app, "demo", &sent).header("authorization", &token);
    assert_eq!(send(known).await.status, 204);
    // Newest first: the allowance of a request was used up before.
    assert_eq!(counts().await, [1, 4_995, 7]);
}

#[tokio::test]
async fn what_strangers_send_takes_nothing_from_the_players() {
    for limited_by_game in [false, true] {
        let app = TestApp::with(|config| {
            if limited_by_game {
                config.log_rate_game = rate(1, 5);
            } else {
                config.log_bytes_rate = rate(1, 2_000);
            }
        })
        .await;
        let token = bearer(&app, "demo").await;
        let many = body(&vec![record("m"); 5]);
        let mut refused = None;
        for _ in 0..10 {
            let answer = send(post(&app, "demo", &many)).await;
            refused = (answer.status == 429).then_some(()).or(refused);
        }
        assert!(refused.is_some());
        let known = post(&app, "demo", &body(&[record("of a player")]));
        let known = known.header("authorization", &token);
        assert_eq!(send(known).await.status, 204);
        assert_eq!(messages(&app).await[0], "of a player");
    }
}

#[tokio::test]
async fn environments_do_not_see_each_others_records() {
    let app = TestApp::start().await;
    send(post(&app, "dev-demo", &body(&[record("dev")]))).await;
    assert!(records(&app).await.is_empty());
    send(post(&app, "demo", &body(&[record("prod")]))).await;
    assert_eq!(messages(&app).await, ["prod"]);
}

#[tokio::test]
async fn a_wrong_clock_moves_no_record_out_of_sight() {
    let app = TestApp::start().await;
    let day = 86_400_000;
    for (time, expected) in [
        (json!(NOW + 5_000), NOW),
        (json!(1e20), NOW),
        (json!(NOW - 3_000), NOW - 3_000),
        (json!(NOW as f64 + 0.25), NOW),
        (json!(-1), NOW - day),
        (json!(0), NOW - day),
    ] {
        let mut record = record("when");
        record["time"] = time.clone();
        assert_eq!(send(post(&app, "demo", &body(&[record]))).await.status, 204);
        assert_eq!(records(&app).await[0].entry.time, expected, "{time}");
    }
}

/// Returns a body of exactly `length` bytes.
fn padded(length: usize) -> String {
    let text = body(&[record("padded")]).to_string();
    format!("{text}{}", " ".repeat(length - text.len()))
}

#[tokio::test]
async fn what_is_too_large_is_refused_whole() {
    let app = TestApp::start().await;
    let many = |count| body(&vec![record("m"); count]).to_string();
    let rows = [
        ("100 records", many(100), 204),
        ("101 records", many(101), 413),
        ("64 KiB", padded(64 * 1_024), 204),
        ("64 KiB and a byte", padded(64 * 1_024 + 1), 413),
        ("no record", many(0), 204),
    ];
    for (name, text, status) in rows {
        let before = records(&app).await.len();
        let request = app
            .request(Method::POST, "demo", PATH)
            .header("content-type", "application/json")
            .body(text);
        let answer = send(request).await;
        assert_eq!(answer.status, status, "{name}");
        if status == 413 {
            assert_eq!(answer.problem(), "payload-too-large", "{name}");
            assert_eq!(records(&app).await.len(), before, "{name}");
        }
    }
}

#[tokio::test]
async fn an_odd_record_is_mended_and_costs_none_beside_it() {
    let app = TestApp::start().await;
    let mut odd = record(&"ä".repeat(4_097));
    odd["stack"] = "s".repeat(16 * 1_024 + 1).into();
    odd["url"] = "u".repeat(2 * 1_024 + 1).into();
    odd["metadata"] = json!({"large": "x".repeat(8 * 1_024)});
    let mut deep = record("deep");
    deep["metadata"] = json!("DEEP");
    let cut = record("CUT");
    let nested = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let text = body(&[record("good"), odd, deep, cut])
        .to_string()
        .replace("\"DEEP\"", &nested)
        .replace("CUT", r"half \ud83d of a pair");
    let request = app
        .request(Method::POST, "demo", PATH)
        .header("content-type", "application/json")
        .body(text);
    assert_eq!(send(request).await.status, 204);

    let kept: Vec<_> = records(&app)
        .await
        .into_iter()
        .map(|kept| kept.entry)
        .collect();
    let [cut, deep, odd, good] = kept.as_slice() else {
        panic!("{} records", kept.len());
    };
    assert_eq!(good.message, "good");
    assert_eq!(cut.message, "half \u{fffd} of a pair");
    assert_eq!(odd.message, format!("{}…", "ä".repeat(4_094)));
    assert_eq!(odd.stack.as_ref().unwrap().len(), 16 * 1_024);
    assert_eq!(odd.url.as_ref().unwrap().len(), 2 * 1_024);
    for entry in [odd, deep] {
        let metadata = entry.metadata.as_deref().unwrap();
        let read: String = serde_json::from_str(metadata).unwrap();
        assert!(read.contains("left out"), "{read}");
    }
}

#[tokio::test]
async fn one_address_and_one_game_send_so_many_bytes_and_no_more() {
    for limited_by_game in [false, true] {
        let app = TestApp::with(|config| {
            let limit = rate(1_000, 100_000);
            if limited_by_game {
                config.log_bytes_rate_game = limit;
            } else {
                config.log_bytes_rate = limit;
            }
        })
        .await;
        let ask = || {
            app.request(Method::POST, "demo", PATH)
                .header("content-type", "application/json")
                .body(padded(60_000))
        };
        assert_eq!(send(ask()).await.status, 204);
        let refused = send(ask()).await;
        assert_eq!(refused.problem(), "too-many-requests");
        // 20,000 bytes over the limit, at 1,000 per second.
        assert_eq!(refused.header("retry-after"), Some("20"));
        app.clock.advance(20_000);
        assert_eq!(send(ask()).await.status, 204);
        assert_eq!(records(&app).await.len(), 2);
    }
}

#[tokio::test]
async fn requests_of_another_shape_are_refused_each_with_its_problem() {
    let app = TestApp::start().await;
    let changed = |member: &str, value: Value| {
        let mut changed = record("m");
        changed[member] = value;
        // The valid record next to it is not stored either.
        body(&[record("good"), changed]).to_string()
    };
    let rows = [
        ("nothing", String::new()),
        ("half a document", "{".into()),
        ("no object", "[]".into()),
        ("no records", json!({"page": PAGE}).to_string()),
        ("no page", json!({"records": []}).to_string()),
        (
            "a short page",
            json!({"page": "a", "records": []}).to_string(),
        ),
        (
            "records that are no list",
            json!({"page": PAGE, "records": {}}).to_string(),
        ),
        ("an unknown level", changed("level", json!("fatal"))),
        ("an unknown source", changed("source", json!("worker"))),
        ("a level in capitals", changed("level", json!("INFO"))),
        ("a message that is no text", changed("message", json!(1))),
        ("no message", changed("message", Value::Null)),
        ("a time that is a text", changed("time", json!("now"))),
        ("a count of none", changed("count", json!(0))),
        ("a negative count", changed("count", json!(-1))),
        ("half a line", changed("line", json!(1.5))),
    ];
    for (name, text) in rows {
        let request = app
            .request(Method::POST, "demo", PATH)
            .header("content-type", "application/json")
            .body(text);
        let answer = send(request).await;
        assert_eq!(answer.status, 400, "{name}");
        assert_eq!(answer.problem(), "invalid-request", "{name}");
    }
    let text = app
        .request(Method::POST, "demo", PATH)
        .header("content-type", "text/plain;charset=UTF-8")
        .body(body(&[record("m")]).to_string());
    assert_eq!(send(text).await.problem(), "unsupported-media-type");
    let foreign = post(&app, "demo", &body(&[record("m")])).header("sec-fetch-site", "cross-site");
    let foreign = send(foreign).await;
    assert_eq!(
        (foreign.status.as_u16(), foreign.problem()),
        (403, "not-allowed".into())
    );
    let answer = send(app.get("demo", PATH)).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("allow")),
        (405, Some("POST"))
    );
    assert!(records(&app).await.is_empty());
}

fn rate(count: u32, burst: u32) -> Rate {
    Rate {
        count: count.try_into().unwrap(),
        period: Period::Second,
        burst: burst.try_into().unwrap(),
    }
}

#[tokio::test]
async fn one_address_and_one_game_send_so_much_and_no_more() {
    for limited_by_game in [false, true] {
        let app = TestApp::with(|config| {
            let limit = rate(2, 10);
            if limited_by_game {
                config.log_rate_game = limit;
            } else {
                config.log_rate = limit;
            }
        })
        .await;
        let eight = body(&vec![record("m"); 8]);
        let five = body(&vec![record("m"); 5]);
        assert_eq!(send(post(&app, "demo", &eight)).await.status, 204);
        let refused = send(post(&app, "demo", &five)).await;
        assert_eq!(refused.status, 429);
        assert_eq!(refused.problem(), "too-many-requests");
        // Three requests over the limit, at two per second.
        assert_eq!(refused.header("retry-after"), Some("2"));
        assert_eq!(records(&app).await.len(), 8);
        let elsewhere = send(post(&app, "dev-demo", &five)).await;
        let expected = if limited_by_game { 204 } else { 429 };
        assert_eq!(elsewhere.status, expected, "the other environment");
        app.clock.advance(2_000);
        assert_eq!(send(post(&app, "demo", &five)).await.status, 204);
        assert_eq!(records(&app).await.len(), 13);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_answers_429_and_loses_nothing_that_was_accepted() {
    let app = TestApp::start().await;
    // Another process locks the file, so that nothing can be written.
    let other = rusqlite::Connection::open(app.directory.path().join("logs.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..400 {
        let request = post(&app, "demo", &body(&[record(&number.to_string())]));
        requests.spawn(async move { (number, send(request).await) });
    }
    // Requests that do not fit into the queue are refused at once, while all others wait.
    let mut refused = 0;
    let (_, first) = requests.join_next().await.unwrap().unwrap();
    assert_eq!(first.problem(), "too-many-requests");
    assert!(first.header("retry-after").is_some());
    refused += 1;
    // Players do not wait because of this.
    assert_eq!(send(app.post_token()).await.status, 200);
    other.execute_batch("COMMIT").unwrap();
    let mut accepted = Vec::new();
    while let Some(done) = requests.join_next().await {
        let (number, answer) = done.unwrap();
        match answer.status.as_u16() {
            204 => accepted.push(number.to_string()),
            429 => refused += 1,
            other => panic!("answered {other}"),
        }
    }
    assert!(
        refused > 0 && accepted.len() >= WAITING,
        "{refused} refused"
    );
    let mut kept = messages(&app).await;
    kept.sort_unstable();
    accepted.sort_unstable();
    assert_eq!(kept, accepted, "what was refused is not there either");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_game_that_fills_its_part_of_the_queue_keeps_no_other_out() {
    let app = TestApp::start().await;
    let other = rusqlite::Connection::open(app.directory.path().join("logs.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..300 {
        requests.spawn(send(post(&app, "demo", &body(&[record("flood")]))));
    }
    for _ in 0..300 - WAITING {
        let refused = requests.join_next().await.unwrap().unwrap();
        assert_eq!(refused.problem(), "too-many-requests");
    }
    let elsewhere = tokio::spawn(send(post(&app, "dev-demo", &body(&[record("m")]))));
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(elsewhere.await.unwrap().status, 204);
    while let Some(waited) = requests.join_next().await {
        assert_eq!(waited.unwrap().status, 204);
    }
    assert_eq!(messages(&app).await.len(), WAITING);
}

#[tokio::test]
async fn requests_of_one_network_are_limited_before_their_tokens_are_verified() {
    let rate = |burst: u32| Rate {
        count: 1.try_into().unwrap(),
        period: Period::Hour,
        burst: burst.try_into().unwrap(),
    };
    let app = TestApp::with(|config| config.log_rate = rate(2)).await;
    // Unreadable requests count as well.
    let unreadable = || send(post(&app, "demo", &json!({ "page": "" })));
    for _ in 0..4 {
        assert_eq!(unreadable().await.status, 400);
    }
    let refused = unreadable().await;
    assert_eq!(refused.problem(), "too-many-requests");
    assert!(refused.header("retry-after").is_some());

    // An invalid token uses up the allowance twenty times as fast.
    let app = TestApp::with(|config| config.log_rate = rate(100)).await;
    let junk = || {
        let request = post(&app, "demo", &body(&[]));
        send(request.header("authorization", "Bearer a.b.c"))
    };
    let mut taken = 0;
    while junk().await.status == 204 {
        taken += 1;
        assert!(taken < 30, "as many as without a token");
    }
}

#[tokio::test]
async fn where_many_tokens_were_false_the_next_new_one_is_not_verified() {
    let app = TestApp::with(|config| {
        config.log_rate = Rate {
            count: 1_000.try_into().unwrap(),
            period: Period::Minute,
            burst: 100.try_into().unwrap(),
        };
    })
    .await;
    let bearer = bearer(&app, "demo").await;
    // The server knows the tokens that it has signed, until the published keys change.
    let keys = &app.running.state.auth.keys;
    keys.rotate(Actor::Operator).await.unwrap();
    for number in 0..9 {
        let request = post(&app, "demo", &body(&[]));
        let token = format!("Bearer a.b.{number}");
        assert_eq!(
            send(request.header("authorization", token)).await.status,
            204
        );
    }
    // Eleven of 200 are left, and a verification costs twenty.
    let with_token = |text: &str| {
        let request = post(&app, "demo", &body(&[record(text)]));
        send(request.header("authorization", &bearer))
    };
    assert_eq!(with_token("early").await.status, 204);
    app.clock.advance(60_000);
    assert_eq!(with_token("later").await.status, 204);
    let records = records(&app).await;
    let of = |text: &str| {
        let mut found = records.iter().filter(|record| record.entry.message == text);
        found.next().unwrap().player
    };
    assert_eq!(of("early"), None, "a stranger's, and not lost");
    assert!(of("later").is_some());
}

#[tokio::test]
async fn what_was_accepted_is_there_after_a_restart() {
    let app = TestApp::start().await;
    send(post(&app, "demo", &body(&[record("a"), record("b")]))).await;
    let app = app.restart(|_| {}).await;
    assert_eq!(messages(&app).await, ["b", "a"]);
}

#[tokio::test]
async fn records_are_kept_for_as_long_as_the_settings_say() {
    let app = TestApp::with(|config| config.log_retention_days = 2).await;
    let day = 86_400_000;
    for number in 0..25 {
        let batch: Vec<_> = (0..100).map(|_| record(&number.to_string())).collect();
        send(post(&app, "demo", &body(&batch))).await;
    }
    app.clock.advance(day);
    send(post(&app, "demo", &body(&[record("young")]))).await;
    let store = &*app.running.state.platform.store;
    let sweep = |now| platform_server::logs::sweep::sweep(store, 2, now);
    assert_eq!(sweep(NOW + 2 * day).await.unwrap(), 0);
    assert_eq!(sweep(NOW + 2 * day + 1).await.unwrap(), 2_500);
    assert_eq!(messages(&app).await, ["young"]);
}

#[tokio::test]
async fn a_project_keeps_no_more_logs_than_the_operator_allows() {
    let app = TestApp::with(|config| config.log_quota_mib = 2).await;
    let long = "x".repeat(8_000);
    for number in 0..50 {
        let batch = [record(&format!("{number} {long}")), record("short")];
        send(post(&app, ["demo", "dev-demo"][number % 2], &body(&batch))).await;
    }
    let admin = Administered::restart(app, |config| config.log_quota_mib = 1).await;
    // Nothing exceeds the previous quota.
    assert_eq!(admin.messages("prod").await.len(), 50);
    let before = admin.room().await;
    assert_eq!(before["quota_bytes"], 1_048_576);
    let taken = before["bytes"].as_u64().unwrap();
    assert!((400_000..500_000).contains(&taken), "{taken}");

    let store = &*admin.app.running.state.platform.store;
    let sweep = platform_server::logs::sweep::sweep_quota;
    assert_eq!(sweep(store, 1_048_576).await.unwrap(), 0);
    let removed = sweep(store, 100_000).await.unwrap();
    assert!((70..80).contains(&removed), "{removed}");
    let left = admin.room().await["bytes"].as_u64().unwrap();
    assert!((90_000..=100_000).contains(&left), "{left}");
    let kept = admin.messages("prod").await;
    assert!(
        kept[0] == "short" && kept[1].starts_with("48 "),
        "the newest"
    );

    let free = Administered::restart(admin.app, |config| config.log_quota_mib = 0).await;
    assert_eq!(free.room().await["quota_bytes"], Value::Null);
    assert_eq!(
        free.room().await["bytes"],
        left,
        "a restart forgets nothing"
    );
}

/// A platform whose administrator reads the logs of the demo.
struct Administered {
    app: TestApp,
    token: String,
}

impl Administered {
    /// Restarts the same platform with other settings.
    async fn restart(app: TestApp, change: impl FnOnce(&mut Config)) -> Self {
        let cookie = app.sign_in("an administrator", None).await;
        let (_, sub) = console_token(&app, &cookie).await;
        let app = app.restart(|config| {
            config.admins = vec![sub.parse().unwrap()];
            change(config);
        });
        let app = app.await;
        let (token, _) = console_token(&app, &cookie).await;
        Self { app, token }
    }

    async fn get(&self, path: &str) -> Value {
        let request = self.app.get("", path).bearer_auth(&self.token);
        send(request).await.json()
    }

    async fn room(&self) -> Value {
        self.get("/api/projects/demo").await["logs"].take()
    }

    async fn messages(&self, env: &str) -> Vec<String> {
        let page = self
            .get(&format!("/api/projects/demo/logs?env={env}&limit=1000"))
            .await;
        let records = page["records"].as_array().unwrap().iter();
        records
            .map(|record| record["message"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Returns a console token and its player.
async fn console_token(app: &TestApp, cookie: &str) -> (String, String) {
    let request = app
        .request(Method::POST, "auth", "/token")
        .header("origin", app.running.state.platform.origin.to_string())
        .header("cookie", cookie);
    let answer = send(request).await;
    (answer.token(), answer.claims().sub)
}

#[tokio::test]
async fn errors_are_counted_by_deployment_for_the_owner() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let mut deployments = Vec::new();
    for round in 1..=2_u64 {
        let page = archive(&[("index.html", b"<!doctype html>")]);
        let deployed: Value = owner.deploy("prod", page).await.json();
        deployments.push(deployed["id"].clone());
        let error = json!({"time": NOW, "level": "error", "source": "error", "message": "m", "count": round});
        let warning = json!({"time": NOW, "level": "warn", "source": "console", "message": "m"});
        let sent = post(&app, "game", &body(&[error, warning, record("no error")]));
        let sent = sent.header("authorization", bearer(&app, "game").await);
        assert_eq!(send(sent).await.status, 204);
        app.clock.advance(1_000);
    }
    let counted = owner.get("/api/projects/game/errors").await;
    assert_eq!(counted.status, 200, "{}", counted.text());
    let counted: Value = counted.json();
    let numbers: Vec<_> = counted["deployments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| [&one["deployment"], &one["errors"], &one["warnings"]].map(Clone::clone))
        .collect();
    let [first, second] = [0, 1].map(|at: usize| deployments[at].clone());
    let expected = [[second, json!(2), json!(1)], [first, json!(1), json!(1)]];
    assert_eq!(numbers, expected);
    let dev: Value = owner.get("/api/projects/game/errors?env=dev").await.json();
    assert_eq!(dev["deployments"], json!([]));
    let wrong = owner.get("/api/projects/game/errors?from=now").await;
    assert_eq!(wrong.problem(), "invalid-request");
}

#[tokio::test]
async fn records_are_found_by_text_source_player_and_time() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let shout =
        json!({"time": NOW, "level": "warn", "source": "report", "message": "100% ÄRGER <b>"});
    send(post(&app, "game", &body(&[record("first"), shout]))).await;
    app.clock.advance(60_000);
    send(post(&app, "game", &body(&[record("later")]))).await;
    let found = async |query: &str| -> Vec<String> {
        let path = format!("/api/projects/game/logs?{query}");
        let answer = owner.get(&path).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let page: Value = answer.json();
        assert_eq!(page["before"], Value::Null);
        let records = page["records"].as_array().unwrap().iter();
        records
            .map(|record| record["message"].as_str().unwrap().to_owned())
            .collect()
    };
    let day = platform_server::domain::date::rfc3339;
    let (before, after) = (day(NOW + 1), day(NOW + 30_000));
    assert_eq!(found("q=100%25%20%C3%A4rger").await, ["100% ÄRGER <b>"]);
    assert_eq!(found("q=nothing").await, [""; 0]);
    assert_eq!(found("source=report").await, ["100% ÄRGER <b>"]);
    assert_eq!(found(&format!("from={after}")).await, ["later"]);
    assert_eq!(
        found(&format!("to={before}&level=info")).await,
        ["100% ÄRGER <b>", "first"]
    );
    assert_eq!(found(&format!("player={}", owner.sub)).await, [""; 0]);
    for wrong in [
        "source=x",
        "player=ada",
        "from=now",
        "to=now",
        "from=2026-11-21T12:00:01Z&to=2026-11-21T12:00:00Z",
        "from=2026-11-21T12:00:00Z&to=2026-11-21T12:00:00Z",
        "text=x",
        "env=x",
    ] {
        let answer = owner.get(&format!("/api/projects/game/logs?{wrong}")).await;
        assert_eq!(answer.problem(), "invalid-request", "{wrong}");
    }
    let long = format!("/api/projects/game/logs?q={}", "x".repeat(201));
    assert_eq!(owner.get(&long).await.problem(), "invalid-request");
}
