//! A Redis server for one test, on a port of its own. It keeps nothing on the disk, and ends with
//! the test, or with the process, however that ends. A test can stop, continue, kill and restart it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "everything here is for tests"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How to get Redis, if there is none.
const ADVICE: &str = "these tests need Redis 7: run `cargo xtask test`, which installs it, or `sudo apt-get install \
     redis-server`, or have `redis-server` on the PATH";
/// How long one attempt to reach the server may take, and how many there are.
const ATTEMPT: Duration = Duration::from_secs(1);
const ATTEMPTS: usize = 100_000;

/// Starts the server, writes its process id, and waits until its own input is closed; then it kills
/// the server. The test process has the other end of the input, so its end is noticed even after a
/// `kill -9`.
const KEEPER: &str = r#"
    trap : INT TERM
    "$@" </dev/null >/dev/null &
    server=$!
    echo "$server"
    cat >/dev/null
    kill -KILL "$server"
    wait "$server"
"#;

/// A running server, without data.
#[derive(Debug)]
pub struct TestRedis {
    port: u16,
    /// The process id of the server.
    server: String,
    /// Its input stays open while the server is needed.
    keeper: Child,
}

impl TestRedis {
    /// Starts a server.
    ///
    /// # Panics
    /// There is no Redis; the message says how to get it.
    #[must_use]
    pub fn start() -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        Self::start_on(port)
    }

    fn start_on(port: u16) -> Self {
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper", "redis-server"])
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir", "/tmp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Signals from the terminal to the tests must not end the keeper before its work is
            // done.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut server = String::new();
        let output = keeper.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut server).unwrap();
        let started = Self {
            port,
            server: server.trim().to_owned(),
            keeper,
        };
        started.wait();
        started
    }

    /// Returns its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Stops its process, which keeps its connections open but answers nothing.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Continues after [`TestRedis::pause`].
    pub fn resume(&self) {
        self.signal("CONT");
    }

    /// Kills its process.
    pub fn kill(&self) {
        self.signal("KILL");
    }

    /// Starts a killed server again, without data, at the same address.
    #[must_use]
    pub fn restart(self) -> Self {
        let port = self.port;
        drop(self);
        Self::start_on(port)
    }

    /// Sends a command whose words contain no spaces, and returns the beginning of its answer, as
    /// the protocol writes it.
    #[must_use]
    pub fn ask(&self, command: &str) -> String {
        self.try_ask(command).unwrap()
    }

    fn try_ask(&self, command: &str) -> std::io::Result<String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let mut stream = TcpStream::connect_timeout(&address, ATTEMPT)?;
        stream.set_read_timeout(Some(ATTEMPT))?;
        stream.write_all(format!("{command}\r\n").as_bytes())?;
        let mut answer = vec![0; 64 * 1024];
        let length = stream.read(&mut answer)?;
        answer.truncate(length);
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.server])
            .status();
        assert!(sent.unwrap().success(), "{name}");
    }

    /// Waits for its first answer.
    fn wait(&self) {
        for _ in 0..ATTEMPTS {
            if self
                .try_ask("PING")
                .is_ok_and(|answer| answer == "+PONG\r\n")
            {
                return;
            }
            std::thread::yield_now();
        }
        panic!("Redis does not answer; {ADVICE}");
    }
}

impl Drop for TestRedis {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
