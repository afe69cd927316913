//! What the public page shows of a game: whether it lists it, and the words and the cover that its
//! developers set in place of those of its page.

use platform_protocol::invisible::{is_hidden, is_invisible};
use unicode_normalization::char::is_combining_mark;

use crate::clock::Millis;
use crate::player::parse_reason;
use crate::username::MAX_MARKS;

/// Characters of a title, at most.
pub const TITLE_CHARS: usize = 60;
/// Characters of a description, at most.
pub const DESCRIPTION_CHARS: usize = 300;
/// Characters of an author's name, at most.
pub const AUTHOR_CHARS: usize = 60;
/// Tags of a game, at most.
pub const TAGS: usize = 6;
/// Characters of a tag, at most.
pub const TAG_CHARS: usize = 24;
/// Characters of a cover's path, at most.
pub const COVER_CHARS: usize = 300;

/// How a project is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// When the game was listed on the public page; `None` if it is not.
    pub listed_at: Option<Millis>,
    /// What is set in place of the page's metadata.
    pub own: OwnListing,
}

/// What a project's developers set in place of the metadata of its page: of what is `None`, the
/// page's is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnListing {
    /// The title.
    pub title: Option<String>,
    /// What the game is about.
    pub description: Option<String>,
    /// Who made it.
    pub author: Option<String>,
    /// Its tags; an empty list shows none.
    pub tags: Option<Vec<String>>,
    /// The path of its cover, one of its own files in production.
    pub cover: Option<String>,
}

/// What a page says of its game, each as far as it is plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct PageWords {
    /// What it is about.
    pub description: Option<String>,
    /// Who made it.
    pub author: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
}

/// Parses a line of visible text of at most `chars` characters.
#[must_use]
pub fn parse_line(text: &str, chars: usize) -> Option<&str> {
    parse_reason(text).filter(|text| text.chars().count() <= chars)
}

/// Returns a hostile page's text as one line of at most `chars` characters, without those that are
/// invisible or change the direction of the text around them. Returns `None` if no letter or digit
/// is left.
#[must_use]
pub fn tame(text: &str, chars: usize) -> Option<String> {
    let mut marks = 0;
    // Marks without end would cover the lines above and below.
    let mut is_kept = |char: &char| {
        marks = if is_combining_mark(*char) {
            marks + 1
        } else {
            0
        };
        marks <= MAX_MARKS && !is_hidden(*char)
    };
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.chars().filter(&mut is_kept).collect())
        .filter(|word: &String| word.contains(|char| !is_invisible(char)))
        .collect();
    let line = words.join(" ");
    let cut = match line.char_indices().nth(chars) {
        // A whole word is left, and room for the sign that something was left out.
        Some((end, _)) => {
            let kept = line.get(..end).unwrap_or_default();
            let kept = kept.rsplit_once(' ').map_or(kept, |(kept, _)| kept);
            let kept: String = kept.chars().take(chars - 1).collect();
            format!("{}\u{2026}", kept.trim_end_matches([',', '.', ' ']))
        }
        None => line,
    };
    cut.contains(char::is_alphanumeric).then_some(cut)
}

/// Parses a tag: letters and digits in lower case, with hyphens between words.
#[must_use]
pub fn parse_tag(text: &str) -> Option<String> {
    let lower = text.trim().to_lowercase();
    let words: Vec<&str> = lower
        .split(|char: char| char.is_whitespace() || char == '-' || char == '_')
        .filter(|word| !word.is_empty())
        .collect();
    let tag = words.join("-");
    let sound = (1..=TAG_CHARS).contains(&tag.chars().count())
        && tag
            .chars()
            .all(|char| char == '-' || char.is_alphanumeric());
    sound.then_some(tag)
}

/// Returns the tags among these texts, each once, at most [`TAGS`].
pub fn tags_among<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for tag in texts.into_iter().filter_map(parse_tag) {
        if tags.len() < TAGS && !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_says_becomes_one_short_line_that_turns_nothing() {
        for (text, expected) in [
            ("Gather  the\nlights.", Some("Gather the lights.")),
            ("a\u{202e}b \u{200b} c", Some("ab c")),
            (
                "\u{645}\u{6cc}\u{200c}\u{62e}",
                Some("\u{645}\u{6cc}\u{200c}\u{62e}"),
            ),
            (
                "Z\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}",
                Some("Z\u{301}\u{302}\u{303}"),
            ),
            ("\u{2066}\u{2069}", None),
            ("--- !", None),
            ("", None),
        ] {
            assert_eq!(tame(text, 20).as_deref(), expected, "{text:?}");
        }
        let cut = tame("one two three, four five", 16);
        assert_eq!(cut.as_deref(), Some("one two three\u{2026}"));
        let cut = tame(&"x".repeat(1_000), 20).unwrap();
        assert_eq!(cut.chars().count(), 20);
    }

    #[test]
    fn a_tag_is_made_of_words_in_lower_case() {
        for (text, expected) in [
            ("Puzzle", Some("puzzle")),
            (" Two  Players ", Some("two-players")),
            ("co-op", Some("co-op")),
            ("\u{c4}pfel", Some("\u{e4}pfel")),
            ("", None),
            ("-", None),
            ("<b>", None),
            ("a\u{202e}b", None),
            ("c++", None),
        ] {
            assert_eq!(parse_tag(text).as_deref(), expected, "{text:?}");
        }
        assert_eq!(parse_tag(&"x".repeat(TAG_CHARS + 1)), None);
        let tags = tags_among(["a", "A", "<", "b", "c", "d", "e", "f", "g"]);
        assert_eq!(tags, ["a", "b", "c", "d", "e", "f"]);
    }
}
