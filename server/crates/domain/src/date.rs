//! Times: days for the people who read the platform's pages, and RFC 3339 for
//! programs, written and read.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::clock::Millis;

/// A day in UTC, in the two spellings that the element `time` wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Date {
    /// `2026-01-31`
    pub machine: String,
    /// `31 January 2026`
    pub words: String,
}

impl Date {
    /// The day of a moment.
    #[must_use]
    pub fn of(moment: Millis) -> Self {
        // A moment beyond the year 9999 has no such spelling; none is stored.
        let day = OffsetDateTime::from_unix_timestamp(moment.div_euclid(1_000))
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let (year, month, day) = (day.year(), day.month(), day.day());
        Self {
            machine: format!("{year:04}-{:02}-{day:02}", u8::from(month)),
            words: format!("{day} {month} {year}"),
        }
    }
}

/// A time as RFC 3339 writes it, in UTC.
#[must_use]
pub fn rfc3339(time: Millis) -> String {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(time) * 1_000_000)
        .ok()
        .and_then(|time| time.format(&Rfc3339).ok())
        .unwrap_or_default()
}

/// The same without parts of a second. None is for a time that RFC 3339 cannot
/// write: its years are 0 to 9999.
#[must_use]
pub fn rfc3339_seconds(time: Millis) -> Option<String> {
    let time = OffsetDateTime::from_unix_timestamp(time.div_euclid(1_000)).ok()?;
    time.format(&Rfc3339).ok()
}

/// Reads a time as RFC 3339 writes it, with any offset. What is finer than a
/// millisecond is left out.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<Millis> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    Some(time.unix_timestamp() * 1_000 + i64::from(time.millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_written_for_machines_and_for_people() {
        for (moment, machine, words) in [
            (0, "1970-01-01", "1 January 1970"),
            (-1, "1969-12-31", "31 December 1969"),
            (1_767_225_599_999, "2025-12-31", "31 December 2025"),
            (1_767_225_600_000, "2026-01-01", "1 January 2026"),
        ] {
            let date = Date::of(moment);
            assert_eq!((&*date.machine, &*date.words), (machine, words));
        }
    }

    #[test]
    fn times_are_written_as_rfc_3339_does() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_767_225_600_250), "2026-01-01T00:00:00.25Z");
        for (time, text) in [
            (0, Some("1970-01-01T00:00:00Z")),
            (-1, Some("1969-12-31T23:59:59Z")),
            (1_767_225_600_999, Some("2026-01-01T00:00:00Z")),
            (253_402_300_799_999, Some("9999-12-31T23:59:59Z")),
            (253_402_300_800_000, None),
            (Millis::MAX, None),
        ] {
            assert_eq!(rfc3339_seconds(time).as_deref(), text, "{time}");
        }
    }

    #[test]
    fn times_are_read_as_rfc_3339_writes_them() {
        for (text, time) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1969-12-31T23:59:59.999Z", Some(-1)),
            ("2026-01-01T01:00:00.25+01:00", Some(1_767_225_600_250)),
            ("2026-01-01T00:00:00.2509Z", Some(1_767_225_600_250)),
            ("2026-01-01T00:00:00", None),
            ("2026-02-30T00:00:00Z", None),
            ("10000-01-01T00:00:00Z", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(parse_rfc3339(text), time, "{text}");
        }
        let (first, last) = (-62_135_596_800_000, 253_370_764_799_999);
        for time in [first, -1, 0, 1, 1_795_262_400_123, last] {
            assert_eq!(parse_rfc3339(&rfc3339(time)), Some(time));
        }
    }
}
