//! Which errors have the same cause: what of an error stays the same in every player's browser and
//! in every build of the game.

use sha2::{Digest, Sha256};

use crate::error_group::ErrorGroupId;
use crate::stack::own_name;

/// How many characters of a message count.
const MESSAGE: usize = 300;
/// How many bytes of a message are read.
const READ: usize = 2_048;
/// How many bytes of a line of code count.
const CODE: usize = 300;
/// A quoted text that is longer is data.
const QUOTED: usize = 40;
/// A word from this length on that contains digits is an id.
const ID: usize = 16;
/// A word from this length on that mixes letters and several numbers is an id.
const MIXED: usize = 8;
/// What replaces a number or an id.
const NUMBER: char = '#';
/// The types whose messages engines write, each in its own words: the place says more.
const ENGINES_OWN: [&str; 17] = [
    "TypeError",
    "ReferenceError",
    "RangeError",
    "SyntaxError",
    "URIError",
    "EvalError",
    "AbortError",
    "DataCloneError",
    "EncodingError",
    "InvalidStateError",
    "NetworkError",
    "NotAllowedError",
    "NotFoundError",
    "NotSupportedError",
    "QuotaExceededError",
    "SecurityError",
    "TimeoutError",
];

/// Where an error happened, in the game's own sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause<'a> {
    /// The source, or the script if there is no map.
    pub file: &'a str,
    /// The line of code, if it is known.
    pub code: Option<&'a str>,
    /// The function, as the engine or the map names it.
    pub call: &'a str,
}

/// Returns the id of the group of errors with this type, message and place.
#[must_use]
pub fn fingerprint(kind: &str, message: &str, cause: Option<&Cause<'_>>) -> ErrorGroupId {
    let message = &message[..message.floor_char_boundary(READ)];
    let is_recursion = message.starts_with("Maximum call stack size exceeded")
        || message.starts_with("too much recursion");
    // Firefox has a type of its own for this.
    let kind = if kind == "InternalError" && is_recursion {
        "RangeError"
    } else {
        kind
    };
    let mut parts = vec![kind.to_owned()];
    match cause {
        // Which of the functions was the last is chance.
        Some(cause) if is_recursion => {
            parts.extend(["recursion".to_owned(), plain_file(cause.file)]);
        }
        Some(cause) => match cause.code {
            Some(code) => {
                if ENGINES_OWN.contains(&kind) {
                    parts.extend(property(message));
                } else if !has_literal(code) {
                    parts.push(template(message));
                }
                // Bundlers name folders from different places.
                let file = plain_file(cause.file);
                let name = file.rsplit('/').next().unwrap_or_default();
                parts.extend([name.to_owned(), squeezed(code)]);
            }
            None => {
                let call = own_name(cause.call).to_owned();
                parts.extend([
                    template(&of_any_engine(message)),
                    plain_file(cause.file),
                    call,
                ]);
            }
        },
        None => parts.push(template(&of_any_engine(message))),
    }
    let mut hash = Sha256::new();
    for part in &parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut id = [0; 16];
    let hash = hash.finalize();
    for (to, from) in id.iter_mut().zip(hash.iter()) {
        *to = *from;
    }
    ErrorGroupId(id)
}

/// Whether a line of code contains a text. If it throws an error, that is the message, so the line
/// alone says what happened; without a text, it may throw what its callers say.
fn has_literal(code: &str) -> bool {
    code.contains(['"', '\'', '`'])
}

/// Returns a line of code without its indentation, and with single spaces.
fn squeezed(code: &str) -> String {
    let code = code.trim();
    let code = &code[..code.floor_char_boundary(CODE)];
    code.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the path of a file without what differs between builds: origin, query, and hashes that
/// bundlers add to names.
fn plain_file(file: &str) -> String {
    let path = file.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| {
        rest.split_once('/').map_or(rest, |(_, path)| path)
    });
    let mut plain = String::with_capacity(path.len());
    let mut is_first = true;
    for part in path.split_inclusive(['-', '.', '/', '_']) {
        let (word, end) = match part.char_indices().last() {
            Some((last, '-' | '.' | '/' | '_')) => part.split_at(last),
            _ => (part, ""),
        };
        let is_hash = match is_first {
            true => is_hex(word),
            false => is_hash(word),
        };
        plain.push_str(if is_hash { "*" } else { word });
        plain.push_str(end);
        is_first = end == "/";
    }
    plain
}

