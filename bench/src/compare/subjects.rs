//! The two programs: that of the working tree, which is built as always, and that of another commit,
//! which is built once in a tree of its own and kept.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xtask::command::{cargo, command, output, run};
use xtask::terminal::{self, Stopwatch};
use xtask::workspace::{FEATURES, Workspace};

/// Where the other commits are, below the target folder: one tree, in which one after the other is
/// checked out, and for each commit a folder with what was built of it.
const FOLDER: &str = "compare";
const TREE: &str = "tree";
/// Letters of a commit's name.
const SHORT: &str = "--short=12";
/// What the build writes to `loader/dist` and a comparison needs.
pub(super) const RUNTIME: &str = "runtime.js";
pub(super) const MODULE: &str = "module.min.wasm";

/// A program that a part of the comparison needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// The server, and `runtime.js` with it.
    Server,
    /// The example that measures stores.
    StoreRates,
}

impl Program {
    /// The arguments with which cargo builds it.
    const fn arguments(self) -> [&'static str; 2] {
        match self {
            Program::Server => ["--bin", "platform-server"],
            Program::StoreRates => ["--example", "store_rates"],
        }
    }

    /// Where cargo puts it, in the folder of the profile.
    const fn built(self) -> &'static str {
        match self {
            Program::Server => "platform-server",
            Program::StoreRates => "examples/store_rates",
        }
    }
}

/// One side of the comparison.
pub(super) struct Subject {
    /// What people call it.
    pub(super) name: String,
    /// The folder of its programs, as below a profile's folder.
    programs: PathBuf,
    /// The folder of `runtime.js` and its module.
    runtime: PathBuf,
}

impl Subject {
    /// The path of a program.
    pub(super) fn program(&self, program: Program) -> PathBuf {
        self.programs.join(program.built())
    }

    /// A file of the runtime's build.
    pub(super) fn runtime(&self, name: &str) -> Result<Vec<u8>> {
        let file = self.runtime.join(name);
        std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))
    }
}

/// The program of the working tree.
pub(super) fn working_tree(workspace: &Workspace, programs: &[Program]) -> Result<Subject> {
    let root = &workspace.root;
    let changed = git(root, &["status", "--porcelain"])?;
    let name = if changed.is_empty() {
        format!("HEAD, {}", git(root, &["rev-parse", SHORT, "HEAD"])?)
    } else {
        "the working tree".to_owned()
    };
    build(workspace, root, programs, &name)?;
    Ok(Subject {
        name,
        programs: workspace.target.join("release"),
        runtime: root.join("loader/dist"),
    })
}

/// The programs of another commit, built unless they were kept. Call this before
/// [`working_tree`]: cargo puts the programs of both at the same place.
pub(super) fn of_commit(
    workspace: &Workspace,
    commit: &str,
    programs: &[Program],
) -> Result<Subject> {
    let root = &workspace.root;
    let wanted = format!("{commit}^{{commit}}");
    let short = git(root, &["rev-parse", "--verify", SHORT, &wanted])
        .with_context(|| format!("git knows no commit {commit}"))?;
    let folder = workspace.target.join(FOLDER);
    let subject = Subject {
        programs: folder.join(&short),
        runtime: folder.join(&short),
        name: short.clone(),
    };
    let missing: Vec<Program> = programs
        .iter()
        .copied()
        .filter(|program| !subject.program(*program).exists())
        .collect();
    if missing.is_empty() {
        terminal::note(&format!("compare: {short} has been built before"));
        return Ok(subject);
    }
    let tree = folder.join(TREE);
    check_out(root, &tree, &short)?;
    build(workspace, &tree, &missing, &short)?;
    keep(workspace, &tree, &subject, &missing)?;
    Ok(subject)
}

/// Waits until no other comparison uses the tree of the other commit, and keeps others away until the lock is
/// dropped: they would build other programs in the same folder, and disturb what is measured.
///
/// # Errors
/// The file of the lock cannot be made or locked.
pub(super) fn lock(workspace: &Workspace) -> Result<File> {
    let folder = workspace.target.join(FOLDER);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join("lock");
    let cannot = || format!("cannot lock {}", path.display());
    let file = File::create(&path).with_context(cannot)?;
    if file.try_lock().is_err() {
        terminal::note(
            "compare: another comparison is running in this folder; waiting until it has ended",
        );
        file.lock().with_context(cannot)?;
    }
    Ok(file)
}

/// Checks the commit out, in the same tree as those before it: files that are alike stay as they
/// are, so that cargo compiles only what differs.
fn check_out(root: &Path, tree: &Path, commit: &str) -> Result<()> {
    let place = tree.to_string_lossy();
    if tree.join(".git").exists() {
        git(
            tree,
            &["checkout", "--quiet", "--force", "--detach", commit],
        )?;
    } else {
        // By force, because git may know the folder of a tree that was removed without it.
        let add = ["worktree", "add", "--quiet", "--force", "--detach"];
        git(root, &[&add[..], &[&place, commit]].concat())?;
    }
    // The minifier and wasm-opt make the runtime as it is shipped.
    let loader = tree.join("loader");
    let read = |file: &str| std::fs::read(loader.join(file)).ok();
    let installed = "node_modules/.compared-package-lock.json";
    if read(installed) != read("package-lock.json") {
        let mut npm = command("npm", &loader);
        run(npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]))?;
        std::fs::copy(loader.join("package-lock.json"), loader.join(installed))?;
    }
    Ok(())
}

