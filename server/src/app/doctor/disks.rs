//! The data folder and its rights, and the free space on the disks.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::{Finding, Patient};
use crate::config::Config;

const MIB: u64 = 1_024 * 1_024;

pub(super) fn examine(patient: &Patient<'_>) -> [Finding; 2] {
    [folder(patient.config), space(patient)]
}

/// The data folder must be writable, and nobody else may read the store in it.
fn folder(config: &Config) -> Finding {
    const CHECK: &str = "data folder";
    let shown = config.data.display();
    if !config.data.exists() {
        return Finding::warning(
            CHECK,
            format!("{shown} does not exist"),
            "`platform-server serve` creates it; if there is a platform already, set PLATFORM_DATA to its folder",
        );
    }
    if let Err(error) = tempfile::tempfile_in(&config.data) {
        return Finding::wrong(
            CHECK,
            format!("{shown} cannot be written to: {error}"),
            "run this as the user of the server, and give the folder to this user (`chown`)",
        );
    }
    let database = config.database_path();
    let logs = database.with_file_name("logs.db");
    let readable: Vec<String> = [database, logs]
        .iter()
        .filter(|file| std::fs::metadata(file).is_ok_and(|found| others_may_read(&found)))
        .map(|file| file.display().to_string())
        .collect();
    if readable.is_empty() {
        return Finding::fine(
            CHECK,
            format!("{shown} is writable, and its store is private"),
        );
    }
    let files = readable.join(" ");
    Finding::wrong(
        CHECK,
        format!("other users of this machine can read {files}"),
        format!(
            "`chmod 600 {files}`: whoever reads the store has the sessions' hashes and the keys"
        ),
    )
}

#[cfg(unix)]
fn others_may_read(found: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    found.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn others_may_read(_found: &Metadata) -> bool {
    false
}

/// The disks must have more free space than the floor below which the server refuses writes.
fn space(patient: &Patient<'_>) -> Finding {
    const CHECK: &str = "disk space";
    let floor = patient.config.disk_floor();
    let mut least: Option<(u64, PathBuf)> = None;
    for folder in patient.config.folders() {
        // A folder that does not exist yet will be on the disk of its parent.
        let there = folder.ancestors().find(|one| one.exists());
        let there = there.unwrap_or(Path::new(".")).to_owned();
        match patient.disk.free(&there) {
            Ok(free) if least.as_ref().is_none_or(|(least, _)| free < *least) => {
                least = Some((free, there));
            }
            Ok(_) => {}
            Err(error) => {
                return Finding::wrong(
                    CHECK,
                    format!("the disk of {} cannot be asked: {error}", there.display()),
                    "look whether it is mounted",
                );
            }
        }
    }
    let Some((free, folder)) = least else {
        return Finding::skipped(CHECK, "there is no folder");
    };
    let found = format!(
        "{} MiB are free on the disk of {}",
        free / MIB,
        folder.display()
    );
    let refused = format!(
        "below {} MiB the server refuses deploys and log records",
        floor / MIB
    );
    if free < floor {
        Finding::wrong(CHECK, found, format!("make room: {refused}"))
    } else if free < floor.saturating_mul(2) {
        Finding::warning(CHECK, found, format!("make room soon: {refused}"))
    } else {
        Finding::fine(CHECK, found)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::app::doctor::State;
    use crate::clock::SystemClock;
    use crate::entropy::SystemEntropy;
    use crate::platform::disk::ManualDisk;

    fn with_data(data: &Path) -> Config {
        Config {
            data: data.to_owned(),
            disk_floor_mib: 100,
            ..Config::default()
        }
    }

    #[test]
    fn a_store_that_others_can_read_is_wrong() {
        let data = tempfile::tempdir().unwrap();
        let config = with_data(data.path());
        assert_eq!(folder(&config).state, State::Fine);
        let file = config.database_path();
        std::fs::write(&file, "rows").unwrap();
        for (mode, expected) in [
            (0o600, State::Fine),
            (0o640, State::Wrong),
            (0o604, State::Wrong),
        ] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&file, mode).unwrap();
            assert_eq!(folder(&config).state, expected);
        }
        let missing = with_data(&data.path().join("none"));
        assert_eq!(folder(&missing).state, State::Warning);
    }

    #[test]
    fn little_free_space_is_a_warning_and_less_than_the_floor_is_wrong() {
        let data = tempfile::tempdir().unwrap();
        let config = with_data(data.path());
        for (mib, expected) in [
            (99, State::Wrong),
            (100, State::Warning),
            (199, State::Warning),
            (200, State::Fine),
        ] {
            let patient = Patient {
                config: &config,
                backups: None,
                clock: Arc::new(SystemClock),
                entropy: Arc::new(SystemEntropy),
                disk: Arc::new(ManualDisk::new(mib * MIB)),
            };
            assert_eq!(space(&patient).state, expected, "{mib}");
        }
    }
}
