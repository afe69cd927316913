//! The examples of docs/alerts.md run as the page shows them, and judge requests that the platform
//! sent.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::http::{HeaderMap, StatusCode};
use platform_test_ports::ReservedPort;
use platform_tests::owner::Owner;
use platform_tests::platform::Platform;
use platform_tests::poll::{self, until};
use platform_tests::process::Guarded;
use platform_tests::{npm, settings};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const PAGE: &str = include_str!("../../docs/alerts.md");
const WEBHOOK: &str = "/api/projects/game/webhook";

/// The page's examples as files in a folder with the npm packages that they import.
struct Examples {
    folder: TempDir,
    packages: PathBuf,
}

/// The running receiver.
struct Receiver {
    _process: Guarded,
    address: String,
    _port: ReservedPort,
}

impl Examples {
    async fn extract() -> Self {
        let packages = npm::packages("npm").await;
        let folder = TempDir::with_prefix("platform-tests-").unwrap();
        let modules = folder.path().join("node_modules");
        std::os::unix::fs::symlink(packages.join("node_modules"), modules).unwrap();
        let codes = PAGE.split("\n```js\n").skip(1);
        let codes: Vec<&str> = codes
            .map(|rest| rest.split_once("\n```\n").unwrap().0)
            .collect();
        let [receiver, check, discord, slack] = codes[..] else {
            unreachable!("the page has a receiver, a check without a library, and two chats");
        };
        let chats = format!(
            "{discord}\n{slack}\nconst event = JSON.parse(process.argv[2]);\n\
             console.log(JSON.stringify([forDiscord(event), forSlack(event)]));\n"
        );
        std::fs::write(folder.path().join("chats.mjs"), chats).unwrap();
        std::fs::write(folder.path().join("receiver.mjs"), receiver).unwrap();
        std::fs::write(folder.path().join("check.mjs"), check).unwrap();
        Self { folder, packages }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the receiver with this secret on a port of its own in place of the page's, and waits until
    /// it listens.
    async fn start(&self, secret: &str) -> Receiver {
        let port = ReservedPort::take().unwrap();
        let file = self.file("receiver.mjs");
        let code = std::fs::read_to_string(&file).unwrap();
        assert_eq!(code.matches("listen(3000)").count(), 1, "{code}");
        let listen = format!("listen({})", port.number());
        std::fs::write(&file, code.replace("listen(3000)", &listen)).unwrap();
        let log = File::create(self.file("log")).unwrap();
        let mut node = Command::new(settings::program("NODE", &["node"]));
        node.arg(file)
            .env("PLATFORM_WEBHOOK_SECRET", secret)
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let process = Guarded::start(&mut node);
        until("the receiver listens", async || {
            TcpStream::connect(port.address()).await.ok()
        })
        .await;
        Receiver {
            _process: process,
            address: format!("http://{}/platform", port.address()),
            _port: port,
        }
    }

    /// Waits until the receiver has printed this so many times, and returns all that it printed.
    async fn prints(&self, what: &str, times: usize) -> String {
        until(what, async || {
            let log = std::fs::read_to_string(self.file("log")).unwrap();
            (log.matches(what).count() == times).then_some(log)
        })
        .await
    }

    /// What the check without a library says about a request and forgeries of it.
    async fn judge(&self, secret: &str, sent: &Sent) -> Value {
        let mut node = tokio::process::Command::new(settings::program("NODE", &["node"]))
            .arg("is-genuine.mjs")
            .current_dir(&self.packages)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let question = json!({
            "module": self.file("check.mjs"), "secret": secret,
            "headers": sent.headers(), "body": sent.body,
        });
        let mut input = node.stdin.take().unwrap();
        input
            .write_all(question.to_string().as_bytes())
            .await
            .unwrap();
        drop(input);
        let output = poll::within("node", node.wait_with_output()).await.unwrap();
        assert!(output.status.success(), "is-genuine.mjs failed");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// A request that the platform sent.
#[derive(Clone)]
struct Sent {
    headers: HeaderMap,
    body: String,
}

impl Sent {
    /// Its headers with one value each, as Node has them.
    fn headers(&self) -> Value {
        let headers = self.headers.iter();
        headers
            .map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap())))
            .collect()
    }

