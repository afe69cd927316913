//! A data folder on a small disk of its own, which a test can fill: a file system in memory, in a mount
//! namespace in which the servers of the test run. It needs no rights, and ends with the test.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::UNLIMITED;

/// How to get the namespaces.
pub(super) const ADVICE: &str = "this test needs `unshare` and `nsenter` (Debian's util-linux) and user namespaces, \
     which `sysctl kernel.unprivileged_userns_clone=1` allows where they are off";
/// The unit in which the disk is filled.
const PAGE: [u8; 4_096] = [0; 4_096];

/// The disk. Dropping it removes it once no server uses it any more.
pub(super) struct SmallDisk {
    keeper: Child,
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// Makes an empty disk of so many MiB.
    pub(super) fn new(mebibytes: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "mount -t tmpfs -o size={mebibytes}m,mode=0700 tmpfs \"$0\" && echo mounted && exec cat"
        );
        let mut keeper = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{error}: {ADVICE}"));
        let mut line = String::new();
        let said = keeper.stdout.take().unwrap();
        BufReader::new(said).read_line(&mut line).unwrap();
        assert_eq!(line, "mounted\n", "{ADVICE}");
        Self { keeper, folder }
    }

    /// Returns a command that runs in the disk's namespace.
    fn within(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &self.keeper.id().to_string()])
            .args(["--user", "--mount", "--preserve-credentials", "--", program])
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Returns the server's program with its data folder on the disk.
    pub(super) fn program(&self) -> Command {
        let mut command = self.within(env!("CARGO_BIN_EXE_platform-server"));
        command
            .env("PLATFORM_DATA", self.folder.path())
            .env("PLATFORM_LISTEN", "127.0.0.1:0")
            .envs(UNLIMITED);
        command
    }

    /// Returns the disk's folder as this process reaches it. SQLite does not: it would follow the link
    /// out of the namespace.
    pub(super) fn path(&self) -> PathBuf {
        let inside = self.folder.path().strip_prefix("/").unwrap();
        Path::new(&format!("/proc/{}/root", self.keeper.id())).join(inside)
    }

    fn filler(&self) -> Filler {
        Filler::of(&self.path())
    }

    /// Fills the disk, and leaves so many pages of 4 KiB free.
    pub(super) fn leave(&self, pages: u64) {
        self.filler().leave(pages);
    }

    /// Gives back what filled the disk.
    pub(super) fn free(&self) {
        self.filler().free();
    }

    /// Makes the disk read-only. No server may run.
    pub(super) fn forbid_writes(&self) {
        let mut mount = self.within("mount");
        let mount = mount.args(["-o", "remount,ro"]).arg(self.folder.path());
        let output = mount.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Copies a data folder to the disk.
    pub(super) fn bring(&self, data: &Path) {
        copy(data, &self.path());
    }

    /// Returns a copy of the data folder.
    pub(super) fn copied(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        copy(&self.path(), folder.path());
        folder
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// A file that fills the disk of a folder.
pub(super) struct Filler(PathBuf);

impl Filler {
    /// Returns that of a folder in which nothing else has its name.
    pub(super) fn of(folder: &Path) -> Self {
        Self(folder.join("filler"))
    }

    /// Fills the disk, and leaves so many pages of 4 KiB free.
    pub(super) fn leave(&self, pages: u64) {
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(&self.0)
            .unwrap();
        while file.write_all(&PAGE).is_ok() {}
        let page = PAGE.len() as u64;
        let whole = file.metadata().unwrap().len() / page;
        file.set_len(whole.saturating_sub(pages) * page).unwrap();
    }

    /// Gives back what filled the disk.
    pub(super) fn free(&self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

/// Copies the files and folders of a folder into another one.
pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}