/// Whether the first part of a name is a hash, which is then the whole name: people name files
/// `gameScene` and `level10`.
fn is_hex(word: &str) -> bool {
    (8..=64).contains(&word.len())
        && word
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether a later part of a file's name looks like a hash of its content.
fn is_hash(word: &str) -> bool {
    (6..=64).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && (word.bytes().any(|byte| byte.is_ascii_digit())
            || word.bytes().skip(1).any(|byte| byte.is_ascii_uppercase()))
}

/// Returns which property of nothing was wanted, if an engine says so: a line of code may want
/// several.
fn property(message: &str) -> Option<String> {
    Some(of_any_engine(message)).filter(|form| form.starts_with("no ") && form != message)
}

/// Returns an engine's message in one form for all engines.
fn of_any_engine(message: &str) -> String {
    let between = |text: &str, start: &str, end: &str| {
        let (_, rest) = text.split_once(start)?;
        Some(rest.split_once(end)?.0.to_owned())
    };
    let last = |path: &str| {
        let name = path.split([' ', '=', '(', '[']).next().unwrap_or_default();
        name.rsplit('.').next().unwrap_or_default().to_owned()
    };
    for (nothing, of) in [("undefined", " of undefined ("), ("null", " of null (")] {
        if message.starts_with("Cannot ") && message.contains(of) {
            let name = between(message, "'", "'").unwrap_or_default();
            return format!("no {name} of {nothing}");
        }
        if message.starts_with("can't access property ") && message.ends_with(nothing) {
            let name = between(message, "\"", "\"").unwrap_or_default();
            return format!("no {name} of {nothing}");
        }
        if message.starts_with(nothing) && message.contains(" is not an object (evaluating '") {
            let place = between(message, "(evaluating '", "'").unwrap_or_default();
            return format!("no {} of {nothing}", last(&place));
        }
    }
    if let Some((name, _)) = message.split_once(" is not a function")
        && !name.contains(' ')
    {
        return format!("{} is not a function", last(name));
    }
    match message.strip_prefix("Can't find variable: ") {
        Some(name) => format!("{name} is not defined"),
        None => message.to_owned(),
    }
}

/// Returns a message without its numbers, ids, addresses and quoted data.
fn template(message: &str) -> String {
    let mut plain = String::new();
    let mut rest = message.trim_start();
    while let Some(first) = rest.chars().next() {
        if plain.len() > MESSAGE {
            break;
        }
        if first.is_whitespace() {
            rest = rest.trim_start();
            plain.push(' ');
            continue;
        }
        if matches!(first, '"' | '\'' | '`')
            && let Some(end) = rest[1..].find(first)
        {
            let quoted = &rest[1..=end];
            plain.push('"');
            plain.push_str(&if quoted.len() > QUOTED || quoted.contains(' ') {
                NUMBER.to_string()
            } else {
                word(quoted)
            });
            plain.push('"');
            rest = &rest[end + 2..];
            continue;
        }
        let mut end = rest.find(is_end).unwrap_or(rest.len());
        if rest[..end].contains("://") {
            // A query is a part of its address.
            let is_end = |char: char| char.is_whitespace() || "\"'`()<>".contains(char);
            end = rest.find(is_end).unwrap_or(rest.len());
        }
        if end == 0 {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            plain.push_str(&word(&rest[..end]));
            rest = &rest[end..];
        }
    }
    plain.trim_end().to_owned()
}

/// Whether a word ends before a character.
fn is_end(char: char) -> bool {
    char.is_whitespace() || "\"'`()[]{}<>,;=|".contains(char)
}

/// Returns a word without its numbers. An address or an id is a number as a whole.
fn word(word: &str) -> String {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_id = word.contains("://")
        || word.contains('@')
        || word.starts_with("0x")
        || (digits > 0 && word.len() >= ID)
        || (digits > 0 && word.len() >= MIXED && is_mixed(word));
    if is_id {
        return NUMBER.to_string();
    }
    let mut plain = String::with_capacity(word.len());
    for char in word.chars() {
        let is_sign = matches!(char, '.' | ':' | '-' | '%') && plain.ends_with(NUMBER);
        if char.is_ascii_digit() || is_sign {
            if !plain.ends_with(NUMBER) {
                plain.push(NUMBER);
            }
        } else {
            plain.push(char);
        }
    }
    if plain == "-#" || plain == "+#" {
        return NUMBER.to_string();
    }
    plain
}

/// Whether a word is of hexadecimal digits, or changes between letters and digits more than once.
fn is_mixed(word: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    let kinds = || word.bytes().map(|byte| byte.is_ascii_digit());
    let changes = kinds().zip(kinds().skip(1)).filter(|(a, b)| a != b).count();
    word.bytes().all(is_hex) || changes > 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_compared_without_what_differs() {
        for (message, plain) in [
            ("Level 12 not found", "Level # not found"),
            ("level3 took 1.5 s, -7 %", "level# took # s, # %"),
            ("at 0x7ffe12 of 192.168.1.20:80", "at # of #"),
            (
                "player 0190a5f2-7c1e-7000-8000-00000000abcd left",
                "player # left",
            ),
            ("GET https://g.example/a?b=1 failed", "GET # failed"),
            ("to ann@example.com", "to #"),
            ("id aB3dE9xZ", "id #"),
            ("reading 'score'", "reading \"score\""),
            ("no \"a card of hearts\" here", "no \"#\" here"),
            ("it's \u{e4}\n broken", "it's \u{e4} broken"),
            ("deadbeef99", "#"),
            ("", ""),
        ] {
            assert_eq!(template(message), plain, "{message}");
        }
        assert!(template(&"long ".repeat(10_000)).len() < 400);
    }

    #[test]
    fn engines_messages_have_one_form() {
        for (messages, form) in [
            (
                [
                    "Cannot read properties of undefined (reading 'score')",
                    "can't access property \"score\", e is undefined",
                    "undefined is not an object (evaluating 't.e.score')",
                ],
                "no score of undefined",
            ),
            (
                [
                    "t.draw is not a function",
                    "e.draw is not a function",
                    "t.draw is not a function. (In 't.draw()', 't.draw' is undefined)",
                ],
                "draw is not a function",
            ),
            (
                [
                    "cards is not defined",
                    "cards is not defined",
                    "Can't find variable: cards",
                ],
                "cards is not defined",
            ),
        ] {
            for message in messages {
                assert_eq!(of_any_engine(message), form, "{message}");
            }
        }
    }

    #[test]
    fn files_are_compared_without_hashes() {
        for (file, plain) in [
            (
                "https://g.example/assets/index-Bx3fa9Qd.js?v=1",
                "assets/index-*.js",
            ),
            ("https://g.example/main.4f3a2b1c.js", "main.*.js"),
            ("src/level-design.ts", "src/level-design.ts"),
            ("src/gameScene.ts", "src/gameScene.ts"),
            ("level10/board12.ts", "level10/board12.ts"),
            ("https://g.example/js/3f2a9c1b4d.js", "js/*.js"),
            ("https://g.example/", ""),
        ] {
            assert_eq!(plain_file(file), plain);
        }
    }

    fn at<'a>(code: &'a str) -> Cause<'a> {
        Cause {
            file: "src/game.ts",
            code: Some(code),
            call: "",
        }
    }

    #[test]
    fn one_cause_has_one_group_in_every_engine_and_build() {
        let read = at("  return player.score;");
        let one = fingerprint(
            "TypeError",
            "Cannot read properties of undefined (reading 'score')",
            Some(&read),
        );
        let other = fingerprint(
            "TypeError",
            "can't access property \"score\", e is undefined",
            Some(&at("return  player.score;")),
        );
        assert_eq!(one, other);
        let literal = at("throw new Error(`no level ${name}`)");
        let of = |message| fingerprint("Error", message, Some(&literal));
        assert_eq!(of("no level forest"), of("no level desert"));
        let recursion = ("RangeError", "Maximum call stack size exceeded");
        assert_eq!(
            fingerprint(recursion.0, recursion.1, Some(&read)),
            fingerprint("InternalError", "too much recursion", Some(&at("fall()")))
        );
    }

    #[test]
    fn different_causes_have_different_groups() {
        let place = at("throw new Error(message);");
        let of = |message| fingerprint("Error", message, Some(&place));
        assert_ne!(of("no coins"), of("no cards"));
        assert_eq!(of("no card 7"), of("no card 8"));
        let reading = |code| fingerprint("TypeError", "x", Some(&at(code)));
        let wanting = |name| {
            let message = format!("Cannot read properties of undefined (reading '{name}')");
            fingerprint("TypeError", &message, Some(&at("a.b.c()")))
        };
        assert_ne!(wanting("b"), wanting("c"));
        assert_ne!(reading("a.b()"), reading("a.c()"));
        assert_ne!(
            fingerprint("Error", "x", None),
            fingerprint("TypeError", "x", None)
        );
        // The parts cannot run into each other.
        assert_ne!(fingerprint("a", "bc", None), fingerprint("ab", "c", None));
    }
}
