//! Makes a release: `target/dist/platform-<version>-<target>.tar.gz`, with the
//! programs, the documents, the licences, the bill of materials, and the folder
//! `cli/` of the command line for every machine, which the platform hands out; and
//! a Debian package of the same files.
//! `cargo xtask dist` sets up and calls it.
//!
//! | module | holds |
//! |---|---|
//! | [`programs`] | building the same program in any folder |
//! | [`linked_crates`] | which crates are in it |
//! | [`licences`] | their licences |
//! | [`sbom`] | the bill of materials |
//! | [`targets`] | the machines that the command line is built for |
//! | [`command_line`] | the files of the command line, as a platform hands them out |
//! | [`archive`] | archives |
//! | [`contents`] | what is in a release besides the programs, and where Debian has it |
//! | [`debian`] | the Debian package |
//! | [`trial`] | a Debian package of programs that were built before |
//! | [`run`] | running other programs |

mod archive;
mod command_line;
mod contents;
mod debian;
mod licences;
mod linked_crates;
mod programs;
mod run;
mod sbom;
mod targets;
mod trial;
mod vite_plugin;

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use flate2::Compression;

use crate::archive::Files;
use crate::command_line::{Packing, Program};
use crate::debian::Package;
use crate::programs::Toolchain;

/// The features of a release that a build for development leaves out.
const FEATURES: &str = "platform-server/cluster";

/// The folder of the command line for every machine. The server looks for it beside itself.
const CLI: &str = "cli";

/// The licences of everything that is linked into the programs.
pub(crate) const LICENCES: &str = "THIRD-PARTY-LICENSES.txt";

/// Makes a release of the workspace in the current folder.
#[derive(Parser)]
struct Arguments {
    /// Build the last commit in two folders, and fail unless the archives are
    /// the same.
    #[arg(long)]
    verify: bool,
    #[command(subcommand)]
    other: Option<Other>,
}

/// What else there is to make.
#[derive(Subcommand)]
enum Other {
    /// Pack a command line that was built for this machine, so that a server in
    /// development can hand it out.
    CommandLine {
        /// The program.
        program: PathBuf,
        /// The folder to write to.
        folder: PathBuf,
    },
    /// Pack programs that were built for this machine as a Debian package, to try it out: it has no bill of
    /// materials and no licences of others, so it must not be handed on. Prints its path.
    DebianPackage {
        /// The server.
        server: PathBuf,
        /// The command line.
        program: PathBuf,
        /// The folder to write to.
        folder: PathBuf,
    },
}

/// A file and its name.
type Named = (String, Vec<u8>);

/// What a release consists of.
struct Release {
    /// The archive.
    archive: Named,
    /// The Debian package.
    package: Named,
    /// The files of the folder `cli/`, which are also in the archive.
    command_line: Vec<Named>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(Other::CommandLine { program, folder }) = arguments.other {
        return command_line::write_for_this_machine(&program, &folder);
    }
    let root = env::current_dir().context("the folder is gone")?;
    ensure!(
        root.join("Cargo.lock").is_file(),
        "{} is no workspace",
        root.display()
    );
    if let Some(Other::DebianPackage {
        server,
        program,
        folder,
    }) = arguments.other
    {
        let path = trial::write(&root, &server, &program, &folder)?;
        return writeln!(std::io::stdout(), "{}", path.display()).context("cannot print the path");
    }
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
    write_all(&root.join("target/dist"), release)
}

/// Writes the archive, the folder `cli/`, and the sums of both, which are printed as well.
fn write_all(folder: &Path, release: Release) -> Result<()> {
    let cli = folder.join(CLI);
    if cli.exists() {
        fs::remove_dir_all(&cli).context("cannot replace the folder cli/")?;
    }
    fs::create_dir_all(&cli).with_context(|| format!("cannot make {}", cli.display()))?;
    let inside = release.command_line.into_iter();
    let inside = inside.map(|(name, bytes)| (format!("{CLI}/{name}"), bytes));
    let mut sums = String::new();
    for (name, bytes) in [release.archive, release.package].into_iter().chain(inside) {
        let path = folder.join(&name);
        fs::write(&path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
        note(&format!("target/dist/{name}: {} bytes", bytes.len()));
        sums += &format!("{}  {name}\n", archive::sum(&bytes));
    }
    fs::write(folder.join(archive::SUMS), &sums).context("cannot write the sums")?;
    write!(std::io::stdout(), "{sums}").context("cannot print the sums")
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
    // The archive contains the folder as well.
    if one.archive != other.archive {
        // Both are kept for inspection: `diffoscope` shows the differences.
        let dist = root.join("target/dist");
        fs::create_dir_all(&dist)?;
        fs::write(dist.join("one.tar.gz"), &one.archive.1)?;
        fs::write(dist.join("other.tar.gz"), &other.archive.1)?;
        anyhow::bail!("target/dist/one.tar.gz and target/dist/other.tar.gz differ");
    }
    note("both are the same");
    Ok(one)
}

/// Makes the archive of the workspace at `root`, as of a commit at `seconds`, or of what has
/// changed since.
fn make(root: &Path, toolchain: &Toolchain, seconds: u64, is_changed: bool) -> Result<Release> {
    let built = programs::build(root, toolchain, seconds)?;
    let command_lines = programs::build_command_lines(root, toolchain, seconds)?;
    let crates = linked_crates::crates(root, &toolchain.host)?;
    let version = env!("CARGO_PKG_VERSION");
    let mut files = Files::default();
    for program in ["platform-server", "platform"] {
        files.add(program, read(&built.join(program))?, true)?;
    }
    contents::add_texts(&mut files, root)?;
    let licences = licences::text(&crates)?.into_bytes();
    files.add(
        "platform.cdx.json",
        sbom::bill(&crates, version, seconds)?.into_bytes(),
        false,
    )?;
    let command_line = command_line(root, &command_lines, &licences, version, seconds)?;
    for (name, bytes) in &command_line {
        files.add(&format!("{CLI}/{name}"), bytes.clone(), false)?;
    }
    files.add(LICENCES, licences, false)?;
    files.add_sums()?;
    let packing = (seconds, Compression::best());
    let mut package = Package::new(version, &toolchain.host, is_changed, packing)?;
    contents::fill(&mut package, &files)?;
    let top = top(version, &toolchain.host, is_changed);
    let archive = files.packed(&top, seconds, Compression::best())?;
    Ok(Release {
        archive: (format!("{top}.tar.gz"), archive),
        package: (package.file_name(), package.packed()?),
        command_line,
    })
}

/// Packs the command line for every machine, with all licences.
fn command_line(
    root: &Path,
    programs: &[Program],
    licences: &[u8],
    version: &str,
    seconds: u64,
) -> Result<Vec<Named>> {
    let mut texts = vec![(LICENCES, licences.to_vec())];
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        texts.push((name, read(&root.join(name))?));
    }
    let packing = Packing {
        version,
        seconds,
        level: Compression::best(),
    };
    command_line::folder(programs, &texts, packing)
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The name of an archive and of the folder in it. A build with uncommitted changes has another
/// name than a release.
fn top(version: &str, host: &str, is_changed: bool) -> String {
    let dirty = if is_changed { "-dirty" } else { "" };
    format!("platform-{version}{dirty}-{host}")
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
