//! The folder of a built game, by the names and sizes of its files: which of them are deployed, why
//! it cannot be deployed, and what its developer should know before. The command line and the
//! console's page say the same because both ask here.

use crate::limits::{MAX_BYTES, MAX_FILES, MAX_PATHS_BYTES};
use crate::page::{ReadFile, WarningCode, warnings_with};
use crate::path::PathProblem;
use crate::private::name_warnings;
use crate::sources;

/// The start page, which every deployment needs.
pub const INDEX: &str = "index.html";
/// The settings of a project, which stay with its developer.
pub const SETTINGS: &str = "platform.toml";
/// What npm installs into a project.
const INSTALLED: &str = "node_modules";

/// Why a folder cannot be deployed; a sentence for its developer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FolderProblem {
    /// The start page is missing.
    #[error("{folder} has no {INDEX}: {}.", .built.as_ref().map_or_else(
        || "build the game first, or choose the folder with the built game".to_owned(),
        |built| format!("choose the folder {built}, which has one")
    ))]
    NoIndex {
        /// The folder, as its developer knows it.
        folder: String,
        /// The folder in it that has a start page.
        built: Option<String>,
    },
    /// A file that cannot be deployed.
    #[error("{path} cannot be deployed: {why}.")]
    File {
        /// Where it is.
        path: String,
        /// What is wrong with it; a part of a sentence.
        why: String,
    },
    /// A name that two files have.
    #[error("{0} is there twice: remove one of the two.")]
    Twice(String),
    /// There are too many files.
    #[error("A deployment has at most {MAX_FILES} files; this folder has {0}.")]
    TooManyFiles(usize),
    /// The files are too large together.
    #[error("A deployment has at most {} of data; these files have {}.", size(MAX_BYTES), size(*.0))]
    TooLarge(u64),
    /// The names of the files are too long together.
    #[error(
        "The names of a deployment's files, with their folders, have at most {} together; those of \
         these files have {}: shorten them, or deploy fewer files.",
        size(MAX_PATHS_BYTES), size(*.0)
    )]
    PathsTooLong(u64),
}

impl FolderProblem {
    /// A file whose name breaks a rule.
    #[must_use]
    pub fn of_path(path: &str, problem: PathProblem) -> Self {
        Self::File {
            path: path.to_owned(),
            why: problem.to_string(),
        }
    }
}

/// What a developer should know before a folder is deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// Which warning it is, as the API returns it.
    pub code: &'static str,
    /// A sentence that says what to do.
    pub message: String,
}

/// A folder that has a start page.
#[derive(Clone, Copy, Debug)]
pub struct Game<'a> {
    /// The folder, as its developer knows it.
    pub folder: &'a str,
    /// The folder in it that most build tools write to, if it has a start page.
    pub built: Option<&'a str>,
    /// The names of files and folders at the top of it, also of those that are not deployed.
    pub top: &'a [String],
    /// The start page.
    pub index_html: &'a str,
}

impl Game<'_> {
    /// The advice about the names of deployed files: source files, and files that should hardly be
    /// public.
    #[must_use]
    pub fn advice_on_files<'p>(&self, paths: impl IntoIterator<Item = &'p str>) -> Vec<Advice> {
        let sources = self.sources_warning();
        let is_whole = sources.is_some();
        let of_names = name_warnings(paths)
            .into_iter()
            // Not needed if a warning about the whole folder was given.
            .filter(|warning| !(is_whole && warning.code == WarningCode::SourceFile))
            .map(Advice::from);
        sources.into_iter().chain(of_names).collect()
    }

    /// All advice: about the files, and how the page loads the runtime.
    #[must_use]
    pub fn advice<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p str>,
        files: ReadFile<'_>,
    ) -> Vec<Advice> {
        let mut advice = self.advice_on_files(paths);
        let of_page = warnings_with(self.index_html, files);
        advice.extend(of_page.into_iter().map(Advice::from));
        advice
    }

    fn sources_warning(&self) -> Option<Advice> {
        let sign = sources::sign(self.top, self.index_html)?;
        let what = match self.built {
            Some(built) => format!("choose the folder {built} instead"),
            None => "build the game, and choose the folder with the built game".to_owned(),
        };
        Some(Advice {
            code: sources::CODE,
            message: format!(
                "{} looks like the source code of a game ({sign}), which everybody could then \
                 read: {what}.",
                self.folder
            ),
        })
    }
}

impl From<crate::page::Warning> for Advice {
    fn from(warning: crate::page::Warning) -> Self {
        Self {
            code: warning.code.as_str(),
            message: warning.message,
        }
    }
}

/// Whether a file or folder of this name is deployed; `at_top`: right in the game's folder. Hidden
/// files are left out, except `.well-known`; so are the settings and npm's folder if the folder is
/// the game's own.
#[must_use]
pub fn is_deployed_name(name: &str, at_top: bool) -> bool {
    let is_hidden = name.starts_with('.') && name != ".well-known";
    let stays_at_top = name == SETTINGS || name == INSTALLED;
    !(is_hidden || (at_top && stays_at_top))
}

