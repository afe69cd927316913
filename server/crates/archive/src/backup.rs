//! Reads the archive of a backup. It may be damaged, cut off, or something else altogether, so
//! nothing in it is believed: a name must be one that a backup has, and the content of a deployed
//! file must be the one that its name says.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use platform_domain::stored_file::{folder_and_name, is_sha256};
use sha2::{Digest as _, Sha256};

/// The name of the store's file in a backup.
pub const DATABASE: &str = "platform.db";
/// The name of the file of log records.
pub const LOGS: &str = "logs.db";
/// The folder of deployed files.
pub const FILES: &str = "files";

/// The number of bytes that are read at once.
const PIECE: usize = 256 * 1024;

/// Why an archive is not restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupArchiveError {
    /// It is no archive at all.
    #[error(
        "this is not a backup: it is no tar archive; name a file that `platform-server backup` made"
    )]
    NotABackup,
    /// The archive contains something else.
    #[error(
        "this is not a backup: it contains `{0}`; name a file that `platform-server backup` made"
    )]
    Foreign(String),
    /// The archive is not whole.
    #[error(
        "the backup is not whole: {0}; use another one, or copy it again from where it is kept"
    )]
    Damaged(String),
    /// A file could not be written.
    #[error("{path} could not be written")]
    Write {
        /// The file or folder.
        path: String,
        /// The cause.
        source: io::Error,
    },
}

/// An entry that a backup has.
enum Entry {
    /// A database, by its name.
    Database(&'static str),
    /// A deployed file, by its SHA-256.
    Deployed(String),
}

/// Unpacks the databases into `databases`, and the deployed files into `files`, or checks them only.
/// Returns the names of the files.
///
/// # Errors
/// [`BackupArchiveError`]
pub fn unpack(
    archive: impl Read,
    databases: &Path,
    files: Option<&Path>,
) -> Result<BTreeSet<String>, BackupArchiveError> {
    let mut archive = tar::Archive::new(archive);
    let mut found = BTreeSet::new();
    let mut piece = vec![0; PIECE];
    let mut is_first = true;
    let entries = archive
        .entries()
        .map_err(|_| BackupArchiveError::NotABackup)?;
    for entry in entries {
        let mut entry = entry.map_err(|error| {
            if is_first {
                BackupArchiveError::NotABackup
            } else {
                damaged(&error)
            }
        })?;
        is_first = false;
        let kind = entry.header().entry_type();
        let name = entry.path().map_err(|error| damaged(&error))?;
        let name = name.to_string_lossy().into_owned();
        if kind.is_dir() {
            continue;
        }
        let known = if kind.is_file() {
            entry_of(&name)
        } else {
            None
        };
        let goal = match &known {
            None => return Err(BackupArchiveError::Foreign(name)),
            Some(Entry::Database(name)) => Some(databases.join(name)),
            Some(Entry::Deployed(sha256)) => files.map(|files| path_in(files, sha256)),
        };
        let goal = goal.as_deref().map(create).transpose()?;
        let (length, sha256) = copy(&mut entry, goal, &mut piece)?;
        if length != entry.size() {
            return Err(BackupArchiveError::Damaged(format!(
                "it ends within {name}"
            )));
        }
        if let Some(Entry::Deployed(expected)) = known {
            if sha256 != expected {
                let what = format!("the content of {name} is another one than its name says");
                return Err(BackupArchiveError::Damaged(what));
            }
            found.insert(expected);
        }
    }
    Ok(found)
}

fn unwritten(path: &Path) -> impl FnOnce(io::Error) -> BackupArchiveError {
    let path = path.display().to_string();
    move |source| BackupArchiveError::Write { path, source }
}

fn damaged(error: &io::Error) -> BackupArchiveError {
    BackupArchiveError::Damaged(error.to_string())
}

/// Returns which entry of a backup has this name.
fn entry_of(name: &str) -> Option<Entry> {
    let name = name.strip_prefix("./").unwrap_or(name);
    match name {
        DATABASE => return Some(Entry::Database(DATABASE)),
        LOGS => return Some(Entry::Database(LOGS)),
        _ => {}
    }
    let (folder, rest) = name
        .strip_prefix(FILES)?
        .strip_prefix('/')?
        .split_once('/')?;
    let sha256 = format!("{folder}{rest}");
    let is_name = is_sha256(&sha256) && folder_and_name(&sha256) == (folder, rest);
    is_name.then_some(Entry::Deployed(sha256))
}

fn path_in(files: &Path, sha256: &str) -> PathBuf {
    let (folder, name) = folder_and_name(sha256);
    files.join(folder).join(name)
}

/// Creates a new file that only its owner may read.
fn create(path: &Path) -> Result<(File, &Path), BackupArchiveError> {
    if let Some(folder) = path.parent() {
        let mut builder = DirBuilder::new();
        let builder = builder.recursive(true).mode(0o700);
        builder.create(folder).map_err(unwritten(folder))?;
    }
    let mut options = OpenOptions::new();
    let options = options.create_new(true).write(true).mode(0o600);
    let file = options.open(path).map_err(unwritten(path))?;
    Ok((file, path))
}

/// Copies an entry to the disk, if it has a goal. Returns its length and its SHA-256.
fn copy(
    from: &mut impl Read,
    mut goal: Option<(File, &Path)>,
    piece: &mut [u8],
) -> Result<(u64, String), BackupArchiveError> {
    let (mut hash, mut length) = (Sha256::new(), 0);
    loop {
        let read = from.read(piece).map_err(|error| damaged(&error))?;
        let Some(read) = piece.get(..read).filter(|read| !read.is_empty()) else {
            break;
        };
        if let Some((file, path)) = &mut goal {
            file.write_all(read).map_err(unwritten(path))?;
        }
        hash.update(read);
        length += read.len() as u64;
    }
    if let Some((file, path)) = goal {
        file.sync_all().map_err(unwritten(path))?;
    }
    Ok((length, base16ct::lower::encode_string(&hash.finalize())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_backup_has_are_unpacked() {
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let (folder, rest) = folder_and_name(sha256);
        for name in [DATABASE, "./platform.db", LOGS] {
            assert!(matches!(entry_of(name), Some(Entry::Database(_))), "{name}");
        }
        let inside = format!("files/{folder}/{rest}");
        assert!(matches!(entry_of(&inside), Some(Entry::Deployed(name)) if name == sha256));
        for name in [
            "",
            "platform.db-wal",
            "../platform.db",
            "/platform.db",
            "x/platform.db",
            "files/ba",
            "files/../x",
            &format!("files/{sha256}"),
            &format!("files/b/a{rest}"),
            &format!("files/{folder}/{}", rest.to_uppercase()),
            &format!("files//{folder}{rest}"),
        ] {
            assert!(entry_of(name).is_none(), "{name}");
        }
    }
}
