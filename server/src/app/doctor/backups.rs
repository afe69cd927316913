//! The age of the newest backup: in the folder or the bucket of the settings, or where the operator keeps
//! backups.

use std::io::{Error, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use tokio::time::timeout;

use super::{Finding, Patient};
use crate::app::backups::{Backups, BackupsError, newest, time_of};
use crate::clock::Millis;
use crate::config::{BackupPlace, Config};
use crate::domain::errors::chain;

const CHECK: &str = "backups";
const HOUR: Millis = 60 * 60 * 1_000;
/// In how many hours after its time a backup is made. The alert `PlatformBackupOverdue` waits as long.
const LATE: Millis = 6 * HOUR;
/// How long the list of a bucket may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where it says why there is no newer backup.
const WHY: &str = "if it runs, its log says why it does not, as \"no backup could be made\"";

pub(super) async fn examine(patient: &Patient<'_>) -> Finding {
    let config = patient.config;
    let (old, now) = (old(config), patient.clock.now());
    match (&patient.backups, &config.backup) {
        (Some(folder), _) | (None, Some(BackupPlace::Folder(folder))) => {
            in_folder(folder, old, now)
        }
        (None, Some(BackupPlace::Bucket(_))) => in_bucket(config, old, now).await,
        (None, None) => Finding::skipped(
            CHECK,
            "neither PLATFORM_BACKUP nor --backups names a place to look at",
        ),
    }
}

/// The newest backup in the bucket must be recent. Its name says when it was begun, and it has its name
/// only if it is complete.
async fn in_bucket(config: &Config, old: Millis, now: Millis) -> Finding {
    let listed = async {
        let names = Backups::new(config)?.list().await?;
        Ok::<_, BackupsError>(names)
    };
    let names = match timeout(PATIENCE, listed).await {
        Ok(Ok(names)) => names,
        Ok(Err(error)) => {
            let advice = "look whether PLATFORM_BACKUP and the variables AWS_* are right, and whether this machine reaches the bucket";
            return Finding::wrong(CHECK, chain(&error), advice);
        }
        Err(_) => {
            let found = format!(
                "the bucket that PLATFORM_BACKUP names is not listed within {} s",
                PATIENCE.as_secs()
            );
            let advice = "look at the endpoint, and at the network in between; give backups a prefix of their own";
            return Finding::wrong(CHECK, found, advice);
        }
    };
    let Some(made) = newest(&names, now) else {
        return Finding::wrong(
            CHECK,
            "there is no backup in the bucket that PLATFORM_BACKUP names",
            format!("start the server, which makes one at once; {WHY}"),
        );
    };
    let named = names.iter().rfind(|name| time_of(name) == Some(made));
    let name = named.map_or("", String::as_str);
    let advice = format!("start the server, which makes the next one; {WHY}");
    aged(name, now - made, old, &advice)
}

/// Says how old the newest backup is.
fn aged(name: &str, age: Millis, old: Millis, advice: &str) -> Finding {
    let age = age.max(0);
    let found = format!("the newest, {name}, is {} hours old", age / HOUR);
    if age > old {
        Finding::wrong(CHECK, found, advice)
    } else {
        Finding::fine(CHECK, found)
    }
}

/// The newest file of a folder, or the file itself, must be recent.
fn in_folder(place: &Path, old: Millis, now: Millis) -> Finding {
    let shown = place.display();
    let make = "make one every day with `platform-server backup` (docs/hosting.md)";
    let newest = match newest_in(place) {
        Ok(Some(newest)) => newest,
        Ok(None) => return Finding::wrong(CHECK, format!("there is no file in {shown}"), make),
        Err(error) => {
            return Finding::wrong(CHECK, format!("{shown} cannot be read: {error}"), make);
        }
    };
    let Newest { name, made, path } = newest;
    match is_whole(&path) {
        Ok(true) => aged(
            &name,
            now.saturating_sub(made),
            old,
            &format!("look why there is none since; {make}"),
        ),
        Ok(false) => Finding::wrong(
            CHECK,
            format!("the newest, {name}, is no complete tar"),
            "make another one; `platform-server restore --check` says whether a backup can be restored",
        ),
        Err(error) => Finding::wrong(
            CHECK,
            format!("the newest, {name}, cannot be read: {error}"),
            "run this as the user of the server",
        ),
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

/// Whether a file whose name is that of a tar has all entries and a tar's end (POSIX `ustar`). Other files
/// are not looked at: they may be compressed or encrypted.
fn is_whole(path: &Path) -> Result<bool, Error> {
    const BLOCK: u64 = 512;
    if path.extension().is_none_or(|extension| extension != "tar") {
        return Ok(true);
    }
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    let mut archive = tar::Archive::new(&mut file);
    let mut end = 0;
    for entry in archive.entries_with_seek()? {
        // What a cut-off file has at its end is not an entry.
        let Ok(entry) = entry else { return Ok(false) };
        end = entry.raw_file_position() + entry.size().next_multiple_of(BLOCK);
    }
    if end == 0 || end + 2 * BLOCK > length {
        return Ok(false);
    }
    let mut last = [0; 2 * BLOCK as usize];
    file.seek(SeekFrom::End(-2 * BLOCK as i64))?;
    file.read_exact(&mut last)?;
    Ok(last.iter().all(|byte| *byte == 0))
}

/// Returns the newest file that is not empty.
fn newest_in(place: &Path) -> Result<Option<Newest>, Error> {
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
    use super::*;
    use crate::app::doctor::State;

    #[test]
    fn a_backup_is_missing_after_thirty_hours() {
        let folder = tempfile::tempdir().unwrap();
        let old = old(&Config::default());
        assert_eq!(old, 30 * HOUR);
        let backups = |place: &Path, now| in_folder(place, old, now);
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
        // A database has empty pages, at which it may be cut off as well.
        let mut large = tar::Builder::new(Vec::new());
        header.set_size(9_000);
        header.set_cksum();
        large
            .append_data(&mut header, "rows", &[0; 9_000][..])
            .unwrap();
        let large = large.into_inner().unwrap();
        std::fs::write(&one, &large[..5 * 1_024]).unwrap();
        assert_eq!(
            backups(folder.path(), 0).state,
            State::Wrong,
            "cut in an entry"
        );
        std::fs::write(&one, &tar).unwrap();
        let Newest { name, made, .. } = newest_in(folder.path()).unwrap().unwrap();
        assert_eq!(name, "one.tar");
        for (age, expected) in [(old, State::Fine), (old + 1, State::Wrong)] {
            assert_eq!(backups(folder.path(), made + age).state, expected, "{age}");
            let file = folder.path().join("one.tar");
            assert_eq!(backups(&file, made + age).state, expected, "{age}");
        }
    }
}
