//! Tests with archives of build tools, and with invalid ones.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use platform_checks::limits::MAX_BYTES;
use sha2::{Digest as _, Sha256};
use tar::{Builder, Header};

use super::*;
use crate::staging::StagedFile;

fn header(kind: EntryType, name: &[u8], size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

/// A tar file with entries of this kind, name and content.
fn tar(entries: &[(EntryType, &[u8], &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, name, content) in entries {
        let header = header(*kind, name, content.len() as u64);
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn files(files: &[(&str, &str)]) -> Vec<u8> {
    let entries: Vec<(EntryType, &[u8], &[u8])> = files
        .iter()
        .map(|(name, text)| (EntryType::Regular, name.as_bytes(), text.as_bytes()))
        .collect();
    tar(&entries)
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn try_unpack(archive: &[u8]) -> Result<Vec<(String, String)>, ArchiveError> {
    let folder = tempfile::tempdir().unwrap();
    let length = archive.len() as u64;
    let unpacked = unpack(archive, length, folder.path())?;
    let read = |file: &StagedFile| {
        let content = std::fs::read(&file.at).unwrap();
        assert_eq!(content.len() as u64, file.entry.size);
        assert_eq!(
            base16ct::lower::encode_string(&Sha256::digest(&content)),
            file.entry.sha256
        );
        String::from_utf8(content).unwrap()
    };
    Ok(unpacked
        .iter()
        .map(|(path, file)| (path.clone(), read(file)))
        .collect())
}

/// Returns the beginning of the name of the error for an archive.
fn refusal(archive: &[u8]) -> String {
    let error = try_unpack(archive).unwrap_err();
    let sentence = error.to_string();
    assert!(sentence.ends_with('.'), "{sentence}");
    let kind = match error {
        ArchiveError::Files(refused) => format!("{refused:?}"),
        error => format!("{error:?}"),
    };
    kind.chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect()
}

#[test]
fn archives_of_build_programs_are_read() {
    let long = format!("assets/{}.js", "x".repeat(300));
    let mut builder = Builder::new(Vec::new());
    for (path, content) in [
        ("./index.html", "page"),
        ("empty.txt", ""),
        ("a b/é.png", "picture"),
        (long.as_str(), "long"),
    ] {
        let mut header = Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, path, content.as_bytes())
            .unwrap();
    }
    let mut folder = header(EntryType::Directory, b"./", 0);
    builder.append(&folder, &b""[..]).unwrap();
    folder = header(EntryType::Directory, b"a b/", 0);
    builder.append(&folder, &b""[..]).unwrap();
    let archive = builder.into_inner().unwrap();
    let expected = [
        ("a b/é.png", "picture"),
        (long.as_str(), "long"),
        ("empty.txt", ""),
        ("index.html", "page"),
    ]
    .map(|(path, content)| (path.to_owned(), content.to_owned()));
    assert_eq!(try_unpack(&gzip(&archive)).unwrap(), expected);

    // In two members, as programs that compress with several threads write it.
    let (first, second) = archive.split_at(700);
    let members = [gzip(first), gzip(second)].concat();
    assert_eq!(try_unpack(&members).unwrap(), expected);
}

#[test]
fn pax_names_are_read() {
    let record = |key: &str, value: &str| {
        let body = format!(" {key}={value}\n");
        let length = body.len() + 2;
        format!("{length}{body}").into_bytes()
    };
    let good = tar(&[
        (
            EntryType::XGlobalHeader,
            b"g",
            &record("comment", "12345678"),
        ),
        (EntryType::XHeader, b"x", &record("path", "index.html")),
        (EntryType::Regular, b"short", b"page"),
    ]);
    let expected = [("index.html".to_owned(), "page".to_owned())];
    assert_eq!(try_unpack(&gzip(&good)).unwrap(), expected);

    let leads_out = tar(&[
        (EntryType::XHeader, b"x", &record("path", "../../etc/x")),
        (EntryType::Regular, b"index.html", b"page"),
    ]);
    assert_eq!(refusal(&gzip(&leads_out)), "Path");
    let two_sizes = tar(&[
        (EntryType::XHeader, b"x", &record("size", "0000000512")),
        (EntryType::Regular, b"index.html", b"page"),
    ]);
    assert_eq!(refusal(&gzip(&two_sizes)), "Extension");
    for key in ["path", "size", "GNU.sparse.realsize"] {
        let of_all = tar(&[
            (EntryType::XGlobalHeader, b"g", &record(key, "0000001234")),
            (EntryType::Regular, b"index.html", b"page"),
        ]);
        assert_eq!(refusal(&gzip(&of_all)), "Extension", "{key}");
    }
    let huge = vec![b'x'; 70_000];
    let long = tar(&[
        (EntryType::GNULongName, b"x", &huge),
        (EntryType::Regular, b"index.html", b"page"),
    ]);
    assert_eq!(refusal(&gzip(&long)), "Extension");
}

#[test]
fn an_entry_that_should_not_be_there_keeps_the_archive_out() {
    let page: (EntryType, &[u8], &[u8]) = (EntryType::Regular, b"index.html", b"page");
    for (kind, name, expected) in [
        (EntryType::Regular, &b"../x"[..], "Path"),
        (EntryType::Regular, b"a/../../x", "Path"),
        (EntryType::Regular, b"/etc/passwd", "Path"),
        (EntryType::Regular, b"C:\\x", "Path"),
        (EntryType::Regular, b"C:/x", "Path"),
        (EntryType::Regular, b"a\\..\\x", "Path"),
        (EntryType::Regular, b"a\nb", "Path"),
        (EntryType::Regular, b"__platform/runtime.js", "Path"),
        (EntryType::Regular, b"./__platform/x", "Path"),
        (EntryType::Regular, b"__PLATFORM/x", "Path"),
        (EntryType::Regular, b"%5f_platform/x", "Path"),
        (EntryType::Directory, b"../", "Path"),
        (EntryType::Directory, b"__platform/", "Path"),
        (EntryType::Regular, b"\xff\xfe.png", "NotUtf8"),
        (EntryType::Regular, b"index.html/x", "FileAndFolder"),
        (EntryType::Directory, b"index.html/", "FileAndFolder"),
        (EntryType::Regular, b"./index.html", "Twice"),
        (EntryType::Regular, b"index.html", "Twice"),
        (EntryType::Symlink, b"link", "Kind"),
        (EntryType::Link, b"link", "Kind"),
        (EntryType::Char, b"null", "Kind"),
        (EntryType::Block, b"sda", "Kind"),
        (EntryType::Fifo, b"pipe", "Kind"),
        (EntryType::GNUSparse, b"sparse", "Kind"),
    ] {
        let archive = tar(&[page, (kind, name, b"")]);
        let name = String::from_utf8_lossy(name);
        assert_eq!(refusal(&gzip(&archive)), expected, "{name}");
    }
    // Two names that differ only in case are two files here, as on the web.
    let two_cases = files(&[("index.html", "1"), ("INDEX.html", "2")]);
    assert_eq!(try_unpack(&gzip(&two_cases)).unwrap().len(), 2);
}

#[test]
fn a_name_is_a_file_or_a_folder() {
    let page: (EntryType, &[u8], &[u8]) = (EntryType::Regular, b"index.html", b"page");
    let (regular, folder) = (EntryType::Regular, EntryType::Directory);
    for entries in [
        [(folder, &b"a/"[..], &b""[..]), (regular, b"a", b"x")],
        [(regular, b"a", b"x"), (folder, b"a/", b"")],
        [(regular, b"a", b"x"), (regular, b"a/b/c", b"x")],
        [(regular, b"a/b/c", b"x"), (regular, b"a", b"x")],
    ] {
        let archive = tar(&[page, entries[0], entries[1]]);
        assert_eq!(refusal(&gzip(&archive)), "FileAndFolder", "{entries:?}");
    }
    // A name that sorts between a file and a path below it does not hide the conflict.
    let archive = files(&[("index.html", "p"), ("a", "1"), ("a!", "2"), ("a/b", "3")]);
    assert_eq!(refusal(&gzip(&archive)), "FileAndFolder");
    let apart = files(&[("index.html", "p"), ("a", "1"), ("a!/b", "2"), ("ab", "3")]);
    assert_eq!(try_unpack(&gzip(&apart)).unwrap().len(), 4);
}

#[test]
fn an_archive_without_a_page_is_none() {
    assert_eq!(refusal(&gzip(&files(&[]))), "Empty");
    let folders = tar(&[(EntryType::Directory, b"a/", b"")]);
    assert_eq!(refusal(&gzip(&folders)), "Empty");
    let below = files(&[("dist/index.html", "page")]);
    assert_eq!(refusal(&gzip(&below)), "NoIndex");
}

#[test]
fn a_damaged_archive_is_refused() {
    // Incompressible data, so that every cut is in the middle of it.
    let noise: Vec<u8> = (0..40_000_u32)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let plain = tar(&[
        (EntryType::Regular, b"index.html", b"page"),
        (EntryType::Regular, b"noise", &noise),
    ]);
    let whole = gzip(&plain);
    assert!(try_unpack_bytes(&whole));
    for cut in [whole.len() - 1, whole.len() - 9, whole.len() / 2, 15] {
        assert_eq!(refusal(&whole[..cut]), "Truncated", "{cut}");
    }
    for cut in [plain.len() - 1_024, 1_024, 1_100, 20_000, 512, 700] {
        assert_eq!(refusal(&gzip(&plain[..cut])), "Truncated", "{cut}");
    }
    assert_eq!(refusal(b""), "Truncated");
    assert_eq!(refusal(b"PK\x03\x04 this is a zip file"), "NotGzip");
    assert_eq!(refusal(&plain), "NotGzip");
    assert_eq!(refusal(&gzip(b"no tar file")), "Truncated");
    assert_eq!(refusal(&gzip(&[b'x'; 2_000])), "NotTar");
    let mut changed = whole.clone();
    let last = changed.len() - 6;
    changed[last] ^= 1;
    assert_eq!(refusal(&changed), "NotGzip", "the checksum is wrong");
    assert_eq!(
        refusal(&[&whole[..], b"more than the header of a gzip file"].concat()),
        "NotGzip"
    );
    assert_eq!(refusal(&gzip(&[&plain[..], b"more"].concat())), "Trailing");
}

fn try_unpack_bytes(archive: &[u8]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    unpack(archive, archive.len() as u64, folder.path()).is_ok()
}

#[test]
fn an_archive_that_grows_too_much_is_refused() {
    let zeros = vec![0; 40 * 1024 * 1024];
    let bomb = gzip(&tar(&[
        (EntryType::Regular, b"index.html", b"page"),
        (EntryType::Regular, b"zeros", &zeros),
    ]));
    assert!(bomb.len() < 400_000);
    assert_eq!(refusal(&bomb), "Ratio");

    // The header alone says how large it would be.
    let mut builder = Builder::new(Vec::new());
    let large = header(EntryType::Regular, b"index.html", MAX_BYTES + 1);
    builder.get_mut().write_all(large.as_bytes()).unwrap();
    assert_eq!(refusal(&gzip(&builder.into_inner().unwrap())), "TooLarge");
}

#[test]
fn an_archive_has_so_many_files_and_no_more() {
    let archive = |count: usize| {
        let names: Vec<String> = (1..count).map(|index| format!("f{index}")).collect();
        let mut entries: Vec<(EntryType, &[u8], &[u8])> =
            vec![(EntryType::Regular, b"index.html", b"page")];
        let rest = names.iter().map(|name| name.as_bytes());
        entries.extend(rest.map(|name| (EntryType::Regular, name, &b""[..])));
        gzip(&tar(&entries))
    };
    assert_eq!(try_unpack(&archive(MAX_FILES)).unwrap().len(), MAX_FILES);
    assert_eq!(refusal(&archive(MAX_FILES + 1)), "TooManyFiles");
}
