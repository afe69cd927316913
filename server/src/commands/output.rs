//! What the operator's commands print: the only code of this program that writes to a terminal.
//!
//! Names of players and games, reasons and the system's messages are part of it. Whatever they contain, a
//! terminal shows it and does not obey it: control characters and marks of direction become a visible sign.

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal as _, Write as _, stderr, stdout};

use platform_protocol::invisible::shown_except;

/// Prints results to standard output; a closed pipe is not an error. Returns whether the output is
/// still being read.
pub(crate) fn print(text: &str) -> bool {
    let mut output = stdout().lock();
    let written = output
        .write_all(shown(text).as_bytes())
        .and_then(|()| output.flush());
    written.is_ok()
}

/// Writes a line to standard error. It is no failure if that is closed.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(stderr().lock(), "{}", shown(line).replace('\n', " "));
}

/// Whether standard error is a terminal.
pub(crate) fn is_terminal() -> bool {
    stderr().is_terminal()
}

/// Writes a line of progress to standard error. On a terminal, the next one takes its place.
#[cfg(feature = "cluster")]
pub(crate) fn progress(line: &str, is_terminal: bool, is_last: bool) {
    let mut errors = stderr().lock();
    let line = shown(line);
    // It is no failure if that is closed.
    let _ = match (is_terminal, is_last) {
        (true, false) => write!(errors, "\r\x1b[2K{line}"),
        (true, true) => writeln!(errors, "\r\x1b[2K{line}"),
        (false, _) => writeln!(errors, "{line}"),
    };
    let _ = errors.flush();
}

/// An argument as it may be shown.
pub(crate) fn shown_argument(argument: &OsStr) -> OsString {
    shown(&argument.to_string_lossy()).replace('\n', " ").into()
}

/// A text that a terminal does not obey, except that its lines stay lines.
fn shown(text: &str) -> String {
    shown_except(text, &['\t', '\n'])
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_terminal_does_not_obey_what_others_wrote() {
        let hostile = "a\u{1b}[2J\u{9b}2J\u{7f}\u{202e}\r\tb\nc";
        let expected = "a\u{fffd}[2J\u{fffd}2J\u{fffd}\u{fffd}\u{fffd}\tb\nc";
        assert_eq!(shown(hostile), expected);
    }

    #[test]
    fn no_command_writes_in_another_way() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let this_file = sources.join("commands/output.rs");
        let mut folders = vec![sources.join("commands")];
        let mut files = vec![sources.join("main.rs")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path != this_file {
                    files.push(path);
                }
            }
        }
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            for way in ["stdout()", "stderr()", "print!(", "println!("] {
                assert!(!text.contains(way), "{} uses {way}", file.display());
            }
        }
    }
}
