//! Following frontend logs as server-sent events.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use flate2::write::GzDecoder;
use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_server::app::entry::App;
use platform_server::app::routes::routes;
use platform_server::domain::administration::Transferred;
use platform_server::domain::audit::Actor;
use platform_server::domain::log::{LogEntry, LogQuery, NewLogRecords};
use platform_server::domain::page::PageId;
use platform_server::logs::streams::STREAMS;
use platform_server::web::serve::{ConnectionLimits, serve};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

use crate::caller::Caller;
use crate::support::{NOW, TestApp, send};

const STREAM: &str = "/api/projects/demo/logs/stream";
/// Much longer than anything here takes; reaching it is a failure.
const NEVER: Duration = Duration::from_secs(20);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(NEVER, what)
        .await
        .unwrap_or_else(|_| panic!("it did not happen in {NEVER:?}"))
}

/// Starts a platform, and returns a console token of an administrator, too.
async fn administered() -> (TestApp, String) {
    let directory = tempfile::tempdir().unwrap();
    let app = TestApp::in_directory(directory, |_| {}).await;
    let cookie = app.sign_in("an administrator", None).await;
    let token = console_token(&app, &cookie).await;
    let admin = token.1.parse().unwrap();
    let app = app.restart(|config| config.admins = vec![admin]).await;
    let (token, _) = console_token(&app, &cookie).await;
    (app, token)
}

/// Returns a console token and its player.
async fn console_token(app: &TestApp, cookie: &str) -> (String, String) {
    let answer = app.console_token(cookie).await;
    (answer.token(), answer.claims().sub)
}

/// One event.
#[derive(Debug)]
struct Event {
    name: String,
    id: Option<String>,
    data: Value,
}

/// An open stream.
struct Events {
    response: reqwest::Response,
    text: String,
    waiting: VecDeque<Event>,
}

impl Events {
    async fn open(app: &TestApp, token: &str, query: &str, last: Option<&str>) -> Self {
        let mut request = app.get("", &format!("{STREAM}?{query}")).bearer_auth(token);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = soon(request.send()).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        Self {
            response,
            text: String::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Returns the next event; `None` at the end.
    async fn next(&mut self) -> Option<Event> {
        soon(self.come()).await
    }

    /// Returns the next event without a time limit.
    async fn come(&mut self) -> Option<Event> {
        while self.waiting.is_empty() {
            let piece = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                self.waiting.extend(event(&block));
            }
        }
        self.waiting.pop_front()
    }

    /// Returns id and message of the next event, which must be a record.
    async fn record(&mut self) -> (String, String) {
        let event = self.next().await.unwrap();
        assert_eq!(event.name, "message", "{event:?}");
        let id = event.id.unwrap();
        assert_eq!(event.data["id"], id.as_str());
        let message = event.data["message"].as_str().unwrap();
        (id, message.to_owned())
    }
}

/// Parses an event; `None` if the block contains only comments and the like.
fn event(block: &str) -> Option<Event> {
    let mut event = Event {
        name: "message".into(),
        id: None,
        data: Value::Null,
    };
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("event", name)) => event.name = name.into(),
            Some(("id", id)) => event.id = Some(id.into()),
            Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
            _ => {}
        }
    }
    (!event.data.is_null()).then_some(event)
}

/// Sends records as a page of the demo does.
async fn log(app: &TestApp, label: &str, records: &[(&str, &str)]) {
    let records: Vec<Value> = records
        .iter()
        .map(|(level, message)| {
            json!({"time": NOW, "level": level, "source": "console", "message": message})
        })
        .collect();
    let body = json!({"page": "AAAAAAAAAAAAAAAAAAAAAA", "records": records});
    let request = app
        .request(Method::POST, label, "/__platform/logs")
        .json(&body);
    assert_eq!(send(request).await.status, 204);
}

