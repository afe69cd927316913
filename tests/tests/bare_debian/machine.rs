//! A new machine with Debian 12: its own root folder, in which systemd runs as process 1, with processes, mounts,
//! control groups and a network of its own. Nothing but its loopback interface is in this network.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use platform_tests::poll;
use platform_tests::process::Guarded;
use platform_tests::settings;
use tempfile::TempDir;

/// The variable with which this test program runs again, inside of the machine's network.
const INSIDE: &str = "TESTS_BARE_DEBIAN";
/// The variable with the tar of the root folder.
const ROOT: &str = "TESTS_DEBIAN_ROOT";

/// Puts itself into a control group of its own, and starts process 1 in namespaces of its own.
const BOOT: &str = r#"
    set -eu
    mkdir "$1"
    echo 0 >"$1/cgroup.procs"
    exec unshare --cgroup --mount --uts --ipc --pid --fork --kill-child -- sh -c "$2" init "$3"
"#;

/// Makes a root folder the root, with what systemd expects of a container, and becomes systemd
/// (<https://systemd.io/CONTAINER_INTERFACE>).
const INIT: &str = r#"
    set -eu
    mount --make-rprivate /
    mount --bind "$1" "$1"
    cd "$1"
    mount -t proc -o nosuid,nodev,noexec proc proc
    mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys
    mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 sys/fs/cgroup
    mount -t tmpfs -o mode=755,nosuid tmpfs dev
    for device in null zero full random urandom tty; do
        : >"dev/$device"
        mount --bind "/dev/$device" "dev/$device"
    done
    mkdir dev/pts dev/shm
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
    mount -t tmpfs -o mode=755,nosuid,nodev tmpfs run
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs tmp
    pivot_root . mnt
    umount --lazy /mnt
    exec env -i container=platform-tests PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
"#;

/// Returns the folder that was given to [`run_inside`]; `None` outside.
pub(super) fn inside() -> Option<PathBuf> {
    settings::variable(INSIDE).map(PathBuf::from)
}

/// Runs this test program again for one test, as root, in a network of its own. Returns what it said.
///
/// # Panics
/// It fails there, or may not have such a network.
pub(super) fn run_inside(test: &str, folder: &Path) -> String {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let before: &[&str] = if is_root {
        &["env"]
    } else {
        &["sudo", "--non-interactive", "env"]
    };
    let root = settings::kept_file("debian-12.tar");
    let mut again = Command::new(before[0]);
    again
        .args(&before[1..])
        .arg(format!("{INSIDE}={}", folder.display()))
        .arg(format!("{ROOT}={}", root.display()))
        .args([
            "unshare",
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
        ])
        .arg("--mount-proc")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .stdin(Stdio::null());
    let output = again.output().unwrap();
    let said = text(&output);
    assert!(
        output.status.success(),
        "{said}\nthe test needs root, or sudo without a password, and the right to make namespaces"
    );
    said
}

/// Returns everything that a program said.
pub(super) fn text(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&said).into_owned()
}

/// Brings up the loopback interface of this network, before anything listens there.
///
/// # Panics
/// There is no `ip`.
pub(super) fn begin_network() {
    run(Command::new("ip").args(["link", "set", "lo", "up"]));
}

/// Runs a program that must succeed.
fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", text(&output));
}

/// A machine that has booted. It ends when this is dropped.
pub(super) struct Machine {
    systemd: Guarded,
    /// The process of systemd, as it is called outside.
    first: u32,
    group: PathBuf,
    _root: TempDir,
}

impl Machine {
    /// Boots a new machine, whose root folder is prepared before.
    ///
    /// # Panics
    /// It does not boot.
    pub(super) async fn boot(prepare: impl FnOnce(&Path)) -> Self {
        let root = TempDir::with_prefix("platform-tests-").unwrap();
        let tar = settings::variable(ROOT).unwrap();
        run(Command::new("tar")
            .args([
                "--extract",
                "--numeric-owner",
                "--exclude=./dev/*",
                "--file",
                &tar,
            ])
            .arg("--directory")
            .arg(root.path()));
        // Or it would count as the first boot, at which systemd asks questions.
        let id = root.path().join("etc/machine-id");
        std::fs::write(id, "8d0c3a5be1f94c0fa1f6a3f0c2a7d915\n").unwrap();
        prepare(root.path());
        let group = group().join(root.path().file_name().unwrap());
        let mut boot = Command::new("sh");
        boot.args(["-c", BOOT, "boot"])
            .arg(&group)
            .arg(INIT)
            .arg(root.path())
            .stdout(Stdio::null());
        let systemd = Guarded::start(&mut boot);
        let id = systemd.id();
        let first = poll::until("process 1", async || child(id)).await;
        let machine = Self {
            systemd,
            first,
            group,
            _root: root,
        };
        poll::until("the machine has booted", async || {
            let state = text(&machine.run("systemctl is-system-running"));
            // Units for hardware that a container does not have may fail.
            matches!(state.trim(), "running" | "degraded").then_some(())
        })
        .await;
        machine
    }

    /// Runs a command there, as root in its home folder.
    ///
    /// # Panics
    /// There is no `nsenter`.
    pub(super) fn run(&self, command: &str) -> Output {
        let mut enter = Command::new("nsenter");
        enter
            .args(["--mount", "--uts", "--ipc", "--pid", "--target"])
            .arg(self.first.to_string())
            .args(["--", "/usr/bin/env", "-i", "HOME=/root", "LANG=C.UTF-8"])
            .arg("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .args(["/usr/bin/timeout", "180", "/bin/sh", "-c"])
            .arg(format!("cd /root && {command}"));
        enter.stdin(Stdio::null()).output().unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.systemd.kill();
        // Its processes end a moment later, and until then its groups are in use.
        for _ in 0..1_000 {
            let mut remove = Command::new("find");
            remove
                .arg(&self.group)
                .args(["-depth", "-type", "d", "-exec", "rmdir", "{}", "+"]);
            let removed = remove.stderr(Stdio::null()).status();
            if removed.is_ok_and(|status| status.success()) || !self.group.exists() {
                break;
            }
            std::thread::yield_now();
        }
    }
}

/// Returns the only child of a process, once it has become systemd.
fn child(of: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).ok()?;
    let child: u32 = children.split_whitespace().next()?.parse().ok()?;
    let name = std::fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
    (name.trim() == "systemd").then_some(child)
}

/// Returns this process's folder in the hierarchy of control groups (version 2, cgroups(7)).
fn group() -> PathBuf {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let mount = mount.and_then(|line| line.split(' ').nth(4)).unwrap();
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::"));
    Path::new(mount).join(own.unwrap().trim_start_matches('/'))
}
