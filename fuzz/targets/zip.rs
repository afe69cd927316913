//! A zip that is dropped on the console's page: its directory, the choice of the files that are
//! deployed, and the headers of the archive that is sent. What is chosen may be deployed, and what is written is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use platform_checks::limits::{MAX_ARCHIVE_BYTES, MAX_FILES};
use platform_checks::path::check_path;
use platform_upload::chosen::Chosen;
use platform_upload::entry::{BLOCK, header};
use platform_upload::zip::{LOCAL_HEADER, ZipFile, files, local_header_length};

const NAME: &str = "game.zip";
/// The most files that are looked at.
const MOST: usize = 40;

fuzz_target!(|bytes: &[u8]| {
    let whole = bytes.len() as u64;
    let Ok(found) = files(NAME, bytes, whole) else {
        return;
    };
    let end = &bytes[bytes.len() / 2..];
    // Of a zip whose directory is not in it, this may be nonsense, as of any other bytes.
    let _ = files(NAME, end, whole);
    assert!(files(NAME, bytes, MAX_ARCHIVE_BYTES + 1).is_err());
    for file in found.iter().take(MOST) {
        check_file(bytes, file);
    }
    let given = found
        .into_iter()
        .map(|file| (file.path, file.size))
        .collect();
    let Ok(chosen) = Chosen::of(NAME.to_owned(), given) else {
        return;
    };
    assert!((1..=MAX_FILES).contains(&chosen.files.len()));
    assert!(chosen.page().is_some());
    let _ = chosen.advice("<!doctype html>");
    for file in chosen.files.iter().take(MOST) {
        check_path(&file.path).expect("a path that games may not have");
        check_header(&file.path, file.size);
    }
});

fn check_file(bytes: &[u8], file: &ZipFile) {
    let at = usize::try_from(file.at).unwrap_or(usize::MAX);
    let head = bytes.get(at..).and_then(|rest| rest.get(..LOCAL_HEADER));
    if let Some(length) = head.and_then(local_header_length) {
        assert!(length as usize >= LOCAL_HEADER);
    }
}

fn check_header(path: &str, size: u64) {
    let Ok(written) = header(path, size) else {
        return;
    };
    assert_eq!(written.len() as u64 % BLOCK, 0);
    let mut archive = tar::Archive::new(written.as_slice());
    let entry = archive.entries().expect("it is an archive").next();
    let entry = entry
        .expect("it has an entry")
        .expect("its header is whole");
    assert_eq!(entry.path().expect("it has a path").to_str(), Some(path));
    assert_eq!(entry.size(), size);
}
