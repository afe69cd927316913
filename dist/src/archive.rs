//! Archives: the same bytes for the same files, whatever their order, times and owners on the disk
//! are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use anyhow::{Result, ensure};
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// The list of the files' sums, as `sha256sum --check` reads it.
pub(crate) const SUMS: &str = "SHA256SUMS";

/// One file of the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Its content.
    pub(crate) bytes: Vec<u8>,
    /// Whether it is a program.
    pub(crate) is_program: bool,
}

/// The files of an archive, by path. The paths are relative and use `/` on every system.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(BTreeMap<String, File>);

impl Files {
    /// Adds a file.
    ///
    /// # Errors
    /// There is already a file at this path.
    pub(crate) fn add(&mut self, path: &str, bytes: Vec<u8>, is_program: bool) -> Result<()> {
        let file = File { bytes, is_program };
        let before = self.0.insert(path.to_owned(), file);
        ensure!(before.is_none(), "{path} would be in the archive twice");
        Ok(())
    }

    /// The files by their path.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &File)> {
        self.0.iter()
    }

    /// The SHA-256 of each file, as `sha256sum` prints them.
    fn sums(&self) -> String {
        let mut sums = String::new();
        for (path, file) in &self.0 {
            // Writing to a string cannot fail.
            let _ = writeln!(sums, "{}  {path}", sum(&file.bytes));
        }
        sums
    }

    /// Adds the list of the files' sums.
    ///
    /// # Errors
    /// There is one already.
    pub(crate) fn add_sums(&mut self) -> Result<()> {
        let sums = self.sums();
        self.add(SUMS, sums.into_bytes(), false)
    }

    /// Packs a `tar.gz` with all files in one folder, `top`. Each file has the time `seconds` (Unix)
    /// and a neutral owner.
    ///
    /// # Errors
    /// A path or a time does not fit into the tar format.
    pub(crate) fn packed(&self, top: &str, seconds: u64, level: Compression) -> Result<Vec<u8>> {
        // No name and no time in the gzip header (RFC 1952 §2.3.1).
        let gzip = GzBuilder::new().write(Vec::new(), level);
        let mut tar = Builder::new(gzip);
        for (path, file) in &self.0 {
            let mut header = Header::new_ustar();
            header.set_entry_type(EntryType::Regular);
            header.set_size(u64::try_from(file.bytes.len())?);
            header.set_mode(if file.is_program { 0o755 } else { 0o644 });
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(seconds);
            tar.append_data(&mut header, format!("{top}/{path}"), &*file.bytes)?;
        }
        Ok(tar.into_inner()?.finish()?)
    }

    /// Packs a zip with all files in one folder, `top`. Each file has the earliest time that the
    /// format knows.
    ///
    /// # Errors
    /// A file does not fit into the zip format.
    pub(crate) fn zipped(&self, top: &str, level: Compression) -> Result<Vec<u8>> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, file) in &self.0 {
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Deflated)
                .compression_level(Some(level.level().into()))
                .last_modified_time(DateTime::default())
                .unix_permissions(if file.is_program { 0o755 } else { 0o644 });
            zip.start_file(format!("{top}/{path}"), options)?;
            zip.write_all(&file.bytes)?;
        }
        Ok(zip.finish()?.into_inner())
    }
}

/// The SHA-256 of `bytes`, in hexadecimal.
pub(crate) fn sum(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use tar::Archive;

    use super::*;

    const FILES: [(&str, &str, bool); 3] = [
        ("platform", "a program", true),
        ("docs/hosting.md", "a page", false),
        ("LICENSE-MIT", "a licence", false),
    ];

    fn packed<'a>(files: impl Iterator<Item = &'a (&'a str, &'a str, bool)>) -> Vec<u8> {
        let mut all = Files::default();
        for (path, text, is_program) in files {
            all.add(path, text.as_bytes().to_vec(), *is_program)
                .unwrap();
        }
        all.add_sums().unwrap();
        all.packed("platform-1.2.3", 1_700_000_000, Compression::best())
            .unwrap()
    }

    #[test]
    fn the_same_files_in_another_order_are_the_same_bytes() {
        assert_eq!(packed(FILES.iter()), packed(FILES.iter().rev()));
        assert_ne!(packed(FILES.iter()), packed(FILES[1..].iter()));
    }

    #[test]
    fn the_archive_has_names_modes_and_times_that_no_machine_chose() {
        let packed = packed(FILES.iter());
        assert_eq!(packed[4..8], [0; 4], "the head of the gzip has a time");
        let mut archive = Archive::new(GzDecoder::new(&*packed));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let header = entry.header().clone();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            assert_eq!(header.mtime().unwrap(), 1_700_000_000);
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            found.push((path, header.mode().unwrap(), text));
        }
        let names: Vec<&str> = found.iter().map(|(path, ..)| path.as_str()).collect();
        assert_eq!(
            names,
            [
                "platform-1.2.3/LICENSE-MIT",
                "platform-1.2.3/SHA256SUMS",
                "platform-1.2.3/docs/hosting.md",
                "platform-1.2.3/platform",
            ]
        );
        let modes: Vec<u32> = found.iter().map(|(_, mode, _)| *mode).collect();
        assert_eq!(modes, [0o644, 0o644, 0o644, 0o755]);
        let sums: Vec<&str> = found[1].2.lines().collect();
        assert_eq!(sums.len(), FILES.len());
        assert_eq!(sums[2], format!("{}  platform", sum(b"a program")));
    }

    #[test]
    fn a_path_is_there_once() {
        let mut files = Files::default();
        files.add("platform", Vec::new(), true).unwrap();
        assert!(files.add("platform", Vec::new(), false).is_err());
    }

    #[test]
    fn a_sum_is_what_sha256sum_prints() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            sum(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
