//! The log stream of the real server program: `platform logs --follow`, and
//! many readers at once.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports by failing"
)]

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use platform_protocol::paths;
use platform_server::clock::{Clock as _, SystemClock};
use platform_tests::followers::{self, EACH, Got};
use platform_tests::poll;
use platform_tests::process::signal;
use platform_tests::server::{Server, built};
use platform_tests::visitor::{Visitor, claims};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinSet;

/// Starts the same server again, on its previous port.
async fn again(data: &TempDir, port: u16, admin: &str) -> Server {
    let listen = format!("127.0.0.1:{port}");
    let variables = [("PLATFORM_ADMINS", admin), ("PLATFORM_LISTEN", &listen)];
    Server::start_set(data.path(), "", &variables).await
}

/// Sends records as a page of the demo does.
async fn log(visitor: &Visitor, messages: &[&str]) {
    let records: Vec<Value> = messages
        .iter()
        .map(|text| json!({"time": 0, "level": "warn", "source": "console", "message": text}))
        .collect();
    let body = json!({"page": "AAAAAAAAAAAAAAAAAAAAAA", "records": records});
    let answer = visitor
        .request(Method::POST, "demo", paths::LOGS)
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 204);
}

/// `platform logs --follow`.
struct Followed {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Followed {
    fn start(server: &Server, token: &str, home: &TempDir, options: &[&str]) -> Self {
        let mut child = Command::new(built("platform-cli", "platform"))
            .args(["logs", "--follow", "--env", "prod", "--project", "demo"])
            // The demo belongs to the platform.
            .arg("--as-administrator")
            .args(options)
            .env_clear()
            .env("HOME", home.path())
            .env("PLATFORM_ORIGIN", &server.origin)
            .env("PLATFORM_TOKEN", token)
            .current_dir(home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    async fn line(&mut self) -> String {
        let line = poll::within("a line", self.lines.next_line()).await;
        if let Some(line) = line.unwrap() {
            return line;
        }
        let mut said = String::new();
        let errors = self.child.stderr.as_mut().unwrap();
        let read = poll::within("what it said", errors.read_to_string(&mut said));
        read.await.unwrap();
        panic!("no line, but {said:?}")
    }

    /// Returns the message of the next record, from a line of JSON.
    async fn message(&mut self) -> String {
        let record: Value = serde_json::from_str(&self.line().await).unwrap();
        record["message"].as_str().unwrap().to_owned()
    }

    /// Presses Ctrl-C and returns the exit status and standard error.
    async fn interrupt(mut self) -> (Option<i32>, String) {
        signal(self.child.id().unwrap(), "INT");
        let mut said = String::new();
        let mut errors = self.child.stderr.take().unwrap();
        poll::within("the end", errors.read_to_string(&mut said))
            .await
            .unwrap();
        let status = poll::within("the end", self.child.wait()).await.unwrap();
        (status.code(), said)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_followed_over_a_restart_until_it_is_interrupted() {
    let (data, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (server, tokens) = followers::administered(&data, 1).await;
    let token = &tokens[0];
    log(&server.visitor(), &["before"]).await;
    let mut followed = Followed::start(&server, token, &home, &["--json"]);
    assert_eq!(followed.message().await, "before");

    for round in 0..5 {
        let texts = [format!("{round}a"), format!("{round}b")];
        let started = SystemClock.elapsed();
        log(&server.visitor(), &texts.each_ref().map(String::as_str)).await;
        for text in texts {
            assert_eq!(followed.message().await, text);
        }
        // The first round may fall between the page and the stream.
        if round > 0 {
            let took = SystemClock.elapsed().saturating_sub(started);
            assert!(took < Duration::from_secs(1), "{took:?}");
        }
    }

    let port = server.address.port();
    let started = SystemClock.elapsed();
    server.stop().await;
    let took = SystemClock.elapsed().saturating_sub(started);
    assert!(took < Duration::from_secs(5), "the stop waited {took:?}");
    let admin = claims(token).sub;
    let server = again(&data, port, &admin).await;
    log(&server.visitor(), &["one after the restart"]).await;
    server.stop().await;
    let server = again(&data, port, &admin).await;
    log(&server.visitor(), &["after"]).await;
    assert_eq!(followed.message().await, "one after the restart");
    assert_eq!(followed.message().await, "after");

    let (code, said) = followed.interrupt().await;
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("error"), "{said}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_page_logs_steers_no_terminal() {
    let (data, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (server, tokens) = followers::administered(&data, 1).await;
    let token = &tokens[0];
    let hostile = "a\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\u{202e}b\u{200f}\r\u{8}\u{7f}c\u{2066}";
    log(&server.visitor(), &[hostile]).await;
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };

    let mut plain = Followed::start(&server, token, &home, &[]);
    let line = plain.line().await;
    assert!(line.contains('a') && line.contains('c'), "{line:?}");
    assert!(!line.chars().any(steers), "{line:?}");
    assert_eq!(plain.interrupt().await.0, Some(0));

    let mut json = Followed::start(&server, token, &home, &["--json"]);
    let line = json.line().await;
    assert!(!line.chars().any(steers), "{line:?}");
    let record: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(record["message"], hostile, "its value is whole");
    assert_eq!(json.interrupt().await.0, Some(0));
    server.stop().await;
}

/// The number of readers of one stream, of requests that pages send meanwhile, of concurrent
/// requests, and of records in each.
const READERS: usize = 20;
const REQUESTS: usize = 200;
const AT_ONCE: usize = 4;
const RECORDS: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_readers_get_every_record_once_while_pages_send_at_full_speed() {
    let data = TempDir::new().unwrap();
    let (server, tokens) = followers::administered(&data, READERS.div_ceil(EACH)).await;
    let (visitor, got) = (server.visitor(), Arc::new(Got::default()));
    let before = followers::memory(&server);
    let mut following = Vec::new();
    for reader in 0..READERS {
        following.push(followers::follow(&server.visitor(), &tokens[reader / EACH], &got).await);
    }
    let mut sending = JoinSet::new();
    for number in 0..REQUESTS {
        if number >= AT_ONCE {
            assert_eq!(sending.join_next().await.unwrap().unwrap(), 204);
        }
        let visitor = visitor.clone();
        sending.spawn(async move { followers::send(&visitor, followers::records(RECORDS)).await });
    }
    assert_eq!(sending.join_all().await, [204; AT_ONCE]);
    let all = u64::try_from(READERS * REQUESTS * RECORDS).unwrap();
    poll::until("every reader has got all or was told of it", async || {
        (got.all() >= all).then_some(())
    })
    .await;
    assert_eq!(got.all(), all);
    assert_eq!(got.wrong.load(Ordering::SeqCst), 0);
    // If each reader had its own copy of the events, this would be 80 MB.
    let grown = followers::memory(&server).saturating_sub(before);
    assert!(grown < 40_000, "{grown} kilobytes more");
    for reader in following {
        reader.abort();
    }
    server.stop().await;
}
