//! The data folder and its rights, the free space on the disks, and the age of backups.

use std::fs::Metadata;
use std::io::{Error, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::{Finding, Patient};
use crate::clock::Millis;
use crate::config::Config;

const HOUR: Millis = 60 * 60 * 1_000;
/// In how many hours after its time a backup is made.
const LATE: Millis = 6 * HOUR;
const MIB: u64 = 1_024 * 1_024;

pub(super) async fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    let mut findings = vec![folder(patient.config)];
    findings.push(space(patient));
    findings.push(match &patient.backups {
        Some(place) => backups(place, old(patient.config), patient.clock.now()),
        None => Finding::skipped(
            "backups",
            "neither PLATFORM_BACKUP nor --backups names a folder to look at",
        ),
    });
    findings
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

/// The newest file of a folder, or the file itself, must be recent.
fn backups(place: &Path, old: Millis, now: Millis) -> Finding {
    const CHECK: &str = "backups";
    let shown = place.display();
    let make = "make one every day with `platform-server backup` (docs/hosting.md)";
    match newest(place) {
        Ok(Some(Newest { name, made, path })) if is_whole(&path) => {
            let age = now.saturating_sub(made).max(0);
            let found = format!("the newest, {name}, is {} hours old", age / HOUR);
            if age > old {
                Finding::wrong(
                    CHECK,
                    found,
                    format!("look why there is none since; {make}"),
                )
            } else {
                Finding::fine(CHECK, found)
            }
        }
        Ok(Some(Newest { name, .. })) => Finding::wrong(
            CHECK,
            format!("the newest, {name}, is no complete tar"),
            "make another one; `platform-server restore --check` says whether a backup can be restored",
        ),
        Ok(None) => Finding::wrong(CHECK, format!("there is no file in {shown}"), make),
        Err(error) => Finding::wrong(CHECK, format!("{shown} cannot be read: {error}"), make),
    }
}

/// Returns the age in milliseconds from which on a newer backup is missing.
fn old(config: &Config) -> Millis {
    Millis::from(config.backup_hours) * HOUR + LATE
}

/// The newest file of backups.
struct Newest {
    name: String,
    made: Millis,
    path: PathBuf,
}

/// Whether a file whose name is that of a tar has a tar's beginning and end (POSIX `ustar`). Other files
/// are not looked at: they may be compressed or encrypted.
fn is_whole(path: &Path) -> bool {
    const BLOCK: usize = 512;
    if path.extension().is_none_or(|extension| extension != "tar") {
        return true;
    }
    let looks_whole = || {
        let mut file = std::fs::File::open(path)?;
        let (mut first, mut last) = ([0; BLOCK], [0; 2 * BLOCK]);
        file.read_exact(&mut first)?;
        file.seek(SeekFrom::End(-2 * BLOCK as i64))?;
        file.read_exact(&mut last)?;
        Ok::<_, Error>(first[257..].starts_with(b"ustar") && last == [0; 2 * BLOCK])
    };
    looks_whole().unwrap_or(false)
}

/// Returns the newest file that is not empty.
fn newest(place: &Path) -> Result<Option<Newest>, Error> {
    let files: Vec<PathBuf> = if place.is_dir() {
        let entries = std::fs::read_dir(place)?;
        entries
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_, Error>>()?
    } else {
        vec![place.to_owned()]
    };
    let mut newest = None;
    for file in files {
        let found = match std::fs::metadata(&file) {
            Ok(found) => found,
            // It was removed in between.
            Err(error) if error.kind() == ErrorKind::NotFound && place.is_dir() => continue,
            Err(error) => return Err(error),
        };
        if !found.is_file() || found.len() == 0 {
            continue;
        }
        let since = found
            .modified()?
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let made = Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if newest.as_ref().is_none_or(|last: &Newest| made > last.made) {
            newest = Some(Newest {
                name: name.into_owned(),
                made,
                path: file,
            });
        }
    }
    Ok(newest)
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

    #[test]
    fn a_backup_is_missing_after_thirty_hours() {
        let folder = tempfile::tempdir().unwrap();
        let old = old(&Config::default());
        assert_eq!(old, 30 * HOUR);
        let backups = |place: &Path, now| backups(place, old, now);
        assert_eq!(backups(folder.path(), 0).state, State::Wrong);
        assert_eq!(backups(&folder.path().join("none"), 0).state, State::Wrong);
        std::fs::write(folder.path().join("empty.tar"), "").unwrap();
        assert_eq!(backups(folder.path(), 0).state, State::Wrong);
        let one = folder.path().join("one.tar");
        std::fs::write(&one, "rows").unwrap();
        assert_eq!(backups(folder.path(), 0).state, State::Wrong, "no tar");
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_size(4);
        header.set_cksum();
        tar.append_data(&mut header, "rows", &b"rows"[..]).unwrap();
        let tar = tar.into_inner().unwrap();
        std::fs::write(&one, &tar[..tar.len() - 512]).unwrap();
        assert_eq!(backups(folder.path(), 0).state, State::Wrong, "cut off");
        std::fs::write(&one, &tar).unwrap();
        let Newest { name, made, .. } = newest(folder.path()).unwrap().unwrap();
        assert_eq!(name, "one.tar");
        for (age, expected) in [(old, State::Fine), (old + 1, State::Wrong)] {
            assert_eq!(backups(folder.path(), made + age).state, expected, "{age}");
            let file = folder.path().join("one.tar");
            assert_eq!(backups(&file, made + age).state, expected, "{age}");
        }
    }
}
