//! Many readers that follow one log stream of the server program, and what they receive.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flate2::write::GzDecoder;
use platform_protocol::paths;
use reqwest::Method;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use serde_json::json;
use tempfile::TempDir;

use crate::owner::Owner;
use crate::platform::Site;
use crate::server::Server;
use crate::visitor::{Visitor, claims};

/// The number of streams that one player may have open.
pub const EACH: usize = 10;
/// The path of the stream.
pub const STREAM: &str = "/api/projects/demo/logs/stream?env=prod";
/// How long a stream is read at most.
const LONG: Duration = Duration::from_secs(90);

/// What all readers received together.
#[derive(Debug, Default)]
pub struct Got {
    /// Number of records.
    pub records: AtomicU64,
    /// Number of records that were reported as left out.
    pub left_out: AtomicU64,
    /// Number of records that came twice, or before an older one.
    pub wrong: AtomicU64,
}

impl Got {
    /// Returns the number of records that were received or reported as left out.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.records.load(Ordering::SeqCst) + self.left_out.load(Ordering::SeqCst)
    }
}

/// Settings that disable the limits of pages.
pub const UNLIMITED: [(&str, &str); 4] = [
    ("PLATFORM_LOG_RATE", "1000000/s, burst 100000000"),
    ("PLATFORM_LOG_RATE_GAME", "1000000/s, burst 100000000"),
    ("PLATFORM_LOG_BYTES_RATE", "100000000/s, burst 1000000000"),
    (
        "PLATFORM_LOG_BYTES_RATE_GAME",
        "100000000/s, burst 1000000000",
    ),
];

/// Starts a server with `count` administrators and no limits for pages, and returns the
/// administrators' console tokens, too.
///
/// # Panics
/// Panics if it does not start, or issues no token.
pub async fn administered(data: &TempDir, count: usize) -> (Server, Vec<String>) {
    let server = Server::start(data.path()).await;
    let site = Site {
        origin: server.origin.clone(),
        address: server.address,
    };
    let mut tokens = Vec::new();
    for number in 0..count {
        let owner = Owner::sign_in(&site, &format!("Ada {number}")).await;
        tokens.push(owner.token);
    }
    server.stop().await;
    let admins: Vec<_> = tokens.iter().map(|token| claims(token).sub).collect();
    // The tokens are for the port that the server had.
    let (admins, listen) = (admins.join(","), site.address.to_string());
    let variables = [("PLATFORM_ADMINS", &*admins), ("PLATFORM_LISTEN", &listen)];
    let variables = [&variables[..], &UNLIMITED].concat();
    let server = Server::start_set(data.path(), "", &variables).await;
    (server, tokens)
}

/// Returns the body of a request with `count` equal records, as a page sends it.
#[must_use]
pub fn records(count: usize) -> String {
    let record = json!({
        "time": 0, "level": "info", "source": "console",
        "message": "the player picked up coin 17 of level 3 at 12.5, 88.0",
    });
    json!({ "page": "AAAAAAAAAAAAAAAAAAAAAA", "records": vec![record; count] }).to_string()
}

/// Sends them as a page of the demo does, and returns the status of the response.
///
/// # Panics
/// Panics if there is no response.
pub async fn send(visitor: &Visitor, records: String) -> u16 {
    let request = visitor.request(Method::POST, "demo", paths::LOGS);
    let request = request.header(CONTENT_TYPE, "application/json");
    let answer = request.body(records).send().await.expect("an answer");
    answer.status().as_u16()
}

/// Follows until the stream ends, and reads only the ids. Returns the task once the stream has
/// begun.
///
/// # Panics
/// Panics if there is no stream.
pub async fn follow(visitor: &Visitor, token: &str, got: &Arc<Got>) -> tokio::task::JoinHandle<()> {
    let host = visitor.host("x").replacen("x.", "", 1);
    let request = visitor
        .request_host(Method::GET, &host, STREAM)
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .header(ACCEPT_ENCODING, "gzip")
        .timeout(LONG);
    let answer = request.send().await.expect("a stream");
    let status = answer.status();
    if status != 200 {
        let problem = answer.text().await.expect("a whole answer");
        panic!("no stream: {status} {problem}");
    }
    let coding = answer.headers().get(CONTENT_ENCODING);
    assert_eq!(coding.expect("a coding"), "gzip");
    tokio::spawn(read(answer, Arc::clone(got)))
}

async fn read(mut answer: reqwest::Response, got: Arc<Got>) {
    let mut text = GzDecoder::new(Vec::new());
    let (mut rest, mut last) = (String::new(), 0_i64);
    while let Ok(Some(piece)) = answer.chunk().await {
        text.write_all(&piece).expect("gzip");
        text.flush().expect("gzip");
        rest.push_str(&String::from_utf8_lossy(text.get_ref()));
        text.get_mut().clear();
        let whole = rest.rfind('\n').map_or(0, |end| end + 1);
        for line in rest[..whole].lines() {
            if let Some(id) = line.strip_prefix("id: ") {
                let id = id.parse().expect("a number");
                let wrong = u64::from(id <= last);
                got.wrong.fetch_add(wrong, Ordering::SeqCst);
                got.records.fetch_add(1, Ordering::SeqCst);
                last = id;
            } else if let Some(count) = line.strip_prefix("data: {\"records\":") {
                let count = count.trim_end_matches('}').parse().expect("a number");
                got.left_out.fetch_add(count, Ordering::SeqCst);
            }
        }
        rest.drain(..whole);
    }
}

/// Returns the memory that the server uses now, or that all nodes do, in kilobytes.
///
/// # Panics
/// Panics if the server is not running, or if the system is not Linux.
#[must_use]
pub fn memory(server: &Server) -> u64 {
    let of_process = |id: u32| -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{id}/status"));
        let status = status.expect("the server runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let number = kilobytes.and_then(|text| text.trim().parse().ok());
        number.expect("kilobytes")
    };
    server.ids().map(of_process).sum()
}
