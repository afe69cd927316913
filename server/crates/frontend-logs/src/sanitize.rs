//! Repairs what pages send: JSON that browsers write but strict parsers reject, and texts that are
//! too long.

use std::borrow::Cow;

use platform_protocol::limits::{LOG_METADATA_BYTES, LOG_METADATA_DEPTH};
use serde_json::Value;

/// The end of a text that was cut.
const CUT: &str = "\u{2026}";
/// Replaces metadata over the limit.
const TOO_LARGE: &str = "\"[metadata over 8 KiB was left out]\"";
/// Replaces metadata that other JSON parsers could not read.
const UNSOUND: &str = "\"[metadata that cannot be read was left out]\"";

/// Replaces each unpaired surrogate, such as half of an emoji that was cut, by U+FFFD. Scripts may
/// have such texts, and browsers write them as `\ud83d` (ECMA-262 §25.5.2.3); they are not valid
/// Unicode (RFC 8259 §8.2). Replaces U+0000, which PostgreSQL cannot store, by its picture, U+2400.
#[must_use]
pub fn mend_text(json: &[u8]) -> Cow<'_, [u8]> {
    let mut mended = Cow::Borrowed(json);
    let mut at = 0;
    // In JSON, only strings contain backslashes.
    while let Some(next) = json.get(at..).and_then(backslash) {
        at += next;
        at += match (unit(json, at), unit(json, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(found @ (0 | 0xd800..=0xdfff)), _) => {
                if let Some(unit) = mended.to_mut().get_mut(at..at + 6) {
                    unit.copy_from_slice(if found == 0 { b"\\u2400" } else { b"\\ufffd" });
                }
                6
            }
            _ => 2,
        };
    }
    mended
}

fn backslash(json: &[u8]) -> Option<usize> {
    json.iter().position(|byte| *byte == b'\\')
}

/// Returns the UTF-16 unit of the escape (`\u` and four digits) that begins at `at`.
fn unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    // `from_str_radix` alone would accept a plus sign.
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Returns a text of at most `limit` bytes, cut at its end if necessary.
#[must_use]
pub fn shortened(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit.saturating_sub(CUT.len())));
        text.push_str(CUT);
    }
    text
}

/// Returns the text of a JSON value that every parser can read: within the limits, on one line, and
/// with valid numbers. Otherwise returns a JSON string that says so.
#[must_use]
pub fn sound_metadata(json: &str) -> String {
    if json.len() > LOG_METADATA_BYTES {
        return TOO_LARGE.to_owned();
    }
    match serde_json::from_str::<Value>(json) {
        // This only affects line breaks between values: in a string they are always escaped.
        Ok(value) if depth(&value) <= LOG_METADATA_DEPTH => json.replace(['\n', '\r'], " "),
        _ => UNSOUND.to_owned(),
    }
}

/// Returns the depth of nested arrays and objects. The parser has already limited it.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_and_nul_are_replaced() {
        for (json, expected) in [
            (r#""plain""#, r#""plain""#),
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uDE00x""#, r#""\ufffdx""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ud83d\n""#, r#""\ufffd\n""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""\u00e4""#, r#""\u00e4""#),
            (r#""a\u0000b\u0001""#, r#""a\u2400b\u0001""#),
            (r#""\\u0000""#, r#""\\u0000""#),
            (r#""\u0000\ud83d""#, r#""\u2400\ufffd""#),
            (r#""\ud83"#, r#""\ud83"#),
            ("\"\\", "\"\\"),
        ] {
            let mended = mend_text(json.as_bytes());
            assert_eq!(std::str::from_utf8(&mended).unwrap(), expected, "{json}");
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(shortened("abcdef".into(), 6), "abcdef");
        assert_eq!(shortened("abcdefg".into(), 6), "abc\u{2026}");
        assert_eq!(shortened("\u{e4}".repeat(4), 7), "\u{e4}\u{e4}\u{2026}");
        assert_eq!(shortened("\u{e4}".repeat(4), 6), "\u{e4}\u{2026}");
    }

    #[test]
    fn metadata_that_a_reader_would_stumble_over_is_left_out() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let long = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
        for sound in [
            r#"{"a": [1, null]}"#.to_owned(),
            nested(64),
            long(LOG_METADATA_BYTES),
        ] {
            assert_eq!(sound_metadata(&sound), sound);
        }
        let lines = "{\"a\":\r\n\n\"b\\n\"}".to_owned();
        assert_eq!(sound_metadata(&lines), r#"{"a":   "b\n"}"#, "on one line");
        for unsound in [nested(65), nested(4_000), "1e999".to_owned()] {
            assert_eq!(sound_metadata(&unsound), UNSOUND);
        }
        assert_eq!(sound_metadata(&long(LOG_METADATA_BYTES + 1)), TOO_LARGE);
        for stands_for in [UNSOUND, TOO_LARGE] {
            assert!(serde_json::from_str::<String>(stands_for).is_ok());
        }
    }
}
