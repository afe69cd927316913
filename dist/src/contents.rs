//! What is in a release besides the programs, and where Debian has it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::archive::{self, Files};
use crate::debian::Package;
use crate::{LICENCES, read};

/// Documents that are copied next to the programs.
const PAGES: [&str; 5] = [
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
];

/// Adds the documents, and what `deploy/` has for other programs.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn add_texts(files: &mut Files, root: &Path) -> Result<()> {
    for page in PAGES {
        files.add(page, read(&root.join(page))?, false)?;
    }
    for page in pages(&root.join("docs"))? {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        files.add(&format!("docs/{name}"), read(&page)?, false)?;
    }
    for (name, bytes) in tree(&root.join("deploy"))? {
        let is_program = Path::new(&name)
            .extension()
            .is_some_and(|extension| extension == "sh");
        files.add(&format!("deploy/{name}"), bytes, is_program)?;
    }
    Ok(())
}

/// Puts the files of the archive where Debian has such files.
///
/// # Errors
/// A script of the package is missing.
pub(crate) fn fill(package: &mut Package, files: &Files) -> Result<()> {
    const UNITS: &str = "usr/lib/systemd/system";
    const SHARED: &str = "usr/share/platform-server";
    let has_place = |name: &str| match name {
        "platform-server" | "platform" => Some(format!("usr/bin/{name}")),
        "deploy/debian/handed-out.conf" => {
            Some(format!("{UNITS}/platform-server.service.d/handed-out.conf"))
        }
        "deploy/debian/sysusers.conf" => Some("usr/lib/sysusers.d/platform-server.conf".to_owned()),
        "deploy/debian/platform.toml" => Some("etc/platform/platform.toml".to_owned()),
        "deploy/debian/platformctl" => Some("usr/sbin/platformctl".to_owned()),
        LICENCES => Some("usr/share/doc/platform-server/copyright".to_owned()),
        archive::SUMS => None,
        _ if name.starts_with("deploy/debian/") => None,
        _ if name.starts_with("deploy/systemd/") => Some(name.replacen("deploy/systemd", UNITS, 1)),
        _ if name.starts_with("deploy/first-game/") => Some(name.replacen("deploy", SHARED, 1)),
        _ if name.starts_with("cli/") => Some(format!("{SHARED}/{name}")),
        _ => Some(format!("usr/share/doc/platform-server/{name}")),
    };
    for (name, file) in files.iter() {
        if let Some(path) = has_place(name) {
            package.install(&path, file.bytes.clone());
        }
    }
    for script in ["postinst", "prerm", "postrm"] {
        let name = format!("deploy/debian/{script}");
        let found = files.iter().find(|(path, _)| **path == name);
        let (_, file) = found.with_context(|| format!("{name} is missing"))?;
        package.script(script, file.bytes.clone());
    }
    Ok(())
}

/// Returns all files below a folder by their path in it.
fn tree(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            let inside = tree(&entry.path())?.into_iter();
            found.extend(inside.map(|(path, bytes)| (format!("{name}/{path}"), bytes)));
        } else {
            found.push((name, read(&entry.path())?));
        }
    }
    Ok(found)
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

#[cfg(test)]
mod tests;