/// Builds as releases are. Both trees share the target folder, and so their dependencies.
fn build(workspace: &Workspace, tree: &Path, programs: &[Program], name: &str) -> Result<()> {
    let stopwatch = Stopwatch::start();
    let names: Vec<&str> = programs.iter().map(|program| program.built()).collect();
    terminal::note(&format!(
        "compare: building {} of {name} as releases are, which takes minutes where it has changed",
        names.join(" and ")
    ));
    forget_own_packages(workspace, tree)?;
    let mut arguments = vec!["build", "--release", "--workspace", "--features", FEATURES];
    arguments.extend(programs.iter().flat_map(|program| program.arguments()));
    let mut cargo = cargo(tree, &arguments);
    // Its own `rust-toolchain.toml` counts, not the compiler that runs this program.
    cargo.env_remove("RUSTUP_TOOLCHAIN");
    run(cargo.env("CARGO_TARGET_DIR", &workspace.target))?;
    terminal::note(&format!("compare: {name} built in {stopwatch}"));
    Ok(())
}

/// Removes what was built of the packages of a tree, but not of others. cargo names what it builds by the place
/// of a package in its tree, so it would take that of the other tree for this one if these files are older.
fn forget_own_packages(workspace: &Workspace, tree: &Path) -> Result<()> {
    let about = ["metadata", "--no-deps", "--offline", "--format-version=1"];
    let mut about = cargo(tree, &about);
    let about: serde_json::Value = serde_json::from_str(&output(&mut about)?)
        .context("cargo's description of the packages cannot be read")?;
    let packages = about["packages"].as_array().into_iter().flatten();
    let names = packages.filter_map(|package| package["name"].as_str());
    let mut arguments = vec!["clean", "--quiet", "--release"];
    arguments.extend(names.flat_map(|name| ["--package", name]));
    run(cargo(tree, &arguments).env("CARGO_TARGET_DIR", &workspace.target))
}

/// Copies what was built to the subject's folder.
fn keep(workspace: &Workspace, tree: &Path, subject: &Subject, programs: &[Program]) -> Result<()> {
    let copy = |from: &Path, to: &Path| -> Result<()> {
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // A copy that is interrupted is not taken for the whole.
        let part = to.with_extension("part");
        std::fs::copy(from, &part).with_context(|| format!("cannot keep {}", from.display()))?;
        Ok(std::fs::rename(part, to)?)
    };
    if programs.contains(&Program::Server) {
        for name in [RUNTIME, MODULE] {
            let built = tree.join("loader/dist").join(name);
            copy(&built, &subject.runtime.join(name))?;
        }
    }
    for program in programs {
        let built = workspace.target.join("release").join(program.built());
        copy(&built, &subject.program(*program))?;
    }
    Ok(())
}

/// Runs git in a folder, and returns what it said.
fn git(folder: &Path, arguments: &[&str]) -> Result<String> {
    Ok(output(command("git", folder).args(arguments))?
        .trim()
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(root: &Path, text: &str) -> String {
        std::fs::write(root.join("file"), text).unwrap();
        git(root, &["add", "."]).unwrap();
        let by = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
        git(
            root,
            &[&by[..], &["commit", "--quiet", "--message", text]].concat(),
        )
        .unwrap();
        git(root, &["rev-parse", SHORT, "HEAD"]).unwrap()
    }

    fn workspace(root: &Path) -> Workspace {
        let mut workspace = Workspace::find().unwrap();
        workspace.root = root.to_owned();
        workspace.target = root.join("target");
        workspace
    }

    #[test]
    fn one_tree_shows_one_commit_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        git(root, &["init", "--quiet"]).unwrap();
        let (one, other) = (commit(root, "one"), commit(root, "other"));
        let tree = root.join("target/tree");
        for (commit, text) in [(&one, "one"), (&other, "other"), (&one, "one")] {
            check_out(root, &tree, commit).unwrap();
            assert_eq!(std::fs::read_to_string(tree.join("file")).unwrap(), text);
        }
        assert_eq!(std::fs::read_to_string(root.join("file")).unwrap(), "other");
        // As after the target folder was removed.
        std::fs::remove_dir_all(&tree).unwrap();
        check_out(root, &tree, &other).unwrap();
        assert_eq!(std::fs::read_to_string(tree.join("file")).unwrap(), "other");
    }

    #[test]
    fn what_was_kept_is_not_built_again() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        git(root, &["init", "--quiet"]).unwrap();
        let one = commit(root, "one");
        let workspace = workspace(root);
        let kept = root.join("target/compare").join(&one);
        std::fs::create_dir_all(&kept).unwrap();
        std::fs::write(kept.join("platform-server"), "").unwrap();
        // There is nothing to build in this folder, so a build would fail.
        let subject = of_commit(&workspace, "HEAD", &[Program::Server]).unwrap();
        assert_eq!(
            subject.program(Program::Server),
            kept.join("platform-server")
        );
        assert!(of_commit(&workspace, "HEAD", &[Program::StoreRates]).is_err());
    }

    #[test]
    fn an_unknown_commit_is_named() {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "--quiet"]).unwrap();
        let error = of_commit(&workspace(folder.path()), "nowhere", &[])
            .err()
            .unwrap();
        assert!(error.to_string().contains("nowhere"), "{error}");
    }
}
