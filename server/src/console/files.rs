//! The scripts and the stylesheet of the console's pages for developers, from `www/`: small modules
//! that are served as they are, with empty lines in place of comments.
//!
//! Their addresses have a folder that is named after their contents. So browsers keep them without
//! asking, and a page loads the modules that belong to it.

use std::collections::{BTreeMap, HashMap};

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::web::asset::{Asset, Packed, packed};

/// The path of the folders of all versions.
pub const FOLDERS: &str = "/static/console";
/// The name of the stylesheet in the folder.
const STYLESHEET: &str = "console.css";
/// A version does not change.
const FOREVER: &str = "public, max-age=31536000, immutable";
/// Another version was asked for: by a page of another node, before or after an upgrade.
const ONCE: HeaderValue = HeaderValue::from_static("no-cache");
/// Characters of the hash in the folder's name, 72 bits.
const VERSION_CHARS: usize = 12;

/// Returns every module with its name.
fn modules() -> Vec<(&'static str, Packed)> {
    include!(concat!(env!("OUT_DIR"), "/modules.rs"))
}

/// Returns the module that a page loads when something is dropped on it, from `upload/`, and the script
/// that starts it.
fn upload() -> [(&'static str, Packed, &'static str); 2] {
    [
        (
            "upload_module.js",
            packed!("upload_module.js"),
            "text/javascript; charset=utf-8",
        ),
        (
            "upload_module_bg.wasm",
            packed!("upload_module_bg.wasm"),
            "application/wasm",
        ),
    ]
}

/// The files that the console's pages load.
#[derive(Debug)]
pub struct ConsoleFiles {
    version: String,
    files: HashMap<&'static str, Asset>,
    /// The modules that each module imports.
    imports: BTreeMap<&'static str, Vec<String>>,
}

/// What a page loads: its own script, and the modules that this needs.
#[derive(Clone, Debug)]
pub struct Scripts {
    /// The path of the folder of all these files.
    pub folder: String,
    /// The file of the page's own script.
    pub own: String,
    /// The modules that it imports, and those that they import: a browser that knows them loads them
    /// all at once.
    pub needed: Vec<String>,
}

impl Default for ConsoleFiles {
    fn default() -> Self {
        let stylesheet = packed!("console.css");
        let modules = modules();
        let mut hasher = Sha256::new();
        hasher.update(&stylesheet.plain);
        for (name, packed) in &modules {
            hasher.update(name);
            hasher.update(&packed.plain);
        }
        let upload = upload();
        for (_, packed, _) in &upload {
            hasher.update(&packed.plain);
        }
        let version = URL_SAFE_NO_PAD.encode(hasher.finalize());
        let version = version.get(..VERSION_CHARS).unwrap_or(&version).to_owned();
        let imports = modules.iter().map(|(name, packed)| {
            let text = String::from_utf8_lossy(&packed.plain);
            (*name, imported(&text).map(str::to_owned).collect())
        });
        let imports = imports.collect();
        let stylesheet = Asset::new(stylesheet, "text/css; charset=utf-8", FOREVER);
        let modules = modules.into_iter().map(|(name, packed)| {
            let module = Asset::new(packed, "text/javascript; charset=utf-8", FOREVER);
            (name, module)
        });
        let upload = upload.map(|(name, packed, media_type)| {
            let file = Asset::new(packed, media_type, FOREVER);
            (name, file)
        });
        let others = upload.into_iter().chain([(STYLESHEET, stylesheet)]);
        Self {
            version,
            files: modules.chain(others).collect(),
            imports,
        }
    }
}

impl ConsoleFiles {
    /// Responds with the file of this name. Every version has the files of this server.
    #[must_use]
    pub fn answer(&self, version: &str, name: &str, request: &HeaderMap) -> Option<Response> {
        let mut response = self.files.get(name)?.answer(request);
        if version != self.version {
            response.headers_mut().insert(header::CACHE_CONTROL, ONCE);
        }
        Some(response)
    }

    /// Returns the path of the folder of this version.
    #[must_use]
    pub fn folder(&self) -> String {
        format!("{FOLDERS}/{}", self.version)
    }

    /// Returns what the page with the script `name` loads.
    #[must_use]
    pub fn scripts(&self, name: &str) -> Scripts {
        let own = format!("{name}.js");
        let mut needed: Vec<String> = Vec::new();
        let mut open = vec![own.clone()];
        while let Some(module) = open.pop() {
            for import in self.imports.get(module.as_str()).into_iter().flatten() {
                if !needed.contains(import) {
                    needed.push(import.clone());
                    open.push(import.clone());
                }
            }
        }
        needed.sort();
        Scripts {
            folder: self.folder(),
            own,
            needed,
        }
    }
}

/// Returns the names of the modules that a module imports. Comments import types, which browsers do
/// not load.
fn imported(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("/**"))
        .filter_map(|line| {
            let (_, path) = line.split_once("} from \"./")?;
            path.strip_suffix("\";")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes of scripts a page loads at most, compressed.
    const PAGE: usize = 40_000;
    /// How many bytes all pages have.
    const ALL: usize = 70_000;
    /// How many bytes the module of the upload has.
    const UPLOAD: usize = 450_000;

    #[test]
    fn every_module_that_a_module_loads_is_there() {
        let files = ConsoleFiles::default();
        for (name, imports) in &files.imports {
            for import in imports {
                assert!(
                    files.files.contains_key(import.as_str()),
                    "{name} loads {import}"
                );
            }
        }
        let gate = files.scripts("gate");
        assert!(gate.needed.contains(&"session.js".to_owned()), "{gate:?}");
    }

    #[test]
    fn comments_are_left_out_and_lines_stay_where_they_are() {
        let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../www/console");
        for (name, packed) in modules() {
            let text = std::str::from_utf8(&packed.plain).unwrap();
            let source = std::fs::read_to_string(sources.join(name)).unwrap();
            assert_eq!(text.lines().count(), source.lines().count(), "{name}");
            for (line, original) in text.lines().zip(source.lines()) {
                assert!(line.is_empty() || line == original, "{name}: {line}");
                let start = original.trim_start();
                let is_code = !["//", "/*", "*"].iter().any(|mark| start.starts_with(mark));
                assert!(!is_code || line == original, "{name}: {original}");
                assert!(!line.trim_start().starts_with("//"), "{name}: {line}");
            }
        }
    }

    #[test]
    fn scripts_are_small() {
        let files = ConsoleFiles::default();
        let sizes: HashMap<_, _> = modules()
            .into_iter()
            .map(|(name, packed)| (name, packed.brotli.len()))
            .collect();
        let all: usize = sizes.values().sum();
        assert!(all <= ALL, "{all} bytes of scripts");
        for name in sizes.keys() {
            let scripts = files.scripts(name.trim_end_matches(".js"));
            let loaded = scripts.needed.iter().chain([&scripts.own]);
            let page: usize = loaded.map(|name| sizes[name.as_str()]).sum();
            assert!(
                page <= PAGE,
                "a page with {name} loads {page} bytes of scripts"
            );
        }
    }

    /// It is loaded when something is dropped, and never before: it may be larger than a page.
    #[test]
    fn the_module_of_the_upload_is_no_part_of_a_page() {
        let files = ConsoleFiles::default();
        for (name, packed, _) in upload() {
            assert!(files.files.contains_key(name));
            assert!(
                files
                    .imports
                    .values()
                    .flatten()
                    .all(|needed| needed != name)
            );
            assert!(
                packed.brotli.len() <= UPLOAD,
                "{name}: {}",
                packed.brotli.len()
            );
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
