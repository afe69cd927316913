//! The machines that the command line is built for.
//!
//! macOS is missing: its frameworks, which TLS and opening a browser need, come only with Apple's
//! SDK, whose licence allows it on Apple's machines alone.

use anyhow::{Context, Result};
use platform_protocol::command_line::{Cpu, Machine, Os};

/// A machine that the command line is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Its name for the compiler.
    pub(crate) triple: &'static str,
    /// Its name for people and in lists.
    pub(crate) machine: Machine,
    /// `uname` and `process.platform` call it so, without the processor.
    os: &'static str,
    /// What file names call the processor.
    cpu: &'static str,
    /// `${process.platform}-${process.arch}` of Node.js.
    pub(crate) node: &'static str,
}

/// Each is linked statically, so it needs no particular distribution.
pub(crate) const TARGETS: [Target; 3] = [
    Target {
        triple: "x86_64-unknown-linux-musl",
        machine: Machine {
            os: Os::Linux,
            cpu: Cpu::X86_64,
        },
        os: "linux",
        cpu: "x86_64",
        node: "linux-x64",
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        machine: Machine {
            os: Os::Linux,
            cpu: Cpu::Aarch64,
        },
        os: "linux",
        cpu: "aarch64",
        node: "linux-arm64",
    },
    Target {
        triple: "x86_64-pc-windows-gnu",
        machine: Machine {
            os: Os::Windows,
            cpu: Cpu::X86_64,
        },
        os: "windows",
        cpu: "x86_64",
        node: "win32-x64",
    },
];

impl Target {
    /// Returns the machine that this program itself was built for, with any C library.
    ///
    /// # Errors
    /// The command line is not built for it.
    pub(crate) fn of_this_machine() -> Result<Self> {
        let (os, cpu) = (std::env::consts::OS, std::env::consts::ARCH);
        let found = TARGETS
            .into_iter()
            .find(|target| (target.os, target.cpu) == (os, cpu));
        found.with_context(|| format!("the command line is not packed for {os} on {cpu}"))
    }

    /// Whether it is Windows, whose archives and programs have other names.
    const fn is_windows(self) -> bool {
        matches!(self.machine.os, Os::Windows)
    }

    /// The name of the program.
    pub(crate) const fn program(self) -> &'static str {
        if self.is_windows() {
            "platform.exe"
        } else {
            "platform"
        }
    }

    /// The name of the folder in its archive.
    pub(crate) fn folder(self) -> String {
        format!("platform-{}-{}", self.os, self.cpu)
    }

    /// The name of its archive.
    pub(crate) fn archive(self) -> String {
        let ending = if self.is_windows() { "zip" } else { "tar.gz" };
        format!("{}.{ending}", self.folder())
    }
}
