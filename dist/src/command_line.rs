//! The folder `cli/`, which a platform hands out: an archive of the command line for each machine, an
//! npm package with all of them, the plugin for Vite, and the list of these files.

use std::path::Path;

use anyhow::{Context, Result};
use flate2::Compression;
use platform_protocol::command_line::{
    LIST, Machine, NPM_PACKAGE, Release, ReleaseFile, VITE_PLUGIN,
};
use serde_json::json;

use crate::archive::{Files, sum};
use crate::targets::Target;
use crate::vite_plugin;

/// What npm runs. It finds the program of the machine.
const NPM_PROGRAM: &str = include_str!("../npm/platform.js");

/// The command line for one machine.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The machine.
    pub(crate) target: Target,
    /// The program.
    pub(crate) bytes: Vec<u8>,
}

/// How the files are packed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packing<'a> {
    /// The version of the programs.
    pub(crate) version: &'a str,
    /// The time of every file (Unix).
    pub(crate) seconds: u64,
    /// How much time the compression may take.
    pub(crate) level: Compression,
}

/// Returns the files of the folder, by name. `texts` are the licences, which every archive contains.
///
/// # Errors
/// A file does not fit into its archive.
pub(crate) fn folder(
    programs: &[Program],
    texts: &[(&str, Vec<u8>)],
    packing: Packing<'_>,
) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files: Vec<(String, Vec<u8>, Option<Machine>)> = Vec::new();
    for program in programs {
        let mut content = with_texts(texts)?;
        let target = program.target;
        content.add(target.program(), program.bytes.clone(), true)?;
        let packed = if target.archive().ends_with(".zip") {
            content.zipped(&target.folder(), packing.level)?
        } else {
            content.packed(&target.folder(), packing.seconds, packing.level)?
        };
        files.push((target.archive(), packed, Some(target.machine)));
    }
    let npm = npm_package(programs, texts, packing)?;
    files.push((NPM_PACKAGE.to_owned(), npm, None));
    let plugin = vite_plugin::package(texts, packing)?;
    files.push((VITE_PLUGIN.to_owned(), plugin, None));
    let list = Release {
        version: packing.version.to_owned(),
        files: files.iter().map(listed).collect::<Result<_>>()?,
    };
    let list = format!("{}\n", serde_json::to_string_pretty(&list)?);
    let files = files.into_iter().map(|(name, bytes, _)| (name, bytes));
    let list = (LIST.to_owned(), list.into_bytes());
    Ok(files.chain([list]).collect())
}

/// Makes the folder of the command line `program` for this machine alone, which is what a developer
/// of the platform has. It is not compressed well, since it is made anew at every change.
///
/// # Errors
/// The program cannot be read.
pub(crate) fn of_this_machine(program: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let bytes = std::fs::read(program);
    let bytes = bytes.with_context(|| format!("cannot read {}", program.display()))?;
    let program = Program {
        target: Target::of_this_machine()?,
        bytes,
    };
    let packing = Packing {
        version: env!("CARGO_PKG_VERSION"),
        seconds: 0,
        level: Compression::fast(),
    };
    folder(&[program], &[], packing)
}

