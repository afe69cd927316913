//! A Debian package of programs that were built before, for this machine: to try the package out, without the
//! minutes that a release takes. It lacks the bill of materials and the licences of linked crates.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;

use crate::archive::Files;
use crate::debian::Package;
use crate::targets::Target;
use crate::{CLI, command_line, contents, read};

/// Writes the package, called as one of uncommitted changes, into `folder`. Returns its path. `root` is the
/// workspace, from which documents and units come.
///
/// # Errors
/// A file cannot be read or written; Debian has no name for this machine.
pub(crate) fn write(root: &Path, server: &Path, program: &Path, folder: &Path) -> Result<PathBuf> {
    let mut files = Files::default();
    files.add("platform-server", read(server)?, true)?;
    files.add("platform", read(program)?, true)?;
    contents::add_texts(&mut files, root)?;
    for (name, bytes) in command_line::of_this_machine(program)? {
        files.add(&format!("{CLI}/{name}"), bytes, false)?;
    }
    let packing = (0, Compression::fast());
    let version = env!("CARGO_PKG_VERSION");
    let mut package = Package::new(version, Target::of_this_machine()?.triple, true, packing)?;
    contents::fill(&mut package, &files)?;
    let path = folder.join(package.file_name());
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(&path, package.packed()?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
