//! Headers of a tar file, with the values that the command line writes: the same files make the
//! same archive.

use std::io;

use tar::{Builder, EntryType, Header};

/// The size of a block: files are filled up to whole blocks.
pub const BLOCK: u64 = 512;

/// Returns what comes before the content of a file.
///
/// # Errors
/// The path cannot be written.
pub fn header(path: &str, size: u64) -> io::Result<Vec<u8>> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    let mut archive = Builder::new(Vec::new());
    // The content follows from elsewhere.
    archive.append_data(&mut header, path, io::empty())?;
    Ok(std::mem::take(archive.get_mut()))
}

/// How many zeros follow a file of this size.
#[must_use]
pub fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK) - size
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn headers_contents_and_padding_are_an_archive() {
        let long = format!("assets/{}/a.js", "long".repeat(40));
        let files = [("index.html", "<p>"), (&long, ""), ("b.js", "1")];
        let mut bytes = Vec::new();
        for (path, content) in files {
            let size = content.len() as u64;
            bytes.extend(header(path, size).unwrap());
            bytes.extend(content.as_bytes());
            bytes.resize(bytes.len() + padding(size) as usize, 0);
        }
        bytes.resize(bytes.len() + 2 * BLOCK as usize, 0);
        let mut archive = tar::Archive::new(bytes.as_slice());
        let read: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let mut text = String::new();
                entry.read_to_string(&mut text).unwrap();
                (entry.path().unwrap().to_str().unwrap().to_owned(), text)
            })
            .collect();
        let expected = files.map(|(path, content)| (path.to_owned(), content.to_owned()));
        assert_eq!(read, expected);
    }

    #[test]
    fn files_are_filled_up_to_whole_blocks() {
        assert_eq!([0, 1, 511, 512, 513].map(padding), [0, 511, 1, 0, 511]);
    }
}
