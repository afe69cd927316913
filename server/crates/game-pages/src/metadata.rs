//! What the head of a game's page says of the game: title, words, and the images that it names.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use lol_html::html_content::{Element, TextChunk};
use lol_html::{ElementContentHandlers, RewriteStrSettings, Selector, element, rewrite_str, text};
use percent_encoding::percent_decode_str;
use platform_domain::listing::{
    AUTHOR_CHARS, DESCRIPTION_CHARS, PageWords, TITLE_CHARS, tags_among, tame,
};
use platform_domain::username::MAX_MARKS;
use platform_protocol::invisible::is_invisible;
use unicode_normalization::char::is_combining_mark;
use url::{Position, Url};

/// The number of bytes of a game's page that are searched for its title and image.
const HEAD: usize = 16 * 1024;
/// The maximum number of bytes of a text that is read.
const TEXT: usize = 4_000;
/// The maximum number of bytes of an address.
const ADDRESS: usize = 2_000;

/// A handler of parts of a page.
type Handler<'h> = (Cow<'h, Selector>, ElementContentHandlers<'h>);

/// The metadata of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PageMetadata {
    /// Its title, if it can be shown.
    pub title: Option<String>,
    /// The addresses of images, the best first.
    pub pictures: Vec<String>,
    /// What else it says of the game.
    pub words: PageWords,
}

/// Returns path and query of a cover of the game whose page is at `page`, if it is an image among the
/// game's files.
#[must_use]
pub fn own_cover(cover: &str, page: &str, is_own: impl Fn(&str) -> bool) -> Option<String> {
    own_picture(cover, &Url::parse(page).ok()?, is_own)
}

impl PageMetadata {
    /// Reads the page at `address`. Returns only images that are the game's own files: another
    /// server would learn who looks at the list.
    #[must_use]
    pub fn read(page: &[u8], address: &str, is_own: impl Fn(&str) -> bool) -> Self {
        let head = page.get(..HEAD).unwrap_or(page);
        let found = read(&String::from_utf8_lossy(head));
        let base = Url::parse(address).ok();
        let own = |picture: &String| own_picture(picture, base.as_ref()?, &is_own);
        let mut pictures: Vec<String> = found.pictures.iter().filter_map(own).collect();
        let mut seen = HashSet::new();
        pictures.retain(|picture| seen.insert(picture.clone()));
        Self { pictures, ..found }
    }
}

/// Returns the path of an image, if it is one of the game's files.
fn own_picture(address: &str, base: &Url, is_own: impl Fn(&str) -> bool) -> Option<String> {
    let found = base.join(address).ok()?;
    if found.origin() != base.origin() {
        return None;
    }
    let path = percent_decode_str(found.path()).decode_utf8().ok()?;
    let path = path.strip_prefix('/')?;
    let kind = mime_guess::from_path(path).first()?;
    let shown = kind.type_() == mime_guess::mime::IMAGE && is_own(path);
    shown.then(|| found[Position::BeforePath..].to_owned())
}

/// The texts that a page may have, in the order in which they are preferred.
#[derive(Clone, Copy)]
enum Text {
    Title,
    Description,
    Plain,
    Author,
    Tag,
    Keywords,
}

