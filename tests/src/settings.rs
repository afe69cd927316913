//! The paths of drivers, browsers and tools. Nothing else reads the environment.

use std::path::{Path, PathBuf};

/// Returns the value of the environment variable `name`, unless it is empty.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the environment"
    )]
    let value = std::env::var(name).ok();
    value.filter(|value| !value.is_empty())
}

/// Returns the path of a program: the one named by the variable `name`, otherwise one of `programs`
/// on the `PATH`, otherwise one of the tools that `cargo xtask test` installs.
///
/// # Panics
/// Panics if there is none, and says how to get one.
#[must_use]
pub fn program(name: &str, programs: &[&str]) -> PathBuf {
    if let Some(path) = variable(name) {
        return PathBuf::from(path);
    }
    let on_path = variable("PATH").into_iter().flat_map(|paths| {
        std::env::split_paths(&paths)
            .flat_map(|directory| programs.iter().map(move |program| directory.join(program)))
            .collect::<Vec<_>>()
    });
    on_path
        .chain(kept(programs))
        .find(|path| path.is_file())
        .unwrap_or_else(|| {
            panic!(
                "none of {programs:?} was found: `cargo xtask test` installs what the tests need, \
             or name the program in {name}"
            )
        })
}

/// Returns the path of a program that a package installs next to its libraries: the one named by
/// the variable `name`, otherwise `program` in one of `folders` there.
///
/// # Panics
/// Panics if there is none, and says how to get one.
#[must_use]
pub fn library_program(name: &str, program: &str, folders: &[&str]) -> PathBuf {
    if let Some(path) = variable(name) {
        return PathBuf::from(path);
    }
    // Debian uses a folder for each architecture.
    let libraries = ["/usr/lib", "/usr/lib64", "/usr/libexec"].map(PathBuf::from);
    let architectures = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    libraries
        .into_iter()
        .chain(architectures)
        .flat_map(|library| {
            folders
                .iter()
                .map(move |folder| library.join(folder).join(program))
        })
        .find(|path| path.is_file())
        .unwrap_or_else(|| {
            panic!(
                "{program} was found in none of {folders:?}: `cargo xtask test` installs what the \
             tests need, or name the program in {name}"
            )
        })
}

/// Returns the variables that cargo sets for tests to describe their package, and the one that
/// `cargo xtask test` sets to measure each test. Other builds must not see them: some build scripts
/// run again when they change.
pub fn set_by_cargo() -> impl Iterator<Item = std::ffi::OsString> {
    let variables = std::env::vars_os();
    variables.map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_")
            || name.starts_with("CARGO_MANIFEST_")
            || name == "RUSTC_BOOTSTRAP"
    })
}

/// Returns the path of a file that `cargo xtask test` makes once and keeps.
///
/// # Panics
/// Panics if it is not there.
#[must_use]
pub fn kept_file(name: &str) -> PathBuf {
    let path = cache().map(|cache| cache.join("platform-xtask").join(name));
    path.filter(|path| path.is_file())
        .unwrap_or_else(|| panic!("{name} was not found: `cargo xtask test` makes it"))
}

/// Returns the folder of what programs of this user keep.
fn cache() -> Option<PathBuf> {
    variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| Path::new(&home).join(".cache")))
}

/// Returns the paths at which `cargo xtask` would have installed one of `programs`.
fn kept(programs: &[&str]) -> Vec<PathBuf> {
    let tools = cache().and_then(|cache| std::fs::read_dir(cache.join("platform-xtask")).ok());
    tools
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|tool| {
            programs
                .iter()
                .map(move |program| tool.path().join("bin").join(program))
        })
        .collect()
}
