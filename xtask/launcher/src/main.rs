//! What the alias `cargo xtask` runs, from any folder of the workspace: cargo, which
//! builds and runs `xtask` as a part of the whole workspace.
//!
//! In the folder of a package `cargo run` knows the programs of this package alone,
//! and with `--package xtask` dependencies would get other features than everywhere
//! else and be compiled twice. So the alias names this package, which has none.

use std::env;
use std::io::Error;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

/// What to say before `xtask` is compiled for the first time: cargo says only that it compiles.
const FIRST_COMPILATION: &str = "cargo xtask: first compiles itself, which takes about half a minute on two cores; then \
    it says what else this machine needs, and how long that takes";

fn main() -> ExitCode {
    if !is_compiled() {
        eprintln!("{FIRST_COMPILATION}");
    }
    let error = launch();
    eprintln!("error: cargo cannot be started: {error}");
    ExitCode::FAILURE
}

/// Whether `xtask` was compiled before: cargo puts it beside this program.
fn is_compiled() -> bool {
    env::current_exe().is_ok_and(|launcher| {
        let name = format!("xtask{}", env::consts::EXE_SUFFIX);
        launcher.with_file_name(name).exists()
    })
}

/// Puts cargo in the place of this program. Returns why it could not.
fn launch() -> Error {
    let mut cargo = Command::new("cargo");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    cargo
        .args(["run", "--manifest-path", root, "--bin", "xtask", "--"])
        .args(env::args_os().skip(1));
    // They speak of this package.
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| is_of_a_package(name)) {
        cargo.env_remove(name);
    }
    cargo.exec()
}

/// Whether a variable speaks of the package that cargo runs a program of.
fn is_of_a_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_has_set_for_cargo_stays() {
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"] {
            assert!(is_of_a_package(name), "{name}");
        }
        for name in ["CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_BUILD_JOBS", "PATH"] {
            assert!(!is_of_a_package(name), "{name}");
        }
    }
}