fn many(count: usize, message: &str) -> NewLogRecords {
    let entry = LogEntry {
        time: NOW,
        level: LogLevel::Info,
        source: LogSource::Console,
        message: message.into(),
        stack: None,
        url: None,
        line: None,
        column: None,
        metadata: None,
        count: 1,
    };
    NewLogRecords {
        slug: "demo".into(),
        environment: Environment::Prod,
        deployment: None,
        player: None,
        page: PageId([9; 16]),
        received_at: NOW,
        entries: vec![entry; count],
    }
}

async fn add(app: &TestApp, records: NewLogRecords) {
    let state = &app.running.state;
    state.platform.store.add_log_records(records).await.unwrap();
    state.logs.streams.announce("demo", Environment::Prod);
}

#[tokio::test]
async fn records_come_as_they_are_written_and_only_those_asked_for() {
    let (app, token) = administered().await;
    log(&app, "demo", &[("info", "before")]).await;
    let mut all = Events::open(&app, &token, "", None).await;
    let mut grave = Events::open(&app, &token, "level=warn", None).await;
    let mut dev = Events::open(&app, &token, "env=dev", None).await;
    let started = tokio::time::Instant::now();
    log(&app, "demo", &[("info", "one"), ("error", "two\nlines")]).await;
    assert_eq!(all.record().await.1, "one");
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(all.record().await.1, "two\nlines");
    assert_eq!(grave.record().await.1, "two\nlines");
    log(&app, "dev-demo", &[("debug", "three")]).await;
    assert_eq!(dev.record().await.1, "three");

    // The same object as in a page of logs.
    log(&app, "demo", &[("warn", "four")]).await;
    let event = grave.next().await.unwrap();
    let page = app
        .get("", "/api/projects/demo/logs?limit=1")
        .bearer_auth(&token);
    let page: Value = send(page).await.json();
    assert_eq!(page["records"][0], event.data);
}

