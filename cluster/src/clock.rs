//! A program whose clock is wrong, with Debian's libfaketime: time passes as it does, and the time of
//! day is another one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The folders of libraries; Debian has one for each architecture in the first.
const LIBRARIES: [&str; 2] = ["/usr/lib", "/usr/lib64"];
/// The library, which is loaded before all others, in those folders.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// Starts the command with a clock that is so many seconds ahead, or behind if it is negative.
///
/// # Errors
/// The library is missing.
pub(crate) fn shift(command: &mut Command, seconds: i32) -> Result<()> {
    if seconds == 0 {
        return Ok(());
    }
    let library = library().context(
        "`libfaketimeMT.so.1` was not found: `cargo xtask test` installs it; Debian's package is \
         `faketime`",
    )?;
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME", format!("{seconds:+}"))
        // Only the time of day is wrong: neither the time that passes, nor the times of files.
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("NO_FAKE_STAT", "1");
    Ok(())
}

fn library() -> Option<PathBuf> {
    let of_architectures = std::fs::read_dir(LIBRARIES[0]).into_iter().flatten();
    let of_architectures = of_architectures.filter_map(|entry| Some(entry.ok()?.path()));
    let folders = LIBRARIES.iter().map(|folder| Path::new(folder).to_owned());
    folders
        .chain(of_architectures)
        .map(|folder| folder.join(LIBRARY))
        .find(|library| library.is_file())
}
