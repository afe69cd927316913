//! The documents' backends in other languages, as programs that run: each is
//! the file that the page shows.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};

use reqwest::Client;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::process::Guarded;
use crate::{npm, poll, python, server, settings};

/// A language's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// The template's backend in Rust, with the verifier of this repository.
    Rust,
    /// The template's backend in TypeScript.
    TypeScript,
    /// Node with jose.
    Node,
    /// Python with `PyJWT`.
    Python,
    /// Go with its standard library.
    Go,
    /// Java with the JDK and Jackson.
    Java,
}

/// Where Debian keeps Java's libraries.
const JACKSON: [&str; 3] = [
    "/usr/share/java/jackson-databind.jar",
    "/usr/share/java/jackson-core.jar",
    "/usr/share/java/jackson-annotations.jar",
];

impl Language {
    /// Every language, the verifier's own first.
    pub const ALL: [Self; 6] = [
        Self::Rust,
        Self::TypeScript,
        Self::Node,
        Self::Python,
        Self::Go,
        Self::Java,
    ];

    /// The command that starts the program, once it is installed and compiled.
    async fn command(self) -> Command {
        let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/backends");
        let made = server::target().join("snippets");
        std::fs::create_dir_all(&made).expect("a folder");
        match self {
            Self::Rust => Command::new(server::built(
                "platform-template-backend",
                "platform-template-backend",
            )),
            Self::TypeScript => {
                let folder = npm::packages("../template").await;
                let mut command = Command::new(settings::program("NODE", &["node"]));
                command.args(["--import", "tsx", "backend/main.ts"]);
                command.current_dir(folder);
                command
            }
            Self::Node => {
                let folder = npm::packages("../docs/backends/node").await;
                let mut command = Command::new(settings::program("NODE", &["node"]));
                command.arg(folder.join("server.js"));
                command
            }
            Self::Python => {
                let mut command = Command::new(
                    python::environment(&documents.join("python"), "snippets").join("python"),
                );
                command.arg(documents.join("python/server.py"));
                command
            }
            Self::Go => {
                let program = made.join("go-backend");
                let mut go = Command::new(settings::program("GO", &["go"]));
                go.arg("build").arg("-o").arg(&program).arg(".");
                run(go.current_dir(documents.join("go")));
                Command::new(program)
            }
            Self::Java => {
                let classes = made.join("java");
                let mut javac = Command::new(settings::program("JAVAC", &["javac"]));
                javac.args(["--class-path", &JACKSON.join(":"), "-d"]);
                run(javac.arg(&classes).arg(documents.join("java/Server.java")));
                let mut command = Command::new(settings::program("JAVA", &["java"]));
                let path = format!("{}:{}", classes.display(), JACKSON.join(":"));
                command.args(["--class-path", &path, "Server"]);
                command
            }
        }
    }

    /// Starts the program with these settings, and waits until it listens.
    pub async fn start(self, issuer: &str, audience: &str, jwks_url: &str) -> Program {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let data = TempDir::with_prefix("platform-tests-").expect("a temporary directory");
        let mut command = self.command().await;
        command
            .env("AUTH_ISSUER", issuer)
            .env("AUTH_AUDIENCE", audience)
            .env("AUTH_JWKS_URL", jwks_url)
            .env("PORT", port.to_string())
            .env("SCORES", data.path().join("scores.json"))
            .stdout(log(&data))
            .stderr(log(&data));
        let process = Guarded::start(&mut command);
        poll::until(&format!("{self:?} to listen"), async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .ok()
        })
        .await;
        Program {
            language: self,
            url: format!("http://127.0.0.1:{port}/api/me"),
            client: Client::new(),
            _process: process,
            data,
        }
    }
}

/// The file that a program's words go to, to be appended to.
fn log(data: &TempDir) -> Stdio {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(data.path().join("log"));
    file.expect("a file in a folder of our own").into()
}

/// A program that runs.
#[derive(Debug)]
pub struct Program {
    /// Its language.
    pub language: Language,
    url: String,
    client: Client,
    _process: Guarded,
    data: TempDir,
}

/// What a program answered.
#[derive(Debug)]
pub struct Verdict {
    /// The status.
    pub status: u16,
    /// The media type.
    pub kind: String,
    /// `WWW-Authenticate`, or nothing.
    pub challenge: String,
    /// The body, if it is JSON.
    pub body: Value,
}

impl Program {
    /// What it has said so far.
    ///
    /// # Panics
    /// When that is no text.
    #[must_use]
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.data.path().join("log")).expect("a program says text")
    }

    /// What it says to `GET /api/me` with this `Authorization` header.
    ///
    /// # Panics
    /// When it does not answer.
    pub async fn ask(&self, authorization: &str) -> Verdict {
        let request = self
            .client
            .get(&self.url)
            .header("authorization", authorization);
        let answer = poll::within("an answer", request.send()).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => panic!("{:?} does not answer: {error}", self.language),
        };
        let header = |name| {
            let value = answer.headers().get(name);
            value.and_then(|value| value.to_str().ok()).unwrap_or("")
        };
        Verdict {
            status: answer.status().as_u16(),
            kind: header("content-type").to_owned(),
            challenge: header("www-authenticate").to_owned(),
            body: {
                let text = answer.text().await.unwrap_or_default();
                serde_json::from_str(&text).unwrap_or_default()
            },
        }
    }
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{command:?} failed: `cargo xtask test` installs what the tests need"
    );
}
