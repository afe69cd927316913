//! Characters that are not to be seen in a line of text.

/// Whether a character shows nothing, or turns around what stands beside it.
#[must_use]
pub fn is_invisible(char: char) -> bool {
    char.is_control()
        || matches!(char,
            // Marks of direction (Unicode Standard Annex 9), and what separates
            // lines and paragraphs.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            // What takes no room, or room alone.
            | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0e}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_is_told_from_what_is_not() {
        for seen in ['a', '\u{e9}', '\u{5d0}', '\u{1f600}', '<', ' ', '\u{fe0f}'] {
            assert!(!is_invisible(seen), "{seen:?}");
        }
        for unseen in [
            '\n', '\u{1b}', '\u{202e}', '\u{2028}', '\u{200b}', '\u{3164}',
        ] {
            assert!(is_invisible(unseen), "{unseen:?}");
        }
    }
}
