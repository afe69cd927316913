//! Whether the built files are up to date with their sources.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{module, shrink};

/// What the built files depend on.
const SOURCES: [&str; 9] = [
    "Cargo.lock",
    "Cargo.toml",
    "loader/js",
    "loader/package-lock.json",
    "loader/src",
    "protocol/Cargo.toml",
    "protocol/src",
    "runtime-wasm/Cargo.toml",
    "runtime-wasm/src",
];

/// The files and folders whose change makes the built files stale. A build script names them to
/// cargo.
#[must_use]
pub fn watched(root: &Path) -> Vec<PathBuf> {
    let installed = root.join(shrink::INSTALLED);
    let mut watched: Vec<PathBuf> = SOURCES.iter().map(|source| root.join(source)).collect();
    // Cargo treats a missing file as changed in every build.
    watched.extend(installed.exists().then_some(installed));
    watched
}

/// A text that changes whenever a source or a tool changes.
///
/// # Errors
/// A source cannot be read.
pub fn inputs(root: &Path, tools: &shrink::Tools) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for source in SOURCES {
        let mut files = Vec::new();
        collect(&root.join(source), &mut files).with_context(|| format!("cannot read {source}"))?;
        files.sort();
        for file in files {
            file.strip_prefix(root).unwrap_or(&file).hash(&mut hasher);
            fs::read(&file)
                .with_context(|| format!("cannot read {}", file.display()))?
                .hash(&mut hasher);
        }
    }
    module::compiler()?.hash(&mut hasher);
    module::has_library_source()?.hash(&mut hasher);
    tools.hash(&mut hasher);
    Ok(format!("{:016x}\n", hasher.finish()))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    } else {
        files.push(path.to_owned());
    }
    Ok(())
}
