//! The real server program as a child process.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::poll;
use crate::process::Guarded;
use crate::settings;
use crate::visitor::Visitor;

/// A running server program. Dropping it kills it with SIGKILL.
#[derive(Debug)]
pub struct Server {
    process: Guarded,
    /// The platform origin that its ready line names.
    pub origin: String,
    /// The address on which it listens.
    pub address: SocketAddr,
}

/// Options for starting a server program.
#[derive(Clone, Copy, Debug, Default)]
struct Launch<'a> {
    /// The port to listen on, 0 for a free one.
    port: u16,
    /// The settings file, if any.
    config: Option<&'a Path>,
    /// Additional environment variables.
    variables: &'a [(&'a str, &'a str)],
}

impl Server {
    /// Starts a server with the data directory `data` on a free port, and waits for its ready line.
    pub async fn start(data: &Path) -> Self {
        Self::start_with(Command::new(program()), data, 0).await
    }

    /// Starts a server again on its previous port.
    pub async fn start_again(data: &Path, port: u16) -> Self {
        Self::start_with(Command::new(program()), data, port).await
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
        Self::launch(Command::new(program()), data, launch).await
    }

    /// Runs another command of the program on the store in `data`, while the server runs. Returns
    /// whether it succeeded, and its standard output.
    ///
    /// # Panics
    /// Panics if it cannot be run.
    #[must_use]
    pub fn operate(data: &Path, arguments: &[&str]) -> (bool, String) {
        let output = Command::new(program())
            .args(arguments)
            .env("PLATFORM_DATA", data)
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
        let mut command = Command::new("strace");
        command
            .args(["-f", "-y", "-xx", "-s", "16384", "-o"])
            .arg(trace)
            .arg("-e")
            .arg("trace=fsync,fdatasync,write,pwrite64,writev,pwritev,sendto,sendmsg")
            .arg(program());
        Self::start_with(command, data, 0).await
    }

    async fn start_with(command: Command, data: &Path, port: u16) -> Self {
        let launch = Launch {
            port,
            ..Launch::default()
        };
        Self::launch(command, data, launch).await
    }

    async fn launch(mut command: Command, data: &Path, launch: Launch<'_>) -> Self {
        std::fs::create_dir_all(data).expect("the data directory can be made");
        let log = data.join("server.log");
        let errors = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .expect("a log opens");
        command.arg("serve");
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
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut process = Guarded::start(&mut command);
        let output = process
            .child()
            .stdout
            .take()
            .expect("standard output is a pipe");
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
        Self {
            process,
            origin,
            address,
        }
    }

    /// Returns a visitor of this server.
    #[must_use]
    pub fn visitor(&self) -> Visitor {
        Visitor::new(self.address, self.address.port())
    }

    /// Returns the process id; under `strace`, that of `strace`.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Kills it with SIGKILL, to which the program cannot react.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Asks it to stop with SIGTERM and waits until it has stopped.
    pub async fn stop(mut self) {
        crate::process::signal(self.child_of_strace().unwrap_or_else(|| self.id()), "TERM");
        poll::until("the server has stopped", async || {
            self.process.has_ended().then_some(())
        })
        .await;
    }

    /// Returns the process id of the traced program, if this is `strace`.
    fn child_of_strace(&self) -> Option<u32> {
        let id = self.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }
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
