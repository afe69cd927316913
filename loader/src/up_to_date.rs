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

/// What a build leaves behind for the server.
const BUILT: [&str; 2] = ["loader/dist/runtime.js", "loader/dist/runtime.js.map"];

/// The files and folders whose change makes the built files stale, for a build
/// script to name to cargo. The built files are among them, so that it runs again
/// where they were removed or built anew: `npm ci` in `loader/` removes one.
#[must_use]
pub fn watched(root: &Path) -> Vec<PathBuf> {
    let installed = root.join(shrink::INSTALLED);
    let files = SOURCES.iter().chain(&BUILT);
    let mut watched: Vec<PathBuf> = files.map(|file| root.join(file)).collect();
    // Cargo treats a missing file as changed in every build.
    watched.extend(installed.exists().then_some(installed));
    watched
}

/// Makes built files no younger than `run`, a file that cargo writes where it runs
/// a build script: what that script itself has built is no reason to run it again.
///
/// # Errors
/// A file's time cannot be read or changed.
pub fn date_back(root: &Path, run: &Path) -> std::io::Result<()> {
    let began = fs::metadata(run)?.modified()?;
    for file in BUILT {
        let file = fs::File::options().append(true).open(root.join(file))?;
        if file.metadata()?.modified()? > began {
            file.set_modified(began)?;
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_built_file_that_goes_or_changes_is_noticed_and_one_that_was_just_built_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("loader/dist")).unwrap();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let write = |name: &str, seconds| {
            let file = fs::File::create(root.join(name)).unwrap();
            file.set_modified(at(seconds)).unwrap();
        };
        let time = |name: &str| fs::metadata(root.join(name)).unwrap().modified().unwrap();
        let [script, map] = BUILT;
        write("run", 20);
        write(script, 30);
        write(map, 10);
        date_back(root, &root.join("run")).unwrap();
        assert_eq!([time(script), time(map)], [at(20), at(10)]);
        for built in BUILT {
            assert!(watched(root).contains(&root.join(built)));
        }
    }
}
