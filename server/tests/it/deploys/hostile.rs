//! Archives that nobody creates by accident.

use platform_checks::limits::{MAX_BYTES, MAX_FILES};
use tar::EntryType;

use crate::caller::{archive, gzip};

pub(super) const PAGE: Entry<'static> = (EntryType::Regular, b"index.html", b"page");

/// Kind, name and content of an entry of a tar file.
pub(super) type Entry<'a> = (EntryType, &'a [u8], &'a [u8]);

pub(super) fn header(kind: EntryType, name: &[u8], size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

pub(super) fn tar(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (kind, name, content) in entries {
        let header = header(*kind, name, content.len() as u64);
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

/// An archive with a start page and one more entry.
pub(super) fn with(kind: EntryType, name: &[u8], content: &[u8]) -> Vec<u8> {
    gzip(&tar(&[PAGE, (kind, name, content)]))
}

/// An archive with a start page and an extended header for the following entry.
pub(super) fn said(kind: EntryType, content: &[u8]) -> Vec<u8> {
    let next = (EntryType::Regular, &b"next"[..], &b"next"[..]);
    gzip(&tar(&[PAGE, (kind, b"said", content), next]))
}

/// A record of a pax header.
pub(super) fn pax(key: &str, value: &str) -> Vec<u8> {
    let body = format!(" {key}={value}\n");
    let length = body.len() + 2;
    assert!((10..100).contains(&length), "two digits say the length");
    format!("{length}{body}").into_bytes()
}

pub(super) fn with_files(count: usize) -> Vec<u8> {
    let names: Vec<String> = (1..count).map(|index| format!("f{index}")).collect();
    let mut entries = vec![PAGE];
    let rest = names.iter().map(|name| name.as_bytes());
    entries.extend(rest.map(|name| (EntryType::Regular, name, &b""[..])));
    gzip(&tar(&entries))
}

/// An archive with a start page and so many files whose names have 1,024 bytes.
pub(super) fn with_long_names(count: usize) -> Vec<u8> {
    let names: Vec<String> = (0..count).map(|index| format!("{index:01024}\0")).collect();
    let mut entries = vec![PAGE];
    for name in &names {
        entries.push((EntryType::GNULongName, b"long", name.as_bytes()));
        entries.push((EntryType::Regular, b"next", b""));
    }
    gzip(&tar(&entries))
}

pub(super) fn flipped(mut archive: Vec<u8>, from_end: usize) -> Vec<u8> {
    let at = archive.len() - from_end;
    archive[at] ^= 1;
    archive
}

/// A header without content, with this size.
pub(super) fn of_size(size: u64) -> Vec<u8> {
    gzip(header(EntryType::Regular, b"index.html", size).as_bytes())
}

/// Invalid names of files, each with the expected message.
pub(super) fn bad_names() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let file = |name: &[u8]| with(EntryType::Regular, name, b"x");
    vec![
        ("traversal", file(b"../x"), "segment . or .."),
        ("deep traversal", file(b"a/../../x"), "segment . or .."),
        ("inner traversal", file(b"a/../b"), "segment . or .."),
        ("absolute", file(b"/etc/passwd"), "absolute"),
        ("two slashes", file(b"//host/x"), "absolute"),
        ("drive", file(b"C:\\x"), "absolute"),
        ("drive with a slash", file(b"c:/x"), "absolute"),
        ("backslash", file(b"..\\x"), "backslash"),
        ("line", file(b"a\nb"), "control character"),
        ("escape", file(b"a\x1b[2Jb"), "control character"),
        ("not UTF-8", file(b"\xff\xfe.png"), "not UTF-8"),
        ("reserved", file(b"__platform/runtime.js"), "/__platform/"),
        ("reserved, below .", file(b"./__platform/x"), "/__platform/"),
        (
            "reserved, other case",
            file(b"__PlatForm/x"),
            "/__platform/",
        ),
        ("reserved, escaped", file(b"%5F_platform/x"), "/__platform/"),
        ("twice", file(b"index.html"), "twice"),
        ("twice, below .", file(b"./index.html"), "twice"),
        (
            "file below a file",
            file(b"index.html/x"),
            "a file and a folder",
        ),
        (
            "folder named as a file",
            with(EntryType::Directory, b"index.html/", b""),
            "a file and a folder",
        ),
        (
            "folder outside",
            with(EntryType::Directory, b"../x/", b""),
            "segment . or ..",
        ),
        (
            "long name outside",
            said(EntryType::GNULongName, b"../../x\0"),
            "segment . or ..",
        ),
        (
            "pax name outside",
            said(EntryType::XHeader, &pax("path", "/etc/passwd")),
            "absolute",
        ),
        (
            "pax name not UTF-8",
            said(EntryType::XHeader, b"11 path=\xff\xfe\n"),
            "not UTF-8",
        ),
        (
            "name too long",
            said(EntryType::GNULongName, &[b'x'; 1_025]),
            "longer than 1024 bytes",
        ),
    ]
}

/// Entries that are not files.
pub(super) fn bad_kinds() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    vec![
        ("link", with(EntryType::Symlink, b"l", b""), "a link"),
        ("hard link", with(EntryType::Link, b"l", b""), "a link"),
        ("device", with(EntryType::Char, b"null", b""), "a device"),
        ("disk", with(EntryType::Block, b"sda", b""), "a device"),
        ("pipe", with(EntryType::Fifo, b"pipe", b""), "a pipe"),
        (
            "sparse",
            with(EntryType::GNUSparse, b"sparse", b""),
            "of an unknown kind",
        ),
        (
            "size in a pax header",
            said(EntryType::XHeader, &pax("size", "99999999999")),
            "cannot be read",
        ),
        (
            "size for all entries",
            said(EntryType::XGlobalHeader, &pax("size", "99999999999")),
            "cannot be read",
        ),
        (
            "sparse in a pax header",
            said(
                EntryType::XHeader,
                &pax("GNU.sparse.realsize", "99999999999"),
            ),
            "cannot be read",
        ),
        (
            "pax header that is none",
            said(EntryType::XHeader, b"nonsense"),
            "cannot be read",
        ),
    ]
}

/// Archives that are damaged, or too large.
pub(super) fn bad_wholes() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let plain = tar(&[PAGE]);
    let whole = gzip(&plain);
    let bomb = with(EntryType::Regular, b"zeros", &vec![0; 40 * 1024 * 1024]);
    assert!(bomb.len() < 400_000);
    vec![
        ("nothing", Vec::new(), "cut off"),
        (
            "no gzip",
            b"no archive at all".to_vec(),
            "not a complete gzip",
        ),
        (
            "zip",
            b"PK\x03\x04 a zip file".to_vec(),
            "not a complete gzip",
        ),
        ("tar without gzip", plain.clone(), "not a complete gzip"),
        ("gzip cut", whole[..whole.len() - 9].to_vec(), "cut off"),
        ("checksum cut", whole[..whole.len() - 1].to_vec(), "cut off"),
        ("tar cut", gzip(&plain[..700]), "cut off"),
        ("tar without end", gzip(&plain[..1_024]), "cut off"),
        ("checksum", flipped(whole.clone(), 5), "not a complete gzip"),
        (
            "second member is none",
            [&whole[..], &b"and then something"[..]].concat(),
            "not a complete gzip",
        ),
        (
            "second member adds",
            [&whole[..], &gzip(b"more")].concat(),
            "data after the end of the archive",
        ),
        ("no tar", gzip(&[b'x'; 2_000]), "not a complete tar"),
        ("empty", gzip(&tar(&[])), "has no files"),
        ("no page", archive(&[("main.js", b"x")]), "no index.html"),
        (
            "page below",
            archive(&[("dist/index.html", b"x")]),
            "no index.html",
        ),
        ("bomb", bomb, "100 to one"),
        ("too many", with_files(MAX_FILES + 1), "at most 20000 files"),
        (
            "long names",
            with_long_names(4_096),
            "at most 4 MiB together",
        ),
        ("too large", of_size(MAX_BYTES + 1), "at most 512 MiB"),
        ("huge", of_size(1 << 62), "at most 512 MiB"),
    ]
}
