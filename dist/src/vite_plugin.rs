//! The plugin for Vite as an npm package: the file that the template has, with its types.

use anyhow::Result;
use serde_json::json;

use crate::command_line::{Packing, with_texts};

/// The plugin, which a game from the template has as a file of its own.
const PLUGIN: &str = include_str!("../../template/dev/vite-plugin-platform.js");
const TYPES: &str = include_str!("../npm/vite-plugin-platform.d.ts");
const README: &str = include_str!("../npm/vite-plugin-platform.md");

/// Returns the package that `npm install` takes. It depends on nothing but the game's own Vite.
///
/// # Errors
/// A file does not fit into the archive.
pub(crate) fn package(texts: &[(&str, Vec<u8>)], packing: Packing<'_>) -> Result<Vec<u8>> {
    let manifest = json!({
        "name": "vite-plugin-platform",
        "version": packing.version,
        "description": "Test players of a game platform on the dev server of Vite",
        "license": env!("CARGO_PKG_LICENSE"),
        "type": "module",
        "exports": { ".": { "types": "./index.d.ts", "default": "./index.js" } },
        "peerDependencies": { "vite": ">=5" },
        "engines": { "node": ">=18" },
    });
    let mut files = with_texts(texts)?;
    files.add("package.json", format!("{manifest:#}\n").into(), false)?;
    files.add("index.js", PLUGIN.into(), false)?;
    files.add("index.d.ts", TYPES.into(), false)?;
    files.add("README.md", README.into(), false)?;
    files.packed("package", packing.seconds, packing.level)
}
