//! Builds `loader/dist/runtime.js` and its source map: the WebAssembly module
//! of `runtime-wasm` as text, inside the script that starts it. Builds also the module of `upload`
//! for the console's page ([`upload`]).
//!
//! | step | module |
//! |---|---|
//! | compile `runtime-wasm` for wasm32 | [`module`] |
//! | bind the module to the page, shorten names, put the script together | [`bind`] |
//! | shrink module and script with tools from npm | [`shrink`] |
//! | write the module as a string, finish the source map | [`assemble`] |
//! | measure what was built | [`report`] |
//!
//! The server's build script calls this, so that the runtime is built in parallel with the server's
//! dependencies. The program `loader` calls it as well.

pub mod assemble;
pub mod bind;
pub mod module;
pub mod report;
pub mod shrink;
pub mod up_to_date;
pub mod upload;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use module::Names;
pub use report::Report;
use up_to_date::RUNTIME;

/// What to build.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of the workspace's `Cargo.toml`.
    pub workspace_root: PathBuf,
}

/// What was built. As long as it is there, nobody else builds in the workspace, so
/// that all files that are read meanwhile are of one build.
#[derive(Debug)]
pub struct Built {
    /// Its sizes.
    pub report: Report,
    /// Unlocked when it is dropped.
    _lock: File,
}

/// Builds the runtime unless it is up to date.
///
/// # Errors
/// The step that failed, with its command and its output.
pub fn build(options: &Options) -> Result<Built> {
    let root = &options.workspace_root;
    let (dist, lock) = lock(root)?;
    let report = build_locked(root, &dist)?;
    Ok(Built {
        report,
        _lock: lock,
    })
}

/// Makes `loader/dist` and waits until nobody else builds there.
fn lock(root: &Path) -> Result<(PathBuf, File)> {
    let dist = root.join("loader/dist");
    fs::create_dir_all(&dist).context("cannot make loader/dist")?;
    // A test run and an editor may build at the same time.
    let lock = File::create(dist.join("lock")).context("cannot make loader/dist/lock")?;
    lock.lock().context("cannot lock loader/dist")?;
    Ok((dist, lock))
}

fn build_locked(root: &Path, dist: &Path) -> Result<Report> {
    let tools = shrink::Tools::find(root);
    let inputs = RUNTIME.inputs(root, &tools)?;
    let stamp = root.join(RUNTIME.stamp);
    if RUNTIME.is_built(root, &inputs)
        && let Ok(report) = Report::load(root)
    {
        return Ok(report);
    }
    let _ = fs::remove_file(&stamp);

    let compiled = module::compile(root, "platform-runtime")?;
    let bound = bind::bind(root, &compiled, Names::Removed)?;
    let wasm = tools.optimise(&bound.wasm, dist, Names::Removed)?;
    let script = tools.minify(&bound.sources, dist)?;
    let built = assemble::assemble(&script, &wasm)?;

    fs::write(dist.join("runtime.js"), &built.script)?;
    fs::write(dist.join("runtime.js.map"), &built.map)?;
    let report = Report::measure(root, &built.script, &script.code, &wasm)?;
    report.save(root)?;
    fs::write(&stamp, inputs)?;
    Ok(report)
}
