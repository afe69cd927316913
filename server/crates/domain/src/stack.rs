//! Reads what a page logged about an error: its type, its message, and the frames of its stack, which
//! each engine writes in its own form.

use serde::{Deserialize, Serialize};

/// The maximum number of frames that are read.
pub const FRAMES: usize = 50;
/// A longer line is not a frame.
const LINE: usize = 1_000;
/// The maximum number of bytes of a type's name.
const KIND: usize = 80;
/// What engines write before the title of an error that nothing caught.
const PREFIXES: [&str; 3] = [
    "Uncaught ",
    "(in promise) ",
    "Unhandled Promise Rejection: ",
];

/// The engine of a browser, by the form of its stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Chrome, Edge and others.
    Chromium,
    /// Firefox.
    Firefox,
    /// Safari, and every browser on iOS.
    Safari,
}

impl Engine {
    /// The name, as it stands in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chromium => "chromium",
            Self::Firefox => "firefox",
            Self::Safari => "safari",
        }
    }
}

/// A frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The function, as the engine names it; empty if it has no name.
    pub call: &'a str,
    /// The address of the script.
    pub file: &'a str,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
}

/// An error as a page described it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described<'a> {
    /// Its type, such as `TypeError`; empty if it has none.
    pub kind: &'a str,
    /// Its message without the type.
    pub message: &'a str,
    /// The frames, the innermost first.
    pub frames: Vec<Frame<'a>>,
    /// The engine; `None` without a stack.
    pub engine: Option<Engine>,
}

impl<'a> Described<'a> {
    /// Reads a record's message and stack. An error that was written to the console has its stack
    /// in the message.
    #[must_use]
    pub fn read(message: &'a str, stack: Option<&'a str>) -> Self {
        let stack = stack.filter(|stack| !stack.is_empty());
        let text = stack.unwrap_or(message);
        let (title, frames, engine) = frames(text);
        // Without a title, the stack begins with its first frame.
        let title = if title.is_empty() { message } else { title };
        let (kind, message) = split_title(title);
        Self {
            kind,
            message,
            frames,
            engine,
        }
    }
}

/// Returns the text before the first frame, the frames, and the engine.
fn frames(text: &str) -> (&str, Vec<Frame<'_>>, Option<Engine>) {
    let (mut title, mut found, mut is_chromium) = (text.len(), Vec::new(), false);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let Some((frame, is_at)) = frame(line.trim_end_matches(['\n', '\r'])) else {
            continue;
        };
        if found.is_empty() {
            (title, is_chromium) = (start, is_at);
        }
        found.push(frame);
        if found.len() >= FRAMES {
            break;
        }
    }
    let engine = if found.is_empty() {
        None
    } else if is_chromium {
        Some(Engine::Chromium)
    } else if text.ends_with('\n') {
        Some(Engine::Firefox)
    } else {
        // As Firefox's, but they do not end with a new line.
        Some(Engine::Safari)
    };
    (text.get(..title).unwrap_or_default(), found, engine)
}

/// Reads a line of a stack: `at call (https://…:1:2)`, `at https://…:1:2`, or `call@https://…:1:2`.
/// Returns the frame, and whether it has the form with `at`.
fn frame(line: &str) -> Option<(Frame<'_>, bool)> {
    if line.len() > LINE {
        return None;
    }
    if let Some(rest) = line.trim_start().strip_prefix("at ") {
        let (call, place) = match rest.rfind(" (") {
            Some(end) if rest.ends_with(')') => (&rest[..end], &rest[end + 2..rest.len() - 1]),
            _ => ("", rest.strip_prefix("async ").unwrap_or(rest)),
        };
        return Some((placed(call, place)?, true));
    }
    let (call, place) = line.split_once('@')?;
    // A title may contain an address: the script's follows the mark at once.
    Some((placed(call, place)?, false))
}

/// Reads `https://…:1:2`.
fn placed<'a>(call: &'a str, place: &'a str) -> Option<Frame<'a>> {
    if place.contains(char::is_whitespace) {
        return None;
    }
    let mut file = place;
    let mut numbers = [0; 2];
    for number in &mut numbers {
        let Some((rest, last)) = file.rsplit_once(':') else {
            break;
        };
        let digits = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
        if !digits {
            break;
        }
        *number = last.parse().ok()?;
        file = rest;
    }
    let is_place = file.contains("://") || file.starts_with("wasm:") || file == "<anonymous>";
    is_place.then_some(Frame {
        call,
        file,
        line: numbers[1],
        column: numbers[0],
    })
}

/// Returns type and message of a title such as `Uncaught TypeError: no coins`.
fn split_title(title: &str) -> (&str, &str) {
    let mut title = title.trim();
    for prefix in PREFIXES {
        title = title.strip_prefix(prefix).unwrap_or(title);
    }
    match title.split_once(':') {
        Some((kind, message)) if is_kind(kind) => (kind, message.trim()),
        // An error without a message.
        None if is_kind(title) => (title, ""),
        _ => ("", title),
    }
}

