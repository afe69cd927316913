//! Reads a game's `platform.toml` and reports its errors.

use std::path::PathBuf;

use serde::Deserialize;
use toml::de::{DeTable, Error};

/// The valid keys.
const KEYS: [&str; 3] = ["slug", "origin", "dist"];
/// Keys of the server's own settings file, which has the same name and may lie in a parent folder.
/// It belongs to no game, so its keys are ignored.
const SERVERS: [&str; 8] = [
    "listen",
    "data",
    "database_url",
    "files_url",
    "trusted_proxies",
    "admins",
    "key_secret",
    "identity_provider",
];
/// The largest edit distance at which a known key is suggested.
const SLIPS: usize = 3;

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Manifest {
    /// The project.
    pub(crate) slug: Option<String>,
    /// The platform.
    pub(crate) origin: Option<String>,
    /// The built game.
    pub(crate) dist: Option<PathBuf>,
}

/// Reads the file's text.
///
/// # Errors
/// A sentence with line and column.
pub(crate) fn read(text: &str) -> Result<Manifest, String> {
    let wrong = |error: &Error| {
        let at = error.span().map_or(0, |span| span.start);
        format!(
            "{}: {}.",
            place(text, at),
            error.message().trim_end_matches('.')
        )
    };
    let table = DeTable::parse(text).map_err(|error| wrong(&error))?;
    let keys = || table.get_ref().keys();
    let of_a_server = keys().any(|key| SERVERS.contains(&key.get_ref().as_ref()));
    for key in keys().filter(|_| !of_a_server) {
        let wrong = |why| format!("{}: {why}", place(text, key.span().start));
        check_key(key.get_ref()).map_err(wrong)?;
    }
    toml::from_str(text).map_err(|error| wrong(&error))
}

/// Checks that a key is valid.
fn check_key(name: &str) -> Result<(), String> {
    if KEYS.contains(&name) {
        return Ok(());
    }
    let shown: String = name.chars().take(40).flat_map(char::escape_debug).collect();
    let nearest = KEYS
        .into_iter()
        .map(|known| (strsim::levenshtein(&shown, known), known))
        .min()
        .filter(|(edits, _)| *edits <= SLIPS);
    Err(match nearest {
        Some((_, known)) => format!("unknown key `{shown}`: write `{known}`."),
        None => format!(
            "unknown key `{shown}`: write {} or remove it.",
            KEYS.map(|key| format!("`{key}`")).join(", ")
        ),
    })
}

/// Line and column of a byte, from one.
fn place(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    format!("line {line}, column {column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_stops_with_the_nearest_known_one() {
        for (text, expected) in [
            (
                "slug = \"a\"\n\nslag = \"b\"\n",
                "line 3, column 1: unknown key `slag`: write `slug`.",
            ),
            (
                "orgin = \"https://a.example\"",
                "line 1, column 1: unknown key `orgin`: write `origin`.",
            ),
            (
                "  dist_dir = 1",
                "line 1, column 3: unknown key `dist_dir`: write `slug`, `origin`, `dist` or remove it.",
            ),
            (
                "[backend]\nurl = 1",
                "line 1, column 2: unknown key `backend`: write `slug`, `origin`, `dist` or remove it.",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), expected);
        }
        // A server's file has the same name, and may lie in a parent folder.
        assert!(read("listen = \"127.0.0.1:1\"\nlog = \"info\"").is_ok());
    }

    #[test]
    fn what_is_no_toml_is_said_with_line_and_column() {
        let broken = read("slug = \"a\"\norigin = ?\n").unwrap_err();
        assert!(broken.starts_with("line 2, column 10: "), "{broken}");
        let wrong = read("slug = \"a\"\ndist = 7\n").unwrap_err();
        assert!(wrong.starts_with("line 2, column 8: "), "{wrong}");
        let good = read("# a game\nslug = \"a\"\n").unwrap();
        assert_eq!(good.slug.as_deref(), Some("a"));
    }
}
