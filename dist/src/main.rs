//! Makes a release: `target/dist/platform-<version>-<target>.tar.gz`, with the
//! programs, the documents, the licences and the bill of materials.
//! `cargo xtask dist` sets up and calls it.
//!
//! | module | holds |
//! |---|---|
//! | [`programs`] | building the same program in any folder |
//! | [`linked_crates`] | which crates are in it |
//! | [`licences`] | their licences |
//! | [`sbom`] | the bill of materials |
//! | [`archive`] | the archive |
//! | [`run`] | running other programs |

mod archive;
mod licences;
mod linked_crates;
mod programs;
mod run;
mod sbom;

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::archive::Files;
use crate::programs::Toolchain;

/// The features of a release that a build for development leaves out.
const FEATURES: &str = "platform-server/cluster";

/// Documents that are copied next to the programs.
const PAGES: [&str; 5] = [
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
];

/// Makes a release of the workspace in the current folder.
#[derive(Parser)]
struct Arguments {
    /// Build the last commit in two folders, and fail unless the archives are
    /// the same.
    #[arg(long)]
    verify: bool,
}

/// An archive and its name.
struct Release {
    name: String,
    bytes: Vec<u8>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let root = env::current_dir().context("the folder is gone")?;
    ensure!(
        root.join("Cargo.lock").is_file(),
        "{} is no workspace",
        root.display()
    );
    let toolchain = toolchain(&root)?;
    let seconds = programs::time_of_commit(&root)?;
    let release = if arguments.verify {
        verified(&root, &toolchain, seconds)?
    } else {
        let is_changed = programs::is_changed(&root)?;
        if is_changed {
            note("the files differ from those of the commit: the archive is called so");
        }
        make(&root, &toolchain, seconds, is_changed)?
    };
    let folder = root.join("target/dist");
    fs::create_dir_all(&folder).context("cannot make target/dist")?;
    let path = folder.join(&release.name);
    fs::write(&path, &release.bytes).with_context(|| format!("cannot write {}", path.display()))?;
    let sums = format!("{}  {}\n", archive::sum(&release.bytes), release.name);
    fs::write(folder.join(archive::SUMS), &sums).context("cannot write the sum")?;
    note(&format!(
        "target/dist/{}: {} bytes",
        release.name,
        release.bytes.len()
    ));
    write!(std::io::stdout(), "{sums}").context("cannot print the sum")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
fn toolchain(root: &Path) -> Result<Toolchain> {
    let folder = |name| env::var_os(name).map(PathBuf::from);
    Toolchain::find(root, folder("CARGO_HOME"), folder("HOME"))
}

/// Makes the archive in two folders whose paths differ in length, and returns it if both are the
/// same.
fn verified(root: &Path, toolchain: &Toolchain, seconds: u64) -> Result<Release> {
    let folder = tempfile::tempdir().context("there is no room for two builds")?;
    // The files in the folder may change meanwhile.
    let commit = programs::commit(root)?;
    let mut made = Vec::new();
    for name in ["one", "another-folder"] {
        let copy = folder.path().join(name);
        programs::copy(root, &commit, &copy)?;
        note(&format!("building in {}", copy.display()));
        made.push(make(&copy, toolchain, seconds, false)?);
        fs::remove_dir_all(&copy).context("cannot remove the copy")?;
    }
    let mut made = made.into_iter();
    let (Some(one), Some(other)) = (made.next(), made.next()) else {
        anyhow::bail!("nothing was made");
    };
    if one.bytes != other.bytes {
        // Both are kept for inspection: `diffoscope` shows the differences.
        let dist = root.join("target/dist");
        fs::create_dir_all(&dist)?;
        fs::write(dist.join("one.tar.gz"), &one.bytes)?;
        fs::write(dist.join("other.tar.gz"), &other.bytes)?;
        anyhow::bail!("target/dist/one.tar.gz and target/dist/other.tar.gz differ");
    }
    note("both are the same");
    Ok(one)
}

/// Makes the archive of the workspace at `root`, as of a commit at `seconds`, or of what has
/// changed since.
fn make(root: &Path, toolchain: &Toolchain, seconds: u64, is_changed: bool) -> Result<Release> {
    let built = programs::build(root, toolchain, seconds)?;
    let crates = linked_crates::crates(root, &toolchain.host)?;
    let version = env!("CARGO_PKG_VERSION");
    let mut files = Files::default();
    let read =
        |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    for program in ["platform-server", "platform"] {
        files.add(program, read(&built.join(program))?, true)?;
    }
    for page in PAGES {
        files.add(page, read(&root.join(page))?, false)?;
    }
    for page in pages(&root.join("docs"))? {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        files.add(&format!("docs/{name}"), read(&page)?, false)?;
    }
    files.add(
        "THIRD-PARTY-LICENSES.txt",
        licences::text(&crates)?.into_bytes(),
        false,
    )?;
    files.add(
        "platform.cdx.json",
        sbom::bill(&crates, version, seconds)?.into_bytes(),
        false,
    )?;
    let top = top(version, &toolchain.host, is_changed);
    Ok(Release {
        bytes: files.packed(&top, seconds)?,
        name: format!("{top}.tar.gz"),
    })
}

/// The name of an archive and of the folder in it. A build with uncommitted changes has another
/// name than a release.
fn top(version: &str, host: &str, is_changed: bool) -> String {
    let dirty = if is_changed { "-dirty" } else { "" };
    format!("platform-{version}{dirty}-{host}")
}

/// The documents, without the example programs in their folders.
fn pages(docs: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(docs).context("cannot read docs/")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(pages)
}

/// Reports progress on standard error.
fn note(line: &str) {
    // A closed standard error must not stop the work.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_no_commit_is_called_so() {
        let host = "x86_64-unknown-linux-gnu";
        assert_eq!(top("1.2.3", host, false), format!("platform-1.2.3-{host}"));
        assert_eq!(
            top("1.2.3", host, true),
            format!("platform-1.2.3-dirty-{host}")
        );
    }
}
