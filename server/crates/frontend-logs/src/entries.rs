//! The records of a page as they are stored: within the limits, and with their place in the game.

use platform_domain::clock::Millis;
use platform_domain::log::LogEntry;
use platform_protocol::limits::{LOG_MESSAGE_BYTES, LOG_STACK_BYTES, LOG_URL_BYTES};
use platform_protocol::log::LogRecord;
use platform_protocol::problem::ProblemCode;
use serde_json::value::RawValue;

use crate::origin::placed_in_game;
use crate::sanitize::{shortened, sound_metadata};

/// How far behind a page's clock may be: a record may have waited that long. If it is further
/// behind, or ahead of ours, the page's clock is wrong.
pub const BELIEVED_MILLIS: Millis = 24 * 60 * 60 * 1_000;

/// Returns the records of one request, which arrived at `received_at`, as they are stored. Together
/// they count at most `repeats` repetitions in addition to themselves.
///
/// # Errors
/// `invalid-request` if a record stands for none.
pub fn entries_of(
    records: Vec<LogRecord<Box<RawValue>>>,
    received_at: Millis,
    mut repeats: u32,
) -> Result<Vec<LogEntry>, ProblemCode> {
    records
        .into_iter()
        .map(|record| Ok(placed_in_game(check(record, received_at, &mut repeats)?)))
        .collect()
}

/// Brings a record within the limits. A game does not control everything that it logs, so one
/// unusual record must not affect the others. `repeats` is the number of repetitions left for the
/// records of its request.
fn check(
    record: LogRecord<Box<RawValue>>,
    received_at: Millis,
    repeats: &mut u32,
) -> Result<LogEntry, ProblemCode> {
    let repeated = record.count.unwrap_or(1).checked_sub(1);
    let repeated = repeated.ok_or(ProblemCode::InvalidRequest)?.min(*repeats);
    *repeats -= repeated;
    Ok(LogEntry {
        time: believed(record.time, received_at),
        level: record.level,
        source: record.source,
        message: shortened(record.message, LOG_MESSAGE_BYTES),
        stack: record.stack.map(|text| shortened(text, LOG_STACK_BYTES)),
        url: record.url.map(|text| shortened(text, LOG_URL_BYTES)),
        line: record.line,
        column: record.column,
        metadata: record.metadata.map(|json| sound_metadata(json.get())),
        count: 1 + repeated,
    })
}

/// Returns a page's time, moved to the nearest plausible one.
fn believed(time: f64, received_at: Millis) -> Millis {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast of a float ends at the integer's bounds, and so does the clamp"
    )]
    let time = time.round() as Millis;
    time.clamp(received_at.saturating_sub(BELIEVED_MILLIS), received_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_clock_is_moved_to_the_nearest_time_that_can_be() {
        let now = 1_800_000_000_000;
        #[expect(clippy::cast_precision_loss, reason = "both are far below 2^52")]
        let at = |millis: Millis| millis as f64;
        for (time, expected) in [
            (at(now), now),
            (at(now) - 0.4, now),
            (at(now - 5_000), now - 5_000),
            (at(now + 1), now),
            (1e300, now),
            (at(now - BELIEVED_MILLIS), now - BELIEVED_MILLIS),
            (at(now - BELIEVED_MILLIS - 1), now - BELIEVED_MILLIS),
            (0.0, now - BELIEVED_MILLIS),
            (-1e300, now - BELIEVED_MILLIS),
        ] {
            assert_eq!(believed(time, now), expected, "{time}");
        }
    }
}
