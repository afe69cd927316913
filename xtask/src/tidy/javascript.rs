//! JavaScript and TypeScript: formatted and linted by Biome, and checked by the
//! TypeScript compiler, which reads the types of JavaScript from its comments.
//!
//! The tools are npm packages, pinned in `xtask/npm/`. A project is a folder with a
//! `tsconfig.json`. The types of the project API are generated from its description, and those of
//! the elements in the console's pages from the pages, whenever these change.

mod elements;

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use super::files;
use crate::command::{command, describe, output, run};
use crate::terminal;
use crate::workspace::Workspace;

/// Where the npm packages of the tools are.
const PACKAGES: &str = "xtask/npm";
/// Folders with a `tsconfig.json`, each type-checked as a whole.
const PROJECTS: &[&str] = &[
    "loader",
    "tests/src/browser",
    "www/auth",
    "www/console",
    "www/demo",
];
/// The end of the path of the test snapshot that holds the API's description.
const DESCRIPTION: &str = "openapi__tests__the_description_is_what_was_looked_at.snap";
/// The types that are generated from the description. git ignores the file.
const API_TYPES: &str = "www/types/api.generated.d.ts";
/// The templates of the pages, and the types of the elements in them.
const PAGES: &str = "www/pages/";
const ELEMENT_TYPES: &str = "www/types/elements.generated.d.ts";

/// Checks that the JavaScript is formatted, has no lint and no type error.
///
/// # Errors
/// It has a fault, or the tools are not installed.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let tools = Tools::find(&workspace.root)?;
    let linted = tools.lint();
    tools.make_api_types()?;
    make_element_types(&workspace.root)?;
    let typed = tools.check_types(PROJECTS);
    linted.and(typed)
}

/// Formats the JavaScript, and fixes what Biome can fix safely.
///
/// # Errors
/// The tools are not installed, or a fault remains that they cannot fix.
pub(crate) fn fix(workspace: &Workspace) -> Result<()> {
    run(&mut Tools::find(&workspace.root)?.biome(&["check", "--write"]))
}

/// The installed npm packages.
struct Tools<'a> {
    root: &'a Path,
    packages: PathBuf,
}

impl<'a> Tools<'a> {
    fn find(root: &'a Path) -> Result<Self> {
        let packages = root.join(PACKAGES).join("node_modules");
        ensure!(
            packages.is_dir(),
            "the JavaScript was not checked: the tools are not installed. `npm ci` in {PACKAGES} installs them; it needs Node.js and the npm registry"
        );
        Ok(Self { root, packages })
    }

    /// Runs a script of the packages with Node.js.
    fn script(&self, path: &str) -> Command {
        let mut node = command("node", self.root);
        node.arg(self.packages.join(path));
        node
    }

    /// Lints every file and checks its format.
    fn lint(&self) -> Result<()> {
        run(&mut self.biome(&["check"]))
    }

    fn biome(&self, arguments: &[&str]) -> Command {
        let mut biome = self.script("@biomejs/biome/bin/biome");
        biome.args(arguments).arg("--error-on-warnings");
        biome
    }

    /// Checks the types of these projects in parallel.
    fn check_types(&self, projects: &[&str]) -> Result<()> {
        let outcomes: Vec<Result<Output>> = thread::scope(|scope| {
            let compiling: Vec<_> = projects
                .iter()
                .map(|project| scope.spawn(|| self.compile(project)))
                .collect();
            let join = |thread: thread::ScopedJoinHandle<'_, Result<Output>>| {
                thread.join().unwrap_or_else(|_| bail!("a thread panicked"))
            };
            compiling.into_iter().map(join).collect()
        });
        let mut wrong = Vec::new();
        for (project, outcome) in projects.iter().zip(outcomes) {
            let output = outcome?;
            if !output.status.success() {
                terminal::note(String::from_utf8_lossy(&output.stdout).trim_end());
                terminal::note(String::from_utf8_lossy(&output.stderr).trim_end());
                wrong.push(*project);
            }
        }
        ensure!(wrong.is_empty(), "types are wrong in {}", wrong.join(", "));
        Ok(())
    }

    fn compile(&self, project: &str) -> Result<Output> {
        let mut compiler = self.script("typescript-7/bin/tsc");
        compiler.args(["--noEmit", "--pretty", "false", "--project", project]);
        compiler
            .output()
            .with_context(|| format!("`{}` cannot be started", describe(&compiler)))
    }

    /// Generates the types of the project API, unless the existing ones match the description and
    /// the tools.
    fn make_api_types(&self) -> Result<()> {
        let description = description(self.root)?;
        let mut hasher = DefaultHasher::new();
        description.hash(&mut hasher);
        fs::read(self.root.join(PACKAGES).join("package-lock.json"))?.hash(&mut hasher);
        let origin = format!(
            "// Made by `cargo xtask tidy` from the description {:016x}.\n",
            hasher.finish()
        );
        let target = self.root.join(API_TYPES);
        if fs::read_to_string(&target).is_ok_and(|types| types.starts_with(&origin)) {
            return Ok(());
        }
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        let folder = tempfile::tempdir()?;
        let (json, types) = (folder.path().join("api.json"), folder.path().join("api.ts"));
        fs::write(&json, description)?;
        let mut generator = self.script("openapi-typescript/bin/cli.js");
        output(generator.arg(&json).arg("--output").arg(&types))?;
        let types = origin + &fs::read_to_string(&types)?;
        fs::write(&target, types).with_context(|| format!("{API_TYPES} cannot be written"))
    }
}

