//! Formats a log record for people.

use std::fmt::{self, Write as _};

use anstyle::{AnsiColor, Style};
use platform_protocol::paths::RUNTIME_JS;
use serde_json::Value;
use time::OffsetDateTime;

use crate::terminal::{self, Line};

const DIM: Style = Style::new().dimmed();

/// Time, level, place and message; below them the stack and the metadata.
pub(super) fn lines(record: &Value) -> Vec<Line> {
    let text = |member: &str| {
        record
            .get(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let level = text("level");
    let style = match level {
        "error" => AnsiColor::Red.on_default(),
        "warn" => AnsiColor::Yellow.on_default(),
        "debug" => DIM,
        _ => Style::new(),
    };
    let time = record.get("time").map(moment).unwrap_or_default();
    let mut parts = text("message").lines();
    let mut first = Line::new()
        .styled(DIM, time)
        .push(" ")
        .styled(style, format_args!("{level:5}"))
        .push(" ")
        .styled(DIM, text("source"))
        .push(" ")
        .push(parts.next().unwrap_or_default());
    if let Some(count @ 2..) = record.get("count").and_then(Value::as_u64) {
        first = first.push(" ").styled(DIM, format_args!("(×{count})"));
    }
    let place = place(record);
    if !place.is_empty() {
        first = first.push(" ").styled(DIM, place);
    }
    let mut lines = vec![first];
    lines.extend(parts.map(|part| Line::from("    ").push(part)));
    let below = |text: &dyn fmt::Display| Line::from("    ").styled(DIM, text);
    let stack = frames_of_game(text("stack"));
    lines.extend(stack.map(|part| below(&part.trim())));
    if let Some(metadata) = record.get("metadata").filter(|value| !value.is_null()) {
        lines.push(below(metadata));
    }
    lines
}

/// A stack without the frames of the runtime, which say nothing about the game. Frames of its
/// WebAssembly module have no name of their own, but are next to those of its script; around a
/// game's module are frames of the game's script.
fn frames_of_game(stack: &str) -> impl Iterator<Item = &str> {
    let frames: Vec<&str> = stack.lines().collect();
    let mut runtime: Vec<bool> = frames
        .iter()
        .map(|frame| frame.contains(RUNTIME_JS))
        .collect();
    let claim = |runtime: &mut [bool], at: usize, before: usize| {
        runtime[at] |= runtime[before] && frames[at].contains("wasm-function[");
    };
    for at in 1..frames.len() {
        claim(&mut runtime, at, at - 1);
    }
    for at in (1..frames.len()).rev() {
        claim(&mut runtime, at - 1, at);
    }
    frames
        .into_iter()
        .zip(runtime)
        .filter_map(|(frame, is_runtime)| (!is_runtime).then_some(frame))
}

/// The place of a record: file, line and column.
fn place(record: &Value) -> String {
    let mut place = record
        .get("url")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    for member in ["line", "column"] {
        if let Some(number) = record.get(member).and_then(Value::as_u64) {
            let _ = write!(place, ":{number}");
        }
    }
    place
}

/// A record's time: milliseconds since the epoch, or already a text.
fn moment(time: &Value) -> String {
    if let Some(text) = time.as_str() {
        return terminal::moment(text);
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a page's clock has fractions of a millisecond; a float saturates"
    )]
    let millis = time.as_f64().unwrap_or_default() as i64;
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000)
        .map(terminal::written)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn as_text(record: &Value) -> String {
        terminal::shown(&lines(record))
    }

    #[test]
    fn a_record_is_a_line_and_what_belongs_to_it() {
        let record = json!({
            "id": "1", "time": 1_767_225_600_123.5, "level": "error", "source": "error",
            "message": "boom", "stack": "Error: boom\n  at a.js:1:2\n  at https://a.example/__platform/runtime.js:1:9",
            "url": "/a.js",
            "line": 1, "column": 2, "count": 3, "metadata": {"level": 4},
        });
        assert_eq!(
            as_text(&record),
            "2026-01-01T00:00:00.123Z error error boom (×3) /a.js:1:2\n    \
             Error: boom\n    at a.js:1:2\n    {\"level\":4}\n"
        );
        let bare = json!({"time": "2026-01-01T00:00:00Z", "level": "info", "message": "a\nb"});
        assert_eq!(as_text(&bare), "2026-01-01T00:00:00.000Z info   a\n    b\n");
    }

    #[test]
    fn frames_of_the_runtime_s_module_are_left_out_and_those_of_a_game_s_are_not() {
        let stack = "Error: boom
            at wasm://wasm/000139ee:wasm-function[125]:0x43ad
            at u (https://a.example/__platform/runtime.js:1:10275)
            at wasm://wasm/000139ee:wasm-function[35]:0x1038
            at save (https://a.example/game.js:3:4)
            at wasm://wasm/0badcafe:wasm-function[7]:0x12";
        let frames: Vec<&str> = frames_of_game(stack).map(str::trim).collect();
        let expected = [
            "Error: boom",
            "at save (https://a.example/game.js:3:4)",
            "at wasm://wasm/0badcafe:wasm-function[7]:0x12",
        ];
        assert_eq!(frames, expected);
        assert_eq!(frames_of_game("").count(), 0);
    }

    #[test]
    fn times_are_as_long_as_each_other() {
        for (time, shown) in [
            (json!("2026-01-01T00:00:00Z"), "2026-01-01T00:00:00.000Z "),
            (json!("2026-01-01T00:00:00.5Z"), "2026-01-01T00:00:00.500Z "),
            (
                json!("2026-01-01T02:00:00.1239+02:00"),
                "2026-01-01T00:00:00.123Z ",
            ),
            (json!(1_767_225_600_040_u64), "2026-01-01T00:00:00.040Z "),
            (json!("yesterday"), "yesterday "),
        ] {
            assert!(
                as_text(&json!({ "time": time })).starts_with(shown),
                "{time}"
            );
        }
    }

    #[test]
    fn what_a_page_wrote_does_not_steer_the_terminal() {
        let record = json!({
            "level": "info\u{1b}[31m", "source": "\u{7}", "message": "\u{1b}]0;title\u{7}\u{9b}2J",
            "stack": "\u{1b}[1A", "url": "\u{1b}c", "metadata": "\u{9b}",
        });
        // The colours are removed; no other escape may be left.
        assert!(
            !as_text(&record)
                .chars()
                .any(|c| c.is_control() && c != '\n')
        );
    }

    #[test]
    fn a_record_of_another_form_is_shown_as_far_as_it_goes() {
        for record in [json!({}), json!([]), json!({"time": 1e300, "message": 5})] {
            assert!(as_text(&record).ends_with('\n'));
        }
    }
}
