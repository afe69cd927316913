//! Searching the documents: every word must be in a section, its heading or its document's title.

use std::cmp::Reverse;

use super::Documents;
use super::markdown::{Document, Section};

/// The maximum number of characters of a query; the rest is left out.
pub const MAX_QUERY_CHARS: usize = 100;
/// The maximum number of words of a query; the rest is left out.
const MAX_WORDS: usize = 8;
/// The maximum number of results.
const MAX_RESULTS: usize = 30;
/// How many bytes of text are shown before and after the first word found.
const BESIDE: usize = 90;

/// A section that has all words.
#[derive(Debug)]
pub struct Found<'a> {
    /// Its document.
    pub document: &'a Document,
    /// The section.
    pub section: &'a Section,
    /// The text before the first word found.
    pub before: &'a str,
    /// The word, as the text has it.
    pub word: &'a str,
    /// The text after it.
    pub after: &'a str,
    /// Whether the section has more text before this.
    pub is_cut_before: bool,
    /// Whether it has more text after this.
    pub is_cut_after: bool,
}

/// Returns the sections that have all words of the query: first those whose headings have them, then
/// those whose documents' titles do; of several words, those first that have them beside each other the most
/// often. An underscore is a space, so `key secret` finds `PLATFORM_KEY_SECRET`.
#[must_use]
pub fn search<'a>(documents: &'a Documents, query: &str) -> Vec<Found<'a>> {
    let query: String = query.chars().take(MAX_QUERY_CHARS).collect();
    let query = spaced(&query);
    let words: Vec<&str> = query.split_whitespace().take(MAX_WORDS).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let phrase = words.join(" ");
    let mut found = Vec::new();
    for document in documents.all() {
        for section in &document.sections {
            let heading = spaced(&format!("{} {}", document.title, section.heading));
            // The offsets of this text are those of the section's.
            let text = spaced(&section.text);
            if !words
                .iter()
                .all(|word| heading.contains(word) || text.contains(word))
            {
                continue;
            }
            let in_heading = words.iter().all(|word| heading.contains(word));
            let mut parts = [phrase.as_str()].into_iter().chain(words.iter().copied());
            let place = parts.find_map(|part| {
                let start = text.find(part)?;
                Some((start, start + part.len()))
            });
            let own = spaced(&section.heading);
            let in_own = words.iter().all(|word| own.contains(word));
            let beside = match words.len() {
                1 => 0,
                _ => text.matches(&phrase).count(),
            };
            let rank = (Reverse(in_own), Reverse(in_heading), Reverse(beside));
            found.push((rank, excerpt(document, section, place)));
        }
    }
    // Stable: the documents' order within a rank.
    found.sort_by_key(|(rank, _)| *rank);
    found.truncate(MAX_RESULTS);
    found.into_iter().map(|(_, result)| result).collect()
}

/// Returns the text in lower case, with spaces for underscores, as many bytes as before.
fn spaced(text: &str) -> String {
    text.to_ascii_lowercase().replace('_', " ")
}

/// The words around a place, or the first ones.
fn excerpt<'a>(
    document: &'a Document,
    section: &'a Section,
    place: Option<(usize, usize)>,
) -> Found<'a> {
    let text = section.text.trim_end();
    let (start, end) = place.unwrap_or((0, 0));
    let mut from = text.ceil_char_boundary(start.saturating_sub(BESIDE));
    if from > 0 {
        from = text[from..start]
            .find(' ')
            .map_or(start, |at| from + at + 1);
    }
    let mut to = text.floor_char_boundary((end + BESIDE).min(text.len()));
    if to < text.len() {
        to = text[end..to].rfind(' ').map_or(end, |at| end + at);
    }
    Found {
        document,
        section,
        before: &text[from..start],
        word: &text[start..end],
        after: &text[end..to],
        is_cut_before: from > 0,
        is_cut_after: to < text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> Documents {
        let origin = "https://games.test".parse().unwrap();
        Documents::new(&origin, &origin)
    }

    #[test]
    fn a_section_is_found_by_words_in_any_order_and_case() {
        let documents = documents();
        let found = search(&documents, "ARCHIVE  accepted");
        let first = found.first().unwrap();
        assert_eq!(
            (first.document.name, first.section.id.as_str()),
            ("deploying", "accepted-archives")
        );
        assert!(search(&documents, "no-such-word-anywhere").is_empty());
        assert!(search(&documents, "  ").is_empty());
    }

    #[test]
    fn words_beside_each_other_come_first_also_in_the_name_of_a_setting() {
        let documents = documents();
        let found = search(&documents, "key secret");
        let place = |name: &str, id: &str| {
            let mut all = found.iter();
            all.position(|one| one.document.name == name && one.section.id == id)
        };
        let about = place("hosting", "signing-keys").unwrap();
        assert!(Some(about) < place("deploying", "warnings"), "{about}");
        assert_eq!(found[about].word, "KEY_SECRET");
    }

    #[test]
    fn a_document_named_like_the_word_is_listed_from_its_beginning() {
        let documents = documents();
        let found = search(&documents, "upgrading");
        let mut of_it = found.iter().filter(|one| one.document.name == "upgrading");
        let mut all = documents.all().iter();
        let document = all.find(|one| one.name == "upgrading").unwrap();
        let first = &document.sections[0];
        assert!(std::ptr::eq(of_it.next().unwrap().section, first));
    }

    #[test]
    fn the_excerpt_shows_the_word_that_was_found() {
        let documents = documents();
        let found = search(&documents, "websocket");
        assert!(!found.is_empty());
        let shown = found.iter().filter(|one| !one.word.is_empty());
        for one in shown {
            assert!(one.word.eq_ignore_ascii_case("websocket"));
            assert!(one.before.len() <= BESIDE + 4 && one.after.len() <= BESIDE + 4);
        }
    }

    #[test]
    fn a_query_of_any_length_and_alphabet_is_answered() {
        let documents = documents();
        for query in [
            "\u{0130}\u{1f600} x".repeat(500),
            "e".to_owned(),
            "\u{e4}\u{301}".to_owned(),
            "PLATFORM_\u{130}_x".to_owned(),
            "_ __".to_owned(),
        ] {
            assert!(search(&documents, &query).len() <= MAX_RESULTS);
        }
    }
}
