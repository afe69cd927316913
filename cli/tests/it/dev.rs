//! `platform dev`: the paths of the runtime, a folder, other servers, a command.

mod command;
mod folder;
mod hostile;
mod others;
mod players;

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use axum::Router;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStderr, ChildStdout};

use crate::platform::{Platform, Said};
use crate::support::Home;

const RUNTIME: &str = "/* the runtime */";
const PAGE: &str = "<!doctype html><html><head><script defer src=\"/__platform/runtime.js\"></script>\
                    </head><body>Game</body></html>";
/// No step takes as long, unless it fails.
const BOUND: Duration = Duration::from_secs(30);

/// A running `platform dev`.
struct Dev {
    child: Child,
    port: u16,
    /// The lines of its block up to the address.
    lines: Lines<BufReader<ChildStdout>>,
    stderr: ChildStderr,
}

/// A response that was read to its end.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Asserts that this is a problem with this status, and returns its detail.
    #[track_caller]
    fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(self.header("cache-control"), "no-store");
        assert_eq!(self.json()["status"], status);
        self.json()["detail"].as_str().unwrap().to_owned()
    }
}

impl Dev {
    /// Starts it in a home, for the project `game`, and waits until it is ready.
    async fn start(home: &Home, arguments: &[&str]) -> Self {
        let before = ["dev", "-p", "game", "--port", "0"];
        let mut child = home
            .command(&[&before[..], arguments].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = child.stderr.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = loop {
            let line = tokio::time::timeout(BOUND, lines.next_line()).await;
            let line = line.unwrap().unwrap().unwrap();
            let address = line.strip_prefix("  Game     http://localhost:");
            if let Some(address) = address {
                break address.trim_end_matches('/').parse().unwrap();
            }
        };
        Self {
            child,
            port,
            lines,
            stderr,
        }
    }

    /// The rest of its block.
    async fn block(&mut self) -> String {
        let mut block = String::new();
        while !block.contains("Ctrl-C") {
            let line = tokio::time::timeout(BOUND, self.lines.next_line()).await;
            block.push_str(&line.unwrap().unwrap().unwrap());
            block.push('\n');
        }
        block
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    async fn open(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> http::Response<Incoming> {
        let client: Client<HttpConnector, Full<Bytes>> =
            Client::builder(TokioExecutor::new()).build_http();
        let mut request = Request::builder().method(method).uri(self.url(path));
        let own = format!("localhost:{}", self.port);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", own);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let sent = tokio::time::timeout(BOUND, client.request(request)).await;
        sent.unwrap().unwrap()
    }

    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
        read(self.open(method, path, headers, Bytes::new()).await).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[]).await
    }

    /// Asks for a token, as the runtime does.
    async fn token(&self, player: &str) -> Answer {
        let own = format!("http://localhost:{}", self.port);
        let headers = [("origin", own.as_str()), ("sec-fetch-site", "same-origin")];
        let path = format!("/__platform/token/{player}");
        self.send(Method::POST, &path, &headers).await
    }

    /// Sends a signal.
    fn signal(&self, name: &str) {
        let id = self.child.id().unwrap().to_string();
        let sent = std::process::Command::new("kill")
            .args(["-s", name, &id])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Presses Ctrl-C, and returns the exit status and standard error.
    async fn end(mut self) -> (Option<i32>, String) {
        self.signal("INT");
        self.ended().await
    }

    /// Waits for its end, and returns the exit status and standard error.
    async fn ended(&mut self) -> (Option<i32>, String) {
        let status = tokio::time::timeout(BOUND, self.child.wait()).await;
        let mut said = String::new();
        let read = tokio::time::timeout(BOUND, self.stderr.read_to_string(&mut said)).await;
        read.unwrap().unwrap();
        (status.unwrap().unwrap().code(), said)
    }
}

async fn read(response: http::Response<Incoming>) -> Answer {
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: head.status,
        headers: head.headers,
        body: String::from_utf8(body.into()).unwrap(),
    }
}

/// A platform with the deployed project `game`, and somebody who is signed in.
async fn scene() -> (Platform, Home) {
    let platform = Platform::start().await;
    serves_runtime(&platform);
    let answer = json!({
        "access_token": "a.b.c", "token_type": "Bearer", "expires_in": 1800,
        "sub": "0198c2d4-0000-7000-8000-000000000003", "username": "test-user-3",
    });
    platform.say("POST - /api/projects/game/test-tokens", &[(200, answer)]);
    let home = Home::signed_in(&platform).await;
    home.write("dist/index.html", PAGE);
    (platform, home)
}

fn serves_runtime(platform: &Platform) {
    let said = Said {
        status: 200,
        content_type: "text/javascript; charset=utf-8",
        body: RUNTIME.to_owned(),
    };
    platform.say_raw("GET dev-game /__platform/runtime.js", vec![said]);
}

/// Serves `router` on a port of its own, and returns its address.
async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let SocketAddr::V4(address) = listener.local_addr().unwrap() else {
        unreachable!("an address of IPv4 was bound");
    };
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://localhost:{}", address.port())
}

/// Polls until `probe` returns a value.
async fn until<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let mut tick = tokio::time::interval(Duration::from_millis(20));
    let polling = async {
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            tick.tick().await;
        }
    };
    let found = tokio::time::timeout(BOUND, polling).await;
    assert!(found.is_ok(), "waited in vain until {what}");
    found.unwrap()
}
