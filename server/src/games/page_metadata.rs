//! What games look like where they are listed: the titles of their pages, and
//! the pictures that these name.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use lol_html::html_content::{Element, TextChunk};
use lol_html::{RewriteStrSettings, element, rewrite_str, text};
use moka::sync::Cache;
use percent_encoding::percent_decode_str;
use platform_protocol::invisible::is_invisible;
use platform_protocol::names::Environment;
use unicode_normalization::char::is_combining_mark;
use url::Url;

use crate::domain::project::Deployment;
use crate::domain::username::MAX_MARKS;
use crate::games::catalogue::Game;
use crate::games::files::FileStore;

/// Bytes of a game's page in which its title and picture are looked for.
const HEAD: u64 = 16 * 1024;
/// Characters of a title, at most.
const TITLE: usize = 60;
/// Bytes of an address, at most.
const ADDRESS: usize = 2_000;
/// Pages that are remembered, at most.
const REMEMBERED: u64 = 10_000;

/// What game's pages say of themselves, by the pages' content, so that each is
/// read once.
#[derive(Clone, Debug)]
pub struct PageMetadata(Cache<String, Arc<Metadata>>);

/// What a page says of itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Metadata {
    /// Its title, if it can be shown.
    title: Option<String>,
    /// The addresses of pictures, the best first.
    pictures: Vec<String>,
}

/// What a game looks like in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameListing {
    /// Its page's title, or its slug.
    pub title: String,
    /// The address of its picture, if its page names one that it has itself.
    pub picture: Option<String>,
}

impl Default for PageMetadata {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl PageMetadata {
    /// What a game is called: its page's title, or its slug.
    pub async fn title(&self, game: &Game, files: &FileStore) -> String {
        titled(game, &self.said(game, files).await.unwrap_or_default())
    }

    /// What a game looks like. `is_file` says whether a file answers at a path of
    /// it: a backend would learn of everybody who looks at the list.
    pub async fn of(
        &self,
        game: &Game,
        files: &FileStore,
        is_file: impl Fn(&str) -> bool,
    ) -> GameListing {
        let said = self.said(game, files).await.unwrap_or_default();
        GameListing {
            title: titled(game, &said),
            picture: game.deployment.as_ref().and_then(|deployment| {
                let own = |address: &String| {
                    own_picture(address, &game.origin, deployment)
                        .filter(|picture| is_file(picture.path()))
                };
                said.pictures.iter().find_map(own).map(String::from)
            }),
        }
    }

