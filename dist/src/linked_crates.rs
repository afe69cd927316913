//! The crates that are linked into a release: those of the two programs and of the modules in
//! pages. Crates that are only used to compile or test are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::FEATURES;
use crate::run::{cargo, output};
use crate::targets::TARGETS;

/// The target of the modules in pages.
const IN_THE_PAGE: &str = "wasm32-unknown-unknown";

/// The name and the version of a crate.
type Named = (String, String);

/// A crate that is linked into something that is released.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crate {
    /// Its name on crates.io, or in this workspace.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// The SPDX expression in its manifest.
    pub(crate) licence: Option<String>,
    /// Where it is developed.
    pub(crate) repository: Option<String>,
    /// The SHA-256 of its package on crates.io.
    pub(crate) checksum: Option<String>,
    /// Where its sources are.
    pub(crate) folder: PathBuf,
    /// The licence file that its manifest names.
    pub(crate) licence_file: Option<PathBuf>,
    /// The linked crates that it uses, as indices into the list.
    pub(crate) uses: Vec<usize>,
}

impl Crate {
    /// Its package URL, the identifier in a bill of materials.
    pub(crate) fn url(&self) -> String {
        // A version may have build metadata after `+`, which is written as `%2B`.
        let version = self.version.replace('+', "%2B");
        format!("pkg:cargo/{}@{version}", self.name)
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    license_file: Option<PathBuf>,
    repository: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// The linked crates of the workspace at `root`, by name and version.
///
/// # Errors
/// The error of cargo.
pub(crate) fn crates(root: &Path, host: &str) -> Result<Vec<Crate>> {
    // With the features that they have in the whole workspace, because they are built that way.
    let whole = ["--workspace", "--features", FEATURES];
    let mut linked = tree(root, host, &whole, &["platform-server", "platform-cli"])?;
    for target in TARGETS {
        linked.extend(tree(root, target.triple, &whole, &["platform-cli"])?);
    }
    for module in ["platform-runtime", "platform-upload"] {
        let choice = format!("--package={module}");
        linked.extend(tree(root, IN_THE_PAGE, &[&choice], &[module])?);
    }
    let arguments = ["metadata", "--format-version=1", "--locked"];
    let metadata = output(cargo(root).args(arguments))?;
    let metadata: Metadata = serde_json::from_str(&metadata).context("cargo metadata")?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let lock: Lock = toml::from_str(&lock).context("Cargo.lock")?;
    Ok(joined(&linked, metadata, lock))
}

/// The names and versions of the crates that `packages` link for a target. Only `cargo tree` knows
/// features and leaves out what runs in the compiler.
fn tree(root: &Path, target: &str, choice: &[&str], packages: &[&str]) -> Result<BTreeSet<Named>> {
    let mut command = cargo(root);
    command.args(["tree", "--locked", "--edges=normal,no-proc-macro"]);
    command.args(choice);
    command.args(["--prefix=depth", "--format= {p}", "--target", target]);
    Ok(reached(&output(&mut command)?, packages))
}

/// The crates that `packages` use, and they themselves, in a tree whose lines begin with their
/// depth. The tree lists a crate's dependencies only where the crate first occurs.
fn reached(tree: &str, packages: &[&str]) -> BTreeSet<Named> {
    let mut uses: BTreeMap<Named, BTreeSet<Named>> = BTreeMap::new();
    let mut path: Vec<Named> = Vec::new();
    for line in tree.lines() {
        let (depth, line) = line.split_once(' ').unwrap_or_default();
        let (Ok(depth), Some(named)) = (depth.parse(), named(line)) else {
            continue;
        };
        path.truncate(depth);
        uses.entry(named.clone()).or_default();
        if let Some(user) = path.last() {
            let used = uses.entry(user.clone()).or_default();
            used.insert(named.clone());
        }
        path.push(named);
    }
    let is_root = |(name, _): &&Named| packages.contains(&name.as_str());
    let mut left: Vec<&Named> = uses.keys().filter(is_root).collect();
    let mut reached = BTreeSet::new();
    while let Some(next) = left.pop() {
        if reached.insert(next.clone()) {
            left.extend(uses.get(next).into_iter().flatten());
        }
    }
    reached
}

/// Parses a line of `cargo tree`: name, `v` and version, and more.
fn named(line: &str) -> Option<Named> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let version = words.next()?.strip_prefix('v')?;
    Some((name.to_owned(), version.to_owned()))
}

fn joined(linked: &BTreeSet<Named>, metadata: Metadata, lock: Lock) -> Vec<Crate> {
    let checksums: BTreeMap<(String, String), Option<String>> = lock
        .package
        .into_iter()
        .map(|locked| ((locked.name, locked.version), locked.checksum))
        .collect();
    let mut packages: Vec<Package> = metadata
        .packages
        .into_iter()
        .filter(|package| linked.contains(&(package.name.clone(), package.version.clone())))
        .collect();
    packages.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    let places: BTreeMap<&str, usize> = packages
        .iter()
        .enumerate()
        .map(|(place, package)| (&*package.id, place))
        .collect();
    let uses: BTreeMap<&str, Vec<usize>> = metadata
        .resolve
        .nodes
        .iter()
        .map(|node| {
            let used = node.dependencies.iter();
            let used = used.filter_map(|id| places.get(&**id).copied());
            let used: BTreeSet<usize> = used.collect();
            (&*node.id, used.into_iter().collect())
        })
        .collect();
    let of = |package: &Package| Crate {
        checksum: checksums
            .get(&(package.name.clone(), package.version.clone()))
            .cloned()
            .flatten(),
        uses: uses.get(&*package.id).cloned().unwrap_or_default(),
        name: package.name.clone(),
        version: package.version.clone(),
        licence: package.license.clone(),
        repository: package.repository.clone(),
        folder: package
            .manifest_path
            .parent()
            .map(Path::to_owned)
            .unwrap_or_default(),
        licence_file: package.license_file.clone(),
    };
    packages.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_programs_use_is_linked_wherever_the_tree_shows_it() {
        let tree = "0 platform-tests v0.1.0 (/w/tests)\n\
                    1 insta v1.0.0\n\
                    1 platform-server v0.1.0 (/w/server)\n\
                    2 serde_json v1.0.2\n\
                    3 indexmap v2.0.0\n\
                    2 url v2.5.0\n\n\
                    0 platform-cli v0.1.0 (/w/cli)\n\
                    1 serde_json v1.0.2 (*)\n\n\
                    0 platform-server v0.1.0 (/w/server) (*)\n";
        let names = |packages: &[&str]| {
            let reached = reached(tree, packages).into_iter();
            reached.map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(
            names(&["platform-cli"]),
            ["indexmap", "platform-cli", "serde_json"]
        );
        assert_eq!(
            names(&["platform-server"]),
            ["indexmap", "platform-server", "serde_json", "url"]
        );
    }

    #[test]
    fn a_crate_that_only_runs_in_the_compiler_is_not_linked() {
        let linked = [
            "serde v1.0.1",
            "platform-server v0.1.0 (/w/server)",
            "",
            "serde v1.0.1 (*)",
        ];
        let linked: BTreeSet<_> = linked.iter().filter_map(|line| named(line)).collect();
        assert_eq!(linked.len(), 2);
        let package = |name: &str, version: &str| {
            format!(
                r#"{{"id":"{name}","name":"{name}","version":"{version}","license":"MIT","license_file":null,"repository":null,"manifest_path":"/r/{name}/Cargo.toml"}}"#
            )
        };
        let metadata = format!(
            r#"{{"packages":[{},{},{}],"resolve":{{"nodes":[{{"id":"platform-server","dependencies":["serde","syn"]}}]}}}}"#,
            package("syn", "3.0.0"),
            package("serde", "1.0.1"),
            package("platform-server", "0.1.0"),
        );
        let lock = "[[package]]\nname = \"serde\"\nversion = \"1.0.1\"\nchecksum = \"00ff\"\n";
        let crates = joined(
            &linked,
            serde_json::from_str(&metadata).unwrap(),
            toml::from_str(lock).unwrap(),
        );
        let names: Vec<&str> = crates.iter().map(|found| &*found.name).collect();
        assert_eq!(names, ["platform-server", "serde"]);
        assert_eq!(crates[0].uses, [1]);
        assert_eq!(crates[1].checksum.as_deref(), Some("00ff"));
        assert_eq!(crates[1].folder, Path::new("/r/serde"));
    }

    #[test]
    fn a_version_with_build_metadata_is_escaped_in_a_package_url() {
        let toml = Crate {
            name: "toml".into(),
            version: "1.2.1+spec-1.1.0".into(),
            ..Crate::default()
        };
        assert_eq!(toml.url(), "pkg:cargo/toml@1.2.1%2Bspec-1.1.0");
    }
}
