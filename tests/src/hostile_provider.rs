//! OpenID providers that misbehave on demand (`npm/hostile-provider.mjs`): one process for a whole
//! test program, with one provider for each test that needs it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use reqwest::Client;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::{npm, poll, settings};

/// The process. It ends when its standard input is closed, which happens whenever the test program
/// ends.
#[derive(Debug)]
struct Process {
    origin: String,
    _child: Child,
}

static PROCESS: OnceCell<Process> = OnceCell::const_new();

/// The client id of the platform at every provider here.
pub const CLIENT_ID: &str = "platform";
/// The secret that belongs to [`CLIENT_ID`].
pub const CLIENT_SECRET: &str = "a-client-secret-that-nobody-may-see";

/// A provider that behaves as the test sets it.
#[derive(Clone, Debug)]
pub struct HostileProvider {
    client: Client,
    /// Its address, with its path.
    pub address: String,
    /// Its issuer (OpenID Connect Discovery 1.0 §3).
    pub issuer: String,
}

/// The number of requests to each endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The discovery document.
    pub discovery: u64,
    /// The token endpoint.
    pub token: u64,
    /// The key set.
    pub jwks: u64,
}

impl HostileProvider {
    /// Creates a well-behaved provider that signs with `ES256`.
    pub async fn start() -> Self {
        Self::start_with(json!({})).await
    }

    /// Creates a well-behaved provider that signs with `alg`.
    pub async fn start_signing(alg: &str) -> Self {
        Self::start_with(json!({ "alg": alg })).await
    }

    /// Creates a provider that is reached through `issuer`, the address of another program that
    /// forwards to it.
    pub async fn start_behind(issuer: &str) -> Self {
        Self::start_with(json!({ "issuer": issuer })).await
    }

    async fn start_with(options: Value) -> Self {
        let process = PROCESS.get_or_init(start).await;
        let client = Client::builder()
            .no_proxy()
            .timeout(poll::BOUND)
            // Node closes a connection that was idle for five seconds, perhaps just when it is used.
            .pool_max_idle_per_host(0)
            .build()
            .expect("a client can be made");
        let made = post(&client, &format!("{}/providers", process.origin), &options).await;
        let path = made["path"].as_str().expect("a path");
        let address = format!("{}{path}", process.origin);
        let issuer = options["issuer"].as_str().unwrap_or(&address).to_owned();
        Self {
            client,
            address,
            issuer,
        }
    }

    /// Sets its behaviour from now on, as the top of the script describes it.
    pub async fn behave(&self, behaviour: &Value) {
        let answer = self
            .client
            .put(format!("{}/behaviour", self.address))
            .body(behaviour.to_string())
            .send()
            .await;
        let status = answer.expect("the provider answers").status();
        assert_eq!(status, 200, "{behaviour}");
    }

    /// Creates another key, which is published at once.
    pub async fn add_key(&self, alg: &str, kid: &str) {
        let key = json!({ "alg": alg, "kid": kid });
        post(&self.client, &format!("{}/keys", self.address), &key).await;
    }

    /// Returns what it has recorded: counts by endpoint, and the requests for tokens.
    pub async fn seen(&self) -> Value {
        let answer = self
            .client
            .get(format!("{}/seen", self.address))
            .send()
            .await;
        read(answer.expect("the provider answers")).await
    }

    /// Returns its key set, as it publishes it.
    pub async fn key_set(&self) -> Value {
        let answer = self.client.get(format!("{}/jwks", self.address)).send();
        read(answer.await.expect("the provider answers")).await
    }

    /// Returns the number of requests to each endpoint so far.
    pub async fn asked(&self) -> Asked {
        let seen = self.seen().await;
        let count = |endpoint| seen[endpoint].as_u64().expect("a count");
        Asked {
            discovery: count("discovery"),
            token: count("token"),
            jwks: count("jwks"),
        }
    }
}

async fn post(client: &Client, url: &str, body: &Value) -> Value {
    let answer = client.post(url).body(body.to_string()).send().await;
    read(answer.expect("the provider answers")).await
}

async fn read(answer: reqwest::Response) -> Value {
    assert_eq!(answer.status(), 200);
    let body = answer.bytes().await.expect("a whole answer");
    serde_json::from_slice(&body).expect("JSON")
}

async fn start() -> Process {
    let folder = npm::packages("npm").await;
    let mut child = Command::new(settings::program("NODE", &["node"]))
        .arg("hostile-provider.mjs")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node starts");
    let output = child.stdout.take().expect("standard output is a pipe");
    let reading = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map(|_| line)
    });
    let line = poll::within("the providers' ready line", reading).await;
    let line = line.expect("the reader ends").expect("a line of text");
    let origin = line.trim_end().strip_prefix("hostile-provider ready on ");
    Process {
        origin: origin.expect("a ready line").to_owned(),
        _child: child,
    }
}