/// Checks how many files with these paths there are, how long the paths are together, and how large the
/// files are together.
///
/// # Errors
/// There are too many, or they are too large, or their paths are too long.
pub fn keep_limits<'p>(
    paths: impl ExactSizeIterator<Item = &'p str>,
    bytes: u64,
) -> Result<(), FolderProblem> {
    let files = paths.len();
    let names = paths.fold(0_u64, |sum, path| sum.saturating_add(path.len() as u64));
    if files > MAX_FILES {
        Err(FolderProblem::TooManyFiles(files))
    } else if bytes > MAX_BYTES {
        Err(FolderProblem::TooLarge(bytes))
    } else if names > MAX_PATHS_BYTES {
        Err(FolderProblem::PathsTooLong(names))
    } else {
        Ok(())
    }
}

/// A number of bytes in words: `536.87 MB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    let (divisor, unit) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..1_000_000 => (10, "kB"),
        1_000_000..1_000_000_000 => (10_000, "MB"),
        _ => (10_000_000, "GB"),
    };
    let hundredths = bytes / divisor;
    format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign_of(name: &str, src: &str) -> Option<String> {
        let page = format!("<script type=\"module\" src=\"{src}\"></script>");
        let top = [name.split('/').next().unwrap().to_owned()];
        sources::sign(&top, &page)
    }

    #[test]
    fn sources_are_known_by_what_no_built_game_has() {
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
            (
                "a.txt",
                "./main.tsx?v=1",
                Some("index.html loads ./main.tsx?v=1"),
            ),
            ("a.txt", "main.jsx", Some("index.html loads main.jsx")),
            ("a.txt", "/assets/main.js?from=main.ts", None),
            ("assets/package.json", "/a.mjs", None),
        ] {
            assert_eq!(sign_of(name, src).as_deref(), sign, "{name} {src}");
        }
    }

    #[test]
    fn the_folder_that_was_built_is_named_where_there_is_one() {
        let top = ["package.json".to_owned()];
        let said = |built| {
            let game = Game {
                folder: "game",
                built,
                top: &top,
                index_html: "",
            };
            game.advice_on_files([]).remove(0).message
        };
        assert!(said(None).contains("build the game, and choose the folder with"));
        assert!(said(Some("game/dist")).ends_with("choose the folder game/dist instead."));
    }

    #[test]
    fn a_warning_about_the_whole_folder_replaces_that_about_its_source_files() {
        let game = Game {
            folder: "game",
            built: None,
            top: &["package.json".to_owned()],
            index_html: "",
        };
        let codes: Vec<_> = game
            .advice(["package.json", "key.pem"], &|_| None)
            .into_iter()
            .map(|advice| advice.code)
            .collect();
        assert_eq!(codes, [sources::CODE, "private-file", "runtime-not-loaded"]);
    }

    #[test]
    fn what_is_hidden_or_the_games_own_stays() {
        for (name, at_top, is_deployed) in [
            ("index.html", true, true),
            (".env", true, false),
            (".DS_Store", false, false),
            (".well-known", true, true),
            ("platform.toml", true, false),
            ("platform.toml", false, true),
            ("node_modules", true, false),
            ("node_modules", false, true),
        ] {
            assert_eq!(is_deployed_name(name, at_top), is_deployed, "{name}");
        }
    }

    #[test]
    fn limits_say_how_much_there_is_and_how_much_there_may_be() {
        let kept = |files, path, bytes| keep_limits(std::iter::repeat_n(path, files), bytes);
        assert_eq!(kept(MAX_FILES, "index.html", MAX_BYTES), Ok(()));
        let said = |files, bytes| kept(files, "a", bytes).unwrap_err().to_string();
        let long = "a".repeat(1_024);
        assert_eq!(kept(4_096, &long, 0), Ok(()));
        assert_eq!(
            kept(4_097, &long, 0).unwrap_err().to_string(),
            "The names of a deployment's files, with their folders, have at most 4.19 MB together; \
             those of these files have 4.19 MB: shorten them, or deploy fewer files."
        );
        assert_eq!(
            said(MAX_FILES + 1, 0),
            "A deployment has at most 20000 files; this folder has 20001."
        );
        assert_eq!(
            said(1, 1_234_567_890),
            "A deployment has at most 536.87 MB of data; these files have 1.23 GB."
        );
        assert_eq!(
            [size(0), size(999), size(1_000)],
            ["0 B", "999 B", "1.00 kB"]
        );
    }

    #[test]
    fn a_missing_page_is_looked_for_in_the_folder_of_build_tools() {
        let said = |built: Option<&str>| {
            let problem = FolderProblem::NoIndex {
                folder: "game".into(),
                built: built.map(str::to_owned),
            };
            problem.to_string()
        };
        assert!(said(None).starts_with("game has no index.html: build the game first, or"));
        assert_eq!(
            said(Some("game/dist")),
            "game has no index.html: choose the folder game/dist, which has one."
        );
    }
}