/// Writes the folder that [`of_this_machine`] makes.
///
/// # Errors
/// The program cannot be read, or the folder cannot be written.
pub(crate) fn write_for_this_machine(program: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for (name, bytes) in of_this_machine(program)? {
        let path = to.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The package that `npm install` takes: it contains every program, so that nothing is downloaded or
/// run when it is installed.
fn npm_package(
    programs: &[Program],
    texts: &[(&str, Vec<u8>)],
    packing: Packing<'_>,
) -> Result<Vec<u8>> {
    let manifest = json!({
        "name": "platform-cli",
        "version": packing.version,
        "description": "The command line of a game platform: sign in, deploy, test users, logs",
        "license": env!("CARGO_PKG_LICENSE"),
        "type": "module",
        "bin": { "platform": "bin/platform.js" },
        "engines": { "node": ">=18" },
    });
    let mut files = with_texts(texts)?;
    files.add("package.json", format!("{manifest:#}\n").into(), false)?;
    files.add("bin/platform.js", NPM_PROGRAM.into(), true)?;
    for Program { target, bytes } in programs {
        let path = format!("programs/{}/{}", target.node, target.program());
        files.add(&path, bytes.clone(), true)?;
    }
    // npm expects this name of the folder.
    files.packed("package", packing.seconds, packing.level)
}

pub(crate) fn with_texts(texts: &[(&str, Vec<u8>)]) -> Result<Files> {
    let mut files = Files::default();
    for (name, text) in texts {
        files.add(name, text.clone(), false)?;
    }
    Ok(files)
}

fn listed((name, bytes, machine): &(String, Vec<u8>, Option<Machine>)) -> Result<ReleaseFile> {
    Ok(ReleaseFile {
        name: name.clone(),
        machine: *machine,
        bytes: u64::try_from(bytes.len())?,
        sha256: sum(bytes),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read as _};

    use flate2::read::GzDecoder;

    use super::*;
    use crate::targets::TARGETS;

    fn made() -> Vec<(String, Vec<u8>)> {
        let programs = TARGETS.map(|target| Program {
            target,
            bytes: target.triple.into(),
        });
        let packing = Packing {
            version: "1.2.3",
            seconds: 1_700_000_000,
            level: Compression::fast(),
        };
        folder(&programs, &[("LICENSE", b"a licence".to_vec())], packing).unwrap()
    }

    /// The paths, modes and contents of an archive.
    fn unpacked(bytes: &[u8]) -> Vec<(String, u32, String)> {
        let mut archive = tar::Archive::new(GzDecoder::new(bytes));
        let entries = archive.entries().unwrap();
        let read = entries.map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            (path, entry.header().mode().unwrap(), text)
        });
        read.collect()
    }

    #[test]
    fn the_list_names_every_file_with_its_sum() {
        let files = made();
        let (name, list) = files.last().unwrap();
        assert_eq!(name, LIST);
        let list: Release = serde_json::from_slice(list).unwrap();
        assert!(list.is_plain());
        assert_eq!(list.version, "1.2.3");
        assert_eq!(list.files.len(), files.len() - 1);
        for (listed, (name, bytes)) in list.files.iter().zip(&files) {
            assert_eq!((&listed.name, &listed.sha256), (name, &sum(bytes)));
            assert_eq!(listed.bytes, bytes.len() as u64);
        }
        let machines: Vec<_> = list.files.iter().map(|file| file.machine).collect();
        let expected = TARGETS.map(|target| Some(target.machine));
        assert_eq!(machines, [&expected[..], &[None, None]].concat());
    }

    #[test]
    fn an_archive_has_the_program_and_the_licences_in_one_folder() {
        let files = made();
        assert_eq!(files[1].0, "platform-linux-aarch64.tar.gz");
        let top = "platform-linux-aarch64";
        let expected = [
            (format!("{top}/LICENSE"), 0o644, "a licence".to_owned()),
            (
                format!("{top}/platform"),
                0o755,
                "aarch64-unknown-linux-musl".to_owned(),
            ),
        ];
        assert_eq!(unpacked(&files[1].1), expected);

        assert_eq!(files[2].0, "platform-windows-x86_64.zip");
        let mut zip = zip::ZipArchive::new(Cursor::new(&files[2].1)).unwrap();
        let mut program = zip.by_name("platform-windows-x86_64/platform.exe").unwrap();
        let mut text = String::new();
        program.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x86_64-pc-windows-gnu");
        drop(program);
        assert_eq!(zip.len(), 2);
    }

    #[test]
    fn the_npm_package_has_all_programs_and_runs_nothing_when_it_is_installed() {
        let files = made();
        let (_, bytes) = files.iter().find(|(name, _)| name == NPM_PACKAGE).unwrap();
        let files = unpacked(bytes);
        let manifest = files
            .iter()
            .find(|(path, ..)| path == "package/package.json");
        let manifest: serde_json::Value = serde_json::from_str(&manifest.unwrap().2).unwrap();
        assert_eq!(manifest["version"], "1.2.3");
        assert!(manifest.get("scripts").is_none());
        let program = manifest["bin"]["platform"].as_str().unwrap();
        let modes = |path: &str| {
            let path = format!("package/{path}");
            files.iter().find(|file| file.0 == path).map(|file| file.1)
        };
        assert_eq!(modes(program), Some(0o755));
        for target in TARGETS {
            let path = format!("programs/{}/{}", target.node, target.program());
            assert_eq!(modes(&path), Some(0o755), "{path}");
        }
    }

    #[test]
    fn the_plugin_for_vite_has_types_and_runs_nothing_when_it_is_installed() {
        let files = made();
        let (_, bytes) = files.iter().find(|(name, _)| name == VITE_PLUGIN).unwrap();
        let files = unpacked(bytes);
        let text = |path: &str| {
            let path = format!("package/{path}");
            let file = files.iter().find(|file| file.0 == path);
            file.map(|file| file.2.clone()).unwrap_or_default()
        };
        let manifest: serde_json::Value = serde_json::from_str(&text("package.json")).unwrap();
        assert!(manifest.get("scripts").is_none() && manifest.get("dependencies").is_none());
        let entry = &manifest["exports"]["."];
        for (kind, part) in [
            ("default", "export default function platform("),
            ("types", "interface Options"),
        ] {
            let path = entry[kind].as_str().unwrap().trim_start_matches("./");
            assert!(text(path).contains(part), "{path}");
        }
        assert!(text("README.md").contains("plugins: [platform()]"));
    }

    #[test]
    fn the_same_programs_are_the_same_bytes() {
        assert_eq!(made(), made());
    }
}