#[tokio::test]
async fn a_stream_goes_on_behind_the_last_record_without_gap_or_repetition() {
    let (app, token) = administered().await;
    let mut stream = Events::open(&app, &token, "", None).await;
    log(
        &app,
        "demo",
        &[("info", "one"), ("info", "two"), ("info", "three")],
    )
    .await;
    let (first, _) = stream.record().await;
    let (second, _) = stream.record().await;
    drop(stream);
    log(&app, "demo", &[("info", "four")]).await;
    let mut again = Events::open(&app, &token, "", Some(&second)).await;
    for expected in ["three", "four"] {
        assert_eq!(again.record().await.1, expected);
    }
    log(&app, "demo", &[("info", "five")]).await;
    assert_eq!(again.record().await.1, "five");
    let query = format!("last_event_id={first}");
    let mut by_query = Events::open(&app, &token, &query, None).await;
    assert_eq!(by_query.record().await.1, "two");
    let mut from_the_start = Events::open(&app, &token, "", Some("0")).await;
    assert_eq!(from_the_start.record().await.1, "one");
    // An id of another platform, or of a platform that was set up again.
    let ahead = i64::MAX.to_string();
    let mut ahead = Events::open(&app, &token, "", Some(&ahead)).await;
    log(&app, "demo", &[("info", "six")]).await;
    assert_eq!(ahead.record().await.1, "six");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_begin_while_many_write_miss_and_repeat_nothing() {
    let (app, token) = administered().await;
    let app = Arc::new(app);
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let app = Arc::clone(&app);
            tokio::spawn(async move {
                for number in 0..40 {
                    let text = format!("{writer}.{number}");
                    log(
                        &app,
                        "demo",
                        &[("info", text.as_str()), ("warn", text.as_str())],
                    )
                    .await;
                }
            })
        })
        .collect();
    // The stream is interrupted repeatedly, and continued at the same position.
    let mut last = "0".to_owned();
    let mut seen = Vec::new();
    while seen.len() < 640 {
        let mut stream = Events::open(&app, &token, "", Some(&last)).await;
        for _ in 0..(640 - seen.len()).min(37) {
            let (id, message) = stream.record().await;
            seen.push((id.parse::<i64>().unwrap(), message));
            last = id;
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(seen.is_sorted_by(|one, other| one.0 < other.0));
    for writer in 0..8 {
        let prefix = format!("{writer}.");
        let numbers: Vec<_> = seen
            .iter()
            .filter_map(|(_, message)| message.strip_prefix(&prefix))
            .map(|number| number.parse::<usize>().unwrap())
            .collect();
        let expected: Vec<_> = (0..40).flat_map(|number| [number, number]).collect();
        assert_eq!(numbers, expected, "writer {writer}");
    }
}

#[tokio::test]
async fn who_falls_far_behind_is_told_how_many_were_left_out() {
    let (app, token) = administered().await;
    let mut stream = Events::open(&app, &token, "", None).await;
    log(&app, "demo", &[("info", "first")]).await;
    let (first, _) = stream.record().await;
    add(&app, many(25_000, "flood")).await;
    let event = stream.next().await.unwrap();
    assert_eq!(event.name, "dropped");
    assert_eq!(event.id, None);
    let dropped = event.data["records"].as_u64().unwrap();
    for _ in dropped..25_000 {
        assert_eq!(stream.record().await.1, "flood");
    }
    log(&app, "demo", &[("info", "last")]).await;
    assert_eq!(stream.record().await.1, "last");

    // A reader that requests older records gets all of them.
    let mut again = Events::open(&app, &token, "", Some(&first)).await;
    for _ in 0..25_000 {
        assert_eq!(again.record().await.1, "flood");
    }
    assert_eq!(again.record().await.1, "last");
}

#[tokio::test]
async fn who_reads_nothing_is_cut_loose_and_slows_no_writer() {
    let (app, token) = administered().await;
    let limits = ConnectionLimits {
        stall: Duration::from_millis(300),
        ..ConnectionLimits::default()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_stopping, stopped) = watch::channel(false);
    let state = app.running.state.clone();
    let routes = routes(&state);
    tokio::spawn(serve(listener, App::new(state, routes), limits, stopped));
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let head = format!(
        "GET {STREAM} HTTP/1.1\r\nHost: platform.localhost:{}\r\nAuthorization: Bearer {token}\r\n\r\n",
        app.port()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let streams = &app.running.state.logs.streams;
    soon(async {
        while streams.count() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let message = "x".repeat(8_000);
    soon(async {
        while streams.count() > 0 {
            add(&app, many(100, &message)).await;
        }
    })
    .await;
    drop(stream);
}

#[tokio::test]
async fn a_stream_ends_with_the_token_and_says_so() {
    let (app, token) = administered().await;
    let mut stream = Events::open(&app, &token, "", None).await;
    app.clock.advance(901_000);
    let event = stream.next().await.unwrap();
    assert_eq!(event.name, "end");
    assert_eq!(event.data, json!({"reason": "token-expired"}));
    assert!(stream.next().await.is_none());
    assert_eq!(app.running.state.logs.streams.count(), 0);
}

#[tokio::test]
async fn who_takes_gzip_gets_each_record_as_it_comes_and_a_whole_file() {
    let (app, token) = administered().await;
    let request = app
        .get("", STREAM)
        .bearer_auth(&token)
        .header("accept-encoding", "br, gzip");
    let mut response = soon(request.send()).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(response.headers()["vary"], "Accept-Encoding");
    let mut plain = Events::open(&app, &token, "", None).await;
    let mut unpacked = GzDecoder::new(Vec::new());
    for message in ["one", "two"] {
        log(&app, "demo", &[("info", message)]).await;
        assert_eq!(plain.record().await.1, message);
        // It need not wait for later data.
        while !String::from_utf8_lossy(unpacked.get_ref()).contains(message) {
            let piece = soon(response.chunk()).await.unwrap().unwrap();
            unpacked.write_all(&piece).unwrap();
            unpacked.flush().unwrap();
        }
    }
    app.clock.advance(901_000);
    while let Some(piece) = soon(response.chunk()).await.unwrap() {
        unpacked.write_all(&piece).unwrap();
    }
    // This fails if the checksum or the length at the end of the file are wrong.
    let text = String::from_utf8(unpacked.finish().unwrap()).unwrap();
    let events: Vec<Event> = text.split("\n\n").filter_map(event).collect();
    let names: Vec<&str> = events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["message", "message", "end"]);
}

#[tokio::test]
async fn the_stop_ends_streams_at_once() {
    let (app, token) = administered().await;
    let mut stream = Events::open(&app, &token, "", None).await;
    let started = tokio::time::Instant::now();
    let stopping = tokio::spawn(app.running.stop());
    let event = stream.next().await.unwrap();
    assert_eq!(event.data, json!({"reason": "stopping"}));
    assert!(stream.next().await.is_none());
    soon(stopping).await.unwrap().unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn streams_are_for_owners_and_so_many_of_them() {
    let (app, token) = administered().await;
    let answer = send(app.get("", STREAM)).await;
    assert_eq!(
        (answer.status.as_u16(), answer.problem()),
        (401, "not-signed-in".into())
    );
    let (stranger, _) = console_token(&app, &app.sign_in("a stranger", None).await).await;
    let answer = send(app.get("", STREAM).bearer_auth(&stranger)).await;
    assert_eq!(answer.problem(), "not-allowed");
    for query in ["env=test", "level=fatal", "before=1", "last_event_id=x"] {
        let request = app
            .get("", &format!("{STREAM}?{query}"))
            .bearer_auth(&token);
        assert_eq!(send(request).await.problem(), "invalid-request", "{query}");
    }
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        open.push(Events::open(&app, &token, "", None).await);
    }
    let answer = send(app.get("", STREAM).bearer_auth(&token)).await;
    assert_eq!(answer.problem(), "too-many-requests");
    assert!(answer.header("retry-after").is_some());
    open.pop();
    soon(async {
        while app.running.state.logs.streams.count() == STREAMS {
            tokio::task::yield_now().await;
        }
    })
    .await;
    Events::open(&app, &token, "", None).await;
}

#[tokio::test]
async fn a_stream_ends_when_its_account_is_suspended() {
    let (app, token) = administered().await;
    let (_, sub) = console_token(&app, &app.sign_in("an administrator", None).await).await;
    let mut stream = Events::open(&app, &token, "", None).await;
    log(&app, "demo", &[("info", "before")]).await;
    assert_eq!(stream.record().await.1, "before");
    app.suspend(sub.parse().unwrap(), None).await;
    // As a node does from time to time if only the store tells it.
    app.learn_who_may_play().await;
    let event = stream.next().await.unwrap();
    assert_eq!(event.name, "end");
    assert_eq!(event.data, json!({"reason": "not-allowed"}));
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_stream_ends_with_the_right_to_it_and_with_the_session_of_its_token() {
    let app = TestApp::start().await;
    let store = &app.running.state.platform.store;
    let (admin, owner) = (Caller::admin(&app).await, Caller::account(&app).await);
    let (heir, other) = (Caller::account(&app).await, Caller::admin(&app).await);
    let left = Caller::admin(&app).await;
    let give = async |to: &Caller<'_>| {
        let given = store.transfer_project("demo", to.sub, Actor::Operator.into(), NOW);
        assert_eq!(given.await.unwrap(), Transferred::Done);
    };
    give(&owner).await;
    let mut ending = Vec::new();
    for caller in [&admin, &owner, &left] {
        ending.push(Events::open(&app, &caller.token, "", None).await);
    }
    let mut lasting = Events::open(&app, &other.token, "", None).await;
    let revoked = store.revoke_admin(admin.sub, Actor::Operator.into(), NOW);
    assert!(revoked.await.unwrap());
    give(&heir).await;
    app.sign_out(&left.cookie).await;
    // From here on, time passes whenever nothing else is running.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    for stream in &mut ending {
        let event = stream.come().await.unwrap();
        assert_eq!(event.name, "end");
        assert_eq!(event.data, json!({"reason": "not-allowed"}));
        assert!(stream.come().await.is_none());
    }
    let passed = begun.elapsed();
    assert!(passed <= Duration::from_secs(10), "{passed:?}");
    tokio::time::resume();
    // A reader who still has the right continues.
    log(&app, "demo", &[("info", "after")]).await;
    assert_eq!(lasting.record().await.1, "after");
}

#[tokio::test]
async fn a_stream_without_records_says_that_it_lives() {
    let (app, token) = administered().await;
    let mut stream = Events::open(&app, &token, "", None).await;
    let first = soon(stream.response.chunk()).await.unwrap().unwrap();
    assert_eq!(first, "retry: 1000\n\n");
    // From here on, time passes whenever nothing else is running.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    for _ in 0..3 {
        let comment = stream.response.chunk().await.unwrap().unwrap();
        assert_eq!(comment, ": alive\n\n");
    }
    let passed = begun.elapsed();
    assert!(passed >= Duration::from_secs(45), "{passed:?}");
    assert!(passed < Duration::from_secs(60), "{passed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_reconnects_get_what_the_store_retains_and_nothing_twice() {
    let (app, token) = administered().await;
    let state = &app.running.state;
    // Meanwhile others write, and old records are swept.
    let store = Arc::clone(&state.platform.store);
    let writing = tokio::spawn(async move {
        for number in 0..300 {
            let mut new = many(1 + number % 7, &format!("{number}"));
            new.received_at = NOW + i64::try_from(number).unwrap();
            new.slug = ["demo", "other"][number % 2].into();
            store.add_log_records(new).await.unwrap();
            if number % 10 == 9 {
                let before = NOW + i64::try_from(number).unwrap() - 150;
                store.sweep_log_records(before, 20).await.unwrap();
            }
        }
    });
    // Numbers that look random but are the same in every run.
    let mut number = 1_u64;
    let mut below = |end: usize| {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (number >> 33) as usize % end
    };
    let (mut last, mut seen, mut reconnects) = (0, Vec::new(), 0);
    while reconnects < 300 {
        reconnects += 1;
        // A reader does not reconnect faster than the API's rate limit allows.
        app.clock.advance(100);
        let written = writing.is_finished();
        let retained = retained(&app).await;
        let from = last;
        let newest = retained.last().copied().unwrap_or(0);
        let mut stream = Events::open(&app, &token, "", Some(&last.to_string())).await;
        let wanted = 1 + below(40);
        for _ in 0..wanted {
            if last >= newest {
                break;
            }
            let (id, _) = stream.record().await;
            let id: i64 = id.parse().unwrap();
            assert!(id > last, "{id} came after {last}");
            seen.push(id);
            last = id;
        }
        // Records that were retained at that time in this range arrived, unless they were swept
        // before they were read.
        let still = self::retained(&app).await;
        for id in still.iter().filter(|id| **id > from && **id <= last) {
            assert!(seen.contains(id), "{id} was missed");
        }
        if written && last >= newest && below(3) == 0 {
            // Start again at an older record.
            last = still[below(still.len())];
            seen.clear();
        }
    }
    writing.await.unwrap();
}

/// Returns the ids of the demo's existing records, oldest first.
async fn retained(app: &TestApp) -> Vec<i64> {
    let query = LogQuery {
        slug: "demo".into(),
        environment: Environment::Prod,
        level: LogLevel::Debug,
        before: None,
        limit: 10_000,
        bytes: usize::MAX,
    };
    let store = &app.running.state.platform.store;
    let records = store.list_log_records(query).await.unwrap().records;
    records.iter().rev().map(|record| record.id.0).collect()
}
