//! The files of a dropped folder that are deployed: those that `platform deploy` would send of it.

use platform_checks::check_path;
use platform_checks::folder::{Advice, FolderProblem, Game, INDEX, is_deployed_name, keep_limits};
use platform_checks::sources::BUILT;

/// A file that is deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenFile {
    /// Its place in the list that was given.
    pub at: usize,
    /// Its path in the deployment.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
}

/// The folder of a game.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// What the developer calls it.
    pub name: String,
    /// Its files, in the order in which they are sent.
    pub files: Vec<ChosenFile>,
    /// The names of files and folders at its top.
    top: Vec<String>,
    /// The folder in it that has a start page, too.
    built: Option<String>,
}

impl Chosen {
    /// Chooses among files that are given by their paths and sizes. If all of them are in one folder,
    /// that is the folder of the game.
    ///
    /// # Errors
    /// Why they cannot be deployed.
    pub fn of(name: String, given: Vec<(String, u64)>) -> Result<Self, FolderProblem> {
        let mut name = name;
        // A name that begins with a dot is left out; one that leads out of the folder is refused.
        if let Some((path, _)) = given
            .iter()
            .find(|(path, _)| path.split('/').any(|part| part == ".."))
        {
            check_path(path)
                .map_err(|problem| FolderProblem::of_path(&format!("{name}/{path}"), problem))?;
        }
        let mut files: Vec<ChosenFile> = given
            .into_iter()
            .enumerate()
            .map(|(at, (path, size))| ChosenFile { at, path, size })
            .filter(|file| file.path.split('/').all(is_not_hidden))
            .collect();
        let inner = root_of(&files).to_owned();
        if !inner.is_empty() {
            for file in &mut files {
                file.path.drain(..=inner.len());
            }
            name = inner;
        }
        let mut top: Vec<String> = files
            .iter()
            .map(|file| first(&file.path).to_owned())
            .collect();
        top.sort();
        top.dedup();
        let built = format!("{BUILT}/{INDEX}");
        let has_built = files.iter().any(|file| file.path == built);
        let built = has_built.then(|| format!("{name}/{BUILT}"));
        if !files.iter().any(|file| file.path == INDEX) {
            let folder = name;
            return Err(FolderProblem::NoIndex { folder, built });
        }
        files.retain(|file| is_deployed_name(first(&file.path), true));
        files.sort_by(|one, other| one.path.cmp(&other.path));
        for file in &files {
            check_path(&file.path).map_err(|problem| {
                FolderProblem::of_path(&format!("{name}/{}", file.path), problem)
            })?;
        }
        if let Some([file, _]) = files.windows(2).find(|pair| pair[0].path == pair[1].path) {
            return Err(FolderProblem::Twice(file.path.clone()));
        }
        let chosen = Self {
            name,
            files,
            top,
            built,
        };
        let paths = chosen.files.iter().map(|file| file.path.as_str());
        keep_limits(paths, chosen.bytes())?;
        Ok(chosen)
    }

    /// How large the files are together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let sizes = self.files.iter().map(|file| file.size);
        sizes.fold(0, u64::saturating_add)
    }

    /// The place of the start page in the list that was given.
    #[must_use]
    pub fn page(&self) -> Option<&ChosenFile> {
        self.files.iter().find(|file| file.path == INDEX)
    }

    /// What the developer should know before these files are deployed.
    #[must_use]
    pub fn advice(&self, index_html: &str) -> Vec<Advice> {
        let game = Game {
            folder: &self.name,
            built: self.built.as_deref(),
            top: &self.top,
            index_html,
        };
        game.advice(self.files.iter().map(|file| file.path.as_str()), &|_| None)
    }
}

/// Whether a segment of a path is no hidden file or folder. A segment that leads elsewhere is not
/// hidden: it is refused.
fn is_not_hidden(part: &str) -> bool {
    matches!(part, "." | "..") || is_deployed_name(part, false)
}

