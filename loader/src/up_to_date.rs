//! Whether the built files are up to date with their sources.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{module, shrink};

/// Files that are built together.
#[derive(Debug)]
pub struct Product {
    /// The file that names what they were built from.
    pub stamp: &'static str,
    /// What they depend on.
    sources: &'static [&'static str],
    /// What a build leaves behind for the server.
    built: &'static [&'static str],
}

/// The runtime in games' pages.
pub const RUNTIME: Product = Product {
    stamp: "loader/dist/inputs",
    sources: &[
        "Cargo.lock",
        "Cargo.toml",
        "loader/js",
        "loader/package-lock.json",
        "loader/src",
        "protocol/Cargo.toml",
        "protocol/src",
        "runtime-wasm/Cargo.toml",
        "runtime-wasm/src",
    ],
    built: &["loader/dist/runtime.js", "loader/dist/runtime.js.map"],
};

/// The module with which the console's page prepares an upload.
pub const UPLOAD: Product = Product {
    stamp: "loader/dist/upload.inputs",
    sources: &[
        "Cargo.lock",
        "Cargo.toml",
        "checks/Cargo.toml",
        "checks/src",
        "loader/src",
        "protocol/Cargo.toml",
        "protocol/src",
        "upload/Cargo.toml",
        "upload/src",
    ],
    built: &[
        "loader/dist/upload_module.js",
        "loader/dist/upload_module_bg.wasm",
    ],
};

/// The files and folders whose change makes the built files stale, for a build
/// script to name to cargo. The built files are among them, so that it runs again
/// where they were removed or built anew: `npm ci` in `loader/` removes one.
#[must_use]
pub fn watched(root: &Path) -> Vec<PathBuf> {
    let installed = root.join(shrink::INSTALLED);
    let products = [RUNTIME, UPLOAD];
    let files = products
        .iter()
        .flat_map(|product| product.sources.iter().chain(product.built));
    let mut watched: Vec<PathBuf> = files.map(|file| root.join(file)).collect();
    watched.sort();
    watched.dedup();
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
    for file in RUNTIME.built.iter().chain(UPLOAD.built) {
        let file = fs::File::options().append(true).open(root.join(file))?;
        if file.metadata()?.modified()? > began {
            file.set_modified(began)?;
        }
    }
    Ok(())
}

impl Product {
    /// A text that changes whenever a source or a tool changes.
    ///
    /// # Errors
    /// A source cannot be read.
    pub fn inputs(&self, root: &Path, tools: impl Hash) -> Result<String> {
        let mut hasher = DefaultHasher::new();
        for source in self.sources {
            let mut files = Vec::new();
            collect(&root.join(source), &mut files)
                .with_context(|| format!("cannot read {source}"))?;
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

    /// Whether the built files are there, from these inputs.
    #[must_use]
    pub fn is_built(&self, root: &Path, inputs: &str) -> bool {
        let stamp = fs::read_to_string(root.join(self.stamp));
        stamp.is_ok_and(|built| built == inputs)
            && self.built.iter().all(|file| root.join(file).exists())
    }
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
        write("run", 20);
        for product in [RUNTIME, UPLOAD] {
            let [first, second] = product.built else {
                panic!("{product:?}");
            };
            write(first, 30);
            write(second, 10);
        }
        date_back(root, &root.join("run")).unwrap();
        for product in [RUNTIME, UPLOAD] {
            let times: Vec<_> = product.built.iter().map(|name| time(name)).collect();
            assert_eq!(times, [at(20), at(10)]);
            for built in product.built {
                assert!(watched(root).contains(&root.join(built)));
            }
        }
    }
}
