//! The command line that the platform hands out: the folder `cli/` of a release, read and checked
//! once, at the start.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use askama::Template;
use axum::http::HeaderValue;
use base16ct::lower::encode_string;
use bytes::Bytes;
use platform_protocol::command_line::{Cpu, LIST, Os, Release, ReleaseFile};
use sha2::{Digest as _, Sha256};

use crate::origin::PlatformOrigin;
use crate::web::asset::{Asset, Packed};

/// Names and sums of these files stay the same until the server is started again, but not their
/// content under a name.
const CACHE_CONTROL: &str = "no-cache";
const TEXT: &str = "text/plain; charset=utf-8";
/// The number of bytes per read.
const PIECE: usize = 256 * 1024;

/// Why the command line cannot be handed out; a line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum CommandLineError {
    /// A file cannot be read.
    #[error("cli_folder: {} cannot be read; it is a folder of programs that a release has", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The list is not one that `cargo xtask dist` made.
    #[error("cli_folder: {} is not a list of a release; copy the folder again", .0.display())]
    NotAList(PathBuf),
    /// A file is not the one that is listed.
    #[error("cli_folder: {} has another SHA-256 than {LIST} says; copy the folder again", .0.display())]
    Damaged(PathBuf),
    /// A text cannot be prepared.
    #[error("the installer of the command line cannot be prepared")]
    Prepare(#[source] std::io::Error),
}

/// The command line that the platform hands out.
#[derive(Debug)]
pub struct CommandLine {
    /// The installer. Without a release it says so.
    pub installer: Asset,
    /// What there is to install, if the server has it.
    pub release: Option<HandedOut>,
}

/// The files of a release.
#[derive(Debug)]
pub struct HandedOut {
    /// The list of the files.
    pub list: Release,
    /// The list, for programs.
    pub json: Asset,
    /// The sums, for `sha256sum --check`.
    pub sums: Asset,
    /// The version, for the answers of the project API.
    pub header: HeaderValue,
    files: Vec<Arc<File>>,
}

/// An installer for shells.
#[derive(Template)]
#[template(path = "install.sh", escape = "none")]
struct Installer<'a> {
    origin: &'a str,
    programs: Vec<Installed<'a>>,
}

/// A program that the installer can install.
struct Installed<'a> {
    /// A pattern for what `uname -s` and `uname -m` print.
    uname: &'static str,
    name: &'a str,
    sha256: &'a str,
}

impl CommandLine {
    /// Reads the folder, if there is one, and checks all of its files.
    ///
    /// # Errors
    /// A file is missing or damaged.
    pub fn open(folder: Option<&Path>, origin: &PlatformOrigin) -> Result<Self, CommandLineError> {
        let release = folder.map(HandedOut::open).transpose()?;
        let listed = release.iter().flat_map(|release| &release.list.files);
        let script = Installer {
            origin: &origin.to_string(),
            programs: listed.filter_map(Installed::of).collect(),
        };
        let script = script.render();
        let script = script.map_err(|error| CommandLineError::Prepare(error.into()))?;
        Ok(Self {
            installer: asset(script, TEXT)?,
            release,
        })
    }
}

impl HandedOut {
    fn open(folder: &Path) -> Result<Self, CommandLineError> {
        let path = folder.join(LIST);
        let text = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
        let list: Option<Release> = serde_json::from_str(&text).ok();
        // The names are written into addresses, and with the sums into a script.
        let list = list.filter(Release::is_plain);
        let list = list.ok_or(CommandLineError::NotAList(path))?;
        let header = HeaderValue::from_str(&list.version)
            .map_err(|_| CommandLineError::NotAList(folder.join(LIST)))?;
        let files = list.files.iter().map(|file| checked(folder, file));
        let sums = list
            .files
            .iter()
            .map(|file| format!("{}  {}\n", file.sha256, file.name));
        Ok(Self {
            files: files.collect::<Result<_, _>>()?,
            sums: asset(sums.collect(), TEXT)?,
            json: asset(text, "application/json")?,
            header,
            list,
        })
    }

    /// Returns the file with this name, and its entry in the list.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<(&ReleaseFile, &Arc<File>)> {
        let mut files = self.list.files.iter().zip(&self.files);
        files.find(|(file, _)| file.name == name)
    }
}

impl<'a> Installed<'a> {
    /// `None` for what a shell script cannot install.
    fn of(file: &'a ReleaseFile) -> Option<Self> {
        let machine = file.machine?;
        let uname = match (machine.os, machine.cpu) {
            (Os::Linux, Cpu::X86_64) => "'Linux x86_64' | 'Linux amd64'",
            (Os::Linux, Cpu::Aarch64) => "'Linux aarch64' | 'Linux arm64'",
            (Os::MacOs, Cpu::X86_64) => "'Darwin x86_64'",
            (Os::MacOs, Cpu::Aarch64) => "'Darwin arm64'",
            (Os::Windows, _) => return None,
        };
        Some(Self {
            uname,
            name: &file.name,
            sha256: &file.sha256,
        })
    }
}

/// Opens a file whose content is as listed. It stays open, so that what is served is what was
/// checked, even if another file takes its place.
fn checked(folder: &Path, listed: &ReleaseFile) -> Result<Arc<File>, CommandLineError> {
    let path = folder.join(&listed.name);
    let mut file = File::open(&path).map_err(unreadable(&path))?;
    let mut digest = Sha256::new();
    let (mut size, mut piece) = (0, vec![0; PIECE]);
    loop {
        let read = file.read(&mut piece).map_err(unreadable(&path))?;
        if read == 0 {
            break;
        }
        digest.update(piece.get(..read).unwrap_or_default());
        size += read as u64;
    }
    let sum = encode_string(&digest.finalize());
    if sum == listed.sha256 && size == listed.bytes {
        Ok(Arc::new(file))
    } else {
        Err(CommandLineError::Damaged(path))
    }
}

fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> CommandLineError {
    let path = path.to_owned();
    move |source| CommandLineError::Unreadable { path, source }
}

fn asset(text: String, content_type: &'static str) -> Result<Asset, CommandLineError> {
    let packed = Packed::new(Bytes::from(text)).map_err(CommandLineError::Prepare)?;
    Ok(Asset::new(packed, content_type, CACHE_CONTROL))
}
