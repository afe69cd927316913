//! Builds the module of `upload`, and the script that starts it, for the console's page. The page loads
//! them when something is dropped, so they are a module and a file of their own.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use crate::up_to_date::UPLOAD;
use crate::{lock, module};

/// Builds `loader/dist/upload_module.js` and `loader/dist/upload_module_bg.wasm`, unless they are up to date.
///
/// # Errors
/// The step that failed.
pub fn build(root: &Path) -> Result<()> {
    let (dist, _lock) = lock(root)?;
    let inputs = UPLOAD.inputs(root, ())?;
    if UPLOAD.is_built(root, &inputs) {
        return Ok(());
    }
    let stamp = root.join(UPLOAD.stamp);
    let _ = fs::remove_file(&stamp);
    let compiled = module::compile(root, "platform-upload")?;
    let mut bindgen = Bindgen::new();
    bindgen
        .web(true)?
        .typescript(false)
        // The page says where the module is.
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .out_name("upload_module")
        .input_path(compiled)
        .generate(&dist)
        .context("wasm-bindgen refuses the module of the upload")?;
    Ok(fs::write(&stamp, inputs)?)
}
