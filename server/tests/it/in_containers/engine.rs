//! A container engine, podman with runc, with a storage of its own, which is removed with it.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::alone::{run, text};
use crate::containers::{DATA, USER, make_release};

const HOSTING: &str = include_str!("../../../../docs/hosting.md");
/// The name that the document gives to the image.
pub(super) const IMAGE: &str = "platform-server";

/// The engine with the image, and nothing else.
pub(super) struct Engine {
    folder: TempDir,
}

impl Drop for Engine {
    fn drop(&mut self) {
        // After a failed test; the folder of what still runs could not be removed.
        let mut remove = self.podman();
        let _ = remove.args(["rm", "--all", "--force", "--time=0"]).output();
    }
}

impl Engine {
    /// Builds the image from the server of this build, with the commands of `docs/hosting.md`.
    pub(super) fn with_image() -> Self {
        let engine = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let path = engine.folder.path();
        let [server, release] = ["server", "release"].map(|name| path.join(name));
        // Without symbols, it is nearly as small as that of a release.
        run(Command::new("strip")
            .arg("-o")
            .arg(&server)
            .arg(env!("CARGO_BIN_EXE_platform-server")));
        std::fs::create_dir(&release).unwrap();
        make_release(&release, &server);
        let prepare = documented("deploy/container/prepare.sh");
        run(Command::new(release.join(prepare[0]))
            .args(&prepare[1..])
            .current_dir(&release));
        let build = documented("podman build");
        // This storage would copy the image for each layer.
        run(engine
            .podman()
            .args(["build", "--layers=false"])
            .args(&build[2..])
            .current_dir(&release));
        engine
    }

    fn podman(&self) -> Command {
        let mut podman = Command::new("podman");
        for (option, name) in [
            ("--root", "storage"),
            ("--runroot", "run"),
            ("--tmpdir", "libpod"),
        ] {
            podman.arg(option).arg(self.folder.path().join(name));
        }
        podman
            .args(["--storage-driver", "vfs", "--events-backend", "none"])
            // As on a machine without systemd, and also with control groups of version 1.
            .args(["--cgroup-manager", "cgroupfs", "--runtime", "runc"])
            // No timers of systemd: the tests ask for the health themselves.
            .env("DISABLE_HC_SYSTEMD", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        podman
    }

    /// Returns the beginning of a command that runs a container, which is removed when it has ended. It is in
    /// the network of the test and has its limits: an engine that may not raise them could not start it.
    pub(super) fn run(&self, name: &str) -> Command {
        let mut run = self.podman();
        run.args(["run", "--rm", "--name", name])
            .args(["--network", "host", "--ulimit", "host"])
            // podman alone would add folders in memory to a root folder that is read-only.
            .arg("--read-only-tmpfs=false");
        run
    }

    /// Runs an operator's command of the server in a container, and returns what it says.
    pub(super) fn operate(&self, name: &str, words: &[&str]) -> String {
        let mut exec = self.podman();
        run(exec
            .args(["exec", name, "/usr/bin/platform-server"])
            .args(words))
    }

    /// Whether the health check of a container, which was given to it or is that of its image, succeeds.
    pub(super) fn is_healthy(&self, name: &str) -> bool {
        let check = self.podman().args(["healthcheck", "run", name]).output();
        let check = check.unwrap();
        if !check.status.success() {
            eprintln!("{name} is not healthy: {}", text(&check));
        }
        check.status.success()
    }

    /// Asks a container to stop, as it wants to be asked.
    pub(super) fn stop(&self, name: &str) {
        run(self.podman().args(["stop", name]));
    }

    /// Returns parts of the settings of the image.
    pub(super) fn image(&self, format: &str) -> String {
        let mut inspect = self.podman();
        let said = run(inspect.args(["image", "inspect", "--format", format, IMAGE]));
        said.trim().to_owned()
    }

    /// The process in a container is that of the user without rights, and can write to the folder of its data
    /// alone.
    ///
    /// # Panics
    /// It can do more.
    pub(super) fn assert_may_do_little(&self, name: &str) {
        let mut inspect = self.podman();
        let id = run(inspect.args(["inspect", "--format", "{{.State.Pid}}", name]));
        let process = Path::new("/proc").join(id.trim());
        let read = |file: &str| std::fs::read_to_string(process.join(file)).unwrap();
        let status = read("status");
        let values = |name: &str| -> Vec<&str> {
            let mut lines = status.lines();
            let values = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            values.unwrap().split_whitespace().collect()
        };
        let user = USER.to_string();
        for name in ["Uid", "Gid"] {
            assert!(values(name).iter().all(|id| *id == user), "{status}");
        }
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(values(set), ["0000000000000000"], "{set}");
        }
        assert_eq!(values("NoNewPrivs"), ["1"]);
        // Where it is, and whether it is `ro` or `rw` (proc_pid_mountinfo(5)).
        let mounts = read("mountinfo");
        let mounts = mounts.lines().map(|line| {
            let mut fields = line.split(' ').skip(4);
            (fields.next().unwrap(), fields.next().unwrap())
        });
        let kernel = ["/proc", "/dev", "/sys"];
        let writable = mounts.filter(|(place, options)| {
            options.split(',').any(|option| option == "rw")
                && !kernel
                    .iter()
                    .any(|folder| Path::new(place).starts_with(folder))
        });
        let writable: Vec<&str> = writable.map(|(place, _)| place).collect();
        assert_eq!(writable, [DATA]);
    }
}

/// Returns the words of the document's command that begins like this.
fn documented(beginning: &str) -> Vec<&'static str> {
    let mut lines = HOSTING.lines().filter(|line| line.starts_with(beginning));
    let line = lines.next().unwrap_or_else(|| panic!("no {beginning}"));
    assert_eq!(lines.next(), None, "one {beginning}");
    let command = line.split(" #").next().unwrap();
    command.split_whitespace().collect()
}
