//! Puts the built runtime where the server embeds it from, and packs the files
//! that are the same on every platform: at its start the server would take a
//! third of a second for what is done here once.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;
use platform_compression::{BEST, SMALL, brotli};

/// The console's stylesheet: what the pages share, and then what each has for
/// itself. It is small enough to be sent as one, whichever page comes first.
const STYLES: [&str; 5] = ["shared", "log", "build", "project", "admin"];

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo tells build scripts everything through the environment.
    #[expect(clippy::disallowed_methods, reason = "a build script has no other way")]
    let variable = |name| env::var(name).map_err(|error| format!("{name}: {error}"));
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("..");
    let out = PathBuf::from(variable("OUT_DIR")?);

    fs::write(out.join("runtime.js"), built(&root, "runtime.js")?)?;
    pack(&out, "runtime.js.map", &built(&root, "runtime.js.map")?)?;
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

/// What `cargo xtask build` has made in `loader/dist`.
fn built(root: &Path, name: &str) -> Result<Vec<u8>, String> {
    let from = root.join("loader/dist").join(name);
    println!("cargo:rerun-if-changed={}", from.display());
    fs::read(&from).map_err(|error| {
        format!("loader/dist/{name} is missing ({error}): run `cargo xtask build`")
    })
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
        pack(out, name, &fs::read(from.join(name))?)?;
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
