//! Shrinks module and script with `wasm-opt` and `terser`, from the npm packages of
//! `loader/package.json`. Without Node both stay as they are: larger, but correct.

use std::fs;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::assemble::{Script, arguments};
use crate::module::Names;

/// WebAssembly features that engines since 2021 support and the compiler uses. Naming each one
/// prevents newer encodings, which a browser might not support yet.
const FEATURES: [&str; 6] = [
    "--enable-bulk-memory",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];

/// A trap ends the runtime anyway, so no code is kept for its sake. The first kilobyte of memory is
/// the far end of the stack, which is never reached. Flat code lets the optimiser rebuild shorter
/// loops.
const PASSES: [&str; 10] = [
    "--traps-never-happen",
    "--low-memory-unused",
    "-Oz",
    "--flatten",
    "--simplify-locals-nonesting",
    "--rereloop",
    "-Oz",
    "-Oz",
    "-Oz",
    "--reorder-functions",
];
/// What else is left out of the module that is shipped.
const STRIPPED: [&str; 3] = [
    "--strip-debug",
    "--strip-producers",
    "--strip-target-features",
];

/// Where npm records what it has installed.
pub(crate) const INSTALLED: &str = "loader/node_modules/.package-lock.json";

/// The tools that are available.
#[derive(Clone, Debug, Hash)]
pub struct Tools {
    modules: Option<PathBuf>,
}

impl Tools {
    /// Looks for Node and the installed packages.
    #[must_use]
    pub fn find(root: &Path) -> Self {
        let modules = root.join("loader/node_modules/.bin");
        let node = Command::new("node").arg("--version").output();
        let there = node.is_ok_and(|output| output.status.success())
            && modules.join("wasm-opt").exists()
            && modules.join("terser").exists();
        if !there {
            eprintln!(
                "the runtime gets half as large again, because Node or the packages in loader/node_modules are not there: install Node, then run `npm ci` in loader/"
            );
        }
        Self {
            modules: there.then_some(modules),
        }
    }

    /// Returns a smaller module.
    ///
    /// # Errors
    /// The output of `wasm-opt`.
    pub fn optimise(&self, wasm: &[u8], dist: &Path, names: Names) -> Result<Vec<u8>> {
        let Some(modules) = &self.modules else {
            return Ok(wasm.to_vec());
        };
        let (input, output) = (dist.join("module.wasm"), dist.join("module.min.wasm"));
        fs::write(&input, wasm)?;
        let mut command = Command::new(modules.join("wasm-opt"));
        command
            .args(FEATURES)
            .args(PASSES)
            .args(match names {
                Names::Removed => &STRIPPED[..],
                Names::Kept => &["--debuginfo"],
            })
            .arg("--output")
            .args([&output, &input]);
        run(&mut command)?;
        fs::read(&output).context("wasm-opt wrote no module")
    }

    /// Returns a smaller script, with its source map.
    ///
    /// # Errors
    /// The output of `terser`.
    pub fn minify(&self, sources: &[(String, String)], dist: &Path) -> Result<Script> {
        let Some(modules) = &self.modules else {
            return Ok(Script::unminified(sources));
        };
        let folder = dist.join("script");
        fs::create_dir_all(&folder)?;
        for (name, text) in sources {
            fs::write(folder.join(name), text)?;
        }
        let options = json!({
            "compress": {
                "ecma": 2020, "passes": 4, "toplevel": true, "pure_getters": true,
                "unsafe_arrows": true, "unsafe_methods": true, "keep_fargs": false,
                "hoist_props": true, "hoist_funs": true, "if_return": false,
                "booleans_as_integers": false,
            },
            "mangle": { "toplevel": true },
            "format": { "ecma": 2020, "ascii_only": true },
            "enclose": format!("PAYLOAD,MASK,SETTINGS:{}", arguments()),
            "sourceMap": { "filename": "runtime.js", "includeSources": true },
        });
        let config = folder.join("terser.json");
        fs::write(&config, options.to_string())?;
        let mut command = Command::new(modules.join("terser"));
        command
            .current_dir(&folder)
            .args(sources.iter().map(|(name, _)| name))
            .args(["--config-file", "terser.json", "--output", "out.js"]);
        run(&mut command)?;
        Ok(Script {
            code: fs::read_to_string(folder.join("out.js")).context("terser wrote no script")?,
            map: fs::read_to_string(folder.join("out.js.map")).context("terser wrote no map")?,
        })
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}
