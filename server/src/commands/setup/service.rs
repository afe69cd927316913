//! Starts the server as a service of systemd, and waits for its certificates.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use platform_server::domain::origin::{AUTH_LABEL, PlatformOrigin};
use tokio::process::Command;

use crate::Failure;
use crate::commands::ready;

/// The server, after the sockets that systemd opens for it.
const UNITS: [&str; 3] = [
    "platform-server.socket",
    "platform-server-redirect.socket",
    "platform-server.service",
];
/// How long certificates may take. Let's Encrypt takes some seconds.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often the server is asked for them.
const LOOK: Duration = Duration::from_millis(250);
/// How many of its own certificates the server lacks. It is not there before the server has looked.
const MISSING: &str = "platform_certificates_missing ";

/// Starts the server, also after a restart of the machine. One that was started before its settings were
/// `written` is stopped first.
///
/// # Errors
/// systemd could not; the server did not start.
pub(super) async fn start(written: SystemTime) -> Result<(), Failure> {
    let started = started().await;
    if started.is_none_or(|started| started < whole_seconds(written)) {
        systemctl("daemon-reload", &[]).await?;
        // A socket is opened at its new address only if it was closed.
        systemctl("stop", &UNITS).await?;
    }
    systemctl("enable", &[&["--quiet"], &UNITS[..]].concat()).await?;
    systemctl("start", &UNITS).await.map(drop)
}

/// When the server was last started, in seconds since 1970; `None` if it was not, or systemd does not say.
async fn started() -> Option<u64> {
    let arguments = [
        "--value",
        "--property=ActiveEnterTimestamp",
        "--timestamp=unix",
    ];
    let said = systemctl("show", &[&arguments[..], &UNITS[2..]].concat()).await;
    said.ok()?.trim().strip_prefix('@')?.parse().ok()
}

/// The seconds since 1970. systemd tells no parts of one.
fn whole_seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Runs systemctl, and returns what it says.
async fn systemctl(act: &str, arguments: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new("systemctl");
    command.arg(act).args(arguments);
    let output = command.stdin(Stdio::null()).output().await;
    let output = output.map_err(|error| format!("systemctl cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    Err(format!(
        "systemctl {act} failed: {said}\n`journalctl --unit 'platform-server*'` says more. No other program may \
         listen on the ports 80 and 443"
    ))
}

/// Waits until the server has the certificates of the console and of the auth service.
///
/// # Errors
/// They do not come in time.
pub(super) async fn wait_for_certificates(
    operations: SocketAddr,
    origin: &PlatformOrigin,
) -> Result<(), Failure> {
    let mut looks = tokio::time::interval(LOOK);
    let waiting = async {
        loop {
            looks.tick().await;
            // A server that does not answer yet is asked again.
            let metrics = ready::ask(operations, "/metrics").await;
            if metrics.is_ok_and(|text| has_all(&text)) {
                return;
            }
        }
    };
    let came = tokio::time::timeout(PATIENCE, waiting).await;
    came.map_err(|_| {
        let host = origin.host();
        format!(
            "it runs, but has no certificates yet, and goes on trying: the certificate authority must reach \
             port 443 of this machine at {host} and {AUTH_LABEL}.{host}. `journalctl --unit 'platform-server*'` has \
             what it said, and `platformctl doctor` looks for what is missing"
        )
    })
}

/// Whether metrics say that the server has all of its own certificates.
fn has_all(metrics: &str) -> bool {
    let mut missing = metrics
        .lines()
        .filter_map(|line| line.strip_prefix(MISSING));
    missing.any(|count| count.parse::<f64>().is_ok_and(|count| count < 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_its_certificates_once_it_has_looked_and_none_is_missing() {
        let ready =
            "# HELP platform_certificates_missing Certificates\nplatform_certificates_missing";
        for (text, expected) in [
            (format!("{ready} 0.0\nplatform_certificates 2.0\n"), true),
            (format!("{ready} 0\n"), true),
            (format!("{ready} 2.0\n"), false),
            ("platform_certificates 0.0\n".to_owned(), false),
        ] {
            assert_eq!(has_all(&text), expected, "{text}");
        }
    }
}
