//! A server in a separate process, from its start to its ready line and its end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Deref;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use xtask::command::describe;
use xtask::terminal::Stopwatch;

/// The unit of processor times in `/proc`, in parts of a second: the same on every Linux.
const TICKS: f64 = 100.0;
/// How long a server may take to its ready line.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server; it ends when this is dropped.
pub(super) struct Process {
    child: Child,
    site: Site,
    /// How long it took to its ready line.
    pub(super) ready_after: Duration,
}

/// Where a server is reached.
pub(super) struct Site {
    /// Where it listens.
    pub(super) address: SocketAddr,
    /// The platform's origin.
    pub(super) origin: String,
}

impl Deref for Process {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}

impl Process {
    /// Starts it and waits for its ready line.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let stopwatch = Stopwatch::start();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("`{}` cannot be started", describe(command)))?;
        let stdout = child
            .stdout
            .take()
            .context("the standard output was not piped")?;
        let (sender, lines) = mpsc::channel();
        // Reads to the end, so that the server never waits for a reader.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        loop {
            let Ok(line) = lines.recv_timeout(PATIENCE) else {
                let _ = child.kill();
                let _ = child.wait();
                bail!("`{}` did not become ready", describe(command));
            };
            if let Some((origin, address)) = ready(&line) {
                return Ok(Self {
                    child,
                    site: Site { address, origin },
                    ready_after: stopwatch.elapsed(),
                });
            }
        }
    }

    /// The memory that it occupies now, in kilobytes.
    pub(super) fn memory(&self) -> Result<u64> {
        let file = format!("/proc/{}/status", self.child.id());
        let status =
            std::fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
        resident(&status).with_context(|| format!("{file} has no VmRSS"))
    }

    /// The processor time that it has used, in seconds.
    pub(super) fn processor_seconds(&self) -> Result<f64> {
        let file = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
        processor_seconds(&stat).with_context(|| format!("{file} names no processor time"))
    }

    /// Ends it.
    pub(super) fn stop(self) {
        drop(self);
    }
}

impl Site {
    /// The address of a host below the platform's: `auth`, `demo`.
    pub(super) fn host(&self, label: &str) -> String {
        format!("{label}.{}", self.origin.trim_start_matches("http://"))
    }

    /// Sends one request without a body and returns the response's text.
    pub(super) fn ask(
        &self,
        method: &str,
        host: &str,
        path: &str,
        headers: &str,
    ) -> Result<String> {
        self.send(method, host, path, headers, "")
    }

    /// The same with a body.
    pub(super) fn send(
        &self,
        method: &str,
        host: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Result<String> {
        let length = body.len();
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}"
        )?;
        let mut response = Vec::new();
        stream.read_to_end(&mut response)?;
        let response = String::from_utf8_lossy(&response).into_owned();
        let status = response.lines().next().unwrap_or_default();
        anyhow::ensure!(
            status
                .split(' ')
                .nth(1)
                .is_some_and(|code| code.starts_with('2')),
            "{method} {host}{path} answered {status}"
        );
        Ok(response)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Origin and address of a line `… ready on <origin> (listening on <address>)`.
fn ready(line: &str) -> Option<(String, SocketAddr)> {
    let (_, rest) = line.split_once(" ready on ")?;
    let (origin, rest) = rest.split_once(" (listening on ")?;
    Some((origin.to_owned(), rest.strip_suffix(')')?.parse().ok()?))
}

/// Seconds of processor time, of the program and of the system for it, in a `/proc/<pid>/stat`.
fn processor_seconds(stat: &str) -> Option<f64> {
    // The name, in parentheses, may contain spaces.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut ticks = fields.split(' ').skip(11).map(str::parse::<f64>);
    let (user, system) = (ticks.next()?.ok()?, ticks.next()?.ok()?);
    Some((user + system) / TICKS)
}

/// Kilobytes of resident memory in a `/proc/<pid>/status`.
fn resident(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// The `name=value` of the cookie that a response sets.
pub(super) fn cookie(response: &str) -> Option<&str> {
    response
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("set-cookie"))
        .and_then(|(_, value)| value.split(';').next())
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_names_origin_and_address() {
        let line =
            "platform-server ready on http://platform.localhost:4000 (listening on 127.0.0.1:4000)";
        let (origin, address) = ready(line).unwrap();
        assert_eq!(origin, "http://platform.localhost:4000");
        assert_eq!(address, "127.0.0.1:4000".parse().unwrap());
        assert_eq!(ready("some other line"), None);
    }

    #[test]
    fn resident_memory_is_read() {
        assert_eq!(
            resident("VmPeak:\t  90 kB\nVmRSS:\t   21504 kB\n"),
            Some(21_504)
        );
        assert_eq!(resident("VmPeak:\t  90 kB\n"), None);
    }

    #[test]
    fn processor_time_is_read_behind_a_name_with_spaces() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 9 0 0 0 150 25 0 0 20 0 4 0 100 5 6";
        assert_eq!(processor_seconds(stat), Some(1.75));
        assert_eq!(processor_seconds("7 (a) S 1"), None);
    }

    #[test]
    fn the_cookie_is_taken_from_the_head_alone() {
        let response = "HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\n\r\nset-cookie: c=d";
        assert_eq!(cookie(response), Some("a=b"));
        assert_eq!(cookie("HTTP/1.1 200 OK\r\n\r\nset-cookie: c=d"), None);
    }

    #[test]
    fn a_server_that_ends_before_it_is_ready_is_an_error() {
        let error = Process::start(&mut Command::new("true"))
            .err()
            .unwrap()
            .to_string();
        assert_eq!(error, "`true` did not become ready");
    }
}