/// Where a page writes them.
const TEXTS: [(Text, &str); 6] = [
    (Text::Title, r#"meta[property="og:title" i]"#),
    (Text::Description, r#"meta[property="og:description" i]"#),
    (Text::Plain, r#"meta[name="description" i]"#),
    (Text::Author, r#"meta[name="author" i]"#),
    (Text::Tag, r#"meta[property="article:tag" i]"#),
    (Text::Keywords, r#"meta[name="keywords" i]"#),
];

/// The texts that were found.
type Found = Rc<RefCell<[Vec<String>; TEXTS.len()]>>;

/// Reads the beginning of a page.
fn read(html: &str) -> PageMetadata {
    let title = Rc::new(RefCell::new(None::<String>));
    // In the order of how well they represent a game: first the image for shared links, then the
    // icon for phones, then the icon for tabs.
    let pictures = Rc::new(RefCell::new([const { Vec::new() }; 3]));
    let note = |rank: usize, attribute: &'static str| {
        let pictures = Rc::clone(&pictures);
        move |element: &mut Element<'_, '_>| {
            // Character references would need another parser.
            let address = element
                .get_attribute(attribute)
                .filter(|address| address.len() <= ADDRESS && !address.contains('&'));
            if let (Some(address), Some(list)) = (address, pictures.borrow_mut().get_mut(rank)) {
                list.push(address);
            }
            Ok(())
        }
    };
    let texts = Found::default();
    let [outside, before, within] = title_handlers(&title);
    let mut handlers = vec![
        outside,
        before,
        within,
        element!(r#"meta[property="og:image"]"#, note(0, "content")),
        element!(r#"link[rel~="apple-touch-icon" i]"#, note(1, "href")),
        element!(r#"link[rel~="icon" i]"#, note(2, "href")),
    ];
    for (which, selector) in TEXTS {
        let texts = Rc::clone(&texts);
        handlers.push(element!(selector, move |element| {
            let text = element.get_attribute("content");
            let text = text.filter(|text| text.len() <= TEXT);
            if let (Some(text), Some(list)) = (text, texts.borrow_mut().get_mut(which as usize)) {
                list.push(htmlize::unescape_attribute(text).into_owned());
            }
            Ok(())
        }));
    }
    let settings = handlers
        .into_iter()
        .fold(RewriteStrSettings::new(), |settings, handler| {
            settings.append_element_content_handler(handler)
        });
    if rewrite_str(html, settings).is_err() {
        return PageMetadata::default();
    }
    let texts = texts.take();
    let first = |which: Text| texts.get(which as usize).and_then(|list| list.first());
    let title = first(Text::Title)
        .and_then(|title| shown(title))
        .or_else(|| title.take().and_then(|title| shown(&title)));
    PageMetadata {
        title,
        pictures: pictures.take().into_iter().flatten().collect(),
        words: words(&texts),
    }
}

/// Returns the handlers for the text of the first title. A page may leave out the tags around its
/// head (HTML, "Optional tags"); images have titles of their own, in its body.
fn title_handlers<'h>(title: &Rc<RefCell<Option<String>>>) -> [Handler<'h>; 3] {
    let begun = Rc::clone(title);
    let written = Rc::clone(title);
    let ended = Rc::new(RefCell::new(false));
    let (seen, body) = (Rc::clone(&ended), Rc::clone(&ended));
    [
        element!("body, svg", move |_| {
            *body.borrow_mut() = true;
            Ok(())
        }),
        element!("title", move |_| {
            // Only the first one counts.
            let mut title = begun.borrow_mut();
            *seen.borrow_mut() |= title.is_some();
            title.get_or_insert_default();
            Ok(())
        }),
        text!("title", move |chunk: &mut TextChunk<'_>| {
            if !*ended.borrow()
                && let Some(title) = written.borrow_mut().as_mut()
            {
                title.push_str(chunk.as_str());
            }
            Ok(())
        }),
    ]
}

/// Returns what the texts of a page say of its game.
fn words(texts: &[Vec<String>; TEXTS.len()]) -> PageWords {
    let all = |which: Text| texts.get(which as usize).into_iter().flatten();
    let first = |which: Text, chars| all(which).find_map(|text| tame(text, chars));
    let keywords = all(Text::Keywords).flat_map(|list| list.split([',', ';']));
    PageWords {
        description: first(Text::Description, DESCRIPTION_CHARS)
            .or_else(|| first(Text::Plain, DESCRIPTION_CHARS)),
        author: first(Text::Author, AUTHOR_CHARS),
        tags: tags_among(all(Text::Tag).map(String::as_str).chain(keywords)),
    }
}

/// Returns a title on one line, if it is plain text.
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
    let plain = title.chars().count() <= TITLE_CHARS
        && title.contains(char::is_alphanumeric)
        && !title.contains(is_odd)
        && !piled;
    plain.then_some(title)
}

/// Whether a character could be markup, or is invisible.
fn is_odd(char: char) -> bool {
    matches!(char, '<' | '&' | '\u{fffd}') || is_invisible(char)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("<head><body><title>no</title>", None),
            ("<!doctype html><title>No head</title>", Some("No head")),
            (
                "<html lang=en><meta charset=utf-8><title>No head</title>",
                Some("No head"),
            ),
            ("<h1>none</h1>", None),
            ("", None),
        ] {
            assert_eq!(read(html).title.as_deref(), expected, "{html}");
        }
        let long = format!("<head><title>{}</title>", "x".repeat(61));
        assert_eq!(read(&long).title, None);
    }

    #[test]
    fn a_page_says_what_its_game_is_about() {
        let html = r#"<head><title>Plain</title>
            <meta property="og:title" content="Two &quot;Rings&quot;">
            <meta name="Description" content="For searches.">
            <meta property="og:description" content="Hop &amp; gather &#x202e;sparks.">
            <meta name="author" content=" swift-otter ">
            <meta name="keywords" content="Arcade, two players; <b>, arcade">
            <meta property="article:tag" content="Space">"#;
        let found = read(html);
        assert_eq!(found.title.as_deref(), Some("Two \"Rings\""));
        assert_eq!(
            found.words,
            PageWords {
                description: Some("Hop & gather sparks.".into()),
                author: Some("swift-otter".into()),
                tags: vec!["space".into(), "arcade".into(), "two-players".into()],
            }
        );
        let hidden = r#"<head><title>Plain</title><meta property="og:title" content="&lt;b&gt;">
            <meta name=description content="&#x2066;"><!-- <meta name=author content=no> -->"#;
        let found = read(hidden);
        assert_eq!(found.title.as_deref(), Some("Plain"));
        assert_eq!(found.words, PageWords::default());
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
        let is_own = |path: &str| ["a.png", "b c.webp", "page.html"].contains(&path);
        let base = Url::parse("http://game.platform.localhost:8787/").unwrap();
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
            let found = own_picture(address, &base, is_own);
            assert_eq!(found.as_deref(), expected, "{address}");
        }
    }
}
