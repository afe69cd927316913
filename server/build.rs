//! Puts the built runtime where the server embeds it from.

use std::path::Path;
use std::{env, fs};

/// What `cargo xtask build` makes in `loader/dist`.
const BUILT: [&str; 2] = ["runtime.js", "runtime.js.map"];

fn main() -> Result<(), String> {
    // Cargo tells build scripts everything through the environment.
    #[expect(clippy::disallowed_methods, reason = "a build script has no other way")]
    let variable = |name| env::var(name).map_err(|error| format!("{name}: {error}"));
    let (manifest, out) = (variable("CARGO_MANIFEST_DIR")?, variable("OUT_DIR")?);

    for name in BUILT {
        let from = Path::new(&manifest).join("../loader/dist").join(name);
        println!("cargo:rerun-if-changed={}", from.display());
        fs::copy(&from, Path::new(&out).join(name)).map_err(|error| {
            format!("loader/dist/{name} is missing ({error}): run `cargo xtask build`")
        })?;
    }
    for embedded in [
        "../www/demo/game",
        "../www/pages",
        "../www/styles",
        "../www/console",
        "askama.toml",
    ] {
        println!("cargo:rerun-if-changed={embedded}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    Ok(())
}
