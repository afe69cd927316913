//! What lists show of a game that strangers deployed: the words of its page, and images that are its
//! covers. The first byte says what the rest is: a page, SVG, or another image. Words are short and
//! plain, images are the game's own, and what is drawn is small.

#![no_main]

use std::collections::{BTreeMap, HashSet};

use libfuzzer_sys::fuzz_target;
use platform_domain::listing::{AUTHOR_CHARS, DESCRIPTION_CHARS, TAGS, TITLE_CHARS, parse_tag};
use platform_game_pages::images::{MAX_PIXELS, refuse};
use platform_game_pages::inspection::inspect;
use roxmltree::Document;
use url::Url;

const PAGE: &str = "https://demo.example.com/";

fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((b'p', page)) => check_page(page),
        Some((b's', svg)) => check_svg(svg),
        Some((_, image)) => check_image(image),
        None => {}
    }
});

fn check_page(page: &[u8]) {
    let files = ["index.html", "a.png", "icons/b c.svg", "a.js"].map(|path| (path.to_owned(), ()));
    let files = BTreeMap::from(files);
    let found = inspect(page, PAGE, &files, &|_| None);
    if let Some(title) = &found.title {
        assert!((1..=TITLE_CHARS).contains(&title.chars().count()));
        assert!(
            !title.contains(['<', '&']) && !title.contains(char::is_control),
            "{title:?}"
        );
    }
    let words = &found.words;
    for (text, most) in [
        (&words.description, DESCRIPTION_CHARS),
        (&words.author, AUTHOR_CHARS),
    ] {
        if let Some(text) = text {
            assert!((1..=most).contains(&text.chars().count()), "{text:?}");
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }
    assert!(words.tags.len() <= TAGS);
    for tag in &words.tags {
        assert_eq!(parse_tag(tag).as_ref(), Some(tag), "a tag is a tag again");
    }
    let mut seen = HashSet::new();
    for picture in &found.pictures {
        assert!(seen.insert(picture), "{picture} is there twice");
        assert!(
            picture.starts_with('/') && !picture.starts_with("//"),
            "{picture}"
        );
        let address = Url::parse(&format!("{}{picture}", PAGE.trim_end_matches('/')));
        let address = address.expect("it is an address");
        assert_eq!(format!("{}/", address.origin().ascii_serialization()), PAGE);
    }
}

/// What is accepted contains nothing that takes long to draw.
fn check_svg(svg: &[u8]) {
    if refuse("a.svg", svg).is_some() {
        return;
    }
    let text = std::str::from_utf8(svg).expect("SVG is text");
    let Ok(document) = Document::parse(text) else {
        return;
    };
    let elements = document.descendants().filter(roxmltree::Node::is_element);
    for element in elements {
        let name = element.tag_name().name().to_ascii_lowercase();
        let namespace = element.tag_name().namespace();
        assert!(
            !matches!(&*name, "image" | "foreignobject" | "style")
                && (namespace != Some("http://www.w3.org/2000/svg")
                    || !matches!(&*name, "marker" | "filter" | "animate" | "set")
                        && !name.starts_with("fe")),
            "{name}"
        );
        for attribute in element.attributes() {
            let value = attribute
                .value()
                .replace(['\t', '\n', '\r'], "")
                .to_ascii_lowercase();
            assert!(!value.contains("data:") && !value.contains('\\'), "{value}");
            for address in value.split("url(").skip(1) {
                let address = address.trim_start().trim_start_matches(['"', '\'']);
                assert!(address.starts_with('#'), "{value}");
            }
        }
    }
}

fn check_image(image: &[u8]) {
    let refused = refuse("a.png", image);
    // What counts is what it is, not what it is called.
    assert_eq!(refuse("a.gif", image), refused);
    if refused.is_some() {
        return;
    }
    let number = |at: usize| usize::from(image[at]) | (usize::from(image[at + 1]) << 8);
    if image.starts_with(b"\x89PNG") {
        for at in [16, 20] {
            let side = image[at..at + 4]
                .iter()
                .fold(0, |side, byte| (side << 8) | usize::from(*byte));
            assert!(side <= MAX_PIXELS, "{side}");
        }
    } else if image.starts_with(b"GIF8") {
        assert!(number(6) <= MAX_PIXELS && number(8) <= MAX_PIXELS);
    } else {
        assert!(image.starts_with(b"\xff\xd8") || image.starts_with(b"RIFF"));
    }
}
