//! The archive of a deploy: no entry leaves the folder, and what is accepted is what was written. A
//! deploy sends a tar file in gzip. Three are tried: the bytes as they are; compressed here, since no
//! mutation keeps the check sum of gzip; and with the check sums of tar.

#![no_main]

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use platform_archive::deploy::unpack;
use platform_fuzz::with_check_sums;

fuzz_target!(|bytes: &[u8]| {
    try_to_unpack(bytes);
    try_to_unpack(&compressed(bytes));
    try_to_unpack(&compressed(&with_check_sums(bytes)));
});

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

fn try_to_unpack(archive: &[u8]) {
    let outer = tempfile::tempdir_in("/dev/shm").expect("there is room for a folder");
    let folder = outer.path().join("staged");
    fs::create_dir(&folder).expect("there is room for a folder");
    let staged = unpack(archive, archive.len() as u64, &folder);
    let beside = fs::read_dir(outer.path())
        .expect("the folder is there")
        .count();
    assert_eq!(beside, 1, "something was written beside the folder");
    assert_only_files(&folder);
    if let Ok(files) = staged {
        for path in files.keys() {
            platform_checks::path::check_path(path).expect("a path that games may not have");
        }
    }
}

/// Nothing but files and folders was made: no link, and no device.
fn assert_only_files(folder: &Path) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let entry = entry.expect("the folder is there");
        let kind = entry.file_type().expect("the entry is there");
        assert!(kind.is_dir() || kind.is_file(), "{:?}", entry.path());
        if kind.is_dir() {
            assert_only_files(&entry.path());
        }
    }
}
