//! `platform-server doctor`: what it says of a platform that works, and of one that does not.

mod network;
#[cfg(feature = "cluster")]
mod services;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use platform_server::app::doctor::{Finding, Patient, State, examine};
use platform_server::clock::{Clock, SystemClock};
use platform_server::config::Config;
use platform_server::entropy::SystemEntropy;
use platform_server::platform::disk::ManualDisk;
use serde_json::Value;

use crate::operations::with_operations;
use crate::program::{Server, one_line, program};

/// The program with settings under which only the platform itself decides what is wrong.
fn platform(data: &Path) -> Command {
    let mut command = program(data);
    command.env("PLATFORM_DISK_FLOOR_MIB", "1");
    command.env("PLATFORM_TRUSTED_PROXIES", "127.0.0.1/32,::1/128");
    command
}

/// Asks the doctor about the platform that listens on `port`.
fn doctor(data: &Path, port: u16, arguments: &[&str]) -> Output {
    let mut command = platform(data);
    command.env("PLATFORM_LISTEN", format!("127.0.0.1:{port}"));
    command.arg("doctor").args(arguments).output().unwrap()
}

/// The states by check; a check that was made several times has all of them.
fn states(output: &Output) -> BTreeMap<String, Vec<String>> {
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let mut states: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for finding in findings {
        let text = |name: &str| finding[name].as_str().unwrap().to_owned();
        states.entry(text("check")).or_default().push(text("state"));
    }
    states
}

/// What the doctor finds with these settings, by this clock.
async fn examined(config: &Config, clock: Arc<dyn Clock>) -> Vec<Finding> {
    let patient = Patient {
        config,
        backups: None,
        clock,
        entropy: Arc::new(SystemEntropy),
        disk: Arc::new(ManualDisk::new(u64::MAX)),
    };
    examine(&patient).await
}

/// All that was found by a check.
fn by<'found>(findings: &'found [Finding], check: &str) -> Vec<&'found Finding> {
    let of_check = |finding: &&Finding| finding.check == check;
    findings.iter().filter(of_check).collect()
}

/// What was found by a check that is made once.
#[track_caller]
fn the<'found>(findings: &'found [Finding], check: &str) -> &'found Finding {
    let found = by(findings, check);
    assert_eq!(found.len(), 1, "{check}: {findings:?}");
    found[0]
}

#[test]
fn everything_is_fine_on_a_platform_that_works() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&mut platform(data.path()));
    let backups = tempfile::tempdir().unwrap();
    let folder = backups.path().to_str().unwrap();
    let mut backup = platform(data.path());
    let made = backup.args(["backup", &format!("{folder}/platform.tar")]);
    let made = made.output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let output = doctor(data.path(), server.port, &["--json", "--backups", folder]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let states = states(&output);
    for check in [
        "data folder",
        "disk space",
        "backups",
        "signing keys",
        "visit",
        "proxy",
        "clock",
    ] {
        let found = &states[check];
        assert!(found.iter().all(|state| state == "fine"), "{check}: {said}");
    }
    // On a busy machine it may be slow, which is a warning.
    assert_ne!(states["database"], ["wrong"], "{said}");
    for check in [
        "redis",
        "bucket",
        "sign-in",
        "certificates",
        "names",
        "server",
    ] {
        assert_eq!(states[check], ["skipped"], "{said}");
    }
    let (_, _, code) = server.stop("-TERM");
    assert_eq!(code, Some(0));
}

#[test]
fn what_is_wrong_is_said_with_what_to_do_and_the_exit_code() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&mut platform(data.path()));
    let port = server.port;
    server.stop("-TERM");
    let store = data.path().join("platform.db");
    // Opening the store corrects this, so it is broken again before each look.
    let look = |arguments: &[&str]| {
        std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o644)).unwrap();
        doctor(data.path(), port, arguments)
    };
    let output = look(&["--backups", "/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    for expected in [
        "WRONG    data folder   other users",
        "→ `chmod 600 ",
        "WRONG    backups       /nowhere",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert_eq!(
        one_line(&output),
        "platform-server: 2 parts of the platform do not work\n"
    );
    let output = look(&["--json", "--backups", "/nowhere"]);
    let states = states(&output);
    assert_eq!(states["data folder"], ["wrong"]);
    assert_ne!(states["database"], ["wrong"]);
    // A server that does not run is no fault of the platform.
    assert_eq!(states["visit"], ["warning"]);
}

#[test]
fn keys_that_the_settings_do_not_open_are_wrong() {
    let data = tempfile::tempdir().unwrap();
    let secret = "0123456789abcdef0123456789abcdef";
    let server = Server::start(program(data.path()).env("PLATFORM_KEY_SECRET", secret));
    server.stop("-TERM");
    let output = doctor(data.path(), 1, &["--json"]);
    assert_eq!(states(&output)["signing keys"], ["wrong"]);
    assert_eq!(states(&output)["database"], ["fine"]);
}

#[test]
fn a_folder_without_a_platform_is_only_a_warning() {
    let data = tempfile::tempdir().unwrap();
    // Nobody listens on port 1.
    let output = doctor(data.path(), 1, &["--json"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(states(&output)["database"], ["warning"]);
    let left = std::fs::read_dir(data.path()).unwrap().count();
    assert_eq!(left, 0, "it has changed something");
}

#[tokio::test]
async fn the_server_is_asked_on_the_operators_listener() {
    let (app, operations) = with_operations().await;
    // Another folder: this process must not open the store's files a second time.
    let elsewhere = tempfile::tempdir().unwrap();
    let mut config = app.running.state.platform.config.clone();
    config.data = elsewhere.path().to_owned();
    config.listen = app.running.address;
    config.operations_listen = Some(operations);
    let look = async || {
        let findings = examined(&config, Arc::new(SystemClock)).await;
        the(&findings, "server").clone()
    };
    assert_eq!(look().await.state, State::Fine);
    let _ = app.running.drain();
    let draining = look().await;
    assert_eq!(draining.state, State::Wrong);
    assert!(draining.found.contains("draining"), "{draining:?}");
}