/// The first segment of a path.
fn first(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// The folder that the game is in: the one that all files are in, without `/` at its end; or a
/// folder further inside that all of them are in, if that has the start page. Empty if the files have
/// no common folder.
fn root_of(files: &[ChosenFile]) -> &str {
    let (mut root, mut found) = ("", None);
    loop {
        let below = |file: &ChosenFile| -> Option<usize> {
            let rest = file.path.get(root.len()..)?;
            let slash = usize::from(!root.is_empty());
            let (part, _) = rest.get(slash..)?.split_once('/')?;
            let is_folder = !matches!(part, "" | "." | "..");
            is_folder.then_some(root.len() + slash + part.len())
        };
        let is_page = |file: &ChosenFile| {
            let rest = file.path.strip_prefix(root).unwrap_or_default();
            rest.trim_start_matches('/') == INDEX
        };
        if files.iter().any(is_page) {
            return root;
        }
        let end = files.first().and_then(below);
        let next = end.and_then(|end| files.first()?.path.get(..end));
        let Some(next) = next.filter(|next| {
            files.iter().all(|file| {
                let rest = file.path.strip_prefix(*next);
                rest.is_some_and(|rest| rest.starts_with('/'))
            })
        }) else {
            return found.unwrap_or("");
        };
        found.get_or_insert(next);
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use platform_checks::limits::MAX_BYTES;

    use super::*;

    fn of(name: &str, paths: &[&str]) -> Result<Chosen, FolderProblem> {
        let given = paths.iter().map(|path| ((*path).to_owned(), 1)).collect();
        Chosen::of(name.to_owned(), given)
    }

    fn paths(chosen: &Chosen) -> Vec<&str> {
        chosen.files.iter().map(|file| &*file.path).collect()
    }

    #[test]
    fn the_files_of_a_folder_are_chosen_like_the_command_line_chooses_them() {
        let chosen = of(
            "my game",
            &[
                "game/index.html",
                "game/b.js",
                "game/.env",
                "game/.git/config",
                "game/a/.DS_Store",
                "game/.well-known/assetlinks.json",
                "game/platform.toml",
                "game/node_modules/a/index.js",
                "game/vendor/node_modules/b.js",
            ],
        );
        let chosen = chosen.unwrap();
        assert_eq!(chosen.name, "game");
        let expected = [
            ".well-known/assetlinks.json",
            "b.js",
            "index.html",
            "vendor/node_modules/b.js",
        ];
        assert_eq!(paths(&chosen), expected);
        assert_eq!(chosen.page().unwrap().at, 0);
        assert_eq!(chosen.bytes(), 4);
        let said = chosen.advice("").remove(0);
        assert_eq!(said.code, "looks-like-sources");
        assert!(said.message.starts_with("game looks like the source code"));
    }

    #[test]
    fn the_game_is_in_the_folder_that_everything_is_in() {
        for (given, name, expected) in [
            (
                vec!["index.html", "a/b.js"],
                "drop",
                vec!["a/b.js", "index.html"],
            ),
            (vec!["x/index.html"], "x", vec!["index.html"]),
            (
                vec!["x/y/index.html", "x/y/a"],
                "x/y",
                vec!["a", "index.html"],
            ),
            // A Mac adds these to a zip.
            (
                vec!["x/index.html", "__MACOSX/x/._index.html"],
                "x",
                vec!["index.html"],
            ),
        ] {
            let chosen = of("drop", &given).unwrap();
            assert_eq!((&*chosen.name, paths(&chosen)), (name, expected));
        }
    }

    #[test]
    fn what_cannot_be_deployed_is_named_with_the_words_of_the_command_line() {
        for (given, expected) in [
            (vec![], "drop has no index.html: build the game first"),
            (
                vec!["x/a/b.js"],
                "x has no index.html: build the game first",
            ),
            (
                vec!["x/a.js", "y/index.html"],
                "drop has no index.html: build",
            ),
            (
                vec!["x/package.json", "x/dist/index.html"],
                "x has no index.html: choose the folder x/dist, which has one.",
            ),
            (
                vec!["x/index.html", "x/a\\b"],
                "x/a\\b cannot be deployed: its name has a backslash.",
            ),
            (
                vec!["index.html", "../a"],
                "drop/../a cannot be deployed: its name has a segment . or ..",
            ),
            (
                vec!["index.html", "/etc/passwd"],
                "drop//etc/passwd cannot be deployed: its name is absolute.",
            ),
            (
                vec!["index.html", "__platform/runtime.js"],
                "drop/__platform/runtime.js cannot be deployed: paths under /__platform/",
            ),
            (vec!["index.html", "a", "a"], "a is there twice"),
        ] {
            let said = of("drop", &given).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{given:?}: {said}");
        }
    }

    #[test]
    fn sizes_cannot_overflow() {
        let given = ["index.html", "a"].map(|path| (path.to_owned(), u64::MAX));
        let refused = Chosen::of("x".into(), given.into()).unwrap_err();
        assert_eq!(refused, FolderProblem::TooLarge(u64::MAX));
        let given = vec![(INDEX.to_owned(), MAX_BYTES)];
        assert!(Chosen::of("x".into(), given).is_ok());
    }
}
