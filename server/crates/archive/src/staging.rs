//! The files of a deployment before they are stored: all limits and names are checked here,
//! wherever the files come from.
//!
//! Names never become paths of the file system: each file is written under a number, in a separate
//! folder.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::hash::BuildHasher as _;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use platform_checks::folder::INDEX;
use platform_checks::limits::{MAX_BYTES, MAX_FILES, MAX_PATH_BYTES, MAX_PATHS_BYTES};
use platform_checks::{PathProblem, normalise};
use platform_domain::project::FileEntry;
use sha2::{Digest as _, Sha256};

/// The number of bytes per copy.
const PIECE: usize = 64 * 1024;

/// Why files cannot be deployed; a sentence for their sender.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    /// The total size is too large.
    #[error("A deployment has at most {} MiB.", MAX_BYTES / (1024 * 1024))]
    TooLarge,
    /// There are too many files.
    #[error("A deployment has at most {MAX_FILES} files.")]
    TooManyFiles,
    /// The names are too long together.
    #[error(
        "The names of a deployment's files, with their folders, have at most {} MiB together: shorten \
         them, or deploy fewer files.", MAX_PATHS_BYTES / (1024 * 1024)
    )]
    PathsTooLong,
    /// An invalid name.
    #[error("The file {path:?} cannot be deployed: {problem}.")]
    Path {
        /// The name, shortened if it is long.
        path: String,
        /// What is wrong with the name.
        problem: PathProblem,
    },
    /// A name that two files have.
    #[error("The archive contains the file {0:?} twice.")]
    Twice(String),
    /// A name that both a file and a folder have.
    #[error("{0:?} is both a file and a folder in the archive.")]
    FileAndFolder(String),
    /// There are no files.
    #[error("The archive has no files.")]
    Empty,
    /// The start page is missing.
    #[error("The archive has no index.html at its top level: pack the folder with the built game.")]
    NoIndex,
    /// The content of a file is shorter than its length.
    #[error("The archive is cut off.")]
    CutOff,
    /// A file could not be written here; the sender is not at fault.
    #[error("the files could not be staged")]
    Io(#[source] io::Error),
}

/// A file that may be deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedFile {
    /// The path of its content.
    pub at: PathBuf,
    /// Its entry in the file store.
    pub entry: FileEntry,
}

/// The files of one deployment, by their path.
pub type StagedFiles = BTreeMap<String, StagedFile>;

/// Collects files. Its functions block.
pub struct Staging<'a> {
    files: StagedFiles,
    bytes: u64,
    /// Bytes of the paths of the files.
    names: u64,
    folders: Folders,
    /// The folder to which the files are written.
    folder: &'a Path,
}

impl<'a> Staging<'a> {
    /// Creates an empty set. The files are written to `folder`, which must be empty.
    #[must_use]
    pub fn new(folder: &'a Path) -> Self {
        Self {
            files: BTreeMap::new(),
            bytes: 0,
            names: 0,
            folders: Folders::default(),
            folder,
        }
    }

    /// Adds a file of `size` bytes.
    ///
    /// # Errors
    /// [`StagingError`]; files that were already written stay in the folder.
    pub fn add_file(
        &mut self,
        name: &str,
        size: u64,
        content: &mut impl Read,
    ) -> Result<(), StagingError> {
        let path = checked(name)?;
        if self.files.len() >= MAX_FILES {
            return Err(StagingError::TooManyFiles);
        }
        if self.files.contains_key(path) {
            return Err(StagingError::Twice(shortened(path)));
        }
        if self.folders.has(path) {
            return Err(StagingError::FileAndFolder(shortened(path)));
        }
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > MAX_BYTES {
            return Err(StagingError::TooLarge);
        }
        self.names = self.names.saturating_add(path.len() as u64);
        if self.names > MAX_PATHS_BYTES {
            return Err(StagingError::PathsTooLong);
        }
        let at = self.folder.join(self.files.len().to_string());
        let sha256 = copy(content, size, &at)?;
        let entry = FileEntry { sha256, size };
        self.files.insert(path.to_owned(), StagedFile { at, entry });
        Ok(())
    }

    /// Adds a folder. Folders are not stored, but their names must be valid, too.
    ///
    /// # Errors
    /// [`StagingError::Path`], [`StagingError::FileAndFolder`].
    pub fn add_folder(&mut self, name: &str) -> Result<(), StagingError> {
        let name = name.strip_suffix('/').unwrap_or(name);
        if name == "." {
            return Ok(());
        }
        let path = checked(name)?;
        if self.files.contains_key(path) {
            return Err(StagingError::FileAndFolder(shortened(path)));
        }
        self.folders.add(path);
        Ok(())
    }

