//! Miri: runs the tests of code with `unsafe` in an interpreter that sees what the compiler may not assume:
//! a wrong pointer, a read of what was never written, an alignment that is not kept. It needs a nightly
//! toolchain, so it is no part of the test run.

use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::command::{command, run as run_command};
use crate::workspace::Workspace;

/// How to get it.
const ADVICE: &str = "Miri is not installed: `rustup toolchain install nightly --profile minimal --component miri,rust-src`";
/// The package and the tests whose code has `unsafe`.
const TESTS: [&str; 3] = ["--package", "platform-runtime", "heap::"];
/// An allocator makes pointers from numbers, and never gives memory back.
const FLAGS: &str = "-Zmiri-permissive-provenance -Zmiri-ignore-leaks";

/// Runs these tests.
///
/// # Errors
/// Miri is not installed, or has found something.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let nightly = |arguments: &[&str]| {
        let mut miri = command("rustup", &workspace.root);
        miri.args(["run", "nightly", "cargo", "miri"])
            .args(arguments);
        // They name the toolchain that runs this program.
        for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
            miri.env_remove(variable);
        }
        miri
    };
    let installed = nightly(&["--version"]).output();
    ensure!(
        installed.is_ok_and(|output| output.status.success()),
        ADVICE
    );
    let mut tests = nightly(&["test", "--locked"]);
    tests
        .args(TESTS)
        .env("CARGO_TARGET_DIR", workspace.target.join("miri"))
        .env("MIRIFLAGS", FLAGS);
    run_command(&mut tests)?;
    Ok(ExitCode::SUCCESS)
}
