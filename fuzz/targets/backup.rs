//! The archive of a backup, which may come from anywhere: nothing but the databases and files named
//! after their content is written. It is tried as it is, and with the check sums of tar.

#![no_main]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use platform_archive::backup::unpack;
use platform_fuzz::with_check_sums;
use sha2::{Digest as _, Sha256};

fuzz_target!(|bytes: &[u8]| {
    try_to_unpack(bytes);
    try_to_unpack(&with_check_sums(bytes));
});

fn try_to_unpack(archive: &[u8]) {
    let outer = tempfile::tempdir_in("/dev/shm").expect("there is room for a folder");
    let (databases, files) = (outer.path().join("databases"), outer.path().join("files"));
    for folder in [&databases, &files] {
        fs::create_dir(folder).expect("there is room for a folder");
    }
    let unpacked = unpack(archive, &databases, Some(&files));
    assert_eq!(names(outer.path()).len(), 2, "something was written beside");
    for name in names(&databases) {
        assert!(matches!(&*name, "platform.db" | "logs.db"), "{name}");
        assert!(databases.join(name).is_file());
    }
    let Ok(found) = unpacked else {
        return;
    };
    let mut written = BTreeSet::new();
    for folder in names(&files) {
        for name in names(&files.join(&folder)) {
            let content = fs::read(files.join(&folder).join(&name)).expect("it is a file");
            let hash: String = Sha256::digest(content)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(format!("{folder}{name}"), hash, "its name is not its hash");
            written.insert(hash);
        }
    }
    assert_eq!(found, written);
    // A check alone writes no file, and finds the same.
    let checked = outer.path().join("checked");
    fs::create_dir(&checked).expect("there is room for a folder");
    let again = unpack(archive, &checked, None).expect("it is whole");
    assert_eq!(again, found);
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let entries = entries.map(|entry| entry.expect("the entry is there").file_name());
    entries
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}
