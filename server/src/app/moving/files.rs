//! Copies the deployed files of a folder into a bucket, and reads each of them again.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::progress::{Progress, Teller};
use super::{FilesMove, MoveError};
use crate::domain::project::FileEntry;
use crate::games::files::FileError;
use crate::games::files::copies::{Fault, path_in};
use crate::store::StoreError;
use crate::store::tables::{DEPLOYMENT_FILES, PARTS};
use crate::store::transfer::{RowSource, Value};

/// How many files are copied or read at the same time.
const AT_ONCE: usize = 8;

/// A deployed file that is not what its name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile {
    /// Its name.
    pub sha256: String,
    /// Where it is, for people.
    pub path: String,
    /// What is wrong with it.
    pub fault: Fault,
}

impl fmt::Display for BadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = match self.fault {
            Fault::Missing => "missing",
            Fault::Damaged => "damaged",
        };
        write!(f, "{} ({fault})", self.path)
    }
}

impl BadFile {
    fn new(folder: &Path, entry: &FileEntry, fault: Fault) -> Result<Self, FileError> {
        Ok(Self {
            path: path_in(folder, &entry.sha256)?.display().to_string(),
            sha256: entry.sha256.clone(),
            fault,
        })
    }
}

/// Returns the files of all deployments, in the order of their names.
pub async fn list(source: &dyn RowSource) -> Result<Vec<FileEntry>, StoreError> {
    let mut files = BTreeMap::new();
    for part in PARTS.iter().filter(|part| part.table == DEPLOYMENT_FILES) {
        let place = |name| part.columns.iter().position(|column| column.0 == name);
        let (sha256, size) = (place("sha256"), place("size"));
        let mut batches = source.read(part, None).await?;
        while let Some(rows) = batches.try_next().await? {
            for row in rows {
                let at = |place: Option<usize>| place.and_then(|place| row.get(place));
                if let (Some(Value::Bytes(sha256)), Some(Value::Integer(size))) =
                    (at(sha256), at(size))
                {
                    files.insert(base16ct::lower::encode_string(sha256), size.unsigned_abs());
                }
            }
        }
    }
    let entries = files.into_iter();
    Ok(entries
        .map(|(sha256, size)| FileEntry { sha256, size })
        .collect())
}

/// The result of [`copy`].
pub(super) struct Copied {
    pub(super) files: usize,
    pub(super) left_out: Vec<BadFile>,
}

/// Copies the files that the bucket does not have yet, and compares all of them.
pub(super) async fn copy(
    files: &[FileEntry],
    moved: &FilesMove<'_>,
    teller: &dyn Teller,
) -> Result<Copied, MoveError> {
    let mut there = moved.bucket.list().await?;
    let of_others = |name: &&String| {
        let found = files.binary_search_by(|entry| entry.sha256.as_str().cmp(name));
        found.is_err()
    };
    let foreign = there.iter().filter(of_others).count();
    if foreign > 0 {
        return Err(MoveError::ForeignFiles(foreign));
    }
    let missing = files.iter().filter(|entry| !there.contains(&entry.sha256));
    let missing: Vec<&FileEntry> = missing.collect();
    let left_out = store(&missing, moved, teller).await?;
    if !left_out.is_empty() && !moved.leave_bad_out {
        return Err(MoveError::BadFiles(left_out));
    }
    there.extend(missing.iter().map(|entry| entry.sha256.clone()));
    for bad in &left_out {
        there.remove(&bad.sha256);
    }
    let copied = files.iter().filter(|entry| there.contains(&entry.sha256));
    let copied: Vec<&FileEntry> = copied.collect();
    compare(&copied, moved, teller).await?;
    Ok(Copied {
        files: copied.len(),
        left_out,
    })
}

/// Stores these files. Returns those that are damaged or missing in the folder.
async fn store(
    files: &[&FileEntry],
    moved: &FilesMove<'_>,
    teller: &dyn Teller,
) -> Result<Vec<BadFile>, MoveError> {
    let total = files.iter().map(|entry| entry.size).sum();
    let progress = Progress::new("copying files", total, teller);
    let mut bad = Vec::new();
    let mut stored = stream::iter(files)
        .map(|entry| async move { (moved.bucket.store(moved.folder, entry).await, entry) })
        .buffer_unordered(AT_ONCE);
    while let Some((result, entry)) = stored.next().await {
        if let Some(fault) = result? {
            bad.push(BadFile::new(moved.folder, entry, fault)?);
        }
        progress.advance(entry.size, &entry.sha256);
    }
    bad.sort_by(|one, other| one.path.cmp(&other.path));
    progress.end(&format!("{} files, {total} bytes", files.len() - bad.len()));
    Ok(bad)
}

/// Reads these files from the bucket. One that is not right is stored again, and read once more.
async fn compare(
    files: &[&FileEntry],
    moved: &FilesMove<'_>,
    teller: &dyn Teller,
) -> Result<(), MoveError> {
    let total = files.iter().map(|entry| entry.size).sum();
    let progress = Progress::new("comparing files", total, teller);
    let mut bad = Vec::new();
    let mut read = stream::iter(files)
        .map(|entry| async move { (check(entry, moved).await, entry) })
        .buffer_unordered(AT_ONCE);
    while let Some((result, entry)) = read.next().await {
        if let Some(fault) = result? {
            bad.push(BadFile {
                sha256: entry.sha256.clone(),
                path: entry.sha256.clone(),
                fault,
            });
        }
        progress.advance(entry.size, &entry.sha256);
    }
    if !bad.is_empty() {
        return Err(MoveError::BadCopies(bad));
    }
    progress.end(&format!("{} files are the same", files.len()));
    Ok(())
}

async fn check(entry: &FileEntry, moved: &FilesMove<'_>) -> Result<Option<Fault>, FileError> {
    let first = moved.bucket.check(entry).await?;
    if first.is_none() {
        return Ok(None);
    }
    if let Some(fault) = moved.bucket.store(moved.folder, entry).await? {
        return Ok(Some(fault));
    }
    moved.bucket.check(entry).await
}
