//! Where the data of a platform is, what is there already, and moving it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use platform_archive::backup::{DATABASE, FILES, LOGS};

use super::{RestoreError, Staged, UNPACKED, unreadable, unwritten};
use crate::app::backups::UNFINISHED;
use crate::app::data_folder::{UNFINISHED_RESTORE, folder_of};
use crate::clock::Millis;
use crate::config::{BackupPlace, Config};
use crate::domain::date::rfc3339_seconds;
use crate::platform::disk::FreeSpace;
use crate::store::{SqliteStore, make_private_directory};

/// The prefix of folders with data from before.
const ASIDE: &str = "replaced-";
/// What SQLite has beside a database.
const BESIDE: [&str; 4] = ["", "-wal", "-shm", "-journal"];
/// The folder that some file systems have at their top.
const LOST: &str = "lost+found";

/// The places of a platform's data.
#[derive(Clone, Debug)]
pub(super) struct Places {
    data: PathBuf,
    database: PathBuf,
    logs: PathBuf,
    /// The folder of deployed files; `None` if they are not in a folder, or stay as they are.
    files: Option<PathBuf>,
    /// Whether files are unpacked for a bucket.
    for_bucket: bool,
    /// Folders in the data folder that are not part of what is restored.
    others: Vec<PathBuf>,
}

impl Places {
    pub(super) fn of(config: &Config, without_files: bool) -> Self {
        let database = config.database_path();
        let mut others = Vec::new();
        if let Some(BackupPlace::Folder(folder)) = &config.backup {
            others.push(folder.clone());
        }
        if without_files {
            others.push(config.files_path());
        }
        Self {
            data: config.data.clone(),
            logs: SqliteStore::logs_beside(&database),
            database,
            files: (config.s3.is_none() && !without_files).then(|| config.files_path()),
            for_bucket: config.s3.is_some() && !without_files,
            others,
        }
    }

    /// Returns the folder of the databases.
    pub(super) fn database_folder(&self) -> &Path {
        folder_of(&self.database)
    }

    /// Returns the folder in which deployed files are unpacked, if they are.
    pub(super) fn files_folder(&self) -> Option<&Path> {
        let data = self.for_bucket.then_some(self.data.as_path());
        self.files.as_deref().or(data)
    }

    /// Creates the folders, removes what a killed restore left there, and checks that the disks have
    /// room for the archive.
    pub(super) fn make_room(
        &self,
        archive: &File,
        disk: &dyn FreeSpace,
    ) -> Result<(), RestoreError> {
        let bytes = archive.metadata().map_err(unreadable(&self.data))?.len();
        let folders = [Some(self.database_folder()), self.files_folder()];
        for folder in folders.into_iter().flatten() {
            make_private_directory(folder).map_err(unwritten(folder))?;
            for name in entries(folder)? {
                if starts_with(&name, UNPACKED) {
                    let path = folder.join(name);
                    std::fs::remove_dir_all(&path).map_err(unwritten(&path))?;
                }
            }
            if disk.free(folder).is_ok_and(|free| free < bytes) {
                let path = folder.display().to_string();
                return Err(RestoreError::NoRoom { path, bytes });
            }
        }
        Ok(())
    }

    /// Returns something that is where the backup shall be, or in the data folder; `None` if there is
    /// nothing.
    pub(super) fn occupied(&self) -> Result<Option<PathBuf>, RestoreError> {
        for name in entries(&self.data)? {
            let path = self.data.join(&name);
            let is_nothing = Path::new(&name).extension() == Some("lock".as_ref())
                || name == LOST
                || name == UNFINISHED
                || starts_with(&name, UNPACKED)
                || starts_with(&name, ASIDE)
                || self.others.contains(&path);
            // That it is empty, is seen below.
            if !is_nothing && self.files.as_ref() != Some(&path) {
                return Ok(Some(path));
            }
        }
        if let Some(path) = self.databases().into_iter().find(|path| path.exists()) {
            return Ok(Some(path));
        }
        match &self.files {
            None => Ok(None),
            Some(files) => {
                let mut existing = deployed(files)?.into_iter();
                Ok(existing.next().map(|name| files.join(name)))
            }
        }
    }

    /// Returns the paths of all files of the databases.
    fn databases(&self) -> Vec<PathBuf> {
        let databases = [&self.database, &self.logs].into_iter();
        let beside = databases.flat_map(|database| {
            BESIDE.map(|suffix| {
                let mut name = database.clone().into_os_string();
                name.push(suffix);
                PathBuf::from(name)
            })
        });
        beside.collect()
    }

