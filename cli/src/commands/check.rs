//! `platform check`: the warnings of a deploy, without the platform.

use std::io::Read as _;
use std::path::Path;

use platform_checks::check_path;
use platform_checks::folder::{Advice, Game};
use platform_checks::sources::BUILT;
use serde_json::{Value, json};

use super::{Context, maps};
use crate::archive::{Folder, INDEX};
use crate::failure::Failure;
use crate::terminal;

/// A limit on what is read into memory. The start page of a browser game is far smaller.
const MAX_INDEX_BYTES: u64 = 64 * 1024 * 1024;
/// How much of a script is read in search of `platform`.
const MAX_SCRIPT_BYTES: u64 = 4 * 1024 * 1024;

/// Prints the warnings of a folder.
pub(super) fn run(
    context: &Context<'_>,
    directory: Option<&Path>,
    strict: bool,
    json: bool,
) -> Result<(), Failure> {
    let folder = context.settings_of(directory)?.deployed(directory)?;
    let files = Folder::of_game(&folder)?;
    let found = look(&folder, &files)?;
    if json {
        let list: Vec<Value> = found
            .iter()
            .map(|warning| json!({"code": warning.code, "message": warning.message}))
            .collect();
        terminal::print_json(&json!({"warnings": list}))?;
    } else {
        for warning in &found {
            terminal::print(format_args!("{}: {}", warning.code, warning.message))?;
        }
    }
    maps::tell(maps::missing(&files).as_ref());
    if found.is_empty() {
        terminal::note(format_args!(
            "{} loads the runtime correctly, and no file looks private.",
            folder.display()
        ));
    } else if strict {
        let count = terminal::counted(found.len() as u64, "warning");
        let sentence = format!(
            "{} has {count}: each one says how to fix it.",
            folder.display()
        );
        return Err(Failure::failed(sentence).said_by_results());
    }
    Ok(())
}

/// The warnings of a folder that could be deployed.
fn look(folder: &Path, files: &Folder) -> Result<Vec<Advice>, Failure> {
    let page = page(folder)?;
    Ok(about(folder, &page, |game| {
        game.advice(files.names(), &|path| script(folder, path))
    }))
}

/// The warnings about the names of files: source files, and files that should hardly be public.
pub(super) fn of_files(folder: &Path, files: &Folder, page: &str) -> Vec<Advice> {
    about(folder, page, |game| game.advice_on_files(files.names()))
}

/// Calls `advise` with what there is to know about a folder.
fn about<T>(folder: &Path, page: &str, advise: impl FnOnce(Game<'_>) -> T) -> T {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let top: Vec<String> = names.collect();
    let built = folder.join(BUILT);
    let has_page = built.join(INDEX).is_file();
    let built = built.display().to_string();
    advise(Game {
        folder: &folder.display().to_string(),
        built: has_page.then_some(&*built),
        top: &top,
        index_html: page,
    })
}

/// The text of a script of the game, if it can be read.
pub(super) fn script(folder: &Path, path: &str) -> Option<String> {
    check_path(path).ok()?;
    let file = std::fs::File::open(folder.join(path)).ok()?;
    let mut text = Vec::new();
    file.take(MAX_SCRIPT_BYTES).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Reads the game's start page.
///
/// # Errors
/// It cannot be read, or is too large.
pub(super) fn page(folder: &Path) -> Result<String, Failure> {
    let page = folder.join(INDEX);
    let cannot = |why: &str| Failure::failed(format!("{} cannot be read: {why}.", page.display()));
    let length = page
        .metadata()
        .map_err(|error| cannot(&error.to_string()))?
        .len();
    if length > MAX_INDEX_BYTES {
        return Err(cannot("it is too large for a page"));
    }
    let bytes = std::fs::read(&page).map_err(|error| cannot(&error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
