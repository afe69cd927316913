//! The files of a zip (PKWARE APPNOTE 6.3), read from its end, where its directory is. The page gives
//! the end alone, so that a large zip is never in memory.
//!
//! Nothing in it is trusted: names are checked like those of a folder, sizes are limits for what the
//! page unpacks, and checksums are compared.

use std::io;

use platform_checks::folder::size;
use platform_checks::limits::{MAX_ARCHIVE_BYTES, MAX_FILES};
use rawzip::{CompressionMethod, ReaderAt, ZipFileHeaderRecord, ZipLocator};

/// How much of a zip's end is read: more than the directory of the most files with usual names.
pub const TAIL: u64 = 16 * 1024 * 1024;
/// The length of a file's local header, without its name and its extra field (§4.3.7).
pub const LOCAL_HEADER: usize = 30;
/// Entries that are read, at most: files and their folders.
const MAX_ENTRIES: usize = 4 * MAX_FILES;
/// The signature of a local header (§4.3.7).
const SIGNATURE: [u8; 4] = *b"PK\x03\x04";

/// A file of a zip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZipFile {
    /// Its path as it is written.
    pub path: String,
    /// Its size, unpacked.
    pub size: u64,
    /// Its size in the zip.
    pub packed: u64,
    /// Where its local header begins.
    pub at: u64,
    /// Whether it is stored as it is, without compression.
    pub is_stored: bool,
    /// The checksum of its content.
    pub crc32: u32,
}

/// Returns the files of a zip of `whole` bytes that ends with `tail`. `name` is its own name.
///
/// # Errors
/// What is wrong with it, as a sentence for its developer.
pub fn files(name: &str, tail: &[u8], whole: u64) -> Result<Vec<ZipFile>, String> {
    if whole > MAX_ARCHIVE_BYTES {
        let (most, has) = (size(MAX_ARCHIVE_BYTES), size(whole));
        return Err(format!(
            "{name} is too large: a zip may have {most}, and this one has {has}."
        ));
    }
    let broken = |_| {
        format!(
            "{name} is not a zip file, or it is cut off or damaged: make it again, or drop the \
             folder itself."
        )
    };
    let end = End {
        start: whole.saturating_sub(tail.len() as u64),
        tail,
    };
    let mut buffer = vec![0; rawzip::MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
    let archive = ZipLocator::new()
        .locate_in_reader(end, &mut buffer, whole)
        .map_err(|(_, error)| broken(error))?;
    let mut entries = archive.entries(&mut buffer);
    let mut files = Vec::new();
    let mut count = 0;
    while let Some(entry) = entries.next_entry().map_err(broken)? {
        count += 1;
        if count > MAX_ENTRIES {
            return Err(format!(
                "{name} has too many files: a deployment has at most {MAX_FILES}."
            ));
        }
        if !entry.is_dir() {
            files.push(file(&entry)?);
        }
    }
    Ok(files)
}

/// Reads an entry of the directory.
fn file(entry: &ZipFileHeaderRecord<'_>) -> Result<ZipFile, String> {
    let raw = entry.file_path();
    let name = String::from_utf8_lossy(raw.as_bytes());
    let cannot = |why: &str| Err(format!("{name} cannot be deployed: {why}."));
    let Ok(path) = std::str::from_utf8(raw.as_bytes()) else {
        return cannot("its name is not valid Unicode");
    };
    if entry.flags().is_encrypted() || entry.flags().has_strong_encryption() {
        return cannot("it is encrypted: make the zip without a password");
    }
    if entry.mode().is_symlink() {
        return cannot("it is a link: put the file itself into the zip");
    }
    let method = entry.compression_method();
    let is_stored = method == CompressionMethod::STORE;
    if !is_stored && method != CompressionMethod::DEFLATE {
        let method = method.name().unwrap_or("unknown");
        return cannot(&format!(
            "it is compressed with the method {method}, which browsers cannot unpack: make the \
             zip with the usual one, Deflate"
        ));
    }
    Ok(ZipFile {
        path: path.to_owned(),
        size: entry.uncompressed_size_hint(),
        packed: entry.compressed_size_hint(),
        at: entry.local_header_offset(),
        is_stored,
        crc32: entry.crc32(),
    })
}

/// Returns the length of a local header with its name and its extra field, after which the file's
/// data begins; `None` if it is no local header. `header` are its first [`LOCAL_HEADER`] bytes.
#[must_use]
pub fn local_header_length(header: &[u8]) -> Option<u32> {
    let [rest @ .., n0, n1, e0, e1] = header.first_chunk::<LOCAL_HEADER>()?;
    rest.starts_with(&SIGNATURE).then(|| {
        let name = u16::from_le_bytes([*n0, *n1]);
        let extra = u16::from_le_bytes([*e0, *e1]);
        LOCAL_HEADER as u32 + u32::from(name) + u32::from(extra)
    })
}

/// The end of a file, with the positions of the whole file.
struct End<'a> {
    start: u64,
    tail: &'a [u8],
}

