//! The scripts and the stylesheet of the console's pages for developers, as
//! they stand in `www/`: small modules that browsers load as they are.

use std::collections::HashMap;

use bytes::Bytes;

use crate::http::asset::Asset;

/// Pages and scripts of one version belong together, so browsers ask each time
/// whether a script is still the same.
const CACHE_CONTROL: &str = "no-cache";

/// Every module by its name, and its text.
const MODULES: [(&str, &str); 24] = [
    ("admin.js", include_str!("../../www/console/admin.js")),
    (
        "admin_events.js",
        include_str!("../../www/console/admin_events.js"),
    ),
    (
        "admin_guests.js",
        include_str!("../../www/console/admin_guests.js"),
    ),
    (
        "admin_keys.js",
        include_str!("../../www/console/admin_keys.js"),
    ),
    (
        "admin_player.js",
        include_str!("../../www/console/admin_player.js"),
    ),
    (
        "admin_players.js",
        include_str!("../../www/console/admin_players.js"),
    ),
    (
        "admin_projects.js",
        include_str!("../../www/console/admin_projects.js"),
    ),
    ("build.js", include_str!("../../www/console/build.js")),
    (
        "deployments.js",
        include_str!("../../www/console/deployments.js"),
    ),
    ("dom.js", include_str!("../../www/console/dom.js")),
    ("entry.js", include_str!("../../www/console/entry.js")),
    ("frames.js", include_str!("../../www/console/frames.js")),
    ("gate.js", include_str!("../../www/console/gate.js")),
    ("log.js", include_str!("../../www/console/log.js")),
    ("players.js", include_str!("../../www/console/players.js")),
    ("project.js", include_str!("../../www/console/project.js")),
    ("projects.js", include_str!("../../www/console/projects.js")),
    ("search.js", include_str!("../../www/console/search.js")),
    ("session.js", include_str!("../../www/console/session.js")),
    ("settings.js", include_str!("../../www/console/settings.js")),
    (
        "source_map.js",
        include_str!("../../www/console/source_map.js"),
    ),
    ("stream.js", include_str!("../../www/console/stream.js")),
    (
        "test_token.js",
        include_str!("../../www/console/test_token.js"),
    ),
    (
        "variables.js",
        include_str!("../../www/console/variables.js"),
    ),
];

/// The stylesheet: what the pages share, and then what each has for itself. It
/// is small enough to be sent as one, whichever page comes first.
const STYLES: &str = concat!(
    include_str!("../../www/styles/console/shared.css"),
    include_str!("../../www/styles/console/log.css"),
    include_str!("../../www/styles/console/build.css"),
    include_str!("../../www/styles/console/project.css"),
    include_str!("../../www/styles/console/admin.css"),
);

/// What the console's pages load.
#[derive(Debug)]
pub struct ConsoleFiles {
    /// `/static/console.css`
    pub stylesheet: Asset,
    modules: HashMap<&'static str, Asset>,
}

impl ConsoleFiles {
    /// Compresses them, which takes a moment.
    ///
    /// # Errors
    /// Only if a compressor fails.
    pub fn new() -> std::io::Result<Self> {
        let modules = MODULES.iter().map(|(name, text)| {
            let module = asset(text, "text/javascript; charset=utf-8")?;
            Ok((*name, module))
        });
        Ok(Self {
            stylesheet: asset(STYLES, "text/css; charset=utf-8")?,
            modules: modules.collect::<std::io::Result<_>>()?,
        })
    }

    /// The module of this name.
    #[must_use]
    pub fn module(&self, name: &str) -> Option<&Asset> {
        self.modules.get(name)
    }
}

fn asset(text: &'static str, content_type: &'static str) -> std::io::Result<Asset> {
    Asset::new(
        Bytes::from_static(text.as_bytes()),
        content_type,
        CACHE_CONTROL,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_that_a_module_loads_is_there() {
        let files = ConsoleFiles::new().unwrap();
        for (name, text) in MODULES {
            for line in text.lines().filter(|line| line.contains("} from \"")) {
                let (_, path) = line.split_once(" from \"./").unwrap();
                let path = path.trim_end_matches("\";");
                assert!(files.module(path).is_some(), "{name} loads {path}");
            }
        }
    }

    #[test]
    fn no_module_writes_markup_or_runs_text() {
        for (name, text) in MODULES {
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
