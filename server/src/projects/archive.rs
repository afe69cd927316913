//! Reading a deploy's archive: a gzip stream (RFC 1952) of a tar file (POSIX
//! "ustar", its pax extensions, GNU's long names).
//!
//! Nothing in it is believed. Names never become paths of the file system:
//! every file is unpacked under a number, in a folder of its own, and the whole
//! archive is refused for one entry that should not be there.

mod stream;

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::hash::BuildHasher as _;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use platform_checks::limits::{MAX_BYTES, MAX_FILES, MAX_PATH_BYTES};
use platform_checks::{PathProblem, normalise};
use sha2::{Digest as _, Sha256};
use tar::{Archive, Entries, EntryType, PaxExtensions};

use self::stream::{BLOCK, Fault, Unzipped};
use crate::games::files::hex;

/// Entries of an archive, at most: its files, the folders that they lie in, and
/// what is said of each.
const MAX_ENTRIES: usize = 4 * MAX_FILES;
/// Bytes of what is said of one entry, at most.
const MAX_EXTENSION: u64 = 64 * 1024;
/// Bytes that are copied at one time.
const PIECE: usize = 64 * 1024;
/// Why an archive was refused; a sentence for who sent it.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is no gzip stream, or a damaged one.
    #[error("The archive is not a whole gzip file: send a tar file that is compressed with gzip.")]
    NotGzip,
    /// It is no tar file, or a damaged one.
    #[error("The archive is not a whole tar file.")]
    NotTar,
    /// It ends in the middle.
    #[error("The archive is cut off.")]
    Truncated,
    /// Something follows its end.
    #[error("Something follows the archive's end.")]
    Trailing,
    /// It becomes too many times as large as itself.
    #[error(
        "The archive is packed more than {} to one, which no game is.",
        stream::MAX_RATIO
    )]
    Ratio,
    /// Its files are too large together.
    #[error("A deployment has at most {} MiB.", MAX_BYTES / (1024 * 1024))]
    TooLarge,
    /// It has too many files, or folders.
    #[error("A deployment has at most {MAX_FILES} files.")]
    TooManyFiles,
    /// A name that no file may have.
    #[error("The file {path:?} cannot be deployed: {problem}.")]
    Path {
        /// The name, shortened if it is long.
        path: String,
        /// What is wrong with it.
        problem: PathProblem,
    },
    /// A name that is no text.
    #[error("The file {0:?} cannot be deployed: its name is not UTF-8.")]
    NotUtf8(String),
    /// A name that another file has.
    #[error("The file {0:?} is in the archive twice.")]
    Twice(String),
    /// A name that a file and a folder have.
    #[error("{0:?} is a file and a folder in the archive.")]
    FileAndFolder(String),
    /// A link, a device or the like.
    #[error("{path:?} cannot be deployed: it is {what}, and only files and folders can be.")]
    Kind {
        /// Its name, shortened if it is long.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// There is no file in it.
    #[error("The archive has no files.")]
    Empty,
    /// It lacks the page that a game starts with.
    #[error(
        "The archive has no index.html at its top: pack the folder that the game is built into."
    )]
    NoIndex,
    /// What is said of an entry is not what this program reads.
    #[error("The archive has an entry that cannot be read.")]
    Extension,
    /// It could not be written here; no fault of who sent it.
    #[error("the archive could not be unpacked")]
    Io(#[source] io::Error),
}

/// A file of an archive, unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpackedFile {
    /// Where its content lies.
    pub at: PathBuf,
    /// SHA-256 of the content, lower-case hex.
    pub sha256: String,
    /// Length in bytes.
    pub size: u64,
}

/// Unpacks an archive of `length` bytes into `folder`, which is empty. Answers
/// its files by their path. It blocks.
///
/// # Errors
/// [`ArchiveError`]; what was unpacked until then stays in the folder.
pub fn unpack(
    archive: impl Read,
    length: u64,
    folder: &Path,
) -> Result<BTreeMap<String, UnpackedFile>, ArchiveError> {
    let (stream, watch) = Unzipped::new(archive, length);
    let mut archive = Archive::new(stream);
    let unpacked = read_entries(&mut archive, folder).and_then(|files| {
        if watch.zeros() < BLOCK {
            return Err(ArchiveError::Truncated);
        }
        read_rest(archive.into_inner())?;
        Ok(files)
    });
    // What the stream itself found says more than what became of it.
    match watch.fault() {
        Some(Fault::Gzip) => Err(ArchiveError::NotGzip),
        Some(Fault::CutOff) => Err(ArchiveError::Truncated),
        Some(Fault::Ratio) => Err(ArchiveError::Ratio),
        Some(Fault::TooLarge) => Err(ArchiveError::TooLarge),
        None => unpacked.map_err(|error| match error {
            // The end came where a header should have.
            ArchiveError::NotTar if watch.has_ended() => ArchiveError::Truncated,
            error => error,
        }),
    }
}

