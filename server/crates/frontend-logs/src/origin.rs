//! Where an error is of the game: a stack may begin in the platform's own script, which says nothing
//! about the game.

use platform_domain::log::LogEntry;
use platform_domain::stack::{Described, Frame};
use platform_protocol::paths::RUNTIME_JS;

/// Whether a script's address is that of the runtime.
fn is_runtime(file: &str) -> bool {
    let path = file.split(['?', '#']).next().unwrap_or_default();
    path.ends_with(RUNTIME_JS)
}

/// Returns the frames in scripts, without those of the runtime if there are others.
#[must_use]
pub fn in_game<'d, 'a>(error: &'d Described<'a>) -> Vec<&'d Frame<'a>> {
    let in_scripts = || error.frames.iter().filter(|frame| frame.line > 0);
    let own: Vec<_> = in_scripts()
        .filter(|frame| !is_runtime(frame.file))
        .collect();
    if own.is_empty() {
        in_scripts().collect()
    } else {
        own
    }
}

/// Returns a record whose place is in the game. Browsers name the place where an error was made,
/// which is in the runtime for a `PlatformError`.
#[must_use]
pub fn placed_in_game(mut entry: LogEntry) -> LogEntry {
    if !entry.url.as_deref().is_some_and(is_runtime) {
        return entry;
    }
    let error = Described::read(&entry.message, entry.stack.as_deref());
    let frame = in_game(&error).first().map(|frame| {
        let known = |number: u32| (number > 0).then_some(number);
        (
            frame.file.to_owned(),
            known(frame.line),
            known(frame.column),
        )
    });
    if let Some((file, line, column)) = frame.filter(|(file, ..)| !is_runtime(file)) {
        (entry.url, entry.line, entry.column) = (Some(file), line, column);
    }
    entry
}

#[cfg(test)]
mod tests {
    use platform_protocol::log::{LogLevel, LogSource};

    use super::*;

    const RUNTIME: &str = "https://game.example/__platform/runtime.js";

    fn placed(stack: &str, url: &str) -> (String, Option<u32>, Option<u32>) {
        let entry = LogEntry {
            time: 0,
            level: LogLevel::Error,
            source: LogSource::Error,
            message: "PlatformError: offline".into(),
            stack: Some(stack.into()),
            url: Some(url.into()),
            line: Some(1),
            column: Some(900),
            metadata: None,
            count: 1,
        };
        let entry = placed_in_game(entry);
        (entry.url.unwrap(), entry.line, entry.column)
    }

    #[test]
    fn an_error_of_the_runtime_has_the_place_in_the_game_that_called_it() {
        let game = "https://game.example/main.js";
        let here = (game.to_owned(), Some(7), Some(9));
        for stack in [
            format!(
                "PlatformError: offline\n    at u ({RUNTIME}:1:900)\n    at async save ({game}:7:9)"
            ),
            format!("u@{RUNTIME}?v=2:1:900\nsave@{game}:7:9\n"),
        ] {
            assert_eq!(placed(&stack, RUNTIME), here, "{stack}");
        }
    }

    #[test]
    fn a_place_stays_where_the_stack_has_no_better_one() {
        let stack = format!("PlatformError: offline\n    at u ({RUNTIME}:1:900)");
        let stays = (RUNTIME.to_owned(), Some(1), Some(900));
        assert_eq!(placed(&stack, RUNTIME), stays);
        assert_eq!(placed("", RUNTIME), stays);
        let other = "https://game.example/other.js";
        let stack = "Error: a\n    at save (https://game.example/main.js:7:9)";
        assert_eq!(placed(stack, other).0, other);
    }
}