impl ReaderAt for End<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let missing = || io::Error::other("this part of the zip was not read");
        let from = offset.checked_sub(self.start).ok_or_else(missing)?;
        let from = usize::try_from(from).map_err(|_| missing())?;
        let rest = self.tail.get(from..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zip with these files, each stored, and with these flags and this method in the directory.
    fn zip(files: &[(&str, &str)], flags: u16, method: u16) -> Vec<u8> {
        let (mut bytes, mut directory) = (Vec::new(), Vec::new());
        for (name, content) in files {
            let at = bytes.len() as u32;
            let length = content.len() as u32;
            let crc = rawzip::crc32(content.as_bytes());
            let mut common = Vec::new();
            for number in [20, flags, method, 0, 0] {
                common.extend(number.to_le_bytes());
            }
            for number in [crc, length, length] {
                common.extend(number.to_le_bytes());
            }
            common.extend((name.len() as u16).to_le_bytes());
            common.extend([0, 0]);
            bytes.extend(SIGNATURE);
            bytes.extend(&common);
            bytes.extend(name.as_bytes());
            bytes.extend(content.as_bytes());
            directory.extend(b"PK\x01\x02\x14\x03");
            directory.extend(&common);
            directory.extend([0; 6]);
            let mode: u32 = if content.starts_with("->") {
                0o120_777
            } else {
                0o100_644
            };
            directory.extend((mode << 16).to_le_bytes());
            directory.extend(at.to_le_bytes());
            directory.extend(name.as_bytes());
        }
        let start = bytes.len() as u32;
        bytes.extend(&directory);
        bytes.extend(b"PK\x05\x06\0\0\0\0");
        let count = files.len() as u16;
        bytes.extend(count.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend((directory.len() as u32).to_le_bytes());
        bytes.extend(start.to_le_bytes());
        bytes.extend([0, 0]);
        bytes
    }

    fn said(zip: &[u8]) -> String {
        files("game.zip", zip, zip.len() as u64).unwrap_err()
    }

    #[test]
    fn files_are_listed_with_the_places_of_their_data() {
        let zip = zip(
            &[("x/", ""), ("x/index.html", "<p>"), ("x/ä.js", "1")],
            0,
            0,
        );
        let whole = zip.len() as u64;
        let found = files("game.zip", &zip, whole).unwrap();
        let paths: Vec<&str> = found.iter().map(|file| &*file.path).collect();
        assert_eq!(paths, ["x/index.html", "x/ä.js"]);
        for (file, content) in found.iter().zip(["<p>", "1"]) {
            let header = &zip[file.at as usize..];
            let start = file.at as usize + local_header_length(header).unwrap() as usize;
            assert_eq!(
                &zip[start..start + file.packed as usize],
                content.as_bytes()
            );
            assert_eq!(file.crc32, rawzip::crc32(content.as_bytes()));
            assert!(file.is_stored);
        }
    }

    /// As long as it is longer than what is read at once, which is less than [`TAIL`].
    #[test]
    fn the_end_of_a_zip_is_enough() {
        let large = "0".repeat(400_000);
        let zip = zip(&[("index.html", "<p>"), ("large.txt", &large)], 0, 0);
        let whole = zip.len() as u64;
        let tail = &zip[zip.len() - 250_000..];
        let found = files("game.zip", tail, whole).unwrap();
        assert_eq!(found, files("game.zip", &zip, whole).unwrap());
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn what_is_no_zip_or_a_damaged_one_is_refused() {
        let whole = zip(&[("index.html", "<p>")], 0, 0);
        let broken = "game.zip is not a zip file, or it is cut off or damaged: make it again";
        for bytes in [
            b"".as_slice(),
            b"PK",
            b"\x1f\x8b\x08 something else, long enough to be anything",
            &whole[..whole.len() - 1],
            &whole[..40],
            &whole[60..],
        ] {
            assert!(said(bytes).starts_with(broken), "{bytes:?}");
        }
        // A directory that points anywhere.
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 0xff;
            let _ = files("game.zip", &bytes, bytes.len() as u64);
        }
        let short = &whole[whole.len() - 30..];
        assert!(files("game.zip", short, whole.len() as u64).is_err());
        let large = files("game.zip", &[], MAX_ARCHIVE_BYTES + 1).unwrap_err();
        assert!(large.starts_with("game.zip is too large: a zip may have 603.97 MB"));
    }

    #[test]
    fn what_browsers_cannot_unpack_is_named() {
        let one = [("a.js", "1")];
        assert!(said(&zip(&one, 1, 8)).starts_with("a.js cannot be deployed: it is encrypted"));
        assert!(
            said(&zip(&one, 0, 14))
                .contains("a.js cannot be deployed: it is compressed with the method LZMA")
        );
        assert!(said(&zip(&[("a.js", "->b")], 0, 0)).contains("it is a link"));
    }

    #[test]
    fn what_is_no_local_header_has_no_length() {
        assert_eq!(local_header_length(b"PK\x03\x04"), None);
        assert_eq!(local_header_length(&[0; 64]), None);
    }
}
