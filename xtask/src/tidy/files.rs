//! The project's files, without build output and installed packages.

use std::path::Path;

use anyhow::{Context, Result};
use walkdir::{DirEntry, WalkDir};

/// Folders with generated or installed files only.
const NOT_OURS: &[&str] = &[".git", "target", "node_modules", "dist", "data"];

/// Every file of the project, from the root, with `/` between folders.
pub(super) fn list(root: &Path) -> Result<Vec<String>> {
    let is_ours = |entry: &DirEntry| {
        let name = entry.file_name().to_string_lossy();
        !(entry.file_type().is_dir() && NOT_OURS.contains(&name.as_ref()))
    };
    let mut paths = Vec::new();
    for entry in WalkDir::new(root)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(is_ours)
    {
        let entry = entry.context("the project's folders cannot be read")?;
        if entry.file_type().is_file() {
            let path = entry
                .path()
                .strip_prefix(root)
                .context("a file outside of its folder")?;
            paths.push(path.to_string_lossy().into_owned());
        }
    }
    Ok(paths)
}

/// A file's text; `None` if it is not text, or was deleted meanwhile.
pub(super) fn read(root: &Path, path: &str) -> Result<Option<String>> {
    match std::fs::read(root.join(path)) {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{path} cannot be read")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn made_and_installed_files_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        for path in ["src/a.rs", "target/b.rs", "x/node_modules/c.js", "x/d.md"] {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "text").unwrap();
        }
        assert_eq!(list(root.path()).unwrap(), ["src/a.rs", "x/d.md"]);
    }

    #[test]
    fn what_is_no_text_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("image"), [0xff, 0xfe]).unwrap();
        assert_eq!(read(root.path(), "image").unwrap(), None);
        assert_eq!(read(root.path(), "gone").unwrap(), None);
    }
}
