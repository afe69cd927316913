//! Writes results to standard output, everything else to standard error.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anstyle::{AnsiColor, Style};
use platform_protocol::invisible::{is_hidden, shown_except};
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

/// A line that a terminal shows and does not obey: the only thing that this program writes there.
///
/// Much of what is printed was written by others: a folder's `platform.toml`, file names, players' pages,
/// answers of a server. Whatever becomes part of a line loses its control characters, line breaks included,
/// here, so that no caller has to think of it. Only [`Line::styled`] adds escape sequences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line(String);

impl Line {
    /// A line without text.
    pub(crate) const fn new() -> Self {
        Self(String::new())
    }

    /// Adds a text.
    pub(crate) fn push(mut self, text: impl Display) -> Self {
        self.0.push_str(&plain(&text.to_string()));
        self
    }

    /// Adds a text in a style.
    pub(crate) fn styled(mut self, style: Style, text: impl Display) -> Self {
        self.0.push_str(&style.render().to_string());
        self = self.push(text);
        self.0.push_str(&style.render_reset().to_string());
        self
    }

    fn append(mut self, other: &Self) -> Self {
        self.0.push_str(&other.0);
        self
    }
}

impl<T: Display> From<T> for Line {
    fn from(text: T) -> Self {
        Self::new().push(text)
    }
}

/// The lines of a table: each column is as wide as its widest cell. The columns `right` are aligned to the
/// right.
pub(crate) fn table<const N: usize>(rows: &[[String; N]], right: &[usize]) -> Vec<Line> {
    let width = |column: usize| {
        let lengths = rows.iter().map(|row| row[column].chars().count());
        lengths.max().unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                if right.contains(&column) {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:width$}")
                }
            });
        Line::from(cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Writes a result to standard output, on one line.
///
/// # Errors
/// [`Failure::ReaderGone`] if the reader has closed the pipe.
pub(crate) fn print(line: impl Into<Line>) -> Result<(), Failure> {
    print_all(&[line.into()])
}

/// Writes results to standard output.
///
/// # Errors
/// [`Failure::ReaderGone`] if the reader has closed the pipe.
pub(crate) fn print_all(lines: &[Line]) -> Result<(), Failure> {
    let text: String = lines.iter().map(|line| format!("{}\n", line.0)).collect();
    write_result(&mut anstream::stdout().lock(), text.as_bytes())
}

/// Writes JSON to standard output on one line, without characters that a terminal obeys: much of it
/// comes from players and other developers.
///
/// # Errors
/// [`Failure::ReaderGone`] if the reader has closed the pipe.
pub(crate) fn print_json(json: &Value) -> Result<(), Failure> {
    print(plain_json(&json.to_string()))
}

/// Writes the content of a file to standard output: as it is, or as lines if a terminal shows it.
///
/// # Errors
/// [`Failure::ReaderGone`] if the reader has closed the pipe.
pub(crate) fn print_file(bytes: &[u8]) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        let text = String::from_utf8_lossy(bytes);
        return print_all(&text.lines().map(Line::from).collect::<Vec<_>>());
    }
    write_result(&mut io::stdout().lock(), bytes)
}

fn write_result(output: &mut impl io::Write, bytes: &[u8]) -> Result<(), Failure> {
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
pub(crate) fn note(line: impl Into<Line>) {
    let _ = writeln!(anstream::stderr().lock(), "{}", line.into().0);
}

/// Writes a warning to standard error.
pub(crate) fn warn(line: impl Into<Line>) {
    let begin = Line::new().styled(WARNING, "warning:").push(" ");
    note(begin.append(&line.into()));
}

/// Writes a failure to standard error.
pub(crate) fn error(line: impl Into<Line>) {
    let begin = Line::new().styled(ERROR, "error:").push(" ");
    note(begin.append(&line.into()));
}

/// Writes what the parser of the arguments says: help, or why they cannot be used.
pub(crate) fn parsed(error: &clap::Error) {
    // Help is a result. It is no failure if the reader has closed the pipe.
    let _ = error.print();
}

/// An argument as it may be shown: it may come from others, such as a file's name.
pub(crate) fn shown_argument(argument: &OsStr) -> OsString {
    plain(&argument.to_string_lossy()).into()
}

/// Whether there is a terminal with a person to ask.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question; any answer but yes means no.
pub(crate) fn ask(question: impl Into<Line>) -> bool {
    let mut stderr = anstream::stderr().lock();
    let question = question.into().0;
    let _ = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// The lines as a person reads them, without styles.
#[cfg(test)]
pub(crate) fn shown(lines: &[Line]) -> String {
    let text: String = lines.iter().map(|line| format!("{}\n", line.0)).collect();
    anstream::adapter::strip_str(&text).to_string()
}

/// Makes foreign text safe for a terminal: control characters, which could move the cursor or
/// overwrite earlier text, and marks that change the direction of writing or are invisible become a
/// visible sign.
fn plain(text: &str) -> String {
    shown_except(text, &['\t', '\n']).replace(['\t', '\n'], " ")
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
    fn a_line_shows_what_others_wrote_and_obeys_its_own_styles_alone() {
        let hostile = "a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\r\nerror: b";
        let line = Line::from(hostile).styled(STRONG, hostile);
        let hidden = line.0.chars().filter(|c| is_hidden(*c)).collect::<String>();
        assert_eq!(hidden, "\u{1b}\u{1b}", "those of the style: {line:?}");
        let (bold, reset) = (STRONG.render().to_string(), STRONG.render_reset());
        assert!(line.0.contains(&bold) && line.0.ends_with(&reset.to_string()));
        assert_eq!(shown(&[line]).lines().count(), 1);
    }

    /// The type protects as long as nothing else writes.
    #[test]
    fn no_other_file_writes_to_the_terminal() {
        let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut folders = vec![sources];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if !path.ends_with("src/terminal.rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    for way in [
                        "stdout()",
                        "stderr()",
                        "print!(",
                        "println!(",
                        concat!("dbg", "!("),
                        "/dev/tty",
                    ] {
                        let uses = text.matches(way).count();
                        let shown = text.matches("use_stderr()").count();
                        let allowed = if way == "stderr()" { shown } else { 0 };
                        assert_eq!(uses, allowed, "{} uses {way}", path.display());
                    }
                }
            }
        }
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
