//! The Debian package of the server: the same bytes for the same files, so it is written here and not by
//! tools that ask the machine for times and owners. The format is that of `deb(5)`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// The name of the package.
const NAME: &str = "platform-server";
/// The oldest C library with which the programs work that Debian 12 builds, and what makes the user.
const DEPENDS: &str = "libc6 (>= 2.36), systemd | systemd-standalone-sysusers";
/// Settings, which an upgrade does not overwrite.
const SETTINGS: &str = "etc/";

/// What a package consists of.
#[derive(Debug)]
pub(crate) struct Package {
    /// Its version, as Debian writes it.
    version: String,
    architecture: &'static str,
    /// The time of everything in it (Unix).
    seconds: u64,
    level: Compression,
    /// The installed files by their path without the first slash, with their modes.
    files: BTreeMap<String, (Vec<u8>, u32)>,
    /// The scripts of the package.
    scripts: BTreeMap<&'static str, Vec<u8>>,
}

impl Package {
    /// Creates a package without files for the machine `host`.
    ///
    /// # Errors
    /// Debian has no name for the machine.
    pub(crate) fn new(
        version: &str,
        host: &str,
        is_changed: bool,
        (seconds, level): (u64, Compression),
    ) -> Result<Self> {
        let architecture = match host.split('-').next() {
            Some("x86_64") => "amd64",
            Some("aarch64") => "arm64",
            _ => bail!("there is no Debian package for {host}"),
        };
        let dirty = if is_changed { "+dirty" } else { "" };
        Ok(Self {
            version: format!("{version}{dirty}"),
            architecture,
            seconds,
            level,
            files: BTreeMap::new(),
            scripts: BTreeMap::new(),
        })
    }

    /// Adds a file that is installed at `path`.
    pub(crate) fn install(&mut self, path: &str, bytes: Vec<u8>) {
        let mode = if path.starts_with("usr/bin/") || path.starts_with("usr/sbin/") {
            0o755
        } else {
            0o644
        };
        self.files.insert(path.to_owned(), (bytes, mode));
    }

    /// Adds a script that runs when the package is installed or removed.
    pub(crate) fn script(&mut self, name: &'static str, bytes: Vec<u8>) {
        self.scripts.insert(name, bytes);
    }

    /// Returns the name of the package's file.
    pub(crate) fn file_name(&self) -> String {
        format!("{NAME}_{}_{}.deb", self.version, self.architecture)
    }

    /// Returns the package.
    ///
    /// # Errors
    /// A path does not fit into the tar format.
    pub(crate) fn packed(&self) -> Result<Vec<u8>> {
        let mut package = b"!<arch>\n".to_vec();
        let members = [
            ("debian-binary", b"2.0\n".to_vec()),
            ("control.tar.gz", self.control()?),
            ("data.tar.gz", self.data()?),
        ];
        for (name, content) in members {
            // ar(5): name, time, owner, group, mode, length, each padded with spaces.
            let head = format!(
                "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
                self.seconds,
                0,
                0,
                "100644",
                content.len()
            );
            package.extend(head.into_bytes());
            package.extend(&content);
            if content.len() % 2 == 1 {
                package.push(b'\n');
            }
        }
        Ok(package)
    }

    fn control(&self) -> Result<Vec<u8>> {
        let bytes: usize = self.files.values().map(|(bytes, _)| bytes.len()).sum();
        let mut control = String::new();
        for (field, value) in [
            ("Package", NAME),
            ("Version", &self.version),
            ("Architecture", self.architecture),
            (
                "Maintainer",
                "The developers of the platform <platform@localhost>",
            ),
            ("Installed-Size", &bytes.div_ceil(1_024).to_string()),
            ("Depends", DEPENDS),
            // dbus for systemd-run, with which platformctl runs a command as the service.
            ("Recommends", "ca-certificates, dbus"),
            ("Section", "net"),
            ("Priority", "optional"),
            (
                "Description",
                "host browser games with players, deploys and logs\n Players have an account in every game, developers deploy folders of files, and\n one server does all of it: sign-in, hosting, the console, the runtime in the page.",
            ),
        ] {
            // Writing to a string cannot fail.
            let _ = writeln!(control, "{field}: {value}");
        }
        let settings = self.files.keys().filter(|path| path.starts_with(SETTINGS));
        let settings: String = settings.map(|path| format!("/{path}\n")).collect();
        let mut tar = self.tar();
        let files = [("conffiles", settings), ("control", control)];
        for (name, text) in files {
            self.append(&mut tar, name, text.as_bytes(), 0o644)?;
        }
        for (name, script) in &self.scripts {
            self.append(&mut tar, name, script, 0o755)?;
        }
        finish(tar)
    }

