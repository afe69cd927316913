//! Writes results to standard output, everything else to standard error.

use std::fmt::Display;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anstyle::{AnsiColor, Style};
use platform_protocol::invisible::is_hidden;
use serde_json::Value;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

use crate::failure::Failure;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const MONTH: u64 = 30 * DAY;
/// The style of `error:`.
const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The style of `warning:`.
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// The style of the most important text.
pub(crate) const STRONG: Style = Style::new().bold();

/// Writes results to standard output.
///
/// # Errors
/// [`Failure::ReaderGone`] if the reader has closed the pipe.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// Writes JSON to standard output on one line, without characters that a terminal obeys: much of it
/// comes from players and other developers.
///
/// # Errors
/// [`Failure::ReaderGone`] if the reader has closed the pipe.
pub(crate) fn print_json(json: &Value) -> Result<(), Failure> {
    print(&format!("{}\n", plain_json(&json.to_string())))
}

/// Writes a result with colours, or without them if they are not wanted.
///
/// # Errors
/// [`Failure::ReaderGone`] if the reader has closed the pipe.
pub(crate) fn print_styled(text: &str) -> Result<(), Failure> {
    let mut output = anstream::stdout().lock();
    output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
        .map_err(|error| not_written(&error))
}

/// Writes results to standard output as they are.
///
/// # Errors
/// [`Failure::ReaderGone`] if the reader has closed the pipe.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    output
        .write_all(bytes)
        .and_then(|()| output.flush())
        .map_err(|error| not_written(&error))
}

fn not_written(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::ReaderGone
    } else {
        Failure::failed(format!("The results could not be written: {error}."))
    }
}

/// Writes a note to standard error. It is no failure if that is closed.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Writes a warning to standard error.
pub(crate) fn warn(text: impl Display) {
    note(format_args!("{WARNING}warning:{WARNING:#} {text}"));
}

/// Writes a failure to standard error.
pub(crate) fn error(text: impl Display) {
    note(format_args!("{ERROR}error:{ERROR:#} {text}"));
}

/// Whether there is a terminal with a person to ask.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question; any answer but yes means no.
pub(crate) fn ask(question: &str) -> bool {
    let mut stderr = anstream::stderr().lock();
    let _ = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Makes foreign text safe for a terminal: control characters, which could move the cursor or
/// overwrite earlier text, and marks that change the direction of writing or are invisible become a
/// visible sign.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' | '\n' => ' ',
            c if is_hidden(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Makes foreign JSON safe for a terminal: the same value, with control characters written as
/// escapes (RFC 8259 §7).
fn plain_json(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                plain.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            plain.push(c);
        }
    }
    plain
}

/// How long ago a time was, or how long it is until then, at `now` (Unix, in seconds); a month or
/// more away, the day in UTC. A text that is not a time stays as it is.
pub(crate) fn when(text: &str, now: i64) -> String {
    let Ok(moment) = OffsetDateTime::parse(text, &Rfc3339) else {
        return plain(text);
    };
    let distance = moment.unix_timestamp().saturating_sub(now);
    let words = match distance.unsigned_abs() {
        // Clocks differ by seconds.
        0..MINUTE => return "just now".to_owned(),
        seconds @ MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        seconds @ HOUR..DAY => format!("{} h", seconds / HOUR),
        seconds @ DAY..MONTH => counted(seconds / DAY, "day"),
        _ => return moment.to_offset(UtcOffset::UTC).date().to_string(),
    };
    if distance < 0 {
        format!("{words} ago")
    } else {
        format!("in {words}")
    }
}

/// A time to the minute, in UTC, for sentences. A text that is not a time stays as it is.
pub(crate) fn to_the_minute(text: &str) -> String {
    let Ok(moment) = OffsetDateTime::parse(text, &Rfc3339) else {
        return plain(text);
    };
    let moment = moment.to_offset(UtcOffset::UTC);
    let (date, hour, minute) = (moment.date(), moment.hour(), moment.minute());
    format!("{date} {hour:02}:{minute:02} UTC")
}