    async fn said(&self, game: &Game, files: &FileStore) -> Option<Arc<Metadata>> {
        let page = game.deployment.as_ref()?.files.get("index.html")?;
        if let Some(known) = self.0.get(&page.sha256) {
            return Some(known);
        }
        // A page that cannot be read now has a title another time.
        let head = files
            .read_range(&page.sha256, 0..page.size.min(HEAD))
            .await
            .ok()?;
        let said = Arc::new(read(&String::from_utf8_lossy(&head)));
        self.0.insert(page.sha256.clone(), Arc::clone(&said));
        Some(said)
    }
}

/// The title that a game's page says, or the game's slug.
fn titled(game: &Game, said: &Metadata) -> String {
    let title = said.title.clone().unwrap_or_else(|| game.slug.clone());
    match game.environment {
        Environment::Prod => title,
        // Nobody should take the one for the other.
        Environment::Dev => format!("{title} (dev)"),
    }
}

/// The picture's own address, if it is one of the game's files. What others
/// have would tell them who looks at the list.
fn own_picture(address: &str, origin: &str, deployment: &Deployment) -> Option<Url> {
    let base = Url::parse(origin).ok()?;
    let found = base.join(address).ok()?;
    if found.origin() != base.origin() {
        return None;
    }
    let path = percent_decode_str(found.path()).decode_utf8().ok()?;
    let path = path.strip_prefix('/')?;
    let kind = mime_guess::from_path(path).first()?;
    let shown = kind.type_() == mime_guess::mime::IMAGE && deployment.files.contains_key(path);
    shown.then_some(found)
}

/// Reads the beginning of a page.
fn read(html: &str) -> Metadata {
    let title = Rc::new(RefCell::new(None::<String>));
    // By how well they stand for a game: what is shown where a link to it is
    // shared, then what stands for it on a phone, then in a tab.
    let pictures = Rc::new(RefCell::new([const { Vec::new() }; 3]));
    let note = |rank: usize, attribute: &'static str| {
        let pictures = Rc::clone(&pictures);
        move |element: &mut Element<'_, '_>| {
            // A character reference would take a parser of its own.
            let address = element
                .get_attribute(attribute)
                .filter(|address| address.len() <= ADDRESS && !address.contains('&'));
            if let (Some(address), Some(list)) = (address, pictures.borrow_mut().get_mut(rank)) {
                list.push(address);
            }
            Ok(())
        }
    };
    let handlers = {
        let begun = Rc::clone(&title);
        let written = Rc::clone(&title);
        let ended = Rc::new(RefCell::new(false));
        let seen = Rc::clone(&ended);
        vec![
            element!("head > title", move |_| {
                // Only the first one counts.
                let mut title = begun.borrow_mut();
                *seen.borrow_mut() = title.is_some();
                title.get_or_insert_default();
                Ok(())
            }),
            text!("head > title", move |chunk: &mut TextChunk<'_>| {
                if !*ended.borrow()
                    && let Some(title) = written.borrow_mut().as_mut()
                {
                    title.push_str(chunk.as_str());
                }
                Ok(())
            }),
            element!(r#"meta[property="og:image"]"#, note(0, "content")),
            element!(r#"link[rel~="apple-touch-icon" i]"#, note(1, "href")),
            element!(r#"link[rel~="icon" i]"#, note(2, "href")),
        ]
    };
    let settings = handlers
        .into_iter()
        .fold(RewriteStrSettings::new(), |settings, handler| {
            settings.append_element_content_handler(handler)
        });
    if rewrite_str(html, settings).is_err() {
        return Metadata::default();
    }
    let title = title.take().and_then(|title| shown(&title));
    Metadata {
        title,
        pictures: pictures.take().into_iter().flatten().collect(),
    }
}

/// A title in one line, if it is plain text.
fn shown(title: &str) -> Option<String> {
    let words: Vec<&str> = title.split_whitespace().collect();
    let title = words.join(" ");
    let mut marks = 0;
    let piled = title.chars().any(|char| {
        marks = if is_combining_mark(char) {
            marks + 1
        } else {
            0
        };
        marks > MAX_MARKS
    });
    let plain = title.chars().count() <= TITLE
        && title.contains(char::is_alphanumeric)
        && !title.contains(is_odd)
        && !piled;
    plain.then_some(title)
}

/// Whether a character could be markup, or is not to be seen.
fn is_odd(char: char) -> bool {
    matches!(char, '<' | '&' | '\u{fffd}') || is_invisible(char)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::project::{FileEntry, Made};

    #[test]
    fn only_a_plain_title_is_a_games_name() {
        for (html, expected) in [
            ("<head><title>Firefly</title>", Some("Firefly")),
            ("<head><TITLE>\n Two\n words </Title >", Some("Two words")),
            ("<head><title>\u{130}\u{e9}</title>", Some("\u{130}\u{e9}")),
            ("<head><title>one</title><title>two</title>", Some("one")),
            (
                "<head><!-- <title>no</title> --><title>yes</title>",
                Some("yes"),
            ),
            ("<head><title></title>", None),
            ("<head><title>Tom &amp; Jerry</title>", None),
            ("<head><title>a<b></title>", None),
            ("<head><title>a\u{202e}b</title>", None),
            ("<head><title>\u{200b}</title>", None),
            ("<head><title>a\u{feff}</title>", None),
            ("<head><title>\u{115f}\u{3164}</title>", None),
            ("<head><title>\u{e0041}\u{e0042}</title>", None),
            ("<head><title>---</title>", None),
            ("<head><title>Z\u{301}\u{302}\u{303}\u{304}</title>", None),
            (
                "<head><title>\u{39d}\u{301}\u{3bf}</title>",
                Some("\u{39d}\u{301}\u{3bf}"),
            ),
            ("<head></head><svg><title>no</title></svg>", None),
            ("<h1>none</h1>", None),
            ("", None),
        ] {
            assert_eq!(read(html).title.as_deref(), expected, "{html}");
        }
        let long = format!("<head><title>{}</title>", "x".repeat(61));
        assert_eq!(read(&long).title, None);
    }

    #[test]
    fn the_picture_for_links_comes_before_the_icons() {
        let html = r#"<head><link rel="shortcut icon" href="i.ico">
            <link rel=apple-touch-icon href="/touch.png">
            <meta property="og:image" content="big.png"><meta property="og:image" content="a&amp;b">"#;
        assert_eq!(read(html).pictures, ["big.png", "/touch.png", "i.ico"]);
    }

    #[test]
    fn only_the_games_own_pictures_are_shown() {
        let entry = FileEntry {
            sha256: "0".repeat(64),
            size: 1,
        };
        let files = ["a.png", "b c.webp", "page.html"];
        let deployment = Deployment {
            id: uuid::Uuid::nil(),
            slug: "game".into(),
            environment: Environment::Prod,
            files: files
                .iter()
                .map(|name| ((*name).to_owned(), entry.clone()))
                .collect(),
            created_at: 0,
            made: Made::default(),
        };
        let origin = "http://game.platform.localhost:8787";
        for (address, expected) in [
            ("a.png", Some("/a.png")),
            ("./a.png?v=2", Some("/a.png?v=2")),
            ("b%20c.webp", Some("/b%20c.webp")),
            ("http://game.platform.localhost:8787/a.png", Some("/a.png")),
            ("https://game.platform.localhost:8787/a.png", None),
            ("//elsewhere.example/a.png", None),
            ("https://elsewhere.example/a.png", None),
            ("javascript:alert(1)//a.png", None),
            ("data:image/png;base64,AA", None),
            ("missing.png", None),
            ("page.html", None),
            ("../../a.png", Some("/a.png")),
        ] {
            let expected = expected.map(|path| format!("{origin}{path}"));
            let found = own_picture(address, origin, &deployment).map(String::from);
            assert_eq!(found, expected, "{address}");
        }
    }
}
