//! Programs from PyPI, each in a separate Python environment, according to its `requirements.txt`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::{server, settings};

/// Returns the folder of programs of the environment `name`, with the packages in the
/// `requirements.txt` of `folder`. Creates the environment if it does not exist.
///
/// # Panics
/// Panics if it cannot be created.
#[must_use]
pub fn environment(folder: &Path, name: &str) -> PathBuf {
    // Two tests of one program may want the same environment.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let requirements = folder.join("requirements.txt");
    let wanted = std::fs::read(&requirements).expect("a file");
    let home = server::target().join("python").join(name);
    let marker = home.join("installed-requirements.txt");
    if std::fs::read(&marker).ok().as_ref() != Some(&wanted) {
        let python = settings::program("PYTHON", &["python3"]);
        run(Command::new(python).args(["-m", "venv"]).arg(&home));
        let mut pip = Command::new(home.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"]);
        run(pip.arg(&requirements));
        std::fs::write(&marker, wanted).expect("a file");
    }
    home.join("bin")
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{command:?} failed: `cargo xtask test` installs what the tests need"
    );
}
