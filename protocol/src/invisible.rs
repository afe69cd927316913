//! Characters that show nothing, or that change how the text around them looks.
//!
//! The server refuses them in names and titles; the command line and the
//! console show them as something visible. The console's script cannot read
//! this table, so a test compares its pattern with it.

use std::ops::RangeInclusive;

/// Invisible characters other than control characters, in ascending order.
pub const INVISIBLE: [RangeInclusive<char>; 17] = [
    // The soft hyphen and the combining grapheme joiner.
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    // A mark of direction (Unicode Standard Annex 9).
    '\u{61c}'..='\u{61c}',
    // Fillers, vowels without a shape, and variation selectors.
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200b}',
    // Marks of direction, line and paragraph separators.
    '\u{200e}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    // Without the last selector, U+FE0F, which turns the sign before it into an emoji.
    '\u{fe00}'..='\u{fe0e}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Invisible characters that join the signs beside them: Persian, scripts of
/// India and many emoji are not written without them.
pub const JOINERS: RangeInclusive<char> = '\u{200c}'..='\u{200d}';

/// Whether a character shows nothing, or changes the direction of the text
/// around it. Joiners are such characters as well.
#[must_use]
pub fn is_invisible(char: char) -> bool {
    is_hidden(char) || JOINERS.contains(&char)
}

/// Whether a character is invisible and not a joiner.
#[must_use]
pub fn is_hidden(char: char) -> bool {
    char.is_control() || INVISIBLE.iter().any(|range| range.contains(&char))
}

/// A text with a visible sign in place of each character that is hidden, but for those in `kept`.
#[must_use]
pub fn shown_except(text: &str, kept: &[char]) -> String {
    let shown = |char| {
        if is_hidden(char) && !kept.contains(&char) {
            char::REPLACEMENT_CHARACTER
        } else {
            char
        }
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn visible_and_invisible_characters_are_told_apart() {
        for visible in ['a', '\u{e9}', '\u{5d0}', '\u{1f600}', '<', ' ', '\u{fe0f}'] {
            assert!(!is_invisible(visible), "{visible:?}");
        }
        for invisible in [
            '\n', '\u{1b}', '\u{202e}', '\u{2028}', '\u{200b}', '\u{3164}',
        ] {
            assert!(is_invisible(invisible), "{invisible:?}");
            assert!(is_hidden(invisible), "{invisible:?}");
        }
        for joiner in JOINERS {
            assert!(is_invisible(joiner) && !is_hidden(joiner), "{joiner:?}");
        }
    }

    #[test]
    fn the_table_is_in_order_and_holds_nothing_twice() {
        for pair in INVISIBLE.windows(2) {
            assert!(pair[0].end() < pair[1].start(), "{pair:?}");
        }
    }

    /// A character as it is written in a JavaScript regular expression.
    fn escape(char: char) -> String {
        match u32::from(char) {
            code if code > 0xffff => format!("\\u{{{code:x}}}"),
            code => format!("\\u{code:04x}"),
        }
    }

    #[test]
    fn the_consoles_script_has_the_same_table() {
        // The console shows line breaks and tabs as they are.
        let mut class = String::from("[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f");
        for range in &INVISIBLE {
            let (start, end) = (*range.start(), *range.end());
            class.push_str(&escape(start));
            match u32::from(end) - u32::from(start) {
                0 => {}
                1 => class.push_str(&escape(end)),
                _ => write!(class, "-{}", escape(end)).unwrap(),
            }
        }
        class.push(']');
        let script = include_str!("../../www/console/dom.js");
        assert!(script.contains(&class), "www/console/dom.js lacks {class}");
    }
}