    fn data(&self) -> Result<Vec<u8>> {
        let mut tar = self.tar();
        let mut made = BTreeSet::new();
        for (path, (bytes, mode)) in &self.files {
            for (end, _) in path.match_indices('/') {
                let folder = path.get(..=end).context("a path is cut")?;
                if made.insert(folder) {
                    self.append_folder(&mut tar, folder)?;
                }
            }
            self.append(&mut tar, path, bytes, *mode)?;
        }
        finish(tar)
    }

    fn tar(&self) -> Builder<flate2::write::GzEncoder<Vec<u8>>> {
        // No name and no time in the gzip header (RFC 1952 §2.3.1).
        Builder::new(GzBuilder::new().write(Vec::new(), self.level))
    }

    fn header(&self, kind: EntryType, length: usize, mode: u32) -> Result<Header> {
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_size(u64::try_from(length)?);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root")?;
        header.set_groupname("root")?;
        header.set_mtime(self.seconds);
        Ok(header)
    }

    fn append<W: std::io::Write>(
        &self,
        tar: &mut Builder<W>,
        path: &str,
        bytes: &[u8],
        mode: u32,
    ) -> Result<()> {
        let mut header = self.header(EntryType::Regular, bytes.len(), mode)?;
        Ok(tar.append_data(&mut header, path, bytes)?)
    }

    fn append_folder<W: std::io::Write>(&self, tar: &mut Builder<W>, path: &str) -> Result<()> {
        let mut header = self.header(EntryType::Directory, 0, 0o755)?;
        Ok(tar.append_data(&mut header, path, std::io::empty())?)
    }
}

fn finish(tar: Builder<flate2::write::GzEncoder<Vec<u8>>>) -> Result<Vec<u8>> {
    Ok(tar.into_inner()?.finish()?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn package() -> Package {
        let packing = (1_700_000_000, Compression::fast());
        let mut package =
            Package::new("1.2.3", "x86_64-unknown-linux-gnu", false, packing).unwrap();
        package.install("usr/bin/platform-server", b"a program".to_vec());
        package.install(
            "usr/share/doc/platform-server/copyright",
            b"a licence".to_vec(),
        );
        package.install("etc/platform/platform.toml", b"a setting".to_vec());
        package.script("postinst", b"#!/bin/sh\nexit 0\n".to_vec());
        package
    }

    fn ask_dpkg(arguments: &[&str], file: &Path, more: &[&str]) -> String {
        let mut command = Command::new("dpkg-deb");
        let output = command
            .args(arguments)
            .arg(file)
            .args(more)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn debian_reads_the_package() {
        let package = package();
        assert_eq!(package.file_name(), "platform-server_1.2.3_amd64.deb");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(package.file_name());
        std::fs::write(&file, package.packed().unwrap()).unwrap();
        assert_eq!(ask_dpkg(&["--field"], &file, &["Version"]), "1.2.3\n");
        assert_eq!(
            ask_dpkg(&["--info"], &file, &["conffiles"]),
            "/etc/platform/platform.toml\n"
        );
        let contents = ask_dpkg(&["--contents"], &file, &[]);
        for line in [
            ("drwxr-xr-x root/root", " usr/bin"),
            ("-rwxr-xr-x root/root", " usr/bin/platform-server"),
            ("-rw-r--r-- root/root", " etc/platform/platform.toml"),
        ] {
            let has = |found: &str| {
                let path = found.trim_end_matches('/');
                found.starts_with(line.0) && path.ends_with(line.1)
            };
            assert!(contents.lines().any(has), "{line:?} in {contents}");
        }
        let root = folder.path().join("root");
        ask_dpkg(&["--extract"], &file, &[root.to_str().unwrap()]);
        let program = std::fs::read(root.join("usr/bin/platform-server")).unwrap();
        assert_eq!(program, b"a program");
    }

    #[test]
    fn a_package_is_the_same_whenever_it_is_made() {
        assert_eq!(package().packed().unwrap(), package().packed().unwrap());
        let packing = (0, Compression::fast());
        let dirty = Package::new("1.2.3", "aarch64-unknown-linux-gnu", true, packing).unwrap();
        assert_eq!(dirty.file_name(), "platform-server_1.2.3+dirty_arm64.deb");
        assert!(Package::new("1.2.3", "riscv64gc-unknown-linux-gnu", true, packing).is_err());
    }
}