    /// Moves what is there aside, and the unpacked data into its place. Returns where the data from
    /// before is now. A note in the data folder says that this has begun, until it has ended.
    pub(super) fn replace(
        &self,
        staged: &Staged,
        now: Millis,
    ) -> Result<Vec<PathBuf>, RestoreError> {
        let note = self.data.join(UNFINISHED_RESTORE);
        begin_note(&note)?;
        sync(&self.data)?;
        let aside = self.move_aside(now)?;
        if let (Some(unpacked), Some(files)) = (&staged.files, &self.files) {
            for folder in deployed(unpacked.path())? {
                let (from, to) = (unpacked.path().join(&folder), files.join(&folder));
                make_private_directory(&to).map_err(unwritten(&to))?;
                for name in entries(&from)? {
                    rename(&from.join(&name), &to.join(&name))?;
                }
                sync(&to)?;
            }
            sync(files)?;
        }
        // Last, the file that makes it a platform.
        for (name, goal) in [(LOGS, &self.logs), (DATABASE, &self.database)] {
            rename(&staged.databases.path().join(name), goal)?;
        }
        sync(self.database_folder())?;
        std::fs::remove_file(&note).map_err(unwritten(&note))?;
        sync(&self.data)?;
        Ok(aside)
    }

    fn move_aside(&self, now: Millis) -> Result<Vec<PathBuf>, RestoreError> {
        let name = rfc3339_seconds(now).unwrap_or_default().replace(':', "");
        let mut used = Vec::new();
        let folder = free_name(self.database_folder(), &name);
        for database in self.databases().into_iter().filter(|path| path.exists()) {
            let name = database.file_name().unwrap_or_default();
            make_private_directory(&folder).map_err(unwritten(&folder))?;
            rename(&database, &folder.join(name))?;
            note_used(&mut used, &folder);
        }
        let Some(files) = &self.files else {
            return Ok(used);
        };
        let beside = folder.join(FILES);
        let inside = free_name(files, &name);
        for name in deployed(files)? {
            let from = files.join(&name);
            make_private_directory(&beside).map_err(unwritten(&beside))?;
            match std::fs::rename(&from, beside.join(&name)) {
                Ok(()) => note_used(&mut used, &folder),
                // The deployed files have a disk of their own.
                Err(error) if error.kind() == ErrorKind::CrossesDevices => {
                    make_private_directory(&inside).map_err(unwritten(&inside))?;
                    rename(&from, &inside.join(&name))?;
                    note_used(&mut used, &inside);
                }
                Err(error) => return Err(unwritten(&from)(error)),
            }
        }
        Ok(used)
    }
}

fn note_used(used: &mut Vec<PathBuf>, folder: &Path) {
    if !used.iter().any(|other| other == folder) {
        used.push(folder.to_owned());
    }
}

/// Returns a folder for data from before that does not exist yet.
fn free_name(folder: &Path, time: &str) -> PathBuf {
    let first = folder.join(format!("{ASIDE}{time}"));
    let mut next = (2_u64..).map(|number| folder.join(format!("{ASIDE}{time}-{number}")));
    let free = std::iter::once(first.clone()).chain(&mut next);
    let mut free = free.filter(|path| !path.exists());
    free.next().unwrap_or(first)
}

/// Writes the note that half of a backup may be in its place.
fn begin_note(note: &Path) -> Result<(), RestoreError> {
    const TEXT: &[u8] = b"A backup is being restored. If nothing is running, repeat the command \
                          `platform-server restore` with --force.\n";
    let written = File::create(note).and_then(|mut file| {
        file.write_all(TEXT)?;
        file.sync_all()
    });
    written.map_err(unwritten(note))
}

/// Returns the names of the folders of deployed files.
fn deployed(files: &Path) -> Result<Vec<OsString>, RestoreError> {
    let mut names = entries(files)?;
    names.retain(|name| !starts_with(name, UNPACKED) && !starts_with(name, ASIDE) && name != LOST);
    Ok(names)
}

/// Returns the names of the entries of a folder; none if it does not exist.
fn entries(folder: &Path) -> Result<Vec<OsString>, RestoreError> {
    let read = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(unreadable(folder))?,
    };
    let names = read.map(|entry| Ok(entry?.file_name()));
    let names: std::io::Result<Vec<OsString>> = names.collect();
    let mut names = names.map_err(unreadable(folder))?;
    names.sort();
    Ok(names)
}

fn starts_with(name: &OsStr, prefix: &str) -> bool {
    name.as_encoded_bytes().starts_with(prefix.as_bytes())
}

fn rename(from: &Path, to: &Path) -> Result<(), RestoreError> {
    std::fs::rename(from, to).map_err(unwritten(to))
}

fn sync(folder: &Path) -> Result<(), RestoreError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(unwritten(folder))
}
