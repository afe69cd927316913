//! The licences of every linked crate: a list of them, and each text from the packages once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::linked_crates::Crate;

/// The prefixes of licence files, in lower case.
const BEGINNINGS: [&str; 6] = [
    "licence",
    "license",
    "copying",
    "copyright",
    "notice",
    "unlicense",
];

/// Returns one text: the list, then the licence texts.
///
/// # Errors
/// A text cannot be read.
pub(crate) fn text(crates: &[Crate]) -> Result<String> {
    let mut out = String::from(
        "The programs and the runtime in the page are linked with the crates below and with the\n\
         standard library of Rust (MIT OR Apache-2.0). After the list stand the texts that their\n\
         packages bring, each once, with the crates that it belongs to.\n\n",
    );
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in crates {
        let name = format!("{} {}", one.name, one.version);
        let licence = one.licence.as_deref().unwrap_or("see its text");
        write!(out, "{name}: {licence}")?;
        if let Some(repository) = &one.repository {
            write!(out, ", {repository}")?;
        }
        let files = files(one)?;
        if files.is_empty() && one.checksum.is_some() {
            out.push_str(" (its package brings no text)");
        }
        out.push('\n');
        for file in files {
            let text =
                fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let text = normalised(&String::from_utf8_lossy(&text));
            let named = texts.entry(text).or_default();
            if !named.contains(&name) {
                named.push(name.clone());
            }
        }
    }
    let mut texts: Vec<(Vec<String>, String)> = texts
        .into_iter()
        .map(|(text, named)| (named, text))
        .collect();
    texts.sort();
    for (named, text) in texts {
        let line = "-".repeat(80);
        write!(out, "\n{line}\n{}\n{line}\n\n{text}\n", named.join(", "))?;
    }
    Ok(out)
}

/// The files with a licence in a crate's folder, by name.
fn files(one: &Crate) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(&one.folder)
        .with_context(|| format!("cannot read {}", one.folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_file() && is_licence(&path) {
            files.push(path);
        }
    }
    if let Some(named) = &one.licence_file {
        let named = one.folder.join(named);
        if !files.contains(&named) && named.is_file() {
            files.push(named);
        }
    }
    files.sort();
    Ok(files)
}

fn is_licence(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    BEGINNINGS
        .iter()
        .any(|beginning| name.starts_with(beginning))
        && !name.ends_with(".rs")
}

/// A text without the differences between copies of one licence: line ends, and white space at the
/// ends of lines and of the text.
fn normalised(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_of_two_crates_stands_once_and_names_both() {
        let root = tempfile::tempdir().unwrap();
        let one = |name: &str, file: &str, text: &str| {
            let folder = root.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(file), text).unwrap();
            fs::write(folder.join("license.rs"), "fn main() {}").unwrap();
            Crate {
                name: name.into(),
                version: "1.0.0".into(),
                licence: Some("MIT".into()),
                checksum: Some("00".into()),
                folder,
                ..Crate::default()
            }
        };
        let crates = [
            one(
                "a",
                "LICENSE-MIT",
                "Permission is granted.\r\n\r\nTo all.  \n",
            ),
            one("b", "license.txt", "Permission is granted.\n\nTo all."),
            one("c", "README.md", "No licence here."),
        ];
        let text = text(&crates).unwrap();
        assert_eq!(text.matches("Permission is granted.").count(), 1, "{text}");
        assert!(text.contains("\na 1.0.0, b 1.0.0\n"), "{text}");
        assert!(text.contains("c 1.0.0: MIT (its package brings no text)\n"));
        assert!(!text.contains("No licence here") && !text.contains("fn main"));
    }
}
