//! Turns of phrase that a stranger reads twice, in comments, in documents and pages, and in the names of tests.
//! Text in string literals is not read.

/// Each phrase in lower case, with what to write in its stead.
const BANNED: &[(&str, &str)] = &[
    (
        "whoever",
        "name the person or the part: the player, the caller, the operator",
    ),
    (
        "of which",
        "begin a new sentence that names the thing again",
    ),
    (
        "all the same",
        "write \u{201c}still\u{201d}, \u{201c}nevertheless\u{201d} or \u{201c}equal\u{201d}",
    ),
    ("what is so", "say what the thing is"),
    (
        "said once",
        "write \u{201c}defined here only\u{201d}, or leave it out",
    ),
    (
        "whose",
        "write \u{201c}with\u{201d}, \u{201c}that has\u{201d}, or a second sentence",
    ),
    (
        "nobody",
        "name who does not: \u{201c}no player\u{201d}, \u{201c}no caller\u{201d}",
    ),
    (
        "somebody",
        "name the person: a player, an attacker, a developer",
    ),
];

/// What to write in the stead of a banned phrase.
pub(super) fn advice(phrase: &str) -> &'static str {
    BANNED
        .iter()
        .find(|(banned, _)| *banned == phrase)
        .map_or("", |(_, advice)| advice)
}

/// A word of a text.
struct ProseWord<'a> {
    text: &'a str,
    /// The line, from 1.
    line: usize,
    /// Only whitespace or the end of a line is between it and the word before.
    follows: bool,
}

/// The banned phrases in the prose of a file, with their lines. A phrase may go over the end of a line.
pub(super) fn banned(path: &str, text: &str) -> Vec<(&'static str, usize)> {
    let Some(style) = CommentStyle::of(path) else {
        return Vec::new();
    };
    let mut words = Vec::new();
    let mut in_block = false;
    let mut last_line = 0;
    for (number, line) in text.lines().enumerate() {
        if let Some(prose) = style.prose(line, &mut in_block) {
            let is_next = last_line == number;
            split(prose, number + 1, is_next, &mut words);
            last_line = number + 1;
        }
    }
    phrases(&words)
}

/// The banned phrases in the name of a test.
pub(super) fn banned_in_name(name: &str, line: usize) -> Vec<(&'static str, usize)> {
    let words: Vec<ProseWord<'_>> = name
        .split('_')
        .map(|text| ProseWord {
            text,
            line,
            follows: true,
        })
        .collect();
    phrases(&words)
}

fn phrases(words: &[ProseWord<'_>]) -> Vec<(&'static str, usize)> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        // Most words are no beginning of any phrase, so the cheap comparison comes first.
        let begins = word.text.as_bytes().first().map(u8::to_ascii_lowercase);
        for (phrase, _) in BANNED {
            if phrase.as_bytes().first().copied() != begins {
                continue;
            }
            let is_here = phrase.split(' ').enumerate().all(|(offset, wanted)| {
                words.get(at + offset).is_some_and(|word| {
                    word.text.eq_ignore_ascii_case(wanted) && (offset == 0 || word.follows)
                })
            });
            if is_here {
                found.push((*phrase, word.line));
            }
        }
    }
    found
}

/// Appends the words of a line. Names in code, with an underscore, are one word.
fn split<'a>(prose: &'a str, line: usize, is_next: bool, words: &mut Vec<ProseWord<'a>>) {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut follows = is_next;
    let mut rest = prose;
    while !rest.is_empty() {
        let begin = rest.find(is_of_word).unwrap_or(rest.len());
        let (between, word) = rest.split_at(begin);
        follows &= between.trim().is_empty();
        let end = word.find(|c| !is_of_word(c)).unwrap_or(word.len());
        let (text, after) = word.split_at(end);
        if !text.is_empty() {
            words.push(ProseWord {
                text,
                line,
                follows,
            });
            follows = true;
        }
        rest = after;
    }
}

