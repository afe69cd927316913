//! What 200 readers of one log stream cost those who write: pages send 5,000
//! records a second to the real server program, first with nobody who follows,
//! then with 200 who do and one who opens a stream and never reads. Prints one
//! JSON object: how long the pages' requests took, in milliseconds, the server's
//! memory, and what the readers got.
//!
//! `cargo run --release -p platform-tests --example followers [readers]`

#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads the clock, prints what it found, and fails loudly"
)]

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use platform_tests::followers::{EACH, Got, STREAM, administered, follow, memory, records, send};
use platform_tests::visitor::Visitor;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};

/// Records of one request, and the time between two: 5,000 a second.
const RECORDS: usize = 50;
const PACE: Duration = Duration::from_millis(10);
/// How long each part takes. Who reads nothing is cut off after 30 seconds.
const QUIET: Duration = Duration::from_secs(20);
const FOLLOWED: Duration = Duration::from_secs(45);
/// What the process of the readers is called with.
const READ: &str = "read";

#[tokio::main]
async fn main() {
    let mut given = std::env::args().skip(1);
    let first = given.next();
    if first.as_deref() == Some(READ) {
        let address = given.next().expect("an address");
        return read(address.parse().expect("an address")).await;
    }
    let readers: usize = first.map_or(200, |text| text.parse().expect("a number"));
    let data = TempDir::with_prefix("platform-tests-").expect("a temporary directory");
    let (server, tokens) = administered(&data, readers.div_ceil(EACH) + 1).await;
    let visitor = server.visitor();
    // The first requests make what the others find.
    write(&visitor, Duration::from_secs(2)).await;
    let quiet = write(&visitor, QUIET).await;
    let before = memory(&server);

    let stop = Arc::new(AtomicBool::new(false));
    let following = Readers::start(server.address, &tokens, readers).await;
    let silent = tokio::spawn(read_nothing(
        server.address,
        visitor.host("x"),
        tokens[tokens.len() - 1].clone(),
        Arc::clone(&stop),
    ));
    let writing = tokio::spawn({
        let visitor = visitor.clone();
        async move { write(&visitor, FOLLOWED).await }
    });
    let mut most = 0;
    while !writing.is_finished() {
        most = most.max(memory(&server));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let followed = writing.await.expect("the pages have sent");
    stop.store(true, Ordering::SeqCst);
    let cut_off = silent.await.expect("the one who does not read");
    let got = following.stop().await;
    let figure = |part: &Value| part["p99"].as_f64();
    let ratio = figure(&followed).zip(figure(&quiet));
    println!(
        "{:#}",
        json!({
            "readers": readers,
            "pages": { "nobody_follows": quiet, "followed": followed },
            "p99_ratio": ratio.map(|(one, other)| one / other),
            "server_kilobytes": { "before": before, "most": most },
            "got": got,
            "reader_of_nothing_cut_off": cut_off,
        })
    );
    server.stop().await;
}

/// Those who follow, in a process of their own that waits for all others: in
/// earnest they are on other machines, and do not take this one's cores.
struct Readers {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Readers {
    /// Returns once everybody follows.
    async fn start(address: SocketAddr, tokens: &[String], count: usize) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut process = Command::new("nice")
            .args(["-n", "19"])
            .arg(program)
            .args([READ, &address.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("another process");
        let tokens: Vec<&String> = (0..count).map(|reader| &tokens[reader / EACH]).collect();
        let line = format!("{}\n", json!(tokens));
        let input = process.stdin.as_mut().expect("a pipe");
        input.write_all(line.as_bytes()).await.expect("it reads");
        let said = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut readers = Self { process, said };
        readers.line().await;
        readers
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).await.expect("a line");
        assert!(!line.is_empty(), "the readers have ended");
        line
    }

    /// Ends them; what they got.
    async fn stop(mut self) -> Value {
        drop(self.process.stdin.take());
        let got = self.line().await;
        self.process.wait().await.expect("its end");
        serde_json::from_str(&got).expect("JSON")
    }
}

/// The process of those who follow.
async fn read(address: SocketAddr) {
    let mut input = BufReader::new(tokio::io::stdin());
    let mut line = String::new();
    input.read_line(&mut line).await.expect("the tokens");
    let tokens: Vec<String> = serde_json::from_str(&line).expect("the tokens");
    let (got, mut following) = (Arc::new(Got::default()), Vec::new());
    for token in tokens {
        let visitor = Visitor::new(address, address.port());
        following.push(follow(&visitor, &token, &got).await);
    }
    println!("all follow");
    line.clear();
    input.read_line(&mut line).await.expect("the end");
    println!(
        "{}",
        json!({
            "records_read": got.records.load(Ordering::SeqCst),
            "records_left_out": got.left_out.load(Ordering::SeqCst),
            "repeated_or_out_of_order": got.wrong.load(Ordering::SeqCst),
        })
    );
}

/// Sends requests at a fixed pace, whether the ones before are answered or not;
/// how long they took from when they were due.
async fn write(visitor: &Visitor, long: Duration) -> Value {
    let body = records(RECORDS);
    let begin = tokio::time::Instant::now();
    let mut sending = tokio::task::JoinSet::new();
    let mut number = 0;
    while begin.elapsed() < long {
        let due = begin + PACE * number;
        tokio::time::sleep_until(due).await;
        number += 1;
        let (visitor, body) = (visitor.clone(), body.clone());
        sending.spawn(async move {
            let status = send(&visitor, body).await;
            (status, due.elapsed().as_secs_f64() * 1_000.0)
        });
    }
    let answers = sending.join_all().await;
    let taken = answers.iter().filter(|(status, _)| *status == 204).count();
    let mut waits: Vec<f64> = answers.iter().map(|(_, wait)| *wait).collect();
    waits.sort_by(f64::total_cmp);
    let at = |percent: usize| waits.get((waits.len() * percent).div_ceil(100).saturating_sub(1));
    json!({ "requests": answers.len(), "taken": taken, "p50": at(50), "p99": at(99), "most": at(100) })
}

/// Opens a stream and reads nothing of it; at the end, whether the server has
/// closed the connection meanwhile.
async fn read_nothing(
    address: SocketAddr,
    host: String,
    token: String,
    stop: Arc<AtomicBool>,
) -> bool {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("a socket option");
    let mut stream = socket.connect(address).await.expect("a connection");
    let host = host.replacen("x.", "", 1);
    let head =
        format!("GET {STREAM} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream
        .write_all(head.as_bytes())
        .await
        .expect("the server reads");
    while !stop.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // What lies in the buffers is still there; behind it there is the end.
    let (mut buffer, begin) = (vec![0; 1 << 16], Instant::now());
    while begin.elapsed() < Duration::from_secs(1) {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return true,
            Ok(_) => {}
        }
    }
    false
}