/// Whether a word looks like the type of an error: other words stand before a colon as well.
fn is_kind(word: &str) -> bool {
    let last = word.rsplit('.').next().unwrap_or_default();
    (1..=KIND).contains(&word.len())
        && (last.ends_with("Error") || last.ends_with("Exception"))
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_$.".contains(&byte))
}

/// Returns the last part of a function's name, without what engines add. Returns an empty text if a
/// bundler may have shortened it.
#[must_use]
pub fn own_name(call: &str) -> &str {
    /// A name of at most this many characters may have been shortened.
    const SHORTENED: usize = 3;
    let call = call.trim_end_matches(['<', '/']);
    let call = call.split(" [as ").next().unwrap_or_default();
    let last = call.rsplit(['.', ' ', '/', '#']).next().unwrap_or_default();
    let is_name = last.len() > SHORTENED
        && last
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'))
        && !["anonymous", "eval"].contains(&last);
    if is_name { last } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(stack: &str) -> (String, String, u32, u32) {
        let read = Described::read("", Some(stack));
        let frame = read.frames[0];
        (
            frame.call.into(),
            frame.file.into(),
            frame.line,
            frame.column,
        )
    }

    #[test]
    fn frames_of_every_engine_are_read() {
        for (stack, call, file, place, engine) in [
            (
                "TypeError: x\n    at t.a (http://g.localhost:1/i.js:1:50)\n    at b",
                "t.a",
                "http://g.localhost:1/i.js",
                (1, 50),
                Engine::Chromium,
            ),
            (
                "Error\n    at async https://g.example/i.js?v=1:2:3",
                "",
                "https://g.example/i.js?v=1",
                (2, 3),
                Engine::Chromium,
            ),
            (
                "TypeError: x\nlose/<@https://g.example/@scope/i.mjs:4:5\n@https://g.example/i.js:1:1\n",
                "lose/<",
                "https://g.example/@scope/i.mjs",
                (4, 5),
                Engine::Firefox,
            ),
            (
                "TypeError: x\nt@https://g.example/i.js:1:4\n[native code]\nmodule code@https://g.example/i.js:1:9",
                "t",
                "https://g.example/i.js",
                (1, 4),
                Engine::Safari,
            ),
        ] {
            assert_eq!(
                first(stack),
                (call.into(), file.into(), place.0, place.1),
                "{stack}"
            );
            assert_eq!(Described::read("", Some(stack)).engine, Some(engine));
        }
    }

    #[test]
    fn a_title_is_split_into_type_and_message() {
        for (message, stack, kind, text) in [
            (
                "Uncaught TypeError: no coins",
                None,
                "TypeError",
                "no coins",
            ),
            (
                "x",
                Some("GameError: no: way\n    at http://g/a.js:1:2"),
                "GameError",
                "no: way",
            ),
            ("level: 3", None, "", "level: 3"),
            ("Error", None, "Error", ""),
            ("lost", Some("@http://g/a.js:1:2\n"), "", "lost"),
            (
                "failed RangeError: a\n    at http://g/a.js:1:2",
                None,
                "",
                "failed RangeError: a",
            ),
            ("", None, "", ""),
        ] {
            let read = Described::read(message, stack);
            assert_eq!((read.kind, read.message), (kind, text), "{message}");
        }
    }

    #[test]
    fn hostile_stacks_are_read_within_bounds() {
        let many = "a@http://g/a.js:1:2\n".repeat(5_000);
        assert_eq!(Described::read("", Some(&many)).frames.len(), FRAMES);
        let long = format!("    at {} (http://g/a.js:1:2)", "x".repeat(2_000));
        assert_eq!(Described::read("", Some(&long)).frames, []);
        let far = "    at http://g/a.js:99999999999:99999999999";
        assert_eq!(Described::read("", Some(far)).frames, []);
        for odd in [
            ":::::",
            "@",
            "at ",
            "at (",
            "a@:",
            "    at  ()",
            "\u{e4}@\u{e4}:1:1",
        ] {
            assert_eq!(Described::read("", Some(odd)).frames, [], "{odd}");
        }
    }

    #[test]
    fn names_that_bundlers_shorten_are_none() {
        for (call, name) in [
            ("t", ""),
            ("e.t", ""),
            ("Game.update", "update"),
            ("async Game.update [as tick]", "update"),
            ("lose/<", "lose"),
            ("new Player", "Player"),
            ("<anonymous>", ""),
            ("Object.<anonymous>", ""),
        ] {
            assert_eq!(own_name(call), name, "{call}");
        }
    }
}
