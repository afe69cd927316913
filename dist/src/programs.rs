//! Builds the programs so that the result does not depend on the folder or the time
//! (<https://reproducible-builds.org/docs/>).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::FEATURES;
use crate::command_line::Program;
use crate::run::{cargo, output, program, run};
use crate::targets::{TARGETS, Target};

/// The compiler, its folders, and its target.
#[derive(Clone, Debug)]
pub(crate) struct Toolchain {
    /// The target that programs are built for: this machine.
    pub(crate) host: String,
    /// The compiler's commit, which is in the paths of the standard library.
    commit: String,
    /// The folder of the toolchain.
    sysroot: PathBuf,
    /// The folder of cargo's packages.
    cargo_home: PathBuf,
}

impl Toolchain {
    /// Finds the toolchain that is used in `root`. `home` is the user's folder, and `cargo_home`
    /// the value of the variable with this name.
    ///
    /// # Errors
    /// There is no toolchain.
    pub(crate) fn find(
        root: &Path,
        cargo_home: Option<PathBuf>,
        home: Option<PathBuf>,
    ) -> Result<Self> {
        let version = output(program("rustc", root).arg("-vV"))?;
        let field = |name: &str| {
            let line = version.lines().find_map(|line| line.strip_prefix(name));
            let value = line.with_context(|| format!("`rustc -vV` says no {name}"))?;
            anyhow::Ok(value.trim().to_owned())
        };
        let sysroot = output(program("rustc", root).args(["--print", "sysroot"]))?;
        let cargo_home = match cargo_home {
            Some(folder) => folder,
            None => home.context("HOME is not set")?.join(".cargo"),
        };
        Ok(Self {
            host: field("host:")?,
            commit: field("commit-hash:")?,
            sysroot: PathBuf::from(sysroot.trim()),
            cargo_home,
        })
    }

    /// Each folder whose path could get into a program, and its replacement.
    fn renamed(&self, root: &Path) -> [(PathBuf, String); 3] {
        [
            (root.to_owned(), ".".to_owned()),
            (self.cargo_home.clone(), "/cargo".to_owned()),
            (
                self.sysroot.join("lib/rustlib/src/rust"),
                format!("/rustc/{}", self.commit),
            ),
        ]
    }
}

/// The current commit of `root`.
///
/// # Errors
/// The folder is not a git repository.
pub(crate) fn commit(root: &Path) -> Result<String> {
    let id = output(program("git", root).args(["rev-parse", "HEAD"]))?;
    Ok(id.trim().to_owned())
}

/// The time of the current commit of `root` (Unix), which is used as the time of the whole release.
///
/// # Errors
/// The folder is not a git repository.
pub(crate) fn time_of_commit(root: &Path) -> Result<u64> {
    let time = output(program("git", root).args(["log", "-1", "--format=%ct"]))?;
    time.trim().parse().context("the time of the last commit")
}

/// Whether files differ from those of the commit.
///
/// # Errors
/// The folder is not a git repository.
pub(crate) fn is_changed(root: &Path) -> Result<bool> {
    let changes = output(program("git", root).args(["status", "--porcelain"]))?;
    Ok(!changes.trim().is_empty())
}

/// Builds the programs of the workspace at `root` and returns their folder.
///
/// # Errors
/// They do not build.
pub(crate) fn build(root: &Path, toolchain: &Toolchain, seconds: u64) -> Result<PathBuf> {
    let mut command = cargo(root);
    command.arg("build");
    let bins = ["--bin", "platform-server", "--bin", "platform"];
    reproducibly(command.args(bins), root, toolchain, seconds)?;
    Ok(built_in(root).join("release"))
}

/// Builds the command line for every machine, with zig as C compiler and linker: it has the C
/// libraries of all of them.
///
/// # Errors
/// It does not build.
pub(crate) fn build_command_lines(
    root: &Path,
    toolchain: &Toolchain,
    seconds: u64,
) -> Result<Vec<Program>> {
    let mut command = cargo(root);
    command.args(["zigbuild", "--bin", "platform"]);
    for target in TARGETS {
        command.args(["--target", target.triple]);
    }
    reproducibly(&mut command, root, toolchain, seconds)?;
    let read = |target: Target| {
        let folder = built_in(root).join(target.triple).join("release");
        let path = folder.join(target.program());
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Program { target, bytes })
    };
    TARGETS.into_iter().map(read).collect()
}

/// The target folder of a release.
fn built_in(root: &Path) -> PathBuf {
    root.join("target/dist/build")
}

/// Runs a build of cargo in release mode, in which no folder's path and no time is visible.
fn reproducibly(
    command: &mut Command,
    root: &Path,
    toolchain: &Toolchain,
    seconds: u64,
) -> Result<()> {
    let renamed = toolchain.renamed(root);
    let rust = renamed
        .iter()
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    let c = renamed
        .iter()
        .map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display()));
    command
        .args(["--release", "--locked", "--target-dir"])
        .arg(built_in(root))
        // As a part of the workspace, so that dependencies have the same features as in the tests.
        .args(["--workspace", "--features", FEATURES])
        // The separator of arguments in this variable.
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            rust.collect::<Vec<_>>().join("\x1f"),
        )
        .env("CFLAGS", c.collect::<Vec<_>>().join(" "))
        // The times of embedded files.
        .env("SOURCE_DATE_EPOCH", seconds.to_string());
    run(command)
}

/// Copies a commit of `root` to `to`, with the npm packages that build the runtime.
///
/// # Errors
/// There is no commit, or not enough disk space.
pub(crate) fn copy(root: &Path, commit: &str, to: &Path) -> Result<()> {
    let packages = root.join("loader/node_modules");
    ensure!(
        packages.is_dir(),
        "the packages of loader/ are not installed"
    );
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let list = to.with_extension("tar");
    run(program("git", root)
        .args(["archive", "--format=tar", commit, "--output"])
        .arg(&list))?;
    tar::Archive::new(fs::File::open(&list)?).unpack(to)?;
    fs::remove_file(&list)?;
    run(program("cp", root)
        .arg("--archive")
        .args([&packages, &to.join("loader")]))
}
