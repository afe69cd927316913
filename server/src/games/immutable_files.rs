//! Determines which files of a deployment never change under their names, so that browsers may
//! cache them without revalidation (RFC 8246).
//!
//! Two errors are possible. A file that is revalidated each time costs a request without a body. A
//! file that is cached but changes is wrong in the browsers of all who have it, for a year, and no
//! deployment can fix that. So:
//!
//! - A page is never cached this way, and neither is a path that had different content in one of
//!   the kept deployments: whatever its name is, it does not identify the content.
//! - An unambiguous hash (see [`marks`](super::content_hash)) is enough on its own.
//! - Otherwise the folder decides. A bundler names all code that it writes into a folder in the
//!   same way. If each script and stylesheet of a folder ends with the same number of characters
//!   after the same separator, and one of them is an unambiguous hash or the folder and the form
//!   are those of Vite, then they are hashes, unless one reads as words. Other files of that folder
//!   are included only if each of them has that form as well, since people put images next to built
//!   code.

use std::collections::{BTreeMap, HashSet};

use super::content_hash::{Mark, marks};

/// The folder that Vite writes to.
const VITE_FOLDER: &str = "assets";
/// The form of Vite's names: the separator before the hash, and its length.
const VITE_FORM: Form = (Some('-'), 8);

/// The separator before a hash, and its length.
type Form = (Option<char>, usize);

/// The files of one deployment that never change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lasting(HashSet<String>);

/// The kind of a file, which decides how far its name is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Never immutable.
    Page,
    /// Written by a build tool.
    Code,
    /// Next to code, and named like it.
    Map,
    /// Built or copied.
    Other,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "html" | "htm" | "xhtml" | "xht" | "shtml" => Self::Page,
            "js" | "mjs" | "cjs" | "css" => Self::Code,
            "map" => Self::Map,
            _ => Self::Other,
        }
    }
}

impl Lasting {
    /// Examines all `paths` of a deployment; `changed` are those that had different content in
    /// another one.
    pub fn of<'a>(paths: impl Iterator<Item = &'a String>, changed: &HashSet<String>) -> Self {
        let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for path in paths {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            folders.entry(folder).or_default().push(name);
        }
        let mut lasting = HashSet::new();
        for (folder, names) in folders {
            let forms = Forms::of(folder, &names);
            for name in names.into_iter().filter(|name| forms.say_hashed(name)) {
                let slash = if folder.is_empty() { "" } else { "/" };
                let path = format!("{folder}{slash}{name}");
                if !changed.contains(&path) {
                    lasting.insert(path);
                }
            }
        }
        Self(lasting)
    }

    /// Whether the file at this path never changes.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.0.contains(path)
    }
}

/// Whether the name of this path alone shows that it contains a hash.
#[must_use]
pub fn is_clear(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    Forms::default().say_hashed(name)
}

/// The forms of a folder's names that are those of hashes.
#[derive(Debug, Default)]
struct Forms {
    code: HashSet<Form>,
    other: HashSet<Form>,
}

impl Forms {
    fn of(folder: &str, names: &[&str]) -> Self {
        let of_kind = |kind| {
            let names = names.iter().copied();
            names.filter(move |name| Kind::of(name) == kind)
        };
        let vite = folder.rsplit('/').next() == Some(VITE_FOLDER);
        let clear: HashSet<Form> = of_kind(Kind::Code)
            .flat_map(marks)
            .filter(|mark| mark.is_clear(true))
            .map(form)
            .chain(vite.then_some(VITE_FORM))
            .collect();
        let code: HashSet<Form> = common(of_kind(Kind::Code))
            .intersection(&clear)
            .copied()
            .collect();
        let other = common(of_kind(Kind::Other));
        let other = other.intersection(&code).copied().collect();
        Self { code, other }
    }

    /// Whether one of the marks in a name is a hash.
    fn say_hashed(&self, name: &str) -> bool {
        let kind = Kind::of(name);
        let code = matches!(kind, Kind::Code | Kind::Map);
        kind != Kind::Page
            && marks(name).any(|mark| {
                mark.is_clear(code)
                    || code && self.code.contains(&form(mark)) && !mark.reads_as_words()
                    || !code && self.other.contains(&form(mark)) && !mark.looks_written()
            })
    }
}

fn form(mark: Mark<'_>) -> Form {
    (mark.separator, mark.text.len())
}

