//! A test that runs again as root, with processes, mounts and a network of its own: what it starts ends with it,
//! every address and port is free, and nothing can be fetched from elsewhere.

use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Output, Stdio};

/// The variable with which this test program runs again.
const ALONE: &str = "TESTS_ALONE";

/// Runs a program as process 1 would, whose end is that of all others: what the program started may remove its files
/// before, for ten seconds at most.
const INIT: &str = r#"
    "$@"
    code=$?
    for attempt in $(seq 100); do
        set -- /proc/[0-9]*
        [ $# -eq 1 ] && break
        sleep 0.1
    done
    exit $code
"#;

/// Whether this is the second run.
#[expect(
    clippy::disallowed_methods,
    reason = "how a test is run is no setting of the platform's"
)]
pub(super) fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// Runs this test program again for one test.
///
/// # Panics
/// It fails there, or may not have such a network.
pub(super) fn run_alone(test: &str) {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let before: &[&str] = if is_root {
        &["env"]
    } else {
        &["sudo", "--non-interactive", "env"]
    };
    let apart = [
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        INIT,
        "init",
    ];
    let output = Command::new(before[0])
        .args(&before[1..])
        .arg(format!("{ALONE}=1"))
        .args(apart)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = text(&output);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\nthe test needs root, or sudo without a password, and the right to make namespaces"
    );
}

/// Returns everything that a program said.
pub(super) fn text(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&said).into_owned()
}

/// Runs a program that must succeed, and returns what it said.
///
/// # Panics
/// It fails. The message says what the test needs.
pub(super) fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}; {ADVICE}"));
    let said = text(&output);
    assert!(output.status.success(), "{command:?}: {said}\n{ADVICE}");
    said
}

/// What a machine needs for containers.
const ADVICE: &str = "these tests need podman with runc, strip (binutils) and ip (iproute2): run `cargo xtask test`, which \
     installs them, or `sudo apt-get install podman runc binutils iproute2`";

/// Changes the network with the program `ip`.
pub(super) fn ip(words: &str) {
    run(Command::new("ip").args(words.split(' ')));
}
