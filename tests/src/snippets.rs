//! The documents' backends in other languages, as running programs: each is the file that the page
//! shows.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};

use platform_test_ports::ReservedPort;
use reqwest::Client;
use serde_json::Value;
use tempfile::TempDir;

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

/// The folder of the documents' programs.
const DOCUMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/backends");

/// The paths of Java's libraries on Debian.
const JACKSON: [&str; 3] = [
    "/usr/share/java/jackson-databind.jar",
    "/usr/share/java/jackson-core.jar",
    "/usr/share/java/jackson-annotations.jar",
];

impl Language {
    /// Every language, with the verifier's own first.
    pub const ALL: [Self; 6] = [
        Self::Rust,
        Self::TypeScript,
        Self::Node,
        Self::Python,
        Self::Go,
        Self::Java,
    ];

    /// Returns the file of the documents, and the texts in it that set after how many seconds the
    /// key set is fetched again; `None` for programs that are not in the documents.
    const fn waits(self) -> Option<(&'static str, [&'static str; 2])> {
        match self {
            Self::Rust | Self::TypeScript => None,
            Self::Node => Some(("node/server.js", ["REFETCH = 30", "REFRESH = 600"])),
            Self::Python => Some(("python/server.py", ["REFETCH = 30", "REFRESH = 600"])),
            Self::Go => Some(("go/main.go", ["30 * time.Second", "600 * time.Second"])),
            Self::Java => Some(("java/Server.java", ["ofSeconds(30)", "ofSeconds(600)"])),
        }
    }

    /// Copies the documents' programs and changes this one so that it waits for one second instead
    /// of half a minute and ten minutes.
    ///
    /// # Panics
    /// Panics if its file does not contain these texts.
    #[must_use]
    pub fn hurried(self) -> Option<TempDir> {
        let (file, waits) = self.waits()?;
        let documents = Path::new(DOCUMENTS);
        let copy = TempDir::with_prefix("platform-tests-").expect("a temporary directory");
        let folder = copy.path().join(file);
        let folder = folder.parent().expect("it is in a folder");
        std::fs::create_dir(folder).expect("a folder");
        let mut text = std::fs::read_to_string(documents.join(file)).expect("a file");
        for wait in waits {
            assert_eq!(text.matches(wait).count(), 1, "{file}: {wait}");
            let digits: String = wait.chars().filter(char::is_ascii_digit).collect();
            text = text.replace(wait, &wait.replace(&digits, "1"));
        }
        std::fs::write(copy.path().join(file), text).expect("a file");
        for beside in ["go/go.mod", "node/package.json"] {
            if beside.split('/').next() == file.split('/').next() {
                std::fs::copy(documents.join(beside), copy.path().join(beside)).expect("a file");
            }
        }
        Some(copy)
    }

    /// Returns the command that starts the program in `documents`, after installing and compiling
    /// it.
    async fn command(self, documents: &Path) -> Command {
        let made = server::target().join("snippets");
        std::fs::create_dir_all(&made).expect("a folder");
        // A compiled copy is a different program.
        let copied = documents != Path::new(DOCUMENTS);
        let made = if copied { documents.to_owned() } else { made };
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
                if copied {
                    let packages = documents.join("node/node_modules");
                    std::os::unix::fs::symlink(folder.join("node_modules"), packages)
                        .expect("a link");
                }
                command.arg(documents.join("node/server.js"));
                command
            }
            Self::Python => {
                let mut command = Command::new(
                    python::environment(&Path::new(DOCUMENTS).join("python"), "snippets")
                        .join("python"),
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
        let documents = Path::new(DOCUMENTS);
        self.start_from(documents, issuer, audience, jwks_url).await
    }

    /// Starts the program from a copy of the documents.
    pub async fn start_from(
        self,
        documents: &Path,
        issuer: &str,
        audience: &str,
        jwks_url: &str,
    ) -> Program {
        let port = ReservedPort::take().expect("a port is free");
        let data = TempDir::with_prefix("platform-tests-").expect("a temporary directory");
        let mut command = self.command(documents).await;
        command
            .env("AUTH_ISSUER", issuer)
            .env("AUTH_AUDIENCE", audience)
            .env("AUTH_JWKS_URL", jwks_url)
            .env("PORT", port.number().to_string())
            .env("SCORES", data.path().join("scores.json"))
            .stdout(log(&data))
            .stderr(log(&data));
        let process = Guarded::start(&mut command);
        poll::until(&format!("{self:?} to listen"), async || {
            tokio::net::TcpStream::connect(port.address()).await.ok()
        })
        .await;
        Program {
            language: self,
            url: format!("http://{}/api/me", port.address()),
            client: Client::new(),
            _process: process,
            data,
            _port: port,
        }
    }
}

/// Opens the file to which a program's output is appended.
fn log(data: &TempDir) -> Stdio {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(data.path().join("log"));
    file.expect("a file in a folder of our own").into()
}

/// A running program.
#[derive(Debug)]
pub struct Program {
    /// Its language.
    pub language: Language,
    url: String,
    client: Client,
    _process: Guarded,
    data: TempDir,
    _port: ReservedPort,
}

/// The response of a program.
#[derive(Debug)]
pub struct Verdict {
    /// The status.
    pub status: u16,
    /// The media type.
    pub kind: String,
    /// `WWW-Authenticate`, or empty.
    pub challenge: String,
    /// The body, if it is JSON.
    pub body: Value,
}

impl Program {
    /// Returns its output so far.
    ///
    /// # Panics
    /// Panics if it is not valid text.
    #[must_use]
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.data.path().join("log")).expect("a program says text")
    }

    /// Returns its response to `GET /api/me` with this `Authorization` header.
    ///
    /// # Panics
    /// Panics if it does not respond.
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