/// How a file marks its prose.
#[derive(Clone, Copy)]
enum CommentStyle {
    /// All of it is prose.
    Whole,
    /// Comments begin with these characters and end with the line.
    Line(&'static str),
    /// Comments as in C: `//`, and blocks.
    C,
}

impl CommentStyle {
    fn of(path: &str) -> Option<Self> {
        let (_, ending) = path.rsplit_once('.')?;
        Some(match ending {
            "md" | "html" => Self::Whole,
            "rs" => Self::Line("//"),
            "sql" | "lua" => Self::Line("--"),
            "toml" | "yaml" | "yml" | "sh" | "py" | "conf" | "service" | "socket" => {
                Self::Line("#")
            }
            "js" | "mjs" | "ts" | "css" | "jsonc" => Self::C,
            _ => return None,
        })
    }

    /// The prose of a line. A comment behind code has whitespace on both sides of its mark, so that an address
    /// in a string is none.
    fn prose<'a>(self, line: &'a str, in_block: &mut bool) -> Option<&'a str> {
        let code = line.trim();
        let mark = match self {
            Self::Whole => return Some(line),
            Self::Line(mark) => mark,
            Self::C => {
                *in_block |= code.starts_with("/*");
                if *in_block {
                    // Code may follow the end of a comment, such as a cast in JSDoc.
                    let (comment, code) = code.split_once("*/").unwrap_or((code, ""));
                    *in_block = code.is_empty() && !line.contains("*/");
                    return Some(comment.trim_start_matches(['/', '*']));
                }
                "//"
            }
        };
        if let Some(comment) = code.strip_prefix(mark) {
            return Some(comment.trim_start_matches(['/', '!']));
        }
        let (before, comment) = code.split_once(mark)?;
        (before.ends_with(' ') && comment.starts_with(' ')).then_some(comment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banned_phrase_is_found_in_every_kind_of_comment() {
        for (path, text) in [
            ("a.rs", "let a;\n/// Whoever asks.\n"),
            ("a.rs", "let a;\nlet b; // whoever asks\n"),
            ("a.sql", "select\n-- whoever\n"),
            ("a.toml", "[a]\n# Whoever asks.\n"),
            ("a.js", "let a;\n/** Whoever asks. */\n"),
            ("a.css", "/* One.\n * whoever */\n"),
            ("a.md", "One.\n**Whoever** asks\n"),
            ("a.html", "<p>\nWhoever</p>\n"),
        ] {
            assert_eq!(banned(path, text), [("whoever", 2)], "{path}: {text}");
        }
    }

    #[test]
    fn code_after_the_end_of_a_comment_is_no_prose() {
        let text = "let a = 1;\n/** @type {any} */ (a);\nlet b = 'whoever';\n";
        assert!(banned("a.js", text).is_empty());
        let two = "/* One.\n * two */ call();\nlet whoever = 1;\n";
        assert!(banned("a.js", two).is_empty());
    }

    #[test]
    fn a_phrase_may_go_over_the_end_of_a_line_and_not_over_a_full_stop() {
        let text = "/// Two nodes, of\n/// which one leads.\n";
        assert_eq!(banned("a.rs", text), [("of which", 1)]);
        assert!(banned("a.md", "What it is made of. Which?").is_empty());
        assert!(banned("a.rs", "// made of\nlet a;\n// which\n").is_empty());
    }

    #[test]
    fn code_strings_and_longer_words_are_no_prose() {
        for text in [
            "let whoever = 1;\n",
            "let a = \"whoever\";\n",
            "// `whoever_asks` is a function.\n",
            "let a = \"https://whoever.example\";\n",
        ] {
            assert!(banned("a.rs", text).is_empty(), "{text}");
        }
        assert!(banned("a.png", "whoever").is_empty());
    }

    #[test]
    fn the_names_of_tests_are_prose() {
        let found = banned_in_name("a_player_whose_name_nobody_has", 7);
        assert_eq!(found, [("whose", 7), ("nobody", 7)]);
        assert_eq!(
            banned_in_name("all_the_same_rows", 7),
            [("all the same", 7)]
        );
    }
}
