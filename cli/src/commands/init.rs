//! `platform init`: makes a new game from the template inside this program.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use platform_protocol::paths::CLI_PAGES;
use rust_embed::RustEmbed;
use toml_edit::{DocumentMut, Value, value};

use super::Context;
use crate::failure::Failure;
use crate::settings::{FILE_NAME, Settings, usable_slug};
use crate::terminal;

/// The template's files, without build output and installed packages.
#[derive(RustEmbed)]
#[folder = "../template"]
#[exclude = "node_modules/*"]
#[exclude = "*/node_modules/*"]
#[exclude = "dist/*"]
#[exclude = "target/*"]
#[exclude = "*/target/*"]
#[exclude = ".platform/*"]
struct Template;

/// Makes the game's folder.
pub(super) fn run(context: &Context<'_>, directory: &Path, force: bool) -> Result<(), Failure> {
    // A platform.toml in a parent folder belongs to another game, or is the file to be written.
    let settings = Settings::settle(context.options, context.environment, &[])?;
    let slug = match settings.named_project() {
        Some(slug) => slug.to_owned(),
        None => slug_of(directory)?,
    };
    if !force && !is_empty(directory).map_err(|error| cannot(directory, &error))? {
        return Err(Failure::failed(format!(
            "{} is not empty: choose another folder, or add --force to overwrite files in it.",
            directory.display()
        )));
    }
    for name in Template::iter() {
        let Some(file) = Template::get(&name) else {
            continue;
        };
        let path = directory.join(Path::new(name.as_ref()));
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, with_name(&name, &file.data, &slug)));
        written.map_err(|error| cannot(&path, &error))?;
    }
    let template = Template::get(FILE_NAME).map(|file| file.data.into_owned());
    let path = directory.join(FILE_NAME);
    let origin = settings.knows_platform.then(|| settings.origin.to_string());
    let text = settings_text(&template.unwrap_or_default(), &slug, origin.as_deref())?;
    std::fs::write(&path, text).map_err(|error| cannot(&path, &error))?;
    let created = format!("Created the game {slug} in {}", directory.display());
    match origin {
        Some(origin) => terminal::note(format_args!(
            "{created}, for the platform {origin} (`origin` in its platform.toml). Its README.md explains the next steps. Whoever works on it with you installs this program from {origin}{CLI_PAGES}."
        )),
        None => terminal::note(format_args!(
            "{created}. Its platform.toml names no platform yet, since none is known here: its commands use the one that you sign in to, with `platform login --origin <its address>`. Its README.md explains the next steps."
        )),
    }
    Ok(())
}

/// The name that the template's files give the game.
const TEMPLATE_NAME: &str = "my-game";
/// The files in which it is replaced by the slug. The Rust backend keeps its own name: a package
/// of Cargo must not begin with a digit, as a slug may.
const NAMED: [&str; 3] = ["README.md", "package.json", "package-lock.json"];

/// What the settings have in place of a platform that is not known.
const UNKNOWN_ORIGIN: &str = "# origin = \"https://games.example\"";

/// The content of a file of the template, for a game with this slug.
fn with_name<'a>(file: &str, data: &'a [u8], slug: &str) -> Cow<'a, [u8]> {
    match std::str::from_utf8(data) {
        Ok(text) if NAMED.contains(&file) => {
            Cow::Owned(text.replace(TEMPLATE_NAME, slug).into_bytes())
        }
        _ => Cow::Borrowed(data),
    }
}

/// The template's settings with the game's own slug and platform. Comments are kept. A platform that
/// is not known is a comment, which says what to write.
fn settings_text(template: &[u8], slug: &str, origin: Option<&str>) -> Result<String, Failure> {
    let mut document = std::str::from_utf8(template)
        .ok()
        .and_then(|text| text.parse::<DocumentMut>().ok())
        .ok_or_else(|| Failure::failed("The template's platform.toml cannot be used."))?;
    set(&mut document, "slug", slug);
    if let Some(origin) = origin {
        set(&mut document, "origin", origin);
        return Ok(document.to_string());
    }
    let text = document.to_string();
    let lines = text.lines().map(|line| match line.split_once(" = ") {
        Some(("origin", _)) => UNKNOWN_ORIGIN,
        _ => line,
    });
    Ok(lines.flat_map(|line| [line, "\n"]).collect())
}

/// Sets one value and keeps the comment after it.
fn set(document: &mut DocumentMut, key: &str, text: &str) {
    let decor = document
        .get(key)
        .and_then(|item| item.as_value())
        .map(|old| old.decor().clone());
    let mut new = Value::from(text);
    if let Some(decor) = decor {
        *new.decor_mut() = decor;
    }
    document[key] = value(new);
}

/// Derives a slug from a folder's name.
fn slug_of(directory: &Path) -> Result<String, Failure> {
    let whole = std::path::absolute(directory).map_err(|error| cannot(directory, &error))?;
    // `.` has a name only once it is resolved.
    let whole = whole.canonicalize().unwrap_or(whole);
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    let slug: String = name
        .to_lowercase()
        .chars()
        .map(|c| if matches!(c, ' ' | '_' | '.') { '-' } else { c })
        .collect();
    usable_slug(&slug).map_err(|why| {
        Failure::usage(format!(
            "The folder's name cannot be used as the project's slug; choose a slug with --project. \
             {why}"
        ))
    })?;
    Ok(slug)
}

fn is_empty(directory: &Path) -> io::Result<bool> {
    match std::fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{} cannot be written: {error}.", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_or_installed_is_not_in_the_template() {
        assert!(Template::get("platform.d.ts").is_some());
        for name in Template::iter() {
            let parts: Vec<&str> = name.split('/').collect();
            for unwanted in ["node_modules", "dist", "target", ".platform"] {
                assert!(!parts.contains(&unwanted), "{name}");
            }
        }
    }

    #[test]
    fn the_packages_are_named_like_the_game() {
        for file in NAMED {
            let data = Template::get(file).unwrap().data;
            let text = with_name(file, &data, "2048");
            let text = std::str::from_utf8(&text).unwrap();
            assert!(
                text.contains("2048") && !text.contains(TEMPLATE_NAME),
                "{file}"
            );
        }
    }

    #[test]
    fn the_settings_keep_their_comments() {
        let template = b"# The game.\nslug = \"my-game\" # Its name.\ndist = \"dist\"\n";
        let text = settings_text(template, "other", Some("https://games.example")).unwrap();
        assert_eq!(
            text,
            "# The game.\nslug = \"other\" # Its name.\ndist = \"dist\"\n\
             origin = \"https://games.example\"\n"
        );
    }

    #[test]
    fn a_platform_that_is_not_known_is_left_out() {
        let template = Template::get(FILE_NAME).unwrap().data;
        let text = settings_text(&template, "other", None).unwrap();
        let manifest = crate::manifest::read(&text).unwrap();
        assert_eq!(manifest.origin, None);
        assert_eq!(manifest.slug.as_deref(), Some("other"));
        assert!(manifest.dist.is_some());
        let comment = format!("# The platform.\n{UNKNOWN_ORIGIN}\n");
        assert!(text.contains(&comment), "{text}");
    }

    #[test]
    fn a_slug_follows_from_a_folders_name_where_it_can() {
        let slug = |name: &str| slug_of(Path::new(name)).ok();
        assert_eq!(slug("games/My_Game 2").as_deref(), Some("my-game-2"));
        assert_eq!(slug("games/ab"), None);
        assert_eq!(slug("games/dev-game"), None);
        assert_eq!(slug("/"), None);
    }
}
