//! The real server program as a child process, or several of them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use futures_util::future::join_all;
use platform_test_ports::ReservedPort;

use crate::balancer::Balancer;
use crate::poll;
use crate::process::Guarded;
use crate::settings;
use crate::shared::{self, Shared};
use crate::tables::Tables;
use crate::visitor::Visitor;

/// A running server program, or [several nodes](crate::shared) behind a balancer. Dropping it kills
/// them with SIGKILL.
#[derive(Debug)]
pub struct Server {
    processes: Vec<Guarded>,
    /// The platform origin that its ready line names.
    pub origin: String,
    /// The address on which it listens, or the balancer.
    pub address: SocketAddr,
    data: PathBuf,
    shared: Option<Arc<Shared>>,
    _balancer: Option<Balancer>,
}

/// Options for starting a server program.
#[derive(Clone, Copy, Debug, Default)]
struct Launch<'a> {
    /// The port to listen on, 0 for a free one.
    port: u16,
    /// A program that starts it, with its arguments.
    before: &'a [&'a str],
    /// The settings file, if any.
    config: Option<&'a Path>,
    /// Additional environment variables.
    variables: &'a [(&'a str, &'a str)],
}

impl Server {
    /// Starts a server with the data directory `data` on a free port, and waits for its ready line.
    pub async fn start(data: &Path) -> Self {
        Self::launch(data, Launch::default()).await
    }

    /// Starts a server on this port, where it can be started again later.
    pub async fn start_on(data: &Path, port: &ReservedPort) -> Self {
        let launch = Launch {
            port: port.number(),
            ..Launch::default()
        };
        Self::launch(data, launch).await
    }

    /// Starts a server with `settings` as its `platform.toml`, and with these variables, which
    /// override the usual ones of these tests.
    pub async fn start_set(data: &Path, settings: &str, variables: &[(&str, &str)]) -> Self {
        std::fs::create_dir_all(data).expect("the data directory can be made");
        let file = data.join("platform.toml");
        std::fs::write(&file, settings).expect("the settings can be written");
        let launch = Launch {
            config: Some(&file),
            variables,
            ..Launch::default()
        };
        Self::launch(data, launch).await
    }

    /// Runs another command of the program on its store, while it runs. Returns whether the command
    /// succeeded, and its standard output.
    ///
    /// # Panics
    /// Panics if it cannot be run.
    #[must_use]
    pub fn operate(&self, arguments: &[&str]) -> (bool, String) {
        let shared = self.shared.iter().flat_map(|shared| shared.variables());
        let output = Command::new(program())
            .args(arguments)
            .env("PLATFORM_DATA", &self.data)
            .envs(shared)
            .output()
            .expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text)
    }

    /// Starts a server under `strace`, which writes operations on files and sockets to `trace`.
    ///
    /// # Panics
    /// Panics if `strace` cannot be run.
    pub async fn start_traced(data: &Path, trace: &Path) -> Self {
        assert!(
            Command::new("strace")
                .arg("-V")
                .output()
                .is_ok_and(|output| output.status.success()),
            "strace is needed: apt-get install strace"
        );
        let trace = trace.to_str().expect("a path of UTF-8");
        let before = [
            "strace",
            "-f",
            "-y",
            "-xx",
            "-s",
            "16384",
            "-o",
            trace,
            "-e",
            "trace=fsync,fdatasync,write,pwrite64,writev,pwritev,sendto,sendmsg",
        ];
        let launch = Launch {
            before: &before,
            ..Launch::default()
        };
        Self::launch(data, launch).await
    }

    async fn launch(data: &Path, launch: Launch<'_>) -> Self {
        let Some(count) = shared::nodes() else {
            let (process, origin, address) = start(data, &launch, &[]).await;
            return Self {
                processes: vec![process],
                origin,
                address,
                data: data.to_owned(),
                shared: None,
                _balancer: None,
            };
        };
        let shared = Shared::of(data);
        let balancer = Balancer::listen(launch.wanted_port());
        let origin = balancer.origin().to_string();
        let mut variables = shared.variables();
        variables.push(("PLATFORM_ORIGIN", origin.clone()));
        // The balancer has the port of the platform.
        variables.push(("PLATFORM_LISTEN", "127.0.0.1:0".to_owned()));
        let folders = (1..=count).map(|number| data.join(format!("node-{number}")));
        let folders: Vec<PathBuf> = folders.collect();
        let nodes = folders.iter().map(|data| start(data, &launch, &variables));
        let nodes = join_all(nodes).await;
        balancer.lead_to(nodes.iter().map(|(_, _, address)| *address).collect());
        Self {
            processes: nodes.into_iter().map(|(process, ..)| process).collect(),
            origin,
            address: balancer.address,
            data: data.to_owned(),
            shared: Some(shared),
            _balancer: Some(balancer),
        }
    }

    /// Returns a visitor of this server.
    #[must_use]
    pub fn visitor(&self) -> Visitor {
        Visitor::new(self.address, self.address.port())
    }

    /// Returns the process id, or that of the first node; under `strace`, that of `strace`.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.processes[0].id()
    }

    /// Returns the process id, or that of each node; under `strace`, that of `strace`.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().map(Guarded::id)
    }

    /// Returns what it has logged, or what all nodes have.
    ///
    /// # Panics
    /// Panics if there is no log.
    #[must_use]
    pub fn log(&self) -> Vec<u8> {
        let nodes =
            (1..=self.processes.len()).map(|number| self.data.join(format!("node-{number}")));
        let folders = match self.shared {
            Some(_) => nodes.collect(),
            None => vec![self.data.clone()],
        };
        let logs = folders.iter().map(|folder| std::fs::read(log_in(folder)));
        logs.flat_map(|log| log.expect("the log can be read"))
            .collect()
    }

    /// Returns the current rows of its store's tables.
    #[must_use]
    pub fn tables(&self) -> Tables {
        match &self.shared {
            Some(shared) => Tables::of_database(shared.database()),
            None => Tables::read(&self.data),
        }
    }

    /// Kills it with SIGKILL, to which the program cannot react.
    pub fn kill(&mut self) {
        self.processes.iter_mut().for_each(Guarded::kill);
    }

    /// Asks it to stop with SIGTERM and waits until it has stopped.
    pub async fn stop(mut self) {
        for id in self.ids() {
            crate::process::signal(child_of_strace(id).unwrap_or(id), "TERM");
        }
        poll::until("the server has stopped", async || {
            let mut processes = self.processes.iter_mut();
            processes.all(Guarded::has_ended).then_some(())
        })
        .await;
    }
}

