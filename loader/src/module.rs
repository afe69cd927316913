//! Compiles `runtime-wasm` for wasm32.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// What makes the module smallest: the standard library is built with it, so
/// that a panic is one instruction and carries no text. The stable compiler
/// takes these options only when told to act as its own bootstrap compiler.
const SMALLEST: &str =
    "-Zunstable-options -Cpanic=immediate-abort -Zfmt-debug=none -Zlocation-detail=none";

/// Compiles the module and answers where it is.
///
/// # Errors
/// The compiler's own words.
pub fn compile(root: &Path) -> Result<PathBuf> {
    let target = root.join("target/wasm");
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(root)
        .args([
            "build",
            "--package",
            "platform-runtime",
            "--lib",
            "--profile",
            "wasm",
        ])
        .args(["--target", "wasm32-unknown-unknown", "--target-dir"])
        .arg(&target)
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    if has_library_source()? {
        cargo
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", SMALLEST)
            .args(["-Z", "build-std=std,panic_abort"]);
    } else {
        eprintln!(
            "the module gets about a fifth larger, because the standard library's source is not there: `rustup component add rust-src` adds it"
        );
        cargo.env("RUSTFLAGS", "");
    }
    let status = cargo.status().context("cannot run cargo")?;
    if !status.success() {
        bail!(
            "the module does not compile; `rustup target add wasm32-unknown-unknown` adds the target if it is missing"
        );
    }
    Ok(target.join("wasm32-unknown-unknown/wasm/platform_runtime.wasm"))
}

/// The compiler's version.
///
/// # Errors
/// There is no compiler.
pub fn compiler() -> Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .context("cannot run rustc")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether the component `rust-src` is installed.
///
/// # Errors
/// There is no compiler.
pub fn has_library_source() -> Result<bool> {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .context("cannot run rustc")?;
    let sysroot = String::from_utf8_lossy(&output.stdout);
    Ok(Path::new(sysroot.trim())
        .join("lib/rustlib/src/rust/library/Cargo.lock")
        .exists())
}