    /// Returns the files, once all were added.
    ///
    /// # Errors
    /// [`StagingError::FileAndFolder`], [`StagingError::Empty`],
    /// [`StagingError::NoIndex`].
    pub fn finish(self) -> Result<StagedFiles, StagingError> {
        no_file_is_a_folder(&self.files)?;
        if self.files.is_empty() {
            Err(StagingError::Empty)
        } else if self.files.contains_key(INDEX) {
            Ok(self.files)
        } else {
            Err(StagingError::NoIndex)
        }
    }
}

/// Stages files whose content is in memory, such as those of the demo game. This function blocks.
///
/// # Errors
/// [`StagingError`]; files that were already written stay in the folder.
pub fn stage(
    contents: &[(String, impl AsRef<[u8]>)],
    folder: &Path,
) -> Result<StagedFiles, StagingError> {
    let mut staging = Staging::new(folder);
    for (name, content) in contents {
        let mut content = content.as_ref();
        staging.add_file(name, content.len() as u64, &mut content)?;
    }
    staging.finish()
}

/// The named folders, by a keyed hash, since an archive's author could make their names many
/// megabytes long.
#[derive(Default)]
struct Folders {
    hasher: RandomState,
    hashes: HashSet<u64>,
}

impl Folders {
    fn add(&mut self, path: &str) {
        self.hashes.insert(self.hasher.hash_one(path));
    }

    fn has(&self, path: &str) -> bool {
        self.hashes.contains(&self.hasher.hash_one(path))
    }
}

/// Checks that no name is both a file and a folder.
fn no_file_is_a_folder(files: &StagedFiles) -> Result<(), StagingError> {
    for path in files.keys() {
        let below = format!("{path}/");
        let next = files.range(below.clone()..).next();
        if next.is_some_and(|(next, _)| next.starts_with(&below)) {
            return Err(StagingError::FileAndFolder(shortened(path)));
        }
    }
    Ok(())
}

fn checked(name: &str) -> Result<&str, StagingError> {
    normalise(name).map_err(|problem| StagingError::Path {
        path: shortened(name),
        problem,
    })
}

/// Copies a file of `size` bytes to `at`, and returns its SHA-256.
fn copy(content: &mut impl Read, size: u64, at: &Path) -> Result<String, StagingError> {
    let mut file = File::create_new(at).map_err(StagingError::Io)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut left = size;
    while left > 0 {
        let read = content.read(&mut piece).map_err(|_| StagingError::CutOff)?;
        if read == 0 {
            return Err(StagingError::CutOff);
        }
        hash.update(&piece[..read]);
        file.write_all(&piece[..read]).map_err(StagingError::Io)?;
        left = left.saturating_sub(read as u64);
    }
    Ok(base16ct::lower::encode_string(&hash.finalize()))
}

/// Returns the beginning of a name, for a sentence.
#[must_use]
pub fn shortened(name: &str) -> String {
    name.chars().take(MAX_PATH_BYTES.min(100)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn try_stage(contents: &[(String, &[u8])]) -> Result<Vec<String>, StagingError> {
        let folder = tempfile::tempdir().unwrap();
        let staged = stage(contents, folder.path())?;
        Ok(staged.into_keys().collect())
    }

    #[test]
    fn names_limits_and_doubles_are_checked_while_files_are_staged() {
        let file = |name: &str| (name.to_owned(), &b""[..]);
        assert!(matches!(try_stage(&[]), Err(StagingError::Empty)));
        assert!(matches!(
            try_stage(&[file("a.js")]),
            Err(StagingError::NoIndex)
        ));
        for path in ["../x", "__platform/runtime.js"] {
            let refused = try_stage(&[file(INDEX), file(path)]);
            assert!(matches!(refused, Err(StagingError::Path { .. })), "{path}");
        }
        let doubled = try_stage(&[file("a"), file("./a")]);
        assert!(matches!(doubled, Err(StagingError::Twice(_))));
        let many: Vec<_> = (0..=MAX_FILES)
            .map(|index| file(&index.to_string()))
            .collect();
        assert!(matches!(try_stage(&many), Err(StagingError::TooManyFiles)));
        let long: Vec<_> = (0..4_097)
            .map(|index| file(&format!("{index:01024}")))
            .collect();
        let refused = try_stage(&long);
        assert!(matches!(refused, Err(StagingError::PathsTooLong)));
        let good = try_stage(&[file(INDEX), file("a/b.js")]).unwrap();
        assert_eq!(good, ["a/b.js", INDEX]);
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut staging = Staging::new(folder.path());
        staging.add_file(INDEX, 1, &mut &b"x"[..]).unwrap();
        let refused = staging.add_file("big", MAX_BYTES, &mut io::repeat(0));
        assert!(matches!(refused, Err(StagingError::TooLarge)));
        let folder = tempfile::tempdir().unwrap();
        let cut_off = Staging::new(folder.path()).add_file(INDEX, 2, &mut &b"x"[..]);
        assert!(matches!(cut_off, Err(StagingError::CutOff)));
    }
}
