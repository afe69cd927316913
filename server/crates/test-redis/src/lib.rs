//! A Redis server for one test, on a port of its own, or a cluster of three. It keeps nothing on the
//! disk, and ends with the test, or with the process, however that ends. A test can stop, continue,
//! kill and restart it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "everything here is for tests"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use platform_test_ports::ReservedPort;

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
    rm -f "$KEPT"
"#;

/// A running server, without data.
#[derive(Debug)]
pub struct TestRedis {
    /// The process id of the server.
    server: String,
    keeper: Keeper,
    port: ReservedPort,
}

/// The process of [`KEEPER`]. Its input stays open while the server is needed.
#[derive(Debug)]
struct Keeper(Child);

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

impl TestRedis {
    /// Starts a server.
    ///
    /// # Panics
    /// There is no Redis; the message says how to get it.
    #[must_use]
    pub fn start() -> Self {
        Self::start_on(reserved_port(), &[])
    }

    fn start_on(port: ReservedPort, options: &[&str]) -> Self {
        let text = port.number().to_string();
        let usual = ["--port", &text, "--bind", "127.0.0.1", "--dir", "/tmp"];
        let nothing_kept = ["--save", "", "--appendonly", "no"];
        Self::launch(port, &[&usual[..], &nothing_kept, options].concat())
    }

    fn launch(port: ReservedPort, options: &[&str]) -> Self {
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper", "redis-server"])
            .args(options)
            .env("KEPT", format!("/tmp/{}", kept(&port)))
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
            server: server.trim().to_owned(),
            keeper: Keeper(keeper),
            port,
        };
        started.wait();
        started
    }

    /// Returns its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.port.address())
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
        let Self { keeper, port, .. } = self;
        drop(keeper);
        Self::start_on(port, &[])
    }

    /// Makes this server a replica of another one, and waits until it has its data.
    ///
    /// # Panics
    /// It does not become one.
    pub fn follow(&self, primary: &Self) {
        let soon = primary.ask("CONFIG SET repl-diskless-sync-delay 0");
        assert_eq!(soon, "+OK\r\n");
        let follows = self.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port.number()));
        assert_eq!(follows, "+OK\r\n");
        let is_there = |_| {
            self.ask("INFO replication")
                .contains("master_link_status:up")
        };
        assert!((0..ATTEMPTS).any(is_there), "no replica");
    }

    /// Sends a command whose words contain no spaces, and returns the beginning of its answer, as
    /// the protocol writes it.
    #[must_use]
    pub fn ask(&self, command: &str) -> String {
        self.try_ask(command).unwrap()
    }

    fn try_ask(&self, command: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.port.address(), ATTEMPT)?;
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

fn reserved_port() -> ReservedPort {
    ReservedPort::take().unwrap()
}

/// The name of the file in which a server of a cluster, or a sentinel, keeps what it knows of others.
fn kept(port: &ReservedPort) -> String {
    format!("test-redis-{}.conf", port.number())
}

/// A sentinel that watches a server, and makes a replica of it the primary when it has been silent
/// for half a second.
#[derive(Debug)]
pub struct TestSentinel(TestRedis);

impl TestSentinel {
    /// Starts a sentinel that watches `primary` under the name `service`, and waits until it knows a
    /// replica.
    ///
    /// # Panics
    /// There is no Redis; the message says how to get it.
    #[must_use]
    pub fn watch(primary: &TestRedis, service: &str) -> Self {
        let (port, watched) = (reserved_port(), primary.port.number());
        let path = format!("/tmp/{}", kept(&port));
        let settings = format!(
            "port {}\nbind 127.0.0.1\ndir /tmp\n\
             sentinel monitor {service} 127.0.0.1 {watched} 1\n\
             sentinel down-after-milliseconds {service} 500\n\
             sentinel failover-timeout {service} 2000\n",
            port.number()
        );
        std::fs::write(&path, settings).unwrap();
        let sentinel = TestRedis::launch(port, &[&path, "--sentinel"]);
        let replicas = || sentinel.ask(&format!("SENTINEL REPLICAS {service}"));
        // Each question takes far longer than a microsecond.
        assert!(
            (0..ATTEMPTS).any(|_| replicas().starts_with("*1")),
            "no replica"
        );
        Self(sentinel)
    }

    /// Returns its address.
    #[must_use]
    pub fn url(&self) -> String {
        self.0.url()
    }
}

/// Three servers of a cluster without replicas: each has a third of the slots.
#[derive(Debug)]
pub struct TestRedisCluster {
    /// The servers.
    pub servers: [TestRedis; 3],
    /// The ports at which the servers reach each other.
    _buses: Vec<ReservedPort>,
}

impl TestRedisCluster {
    /// Starts the servers and makes them a cluster. A server that is silent for a second counts as
    /// failed, and then the cluster answers nothing.
    ///
    /// # Panics
    /// There is no Redis; the message says how to get it.
    #[must_use]
    pub fn start() -> Self {
        let started = ["0 5460", "5461 10922", "10923 16383"].map(|slots| {
            let (port, bus) = (reserved_port(), reserved_port());
            let kept = kept(&port);
            let _ = std::fs::remove_file(format!("/tmp/{kept}"));
            let number = bus.number().to_string();
            let options = ["--cluster-enabled", "yes", "--cluster-port", &number];
            let options = [&options[..], &["--cluster-node-timeout", "1000"]].concat();
            let options = [&options[..], &["--cluster-config-file", &kept]].concat();
            let server = TestRedis::start_on(port, &options);
            let added = server.ask(&format!("CLUSTER ADDSLOTSRANGE {slots}"));
            assert_eq!(added, "+OK\r\n");
            (server, bus)
        });
        let [(first, _), others @ ..] = &started;
        for (other, bus) in others {
            let (port, bus) = (other.port.number(), bus.number());
            let met = first.ask(&format!("CLUSTER MEET 127.0.0.1 {port} {bus}"));
            assert_eq!(met, "+OK\r\n");
        }
        let mut buses = Vec::new();
        let servers = started.map(|(server, bus)| {
            buses.push(bus);
            server
        });
        let cluster = Self {
            servers,
            _buses: buses,
        };
        cluster.wait();
        cluster
    }

    /// Returns the addresses of the servers.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.servers.iter().map(TestRedis::url).collect()
    }

    /// Sends a command to each server.
    ///
    /// # Panics
    /// A server does not say `OK`.
    pub fn tell(&self, command: &str) {
        for server in &self.servers {
            assert_eq!(server.ask(command), "+OK\r\n", "{command}");
        }
    }

    /// Waits until every server knows all slots.
    ///
    /// # Panics
    /// They do not find each other.
    pub fn wait(&self) {
        for server in &self.servers {
            let knows = |_| server.ask("CLUSTER INFO").contains("cluster_state:ok");
            // Each question takes far longer than a microsecond.
            assert!(
                (0..ATTEMPTS).any(knows),
                "no cluster: {}",
                server.ask("CLUSTER NODES")
            );
        }
    }
}
