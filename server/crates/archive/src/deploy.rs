//! Reads a deploy's archive: a gzip stream (RFC 1952) of a tar file (POSIX "ustar", its pax
//! extensions, GNU's long names).
//!
//! Nothing in an archive is trusted: one forbidden entry makes the whole archive invalid.
//! [`staging`](crate::staging) checks which files a deployment may contain.

mod stream;

use std::io::{self, Read};
use std::path::Path;

use platform_checks::limits::MAX_FILES;
use tar::{Archive, Entries, EntryType, PaxExtensions};

use self::stream::{BLOCK, Fault, Unzipped};
use crate::staging::{StagedFiles, Staging, StagingError, shortened};

/// The maximum number of entries of an archive: its files, their folders, and their extended
/// headers.
const MAX_ENTRIES: usize = 4 * MAX_FILES;
/// The maximum number of bytes of an extended header.
const MAX_EXTENSION: u64 = 64 * 1024;

/// Why an archive was rejected; a sentence for its sender.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is not a valid gzip stream.
    #[error(
        "The archive is not a complete gzip file: send a tar file that is compressed with gzip."
    )]
    NotGzip,
    /// It is not a valid tar file.
    #[error("The archive is not a complete tar file.")]
    NotTar,
    /// It is incomplete.
    #[error("The archive is cut off.")]
    Truncated,
    /// There is data after its end.
    #[error("There is data after the end of the archive.")]
    Trailing,
    /// The ratio of its unpacked to its packed size is too high.
    #[error(
        "The archive is compressed more than {} to one; no game is.",
        stream::MAX_RATIO
    )]
    Ratio,
    /// A name that is not UTF-8.
    #[error("The file {0:?} cannot be deployed: its name is not UTF-8.")]
    NotUtf8(String),
    /// A link, a device or similar.
    #[error("{path:?} cannot be deployed: it is {what}; only files and folders can be deployed.")]
    Kind {
        /// Its name, shortened if it is long.
        path: String,
        /// The kind of the entry.
        what: &'static str,
    },
    /// Its files cannot be deployed.
    #[error(transparent)]
    Files(StagingError),
    /// An extended header is not supported.
    #[error("An entry of the archive cannot be read.")]
    Extension,
    /// It could not be written here; the sender is not at fault.
    #[error("the archive could not be unpacked")]
    Io(#[source] io::Error),
}

impl From<StagingError> for ArchiveError {
    fn from(error: StagingError) -> Self {
        match error {
            StagingError::CutOff => Self::Truncated,
            StagingError::Io(error) => Self::Io(error),
            refused => Self::Files(refused),
        }
    }
}

/// Unpacks an archive of `length` bytes into `folder`, which is empty. Returns its files by their
/// path. This function blocks.
///
/// # Errors
/// [`ArchiveError`]; files that were already unpacked stay in the folder.
pub fn unpack(archive: impl Read, length: u64, folder: &Path) -> Result<StagedFiles, ArchiveError> {
    let (stream, watch) = Unzipped::new(archive, length);
    let mut archive = Archive::new(stream);
    let unpacked = read_entries(&mut archive, folder).and_then(|files| {
        if watch.zeros() < BLOCK {
            return Err(ArchiveError::Truncated);
        }
        read_rest(archive.into_inner())?;
        Ok(files)
    });
    // The error that the stream detected is more precise than its consequences.
    match watch.fault() {
        Some(Fault::Gzip) => Err(ArchiveError::NotGzip),
        Some(Fault::CutOff) => Err(ArchiveError::Truncated),
        Some(Fault::Ratio) => Err(ArchiveError::Ratio),
        Some(Fault::TooLarge) => Err(StagingError::TooLarge.into()),
        None => unpacked.map_err(|error| match error {
            // The data ended where a header was expected.
            ArchiveError::NotTar if watch.has_ended() => ArchiveError::Truncated,
            error => error,
        }),
    }
}

fn read_entries<R: Read>(
    archive: &mut Archive<R>,
    folder: &Path,
) -> Result<StagedFiles, ArchiveError> {
    let entries = archive.entries().map_err(|_| ArchiveError::NotTar)?;
    let mut reader = EntryReader {
        staging: Staging::new(folder),
        named: None,
    };
    reader.read(entries.raw(true))?;
    if reader.named.is_some() {
        return Err(ArchiveError::Truncated);
    }
    Ok(reader.staging.finish()?)
}

/// Checks that only padding follows the end of a tar file.
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
    staging: Staging<'a>,
    /// The name of the next entry, if an extended header gave it.
    named: Option<Vec<u8>>,
}

impl EntryReader<'_> {
    fn read<R: Read>(&mut self, entries: Entries<'_, R>) -> Result<(), ArchiveError> {
        for (index, entry) in entries.enumerate() {
            if index >= MAX_ENTRIES {
                return Err(StagingError::TooManyFiles.into());
            }
            let mut entry = entry.map_err(|_| ArchiveError::NotTar)?;
            let kind = entry.header().entry_type();
            let size = entry.size();
            match kind {
                EntryType::GNULongName | EntryType::XHeader => {
                    let name = extension(&mut entry, size)?;
                    self.say_name(kind, &name)?;
                }
                // Headers for all entries, such as a commit's id.
                EntryType::XGlobalHeader => {
                    let said = extension(&mut entry, size)?;
                    if pax_name(&said)?.is_some() {
                        return Err(ArchiveError::Extension);
                    }
                }
                // The target of a link; links are rejected anyway.
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

    /// Reads the name of the next entry from its extended header.
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
            // In the oldest format, a folder is a name that ends with a slash.
            EntryType::Regular if name.ends_with('/') => {
                return Ok(self.staging.add_folder(name)?);
            }
            EntryType::Regular | EntryType::Continuous => {
                return Ok(self.staging.add_file(name, size, content)?);
            }
            EntryType::Directory => return Ok(self.staging.add_folder(name)?),
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
}

/// Returns the name in a pax header, the last one if there are several (POSIX "pax Extended
/// Header").
fn pax_name(said: &[u8]) -> Result<Option<Vec<u8>>, ArchiveError> {
    let mut name = None;
    for record in PaxExtensions::new(said) {
        let record = record.map_err(|_| ArchiveError::Extension)?;
        match record.key_bytes() {
            b"path" => name = Some(record.value_bytes().to_vec()),
            // Two parsers could interpret it as two different archives.
            b"size" => return Err(ArchiveError::Extension),
            key if key.starts_with(b"GNU.sparse") => return Err(ArchiveError::Extension),
            _ => {}
        }
    }
    Ok(name)
}

/// Reads an extended header.
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

#[cfg(test)]
mod tests;
