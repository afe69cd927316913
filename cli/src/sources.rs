//! Whether a folder holds a game's sources instead of the built game.

use std::path::Path;

use platform_checks::module_scripts;

use crate::archive::INDEX;

/// The code of the warning.
pub(crate) const CODE: &str = "looks-like-sources";
/// Where most build tools write to.
const BUILT: &str = "dist";
/// Names at the top of a project, which are never in its build output.
const NAMES: [&str; 3] = ["package.json", "Cargo.toml", "node_modules"];
/// The prefix of a build tool's settings file.
const CONFIG: &str = "vite.config.";
/// Extensions that no browser runs.
const ENDINGS: [&str; 3] = [".ts", ".tsx", ".jsx"];

/// The sentence of the warning, if the folder looks like sources.
pub(crate) fn warning(folder: &Path, index_html: &str) -> Option<String> {
    let sign = sign(folder, index_html)?;
    let advice = if folder.join(BUILT).join(INDEX).is_file() {
        format!("name the folder {} instead", folder.join(BUILT).display())
    } else {
        "build the game, and name the folder with the built game".to_owned()
    };
    Some(format!(
        "{} looks like the source code of a game ({sign}), which everybody could then read: \
         {advice}.",
        folder.display()
    ))
}

/// Whether a folder is a game that browsers run as it is.
pub(crate) fn is_built(folder: &Path) -> bool {
    folder.join(INDEX).is_file() && sign(folder, "").is_none()
}

/// A script that the page loads and no browser can run.
pub(crate) fn unbuilt_script(index_html: &str) -> Option<String> {
    module_scripts(index_html).into_iter().find(|src| {
        let path = src.split(['?', '#']).next().unwrap_or_default();
        ENDINGS.iter().any(|ending| path.ends_with(ending))
    })
}

/// What shows that these are sources.
fn sign(folder: &Path, index_html: &str) -> Option<String> {
    if let Some(source) = unbuilt_script(index_html) {
        return Some(format!("{INDEX} loads {source}"));
    }
    let name = NAMES.iter().find(|name| folder.join(name).exists());
    if let Some(name) = name {
        return Some(format!("it has {name}"));
    }
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let config = names.find(|name| name.starts_with(CONFIG))?;
    Some(format!("it has {config}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_the_files_of_a_build_tool_is_a_built_game() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(!is_built(folder));
        std::fs::write(folder.join(INDEX), "x").unwrap();
        assert!(is_built(folder));
        std::fs::write(folder.join("package.json"), "{}").unwrap();
        assert!(!is_built(folder));
    }

    #[test]
    fn sources_are_known_by_what_no_built_game_has() {
        let page = |src: &str| format!("<script type=\"module\" src=\"{src}\"></script>");
        for (name, src, sign) in [
            ("package.json", "/a.js", Some("it has package.json")),
            (
                "node_modules/a/index.js",
                "/a.js",
                Some("it has node_modules"),
            ),
            ("vite.config.mts", "/a.js", Some("it has vite.config.mts")),
            ("Cargo.toml", "/a.js", Some("it has Cargo.toml")),
            (
                "a.txt",
                "/src/main.ts",
                Some("index.html loads /src/main.ts"),
            ),
            ("a.txt", "./main.tsx?v=1", Some("loads ./main.tsx?v=1")),
            ("a.txt", "main.jsx", Some("loads main.jsx")),
            ("a.txt", "/assets/main.js?from=main.ts", None),
            ("assets/package.json", "/a.mjs", None),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
            let said = warning(folder.path(), &page(src));
            let matches = match (&said, sign) {
                (Some(said), Some(sign)) => said.contains(sign),
                (None, None) => true,
                _ => false,
            };
            assert!(matches, "{name} {src}: {said:?}");
        }
    }

    #[test]
    fn the_folder_that_was_built_is_named_where_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("package.json"), "").unwrap();
        let said = |folder: &Path| warning(folder, "").unwrap();
        assert!(said(folder.path()).contains("build the game, and name"));
        let dist = folder.path().join("dist");
        std::fs::create_dir(&dist).unwrap();
        std::fs::write(dist.join("index.html"), "").unwrap();
        assert!(said(folder.path()).contains(&format!("name the folder {} ", dist.display())));
    }
}
