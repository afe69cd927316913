//! A node: `platform-server serve` with the settings of a cluster.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result};
use platform_test_ports::ReservedPort;

use crate::clock;
use crate::poll;
use crate::postgres::PostgresPair;
use crate::process::{Process, User, guarded, make_folder, run};
use crate::relay::Relay;

/// How long a question to `/readyz` may take.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// What all nodes of a cluster have in common.
pub(crate) struct Shared<'a> {
    pub(crate) server: &'a Path,
    pub(crate) folder: &'a Path,
    pub(crate) origin: String,
    pub(crate) postgres: &'a PostgresPair,
    pub(crate) relayed: bool,
    pub(crate) redis_url: String,
    pub(crate) key_secret: String,
    pub(crate) files: [(&'static str, String); 4],
    pub(crate) settings: &'a [(String, String)],
    pub(crate) clocks: &'a [i32],
    pub(crate) config: Option<PathBuf>,
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    /// Its name in the balancer and of its log file.
    pub name: String,
    /// The program.
    pub process: Process,
    /// Where it serves players.
    pub address: SocketAddr,
    /// Where it serves `/healthz` and `/readyz`.
    pub operations: SocketAddr,
    /// A shell script that runs a command of its program with its settings, as an operator does on its
    /// machine.
    pub script: PathBuf,
    /// The relays before PostgreSQL, if the plan asks for them.
    pub relays: Vec<Relay>,
    start: Start,
    _ports: [ReservedPort; 2],
}

/// How the node is started, to start it again.
#[derive(Clone, Debug)]
struct Start {
    server: PathBuf,
    folder: PathBuf,
    settings: Vec<(String, String)>,
    config: Option<PathBuf>,
    clock: i32,
}

impl Node {
    pub(crate) fn start(shared: &Shared<'_>, number: usize) -> Result<Self> {
        let name = format!("node-{number}");
        let ports = [crate::reserve_port()?, crate::reserve_port()?];
        let [address, operations] = ports.each_ref().map(ReservedPort::address);
        let data = shared.folder.join(&name);
        make_folder(&data, User::Same)?;
        // The demo game's backends write to one file, so that its scores are the same on all nodes.
        let demo = shared.folder.join("demo");
        let mut relays = Vec::new();
        let mut databases = shared.postgres.ports();
        if shared.relayed {
            for port in &mut databases {
                let relay = Relay::start(*port)?;
                *port = relay.port;
                relays.push(relay);
            }
        }
        let database = |name| PostgresPair::url_at(databases, name);
        let own = [
            ("PLATFORM_ORIGIN", shared.origin.clone()),
            ("PLATFORM_LISTEN", address.to_string()),
            ("PLATFORM_OPERATIONS_LISTEN", operations.to_string()),
            ("PLATFORM_DATA", data.display().to_string()),
            ("PLATFORM_DEMO_FOLDER", demo.display().to_string()),
            ("PLATFORM_DATABASE_URL", database("platform")),
            ("PLATFORM_LOGS_DATABASE_URL", database("logs")),
            ("PLATFORM_REDIS_URL", shared.redis_url.clone()),
            ("PLATFORM_KEY_SECRET", shared.key_secret.clone()),
            ("PLATFORM_TRUSTED_PROXIES", "127.0.0.1/32".to_owned()),
        ];
        let own = own.into_iter().chain(shared.files.clone());
        let own = own.map(|(name, value)| (name.to_owned(), value));
        let start = Start {
            server: shared.server.to_owned(),
            folder: shared.folder.to_owned(),
            settings: own.chain(shared.settings.iter().cloned()).collect(),
            config: shared.config.clone(),
            clock: shared.clocks.get(number - 1).copied().unwrap_or(0),
        };
        let script = start.write_script(&name)?;
        Ok(Self {
            process: start.launch(&name)?,
            name,
            script,
            address,
            operations,
            relays,
            start,
            _ports: ports,
        })
    }

    /// Starts it again with the same settings and addresses, and waits until it is ready.
    ///
    /// # Errors
    /// It does not start, or is not ready within a minute.
    pub fn restart(&mut self) -> Result<()> {
        self.begin()?;
        self.wait_until_ready()
    }

    /// Starts it again with the same settings and addresses, and does not wait for it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn begin(&mut self) -> Result<()> {
        self.process = self.start.launch(&self.name)?;
        Ok(())
    }

    /// From its next start on, its clock is so many seconds ahead.
    pub fn set_clock(&mut self, seconds: i32) {
        self.start.clock = seconds;
    }

    /// Runs another command of its program with its settings, as an operator does on its machine, and
    /// returns the output.
    ///
    /// # Errors
    /// It cannot be run, or fails; the error shows what it wrote.
    pub fn operate(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.start.command()?;
        run(command.args(arguments))
    }

    /// Asks it to stop, as an operator does, and waits until it has.
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.process.end("TERM")
    }

    /// Waits until `/readyz` answers 200.
    ///
    /// # Errors
    /// It ended, or is not ready within a minute; the error shows the end of its output.
    pub fn wait_until_ready(&mut self) -> Result<()> {
        let (operations, process) = (self.operations, &mut self.process);
        poll::until(&format!("{} to be ready", self.name), || {
            process.check()?;
            Ok(status(operations, "/readyz").is_some_and(|status| status == 200))
        })
        .with_context(|| format!("see {}", self.process.log().display()))
    }

    /// Returns the status of `/readyz` now; `None` if there is no answer.
    #[must_use]
    pub fn readiness(&self) -> Option<u16> {
        status(self.operations, "/readyz")
    }
}

impl Start {
    /// Writes the script that runs a command with the node's settings. Only the user of this process
    /// may read it, since secrets are in it.
    fn write_script(&self, name: &str) -> Result<PathBuf> {
        use std::fmt::Write as _;
        let mut text = "#!/bin/sh\n".to_owned();
        for (name, value) in &self.settings {
            writeln!(text, "export {name}={}", quoted(value))?;
        }
        let server = self.server.display().to_string();
        writeln!(text, "exec {} \"$@\"", quoted(&server))?;
        let script = self.folder.join(format!("{name}.sh"));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o700)
            .open(&script);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.with_context(|| format!("{} cannot be written", script.display()))?;
        Ok(script)
    }

    fn launch(&self, name: &str) -> Result<Process> {
        let mut command = self.command()?;
        command.arg("serve");
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        Process::start(name, &self.folder, &mut command)
    }

    /// Its program on its machine.
    fn command(&self) -> Result<Command> {
        let mut command = guarded(&self.server, User::Same)?;
        command.envs(self.settings.iter().cloned());
        clock::shift(&mut command, self.clock)?;
        Ok(command)
    }
}

/// A word that a shell reads as exactly this text.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The status of an answer to `GET path`.
fn status(address: SocketAddr, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIME).ok()?;
    stream.set_read_timeout(Some(ANSWER_TIME)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer);
    answer.split_whitespace().nth(1)?.parse().ok()
}