/// Generates the types of the pages' elements, unless they are up to date.
fn make_element_types(root: &Path) -> Result<()> {
    let mut pages = Vec::new();
    for path in files::list(root)? {
        if path.starts_with(PAGES) {
            pages.extend(files::read(root, &path)?);
        }
    }
    let (target, types) = (root.join(ELEMENT_TYPES), elements::types(&pages));
    if fs::read_to_string(&target).is_ok_and(|known| known == types) {
        return Ok(());
    }
    fs::write(&target, types).with_context(|| format!("{ELEMENT_TYPES} cannot be written"))
}

/// The description of the project API, from the snapshot that a test of the
/// server compares it with.
fn description(root: &Path) -> Result<String> {
    let path = files::list(root)?
        .into_iter()
        .find(|path| path.ends_with(DESCRIPTION))
        .with_context(|| format!("no file ends with {DESCRIPTION}"))?;
    let snapshot = files::read(root, &path)?.with_context(|| format!("{path} is no text"))?;
    Ok(after_header(&snapshot).to_owned())
}

/// A snapshot without the header between two lines of `---`.
fn after_header(snapshot: &str) -> &str {
    snapshot
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"))
        .map_or(snapshot, |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const GAME: &str = "www/demo/game/game.js";

    fn workspace() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    /// A folder with the demo game, the types that it uses, and the rules.
    fn copy_of_the_demo() -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        for path in files::list(workspace()).unwrap() {
            let is_wanted = path.starts_with("www/demo/game/")
                || [
                    "biome.jsonc",
                    "template/platform.d.ts",
                    "www/demo/tsconfig.json",
                ]
                .contains(&&*path);
            if is_wanted {
                let target = copy.path().join(&path);
                fs::create_dir_all(target.parent().unwrap()).unwrap();
                fs::copy(workspace().join(&path), target).unwrap();
            }
        }
        copy
    }

    /// The workspace's tools, for the folder at `root`.
    fn tools(root: &Path) -> Tools<'_> {
        Tools {
            root,
            packages: Tools::find(workspace()).unwrap().packages,
        }
    }

    /// Appends a line to the script of the game in this copy of the demo.
    fn append(copy: &TempDir, line: &str) {
        let game = copy.path().join(GAME);
        let text = fs::read_to_string(&game).unwrap();
        fs::write(game, text + line).unwrap();
    }

    #[test]
    fn a_type_error_fails_the_check() {
        let copy = copy_of_the_demo();
        let tools = tools(copy.path());
        tools.check_types(&["www/demo"]).unwrap();

        append(&copy, "platform.logOut();\n");
        let output = tools.compile("www/demo").unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(GAME) && said.contains("'logOut'"), "{said}");
        let error = tools.check_types(&["www/demo"]).unwrap_err();
        assert_eq!(error.to_string(), "types are wrong in www/demo");
    }

    #[test]
    fn a_lint_and_a_wrong_format_fail_the_check() {
        for line in [
            "if (state == null) pause();\nvar state;\n",
            "const never_used = 1;\n",
            "pause( );\n",
        ] {
            let copy = copy_of_the_demo();
            tools(copy.path()).lint().unwrap();
            append(&copy, line);
            assert!(tools(copy.path()).lint().is_err(), "{line}");
        }
    }

    #[test]
    fn tools_that_are_not_installed_are_an_error_that_says_what_to_do() {
        let empty = tempfile::tempdir().unwrap();
        let error = Tools::find(empty.path()).err().unwrap().to_string();
        assert!(error.contains("`npm ci` in xtask/npm"), "{error}");
    }

    #[test]
    fn the_types_of_the_api_are_made_once_for_each_description() {
        let root = tempfile::tempdir().unwrap();
        let snapshot = root.path().join(format!("a__{DESCRIPTION}"));
        let types = root.path().join(API_TYPES);
        fs::create_dir_all(types.parent().unwrap()).unwrap();
        fs::create_dir_all(root.path().join(PACKAGES)).unwrap();
        fs::write(root.path().join(PACKAGES).join("package-lock.json"), "{}").unwrap();
        let describe = |path: &str| {
            let text = format!(
                "---\nsource: a.rs\n---\n{{\"openapi\":\"3.1.0\",\"info\":{{\"title\":\"A\",\"version\":\"1\"}},\"paths\":{{\"{path}\":{{}}}}}}\n"
            );
            fs::write(&snapshot, text).unwrap();
            tools(root.path()).make_api_types().unwrap();
            fs::read_to_string(&types).unwrap()
        };
        assert!(describe("/api/one").contains("\"/api/one\""));
        // Up-to-date types are not written again: the added text stays.
        let marked = fs::read_to_string(&types).unwrap() + "// marked\n";
        fs::write(&types, &marked).unwrap();
        assert_eq!(describe("/api/one"), marked);
        assert!(describe("/api/two").contains("\"/api/two\""));
    }
}
