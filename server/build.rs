//! Builds the runtime, puts it where the server embeds it from, and packs the
//! files that are the same on every platform: at its start the server would take
//! a third of a second for what is done here once.
//!
//! The runtime is built here and not before, so that cargo compiles the server's
//! dependencies meanwhile.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;
use platform_compression::{BEST, SMALL, brotli};

/// The console's stylesheet: what the pages share, and then what each has for
/// itself. It is small enough to be sent as one, whichever page comes first.
const STYLES: [&str; 7] = [
    "shared",
    "log",
    "build",
    "project",
    "errors",
    "admin",
    "documents",
];

/// The first version of glibc that reads packed relocations.
const PACKED: (u32, u32) = (2, 36);

/// Has the linker pack the addresses that are set at the start, if the program runs where it is built: an idle
/// server then takes 4 MB less, and does not start on a machine with an older glibc.
fn pack_relocations(runs_here: bool) {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let version = said.ok().and_then(|said| {
        let said = String::from_utf8(said.stdout).ok()?;
        let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    if runs_here && version.is_some_and(|version: (u32, u32)| version >= PACKED) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo tells build scripts everything through the environment.
    #[expect(clippy::disallowed_methods, reason = "a build script has no other way")]
    let variable = |name| env::var(name).map_err(|error| format!("{name}: {error}"));
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("..");
    let out = PathBuf::from(variable("OUT_DIR")?);

    let map = copy_runtime(root.canonicalize()?, &out)?;
    pack(&out, "runtime.js.map", &map)?;
    let styles = root.join("www/styles");
    pack(
        &out,
        "platform.css",
        &fs::read(styles.join("platform.css"))?,
    )?;
    let parts = STYLES.map(|part| fs::read(styles.join(format!("console/{part}.css"))));
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    pack(&out, "console.css", &parts.concat())?;
    pack_modules(&root.join("www/console"), &out)?;
    pack_upload(&root.canonicalize()?, &out)?;

    if variable("PROFILE")? == "release" && variable("CARGO_CFG_TARGET_ENV")? == "gnu" {
        pack_relocations(variable("HOST")? == variable("TARGET")?);
    }

    for embedded in [
        "../www/demo/game",
        "../www/pages",
        "../www/styles",
        "../www/console",
        "askama.toml",
        "build.rs",
    ] {
        println!("cargo:rerun-if-changed={embedded}");
    }
    Ok(())
}

/// Builds `loader/dist`, unless it is that of the sources as they are, copies
/// `runtime.js` to `out`, and returns its source map.
fn copy_runtime(workspace_root: PathBuf, out: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    for file in platform_loader::up_to_date::watched(&workspace_root) {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    let dist = workspace_root.join("loader/dist");
    let options = platform_loader::Options { workspace_root };
    // The alternate form shows what each error was caused by. The files are locked
    // until they have been read.
    let _built = platform_loader::build(&options)
        .map_err(|error| format!("runtime.js cannot be built: {error:#}"))?;
    fs::copy(dist.join("runtime.js"), out.join("runtime.js"))?;
    let map = fs::read(dist.join("runtime.js.map"))?;
    Ok(map)
}

/// Builds the module of the console's upload, unless it is that of the sources as they are, and packs
/// it with its script.
fn pack_upload(workspace_root: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    platform_loader::upload::build(workspace_root)
        .map_err(|error| format!("the module of the upload cannot be built: {error:#}"))?;
    let dist = workspace_root.join("loader/dist");
    for name in ["upload_module.js", "upload_module_bg.wasm"] {
        pack(out, name, &fs::read(dist.join(name))?)?;
    }
    // A cargo that keeps no such file runs this once more, and no more than that.
    let run = out.join("../invoked.timestamp");
    if run.exists() {
        platform_loader::up_to_date::date_back(workspace_root, &run)?;
    }
    Ok(())
}

/// Empties the lines that consist of comments alone, so that positions stay the same: a third of
/// what browsers would load is types and explanations.
fn without_comments(script: &str) -> String {
    let mut text = String::with_capacity(script.len());
    let mut is_inside = false;
    for line in script.lines() {
        let trimmed = line.trim();
        is_inside = is_inside || (trimmed.starts_with("/**") && !trimmed.contains("*/"));
        let is_alone =
            trimmed.starts_with("//") || (trimmed.starts_with("/**") && trimmed.ends_with("*/"));
        if !is_inside && !is_alone {
            text.push_str(line);
        }
        is_inside = is_inside && !trimmed.ends_with("*/");
        text.push('\n');
    }
    text
}

/// Packs the console's scripts, and lists them in `modules.rs`.
fn pack_modules(from: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        names.push(
            name.into_string()
                .map_err(|name| format!("{name:?} is no text"))?,
        );
    }
    names.sort();
    let mut list = String::from("vec![");
    for name in names.iter().filter(|name| name.ends_with(".js")) {
        let text = fs::read_to_string(from.join(name))?;
        pack(out, name, without_comments(&text).as_bytes())?;
        write!(list, "({name:?}, packed!({name:?})),")?;
    }
    list.push(']');
    Ok(fs::write(out.join("modules.rs"), list)?)
}

/// Writes a file as it is and in each coding, for the macro `packed`.
fn pack(out: &Path, name: &str, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes)?;
    fs::write(out.join(name), bytes)?;
    fs::write(out.join(format!("{name}.gz")), gzip.finish()?)?;
    fs::write(out.join(format!("{name}.br")), brotli(bytes, BEST, SMALL)?)?;
    Ok(())
}
