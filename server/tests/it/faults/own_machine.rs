//! A test that runs in namespaces of its own, as if alone on a machine: a network in which every port is free and
//! only the test is a name server, and a small disk. It needs no rights, and all of it ends with the test.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::small_disk::{ADVICE, Filler};
use crate::proxy::certified;

/// The variable with the folder of the machine, when this test program runs again in it.
const INSIDE: &str = "TESTS_OWN_MACHINE";
/// The file that says that the machine was there.
const ENTERED: &str = "entered";
/// The file that says that the test has begun there.
const BEGUN: &str = "begun";
/// The certificates that programs of the machine trust.
const AUTHORITIES: &str = "authorities.pem";
/// The system's resolver asks this address, and nobody else.
const RESOLVER: &str = "nameserver 127.0.0.1\n";
const ORDER: &str = "hosts: files dns\n";

/// Prepares the machine in the folder `$1`, and runs the rest of its words.
const PREPARE: &str = r#"
    set -e
    ip link set lo up
    mount -t tmpfs -o size=64m,mode=0700 tmpfs "$1/disk"
    mount --bind "$1/resolv.conf" /etc/resolv.conf
    mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf
    : >"$1/entered"
    shift
    exec "$@"
"#;

/// The machine, on which the test is alone.
pub(super) struct OwnMachine {
    folder: PathBuf,
}

impl OwnMachine {
    /// Returns the machine, if this program runs in it. Otherwise runs it again there, for `test` alone, which is
    /// the name of the calling test after this program's, and returns `None` when that has succeeded.
    ///
    /// # Panics
    /// The test fails there, or there can be no such machine.
    #[expect(
        clippy::disallowed_methods,
        reason = "it says where this program runs, and is no setting"
    )]
    pub(super) fn enter(test: &str) -> Option<Self> {
        if let Some(folder) = std::env::var_os(INSIDE) {
            let folder = PathBuf::from(folder);
            fs::write(folder.join(BEGUN), "").unwrap();
            return Some(Self { folder });
        }
        let folder = tempfile::tempdir().unwrap();
        let file = |name| folder.path().join(name);
        fs::create_dir(file("disk")).unwrap();
        fs::write(file("resolv.conf"), RESOLVER).unwrap();
        fs::write(file("nsswitch.conf"), ORDER).unwrap();
        fs::write(file(AUTHORITIES), certified("nobody.example").1).unwrap();
        let status = Command::new("unshare")
            .args(["--user", "--map-root-user", "--net", "--mount"])
            .args(["sh", "-c", PREPARE, "sh"])
            .arg(folder.path())
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(INSIDE, folder.path())
            .env("SSL_CERT_FILE", file(AUTHORITIES))
            .status();
        let status = status.unwrap_or_else(|error| panic!("{error}: {ADVICE}"));
        assert!(file(ENTERED).exists(), "{ADVICE}; and `ip` (iproute2)");
        assert!(status.success(), "it failed on a machine of its own");
        assert!(file(BEGUN).exists(), "there is no test {test}");
        None
    }

    /// Returns the folder of a disk of 64 MiB.
    pub(super) fn disk(&self) -> PathBuf {
        self.folder.join("disk")
    }

    /// Returns what can fill this disk.
    pub(super) fn filler(&self) -> Filler {
        Filler::of(&self.disk())
    }

    /// Trusts this certificate, in PEM, and no other. It must be called before anything reads the machine's.
    pub(super) fn trust(&self, authority: &str) {
        fs::write(self.folder.join(AUTHORITIES), authority).unwrap();
    }
}