    /// Sends it, with these headers in place of its own; returns the response's status.
    async fn send(&self, to: &str, changed: &[(&'static str, &str)]) -> StatusCode {
        let mut headers = self.headers.clone();
        headers.remove("host");
        headers.remove("content-length");
        for (name, value) in changed {
            headers.insert(*name, value.parse().unwrap());
        }
        let client = Client::builder().no_proxy().timeout(poll::BOUND);
        let request = client.build().unwrap().post(to).headers(headers);
        let response = request.body(self.body.clone()).send().await.unwrap();
        response.status()
    }
}

/// Stands between the platform and the receiver, and keeps what it passes on.
struct Relay {
    url: String,
    to: Arc<Mutex<String>>,
    sent: mpsc::UnboundedReceiver<Sent>,
}

impl Relay {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/platform", listener.local_addr().unwrap());
        let (sender, sent) = mpsc::unbounded_channel();
        let to = Arc::new(Mutex::new(String::new()));
        let receiver = Arc::clone(&to);
        let routes = axum::Router::new().fallback(move |headers: HeaderMap, body: String| {
            let sent = Sent { headers, body };
            let _ = sender.send(sent.clone());
            let to = receiver.lock().unwrap().clone();
            async move { sent.send(&to, &[]).await }
        });
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, to, sent }
    }

    async fn next(&mut self) -> Sent {
        poll::within("an alert", self.sent.recv()).await.unwrap()
    }
}

#[tokio::test]
async fn the_examples_take_what_the_platform_sends_and_nothing_else() {
    let platform = Platform::start(&[]).await;
    let owner = Owner::sign_in(&platform.site, "Ada").await;
    owner.create("game").await;
    let mut relay = Relay::start().await;
    let set = json!({ "url": relay.url });
    let (status, set) = owner.ask(Method::PUT, WEBHOOK, Some(set)).await;
    assert_eq!(status, 200, "{set}");
    let secret = set["secret"].as_str().unwrap();
    let examples = Examples::extract().await;
    let receiver = examples.start(secret).await;
    let address = &receiver.address;
    relay.to.lock().unwrap().clone_from(address);

    let test = format!("{WEBHOOK}/test");
    let (_, told) = owner.ask(Method::POST, &test, Some(json!({}))).await;
    assert_eq!(told["status"], 204, "{told}");
    relay.next().await;
    examples.prints("test { project: 'game' }", 1).await;

    let record = json!({ "time": 0, "level": "error", "source": "report", "message": "No coins" });
    let body = json!({ "page": "AAAAAAAAAAAAAAAAAAAAAA", "records": [record] });
    let visitor = owner.visitor();
    let request = visitor.request(Method::POST, "game", "/__platform/logs");
    let request = request.header("content-type", "application/json");
    let logged = request.body(body.to_string()).send().await.unwrap();
    assert_eq!(logged.status(), 204);
    let sent = relay.next().await;
    let log = examples.prints("error.new", 1).await;
    assert!(log.contains("message: 'No coins'"), "{log}");

    // It comes again, and is known; what is changed, or not signed, is refused.
    assert_eq!(sent.send(address, &[]).await, 204);
    for (name, value) in [
        ("webhook-id", "alert-99-game"),
        ("webhook-timestamp", "1767225600"),
        ("webhook-signature", "v1,AAAA"),
    ] {
        assert_eq!(sent.send(address, &[(name, value)]).await, 401, "{name}");
    }
    let forged = Sent {
        body: sent.body.replace("No coins", "All coins"),
        ..sent.clone()
    };
    assert_eq!(forged.send(address, &[]).await, 401);
    let log = examples.prints("error.new", 1).await;
    assert!(!log.contains("All coins"), "{log}");

    let judged = examples.judge(secret, &sent).await;
    let genuine = json!({
        "delivered": true, "signed by the library": true,
        "two signatures, as while a secret is replaced": true,
        "another body": false, "another id": false, "another secret": false,
        "no signature": false, "no time": false, "old": false, "of the future": false,
    });
    assert_eq!(judged, genuine);
}

#[tokio::test]
async fn a_message_of_a_stranger_notifies_no_member_of_a_chat() {
    let examples = Examples::extract().await;
    let event = json!({ "type": "error.new", "data": {
        "url": "https://play.example/", "kind": "error", "message": "``` @everyone <!channel> & more",
    }});
    let output = Command::new(settings::program("NODE", &["node"]))
        .arg(examples.file("chats.mjs"))
        .arg(event.to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let messages: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(messages[0]["allowed_mentions"], json!({ "parse": [] }));
    let content = messages[0]["content"].as_str().unwrap();
    assert_eq!(content.matches("```").count(), 2, "{content}");
    let text = &messages[1]["blocks"][1]["text"];
    assert_eq!(text["type"], "plain_text");
    let text = text["text"].as_str().unwrap();
    assert!(text.contains("&lt;!channel&gt; &amp; more"), "{text}");
}