impl Launch<'_> {
    /// Returns the port on which the platform is to listen, 0 for a free one.
    fn wanted_port(&self) -> u16 {
        let mut variables = self.variables.iter();
        let listen = variables.find(|(name, _)| *name == "PLATFORM_LISTEN");
        let listen = listen.and_then(|(_, address)| address.parse::<SocketAddr>().ok());
        listen.map_or(self.port, |address| address.port())
    }
}

/// Starts a program with the data folder `data` and more variables, and waits for its ready line.
/// Returns its process, the origin and its address.
async fn start(
    data: &Path,
    launch: &Launch<'_>,
    more: &[(&str, String)],
) -> (Guarded, String, SocketAddr) {
    std::fs::create_dir_all(data).expect("the data directory can be made");
    let log = log_in(data);
    let errors = File::options()
        .create(true)
        .append(true)
        .open(&log)
        .expect("a log opens");
    let mut words = launch
        .before
        .iter()
        .map(OsStr::new)
        .chain([program().as_os_str()]);
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).arg("serve");
    if let Some(config) = launch.config {
        command.arg("--config").arg(config);
    }
    command
        .env("PLATFORM_LISTEN", format!("127.0.0.1:{}", launch.port))
        .env("PLATFORM_DATA", data)
        .env("PLATFORM_GUESTS_PER_ADDRESS", "0")
        .env("PLATFORM_GUEST_RATE", "1000000/s, burst 1000000")
        .env("PLATFORM_SIGN_IN_RATE", "1000000/s, burst 1000000")
        .envs(launch.variables.iter().copied())
        .envs(more.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .stderr(errors);
    let mut process = Guarded::start(&mut command);
    let output = process.child().stdout.take();
    let output = output.expect("standard output is a pipe");
    let reading = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map(|_| line)
    });
    let line = poll::within("the ready line", reading)
        .await
        .expect("the reader ends");
    let line = line.expect("standard output can be read");
    let Some((origin, address)) = ready(&line) else {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        panic!("the server said {line:?} in place of its ready line. Its log:\n{log}");
    };
    (process, origin, address)
}

/// Returns the log file of the program with the data folder `data`.
fn log_in(data: &Path) -> PathBuf {
    data.join("server.log")
}

/// Returns the process id of the traced program, if this is the id of `strace`.
fn child_of_strace(id: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// Returns the origin and the socket address from `platform-server ready on <origin> (listening on
/// <ip:port>)`.
fn ready(line: &str) -> Option<(String, SocketAddr)> {
    let rest = line.trim_end().strip_prefix("platform-server ready on ")?;
    let (origin, rest) = rest.split_once(" (listening on ")?;
    Some((origin.to_owned(), rest.strip_suffix(')')?.parse().ok()?))
}

/// Returns the server program of the profile with which these tests were built. Builds it if it is
/// not up to date.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| built("platform-server", "platform-server"))
}

/// Returns the folder of all build results, which tests may add to.
///
/// # Panics
/// Panics if the test's program is not where cargo puts it.
#[must_use]
pub fn target() -> PathBuf {
    let profile = profile();
    profile.parent().expect("target/<profile>").to_owned()
}

/// Returns `target/<profile>`, where this test was built.
fn profile() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own program");
    let profile = test.parent().and_then(Path::parent);
    profile.expect("target/<profile>/deps/<test>").to_owned()
}

/// Returns the program `name` of the workspace's package `package`, in the profile with which these
/// tests were built. Builds it if it is not up to date. `cargo xtask test` has built most programs
/// together with the tests, and tells where they are: a build of a single package gives its
/// dependencies other features and would compile them again.
///
/// # Panics
/// Panics if the build fails.
#[must_use]
pub fn built(package: &str, name: &str) -> PathBuf {
    let with_the_tests =
        settings::variable("TESTS_PROGRAMS").map(|folder| Path::new(&folder).join(name));
    if let Some(program) = with_the_tests.filter(|program| program.exists()) {
        return program;
    }
    let profile = profile();
    let mut build = Command::new(env!("CARGO"));
    build
        .args(["build", "--quiet", "--workspace", "--bin", name])
        // As `cargo xtask test` does: with what several nodes need.
        .args(["--features", "platform-server/cluster"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    // Variables that cargo sets for this test's package are wrong for the other package, and build
    // scripts that read them would run again each time.
    for name in settings::set_by_cargo() {
        build.env_remove(name);
    }
    let built = build.status().expect("cargo can be run");
    assert!(built.success(), "{name} of {package} does not build");
    profile.join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_names_origin_and_socket() {
        let line =
            "platform-server ready on http://platform.localhost:81 (listening on 127.0.0.1:81)\n";
        let address = "127.0.0.1:81".parse().unwrap();
        assert_eq!(
            ready(line),
            Some(("http://platform.localhost:81".to_owned(), address))
        );
        assert_eq!(ready("something else\n"), None);
    }
}