fn read_entries<R: Read>(
    archive: &mut Archive<R>,
    folder: &Path,
) -> Result<BTreeMap<String, UnpackedFile>, ArchiveError> {
    let entries = archive.entries().map_err(|_| ArchiveError::NotTar)?;
    let mut reader = EntryReader {
        files: BTreeMap::new(),
        bytes: 0,
        named: None,
        folders: Folders::default(),
        folder,
    };
    reader.read(entries.raw(true))?;
    if reader.named.is_some() {
        return Err(ArchiveError::Truncated);
    }
    no_file_is_a_folder(&reader.files)?;
    if reader.files.is_empty() {
        Err(ArchiveError::Empty)
    } else if reader.files.contains_key("index.html") {
        Ok(reader.files)
    } else {
        Err(ArchiveError::NoIndex)
    }
}

/// A name that is a file here and a folder there is no folder that was packed.
fn no_file_is_a_folder(files: &BTreeMap<String, UnpackedFile>) -> Result<(), ArchiveError> {
    for path in files.keys() {
        let below = format!("{path}/");
        let next = files.range(below.clone()..).next();
        if next.is_some_and(|(next, _)| next.starts_with(&below)) {
            return Err(ArchiveError::FileAndFolder(shortened(path)));
        }
    }
    Ok(())
}

/// After a tar file's end there is nothing but its padding.
fn read_rest(mut rest: impl Read) -> Result<(), ArchiveError> {
    let mut piece = [0; 4096];
    loop {
        let read = rest.read(&mut piece).map_err(|_| ArchiveError::Trailing)?;
        if read == 0 {
            return Ok(());
        }
        if piece[..read].iter().any(|byte| *byte != 0) {
            return Err(ArchiveError::Trailing);
        }
    }
}

struct EntryReader<'a> {
    files: BTreeMap<String, UnpackedFile>,
    bytes: u64,
    /// The name of the next entry, where an entry of its own gave it.
    named: Option<Vec<u8>>,
    folders: Folders,
    /// Where files are unpacked.
    folder: &'a Path,
}

/// The folders that an archive names, by a keyed hash: their names could be as
/// many megabytes as the archive's author likes.
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

