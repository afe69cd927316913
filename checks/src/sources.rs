//! Whether a folder holds a game's sources instead of the built game.

use crate::folder::INDEX;
use crate::page::module_scripts;

/// The code of the warning.
pub const CODE: &str = "looks-like-sources";
/// The folder that most build tools write to.
pub const BUILT: &str = "dist";
/// Names at the top of a project, which are never in its build output.
const NAMES: [&str; 3] = ["package.json", "Cargo.toml", "node_modules"];
/// The prefix of a build tool's settings file.
const CONFIG: &str = "vite.config.";
/// Extensions that no browser runs.
const ENDINGS: [&str; 3] = [".ts", ".tsx", ".jsx"];

/// A script that the page loads and no browser can run.
#[must_use]
pub fn unbuilt_script(index_html: &str) -> Option<String> {
    module_scripts(index_html).into_iter().find(|src| {
        let path = src.split(['?', '#']).next().unwrap_or_default();
        ENDINGS.iter().any(|ending| path.ends_with(ending))
    })
}

/// What shows that these are sources: the start page, or one of the names at the top of the folder.
#[must_use]
pub fn sign(top: &[String], index_html: &str) -> Option<String> {
    if let Some(source) = unbuilt_script(index_html) {
        return Some(format!("{INDEX} loads {source}"));
    }
    let known = NAMES.iter().find(|name| top.iter().any(|one| one == *name));
    let config = || top.iter().find(|name| name.starts_with(CONFIG));
    let name = known
        .map(|name| (*name).to_owned())
        .or_else(|| config().cloned());
    name.map(|name| format!("it has {name}"))
}
