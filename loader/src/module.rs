//! Compiles a crate for wasm32.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The options for the smallest module: the standard library is built with it, so that a panic is
/// one instruction without a text. The stable compiler takes these options only if it is told to
/// act as its own bootstrap compiler.
const SMALLEST: &str =
    "-Zunstable-options -Cpanic=immediate-abort -Zfmt-debug=none -Zlocation-detail=none";

/// What happens to the names of a module's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// They are no part of what is shipped.
    Removed,
    /// They say what each function is for.
    Kept,
}

/// Compiles the package as a module and returns its path.
///
/// # Errors
/// What the compiler printed.
pub fn compile(root: &Path, package: &str) -> Result<PathBuf> {
    let target = root.join("target/wasm");
    let mut cargo = Command::new("cargo");
    without_surroundings(&mut cargo);
    cargo
        .current_dir(root)
        .args(["build", "--package", package, "--lib", "--profile", "wasm"])
        .args(["--target", "wasm32-unknown-unknown", "--target-dir"])
        .arg(&target);
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
    let file = format!("{}.wasm", package.replace('-', "_"));
    Ok(target.join("wasm32-unknown-unknown/wasm").join(file))
}

/// Removes the variables that an outer cargo has set: flags of another target, clippy in place of
/// the compiler, the name of another package.
fn without_surroundings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_another_build) {
            command.env_remove(name);
        }
    }
}

/// Whether a variable belongs to the outer build. Cargo's home and the number of jobs hold for
/// both.
fn is_of_another_build(name: &str) -> bool {
    let is_kept = ["CARGO_HOME", "CARGO_MAKEFLAGS", "CARGO_NET_OFFLINE"].contains(&name)
        || name.starts_with("CARGO_REGISTRIES_")
        || name.starts_with("CARGO_HTTP_");
    let starts = ["CARGO", "RUSTC", "RUSTFLAGS", "CLIPPY"];
    !is_kept
        && (starts.iter().any(|start| name.starts_with(start))
            || ["DEBUG", "HOST", "OPT_LEVEL", "OUT_DIR", "PROFILE", "TARGET"].contains(&name))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_inside_another_keeps_the_jobs_and_loses_the_flags() {
        for of_another in [
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_MANIFEST_DIR",
            "CARGO_TARGET_DIR",
            "RUSTC_WORKSPACE_WRAPPER",
            "OPT_LEVEL",
        ] {
            assert!(is_of_another_build(of_another), "{of_another}");
        }
        for kept in ["CARGO_HOME", "CARGO_MAKEFLAGS", "PATH", "RUSTUP_TOOLCHAIN"] {
            assert!(!is_of_another_build(kept), "{kept}");
        }
    }
}