impl EntryReader<'_> {
    fn read<R: Read>(&mut self, entries: Entries<'_, R>) -> Result<(), ArchiveError> {
        for (index, entry) in entries.enumerate() {
            if index >= MAX_ENTRIES {
                return Err(ArchiveError::TooManyFiles);
            }
            let mut entry = entry.map_err(|_| ArchiveError::NotTar)?;
            let kind = entry.header().entry_type();
            let size = entry.size();
            match kind {
                EntryType::GNULongName | EntryType::XHeader => {
                    let name = extension(&mut entry, size)?;
                    self.say_name(kind, &name)?;
                }
                // What is said of every entry, such as a commit's id.
                EntryType::XGlobalHeader => {
                    let said = extension(&mut entry, size)?;
                    if pax_name(&said)?.is_some() {
                        return Err(ArchiveError::Extension);
                    }
                }
                // Of a link, which is refused by itself.
                EntryType::GNULongLink => {
                    extension(&mut entry, size)?;
                }
                _ => {
                    let name = match self.named.take() {
                        Some(name) => name,
                        None => entry.header().path_bytes().into_owned(),
                    };
                    self.entry(kind, &name, size, &mut entry)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the name of the next entry out of what is said of it.
    fn say_name(&mut self, kind: EntryType, said: &[u8]) -> Result<(), ArchiveError> {
        if kind == EntryType::GNULongName {
            let end = said.iter().position(|byte| *byte == 0);
            self.named = Some(said[..end.unwrap_or(said.len())].to_vec());
            return Ok(());
        }
        if let Some(name) = pax_name(said)? {
            self.named = Some(name);
        }
        Ok(())
    }

    fn entry(
        &mut self,
        kind: EntryType,
        name: &[u8],
        size: u64,
        content: &mut impl Read,
    ) -> Result<(), ArchiveError> {
        let Ok(name) = std::str::from_utf8(name) else {
            return Err(ArchiveError::NotUtf8(shortened(&String::from_utf8_lossy(
                name,
            ))));
        };
        let what = match kind {
            // Before there were kinds, a folder was a name that ends so.
            EntryType::Regular if name.ends_with('/') => return self.folder(name),
            EntryType::Regular | EntryType::Continuous => {
                return self.file(name, size, content);
            }
            EntryType::Directory => return self.folder(name),
            EntryType::Symlink | EntryType::Link => "a link",
            EntryType::Char | EntryType::Block => "a device",
            EntryType::Fifo => "a pipe",
            _ => "of an unknown kind",
        };
        Err(ArchiveError::Kind {
            path: shortened(name),
            what,
        })
    }

    fn file(&mut self, name: &str, size: u64, content: &mut impl Read) -> Result<(), ArchiveError> {
        let path = checked(name)?;
        if self.files.len() >= MAX_FILES {
            return Err(ArchiveError::TooManyFiles);
        }
        if self.files.contains_key(path) {
            return Err(ArchiveError::Twice(shortened(path)));
        }
        if self.folders.has(path) {
            return Err(ArchiveError::FileAndFolder(shortened(path)));
        }
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > MAX_BYTES {
            return Err(ArchiveError::TooLarge);
        }
        let at = self.folder.join(self.files.len().to_string());
        let sha256 = copy(content, size, &at)?;
        let file = UnpackedFile { at, sha256, size };
        self.files.insert(path.to_owned(), file);
        Ok(())
    }

    /// A folder is nothing that is kept, but its name may not lead elsewhere
    /// either.
    fn folder(&mut self, name: &str) -> Result<(), ArchiveError> {
        let name = name.strip_suffix('/').unwrap_or(name);
        if name == "." {
            return Ok(());
        }
        let path = checked(name)?;
        if self.files.contains_key(path) {
            return Err(ArchiveError::FileAndFolder(shortened(path)));
        }
        self.folders.add(path);
        Ok(())
    }
}

/// The name that a pax header gives, the last where there are several (POSIX
/// "pax Extended Header").
fn pax_name(said: &[u8]) -> Result<Option<Vec<u8>>, ArchiveError> {
    let mut name = None;
    for record in PaxExtensions::new(said) {
        let record = record.map_err(|_| ArchiveError::Extension)?;
        match record.key_bytes() {
            b"path" => name = Some(record.value_bytes().to_vec()),
            // Two readers could take it for two archives.
            b"size" => return Err(ArchiveError::Extension),
            key if key.starts_with(b"GNU.sparse") => return Err(ArchiveError::Extension),
            _ => {}
        }
    }
    Ok(name)
}

fn checked(name: &str) -> Result<&str, ArchiveError> {
    normalise(name).map_err(|problem| ArchiveError::Path {
        path: shortened(name),
        problem,
    })
}

/// Copies a file of `size` bytes to `at`, and answers its SHA-256.
fn copy(content: &mut impl Read, size: u64, at: &Path) -> Result<String, ArchiveError> {
    let mut file = File::create_new(at).map_err(ArchiveError::Io)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut left = size;
    while left > 0 {
        let read = content
            .read(&mut piece)
            .map_err(|_| ArchiveError::Truncated)?;
        if read == 0 {
            return Err(ArchiveError::Truncated);
        }
        hash.update(&piece[..read]);
        file.write_all(&piece[..read]).map_err(ArchiveError::Io)?;
        left = left.saturating_sub(read as u64);
    }
    Ok(hex(&hash.finalize()))
}

/// What is said of an entry.
fn extension(content: &mut impl Read, size: u64) -> Result<Vec<u8>, ArchiveError> {
    if size > MAX_EXTENSION {
        return Err(ArchiveError::Extension);
    }
    let mut said = Vec::new();
    content
        .take(size)
        .read_to_end(&mut said)
        .map_err(|_| ArchiveError::Truncated)?;
    if (said.len() as u64) < size {
        return Err(ArchiveError::Truncated);
    }
    Ok(said)
}

fn shortened(name: &str) -> String {
    name.chars().take(MAX_PATH_BYTES.min(100)).collect()
}

#[cfg(test)]
mod tests;