/// The time of a log record: in UTC, to the millisecond, so that records align and can be compared
/// as text. A text that is not a time stays as it is.
pub(crate) fn moment(text: &str) -> String {
    OffsetDateTime::parse(text, &Rfc3339).map_or_else(|_| plain(text), written)
}

/// The same for a parsed time.
pub(crate) fn written(moment: OffsetDateTime) -> String {
    let moment = moment.to_offset(UtcOffset::UTC);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        moment.year(),
        u8::from(moment.month()),
        moment.day(),
        moment.hour(),
        moment.minute(),
        moment.second(),
        moment.millisecond()
    )
}

/// A number of bytes for people.
pub(crate) fn bytes(count: u64) -> String {
    indicatif::DecimalBytes(count).to_string()
}

/// `1 file`, `2 files`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_does_not_obey_what_others_wrote() {
        assert_eq!(
            plain("a\u{1b}[2Jb\r\u{202e}c\u{9b}d"),
            "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\u{fffd}d"
        );
        assert_eq!(plain("zwei\nZeilen\tÄ"), "zwei Zeilen Ä");
    }

    #[test]
    fn json_keeps_its_value_and_steers_no_terminal() {
        let value = "a\u{1b}[2J\u{9b}2J\u{7f}\u{202e}\u{200f}\u{2028}\u{e0041}ä🦦\\\n";
        let json = serde_json::to_string(value).unwrap();
        assert!(json.chars().any(is_hidden));
        let plain = plain_json(&json);
        assert!(!plain.chars().any(is_hidden), "{plain}");
        assert!(plain.contains("ä🦦"), "{plain}");
        assert_eq!(serde_json::from_str::<String>(&plain).unwrap(), value);
    }

    #[test]
    fn every_moment_is_written_in_one_form() {
        for (text, shown) in [
            ("2026-01-03T00:00:00Z", "2026-01-03T00:00:00.000Z"),
            ("2026-01-03T01:00:00.25+01:00", "2026-01-03T00:00:00.250Z"),
            ("yesterday", "yesterday"),
        ] {
            assert_eq!(moment(text), shown);
        }
    }

    #[test]
    fn people_read_how_far_away_a_time_is() {
        let now = OffsetDateTime::parse("2026-03-01T12:00:00Z", &Rfc3339).unwrap();
        let now = now.unix_timestamp();
        for (text, shown) in [
            ("2026-03-01T12:00:00.9Z", "just now"),
            ("2026-03-01T12:00:30Z", "just now"),
            ("2026-03-01T11:59:01Z", "just now"),
            ("2026-03-01T11:59:00Z", "1 min ago"),
            ("2026-03-01T12:01:00+01:00", "59 min ago"),
            ("2026-03-01T11:00:00Z", "1 h ago"),
            ("2026-02-28T12:00:01Z", "23 h ago"),
            ("2026-02-28T12:00:00Z", "1 day ago"),
            ("2026-01-31T00:00:00Z", "29 days ago"),
            ("2026-01-30T01:00:00+02:00", "2026-01-29"),
            ("2026-03-08T12:00:00Z", "in 7 days"),
            ("2026-03-01T13:59:00Z", "in 1 h"),
            ("2026-05-30T12:00:00Z", "2026-05-30"),
            ("yesterday", "yesterday"),
            ("\u{1b}c", "\u{fffd}c"),
        ] {
            assert_eq!(when(text, now), shown, "{text}");
        }
        let shown = to_the_minute("2026-03-01T00:05:59+01:00");
        assert_eq!(shown, "2026-02-28 23:05 UTC");
        assert_eq!(to_the_minute("soon"), "soon");
    }

    #[test]
    fn counts_read_as_english() {
        assert_eq!(counted(1, "file"), "1 file");
        assert_eq!(counted(0, "file"), "0 files");
        assert_eq!(bytes(1_234_567), "1.23 MB");
    }
}
