//! The scripts and the stylesheet of the console's pages for developers, from `www/`: small modules
//! that are served unchanged.

use std::collections::HashMap;

use crate::web::asset::{Asset, Packed, packed};

/// Pages and scripts must have the same version, so browsers revalidate scripts each time.
const CACHE_CONTROL: &str = "no-cache";

/// Returns every module with its name.
fn modules() -> Vec<(&'static str, Packed)> {
    include!(concat!(env!("OUT_DIR"), "/modules.rs"))
}

/// The files that the console's pages load.
#[derive(Debug)]
pub struct ConsoleFiles {
    /// `/static/console.css`
    pub stylesheet: Asset,
    modules: HashMap<&'static str, Asset>,
}

impl Default for ConsoleFiles {
    fn default() -> Self {
        let module = |(name, packed)| {
            let module = Asset::new(packed, "text/javascript; charset=utf-8", CACHE_CONTROL);
            (name, module)
        };
        Self {
            stylesheet: Asset::new(
                packed!("console.css"),
                "text/css; charset=utf-8",
                CACHE_CONTROL,
            ),
            modules: modules().into_iter().map(module).collect(),
        }
    }
}

impl ConsoleFiles {
    /// Returns the module with this name.
    #[must_use]
    pub fn module(&self, name: &str) -> Option<&Asset> {
        self.modules.get(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_that_a_module_loads_is_there() {
        let files = ConsoleFiles::default();
        for (name, packed) in modules() {
            let text = std::str::from_utf8(&packed.plain).unwrap();
            // Comments import types, which browsers do not load.
            let is_import =
                |line: &&str| line.contains("} from \"") && !line.trim_start().starts_with("/**");
            for line in text.lines().filter(is_import) {
                let (_, path) = line.split_once(" from \"./").unwrap();
                let path = path.trim_end_matches("\";");
                assert!(files.module(path).is_some(), "{name} loads {path}");
            }
        }
    }

    #[test]
    fn no_module_writes_markup_or_runs_text() {
        for (name, packed) in modules() {
            let text = std::str::from_utf8(&packed.plain).unwrap();
            for way in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "setAttribute(",
                "srcdoc",
            ] {
                assert!(!text.contains(way), "{name} has {way}");
            }
        }
    }
}