/// Returns the forms that all of these names have; none if there is no name.
fn common<'a>(mut names: impl Iterator<Item = &'a str>) -> HashSet<Form> {
    let Some(first) = names.next() else {
        return HashSet::new();
    };
    let mut forms: HashSet<Form> = marks(first).map(form).collect();
    for name in names {
        if forms.is_empty() {
            break;
        }
        let of_name: Vec<Form> = marks(name).map(form).collect();
        forms.retain(|form| of_name.contains(form));
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lasting(paths: &[&str]) -> Vec<String> {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let lasting = Lasting::of(paths.iter(), &HashSet::new());
        paths.into_iter().filter(|path| lasting.has(path)).collect()
    }

    #[test]
    fn a_clear_hash_is_enough_by_itself() {
        for path in [
            "main.3f2a9c1b.js",
            "a/index-BkX3s9aQ.css",
            "x-0a1b2c3d4e5f.png",
            "i-Bk3sQ9aZ.js.map",
            "index--k_3Q-aZ.js",
            "Build/0a1b2c3d4e5f60718293a4b5c6d7e8f9.framework.js.br",
            "engine.0a1b2c3d4e5f6071.wasm.br",
            "app-1a2b3c4d5e6f7081_bg.wasm",
            "static/js/main.4f2c8d9e.chunk.js.map",
            "chunk-2B3C4D5E.js",
        ] {
            assert!(is_clear(path), "{path}");
            assert_eq!(lasting(&[path, "game.js"]), [path]);
        }
    }

    #[test]
    fn no_name_that_people_write_is_kept_for_ever() {
        let names = [
            "index.html",
            "page.3f2a9c1b.html",
            "game.js",
            "level-20240101.json",
            "deadbeef.js",
            "data-2024-11-22.json",
            "photo-12345678.png",
            "main.decade.js",
            "map-MainMenu.json",
            "texture-background1.png",
            "sprite-Player12.png",
            "Build-Release1.data",
            "map-Level1Bg.json",
            "main-FOREST22.js",
            "sprite-2B3C4D5E.png",
            "wall-facade01.png",
            "noextension-3f2a9c1b",
            "boss-Lv12Boss.png",
            "sheet-NPC_Idle.png",
            "ui-btn_Play.png",
            "service-worker.js",
            "index-DUEEZswr.js",
            "scene-MyUIView.js",
        ];
        assert_eq!(lasting(&names), [""; 0]);
        let in_assets: Vec<String> = names.iter().map(|name| format!("assets/{name}")).collect();
        let in_assets: Vec<&str> = in_assets.iter().map(String::as_str).collect();
        assert_eq!(lasting(&in_assets), [""; 0]);
        for alone in [
            "assets/scene-MainMenu.js",
            "assets/scene-mainmenu.js",
            "assets/tileset-Forest01.js",
        ] {
            assert_eq!(lasting(&[alone]), [""; 0]);
        }
    }

    #[test]
    fn what_vite_wrote_is_known_by_its_folder() {
        let built = ["assets/index-DAkgGDa_.js", "assets/index-DUEEZswr.css"];
        assert_eq!(lasting(&built), built);
        assert_eq!(lasting(&built[..1]), built[..1]);
        // With another file that Vite did not write, the result is not certain any more.
        assert_eq!(lasting(&[built[0], "assets/plugin.js"]), [""; 0]);
    }

    #[test]
    fn one_clear_hash_tells_the_form_of_all_code_in_its_folder() {
        let built = [
            "js/main-BkX3s9aQ.js",
            "js/menu-DUEEZswr.js",
            "js/menu-DUEEZswr.js.map",
        ];
        assert_eq!(lasting(&built), built);
        assert_eq!(
            lasting(&["js/main-BkX3s9aQ.js", "js/menu-MainMenu.js"]),
            built[..1]
        );
    }

    #[test]
    fn pictures_beside_built_code_are_believed_only_if_all_are_named_like_it() {
        let built = ["assets/index-DAkgGDa_.js", "assets/tree-CpRA2C_W.png"];
        assert_eq!(lasting(&built), built);
        let copied = [
            "assets/index-DAkgGDa_.js",
            "assets/tree-HRTAKC_W.png",
            "assets/logo.png",
        ];
        assert_eq!(lasting(&copied), copied[..1]);
        let written = ["assets/index-DAkgGDa_.js", "assets/boss-Lv12Boss.png"];
        assert_eq!(lasting(&written), written[..1]);
    }

    #[test]
    fn a_path_that_had_other_bytes_is_asked_about_whatever_it_is_called() {
        let paths = ["main.3f2a9c1b.js".to_owned(), "x.0a1b2c3d.js".to_owned()];
        let changed = HashSet::from([paths[0].clone()]);
        let lasting = Lasting::of(paths.iter(), &changed);
        assert!(!lasting.has(&paths[0]) && lasting.has(&paths[1]));
    }
}
