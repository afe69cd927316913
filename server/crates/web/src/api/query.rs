//! What queries say in more than one call: environments, times, levels
//! and numbers.
//!
//! What is wrong is answered by a sentence that can be shown.

use std::borrow::Cow;
use std::str::FromStr;

use platform_domain::date::parse_rfc3339;
use platform_protocol::log::LogLevel;
use platform_protocol::names::Environment;

use super::environment;
use platform_domain::clock::Millis;
use platform_domain::counting::DAY;

const ENVIRONMENT: &str = "`env` is dev or prod.";
const TIME: &str = "`from` and `to` are times as RFC 3339 writes them, 2026-11-21T12:00:00Z.";
const ORDER: &str = "`from` is before `to`.";
const YEARS: &str = "`from` and `to` are in the years 1 to 9998.";

/// The times that are answered about. RFC 3339 writes the years 0 to 9999, and
/// answers round up, and may be for clocks that are hours away from UTC.
const ERA: std::ops::Range<Millis> = -62_135_596_800_000..253_370_764_800_000;

/// The environment and the time that a query asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Production if nothing else is asked for.
    pub environment: Environment,
    /// What is asked for begins then.
    pub from: Option<Millis>,
    /// What is asked for ends before then.
    pub to: Option<Millis>,
}

impl Default for Range {
    fn default() -> Self {
        Self {
            environment: Environment::Prod,
            from: None,
            to: None,
        }
    }
}

impl Range {
    /// Takes `env`, `from` or `to`; false for any other name.
    pub fn take(&mut self, name: &str, value: &str) -> Result<bool, &'static str> {
        match name {
            "env" => self.environment = environment_of(value)?,
            "from" => self.from = Some(time(value).ok_or(TIME)?),
            "to" => self.to = Some(time(value).ok_or(TIME)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads a query that has nothing else.
    pub fn parse(query: &str) -> Result<Self, &'static str> {
        let mut range = Self::default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            if !range.take(&name, &value)? {
                return Err("The query may have env, from and to.");
            }
        }
        Ok(range)
    }

    /// Refuses what ends before it begins.
    pub fn in_order(self) -> Result<Self, &'static str> {
        match (self.from, self.to) {
            (Some(from), Some(to)) => ordered(from, to).map(|()| self),
            _ => Ok(self),
        }
    }

    /// From when to when: the day until `now` where nothing else is asked for,
    /// and at most as long as `longest`, else `too_long` is what is wrong.
    pub fn bounds(
        self,
        now: Millis,
        longest: Millis,
        too_long: &'static str,
    ) -> Result<(Millis, Millis), &'static str> {
        let to = self.to.unwrap_or(now);
        let from = self.from.unwrap_or(to - DAY);
        ordered(from, to)?;
        if to - from > longest {
            return Err(too_long);
        }
        if !ERA.contains(&from) || !ERA.contains(&to) {
            return Err(YEARS);
        }
        Ok((from, to))
    }
}

fn ordered(from: Millis, to: Millis) -> Result<(), &'static str> {
    if from < to { Ok(()) } else { Err(ORDER) }
}

/// The environment of this name.
pub fn environment_of(name: &str) -> Result<Environment, &'static str> {
    environment(name).ok_or(ENVIRONMENT)
}

/// The level of this name.
pub fn level(name: &str) -> Result<LogLevel, &'static str> {
    LogLevel::ALL
        .into_iter()
        .find(|level| level.as_str() == name)
        .ok_or("`level` is debug, info, warn or error.")
}

/// A number of plain digits. Rust's parser would take a plus sign.
pub fn digits<T: FromStr>(text: &str) -> Option<T> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// How many entries an answer may have: from 1 to `most`.
pub fn limit(text: &str, most: usize) -> Result<usize, Cow<'static, str>> {
    digits(text)
        .filter(|limit| (1..=most).contains(limit))
        .ok_or_else(|| format!("`limit` is from 1 to {most}.").into())
}

fn time(text: &str) -> Option<Millis> {
    // A `+` in a query stands for a space, and few remember to write `%2B`.
    parse_rfc3339(&text.replace(' ', "+"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform_domain::date::rfc3339;

    const NOW: Millis = 1_795_262_400_000;

    fn bounds(query: &str) -> Result<(Millis, Millis), &'static str> {
        Range::parse(query).and_then(|range| range.bounds(NOW, 2 * DAY, "two days"))
    }

    #[test]
    fn a_day_until_now_is_meant_where_nothing_is_said() {
        assert_eq!(bounds(""), Ok((NOW - DAY, NOW)));
        assert_eq!(
            bounds("to=2026-11-20T12:00:00Z"),
            Ok((NOW - 2 * DAY, NOW - DAY))
        );
        assert_eq!(
            bounds("from=2026-11-20T13:00:00+01:00"),
            Ok((NOW - DAY, NOW))
        );
    }

    #[test]
    fn what_is_wrong_with_a_range_is_said() {
        for (query, sentence) in [
            ("env=test", ENVIRONMENT),
            ("from=yesterday", TIME),
            ("to=10000-01-01T00:00:00Z", TIME),
            ("limit=1", "The query may have env, from and to."),
            ("from=2026-11-21T12:00:00Z&to=2026-11-21T12:00:00Z", ORDER),
            ("from=2026-11-22T12:00:00Z", ORDER),
            ("from=2026-11-18T12:00:00Z", "two days"),
        ] {
            assert_eq!(bounds(query), Err(sentence), "{query}");
        }
        let order = |query: &str| Range::parse(query).and_then(Range::in_order);
        let wrong = "from=2026-11-21T12:00:01Z&to=2026-11-21T12:00:00Z";
        assert_eq!(order(wrong), Err(ORDER));
        for open in ["", "from=2026-11-22T12:00:00Z", "to=1970-01-01T00:00:00Z"] {
            assert!(order(open).is_ok(), "{open}");
        }
    }

    #[test]
    fn numbers_are_plain_digits_within_their_limits() {
        assert_eq!(digits("007"), Some(7));
        for wrong in ["", "+5", "-5", " 5", "5.0", "99999999999999999999"] {
            assert_eq!(digits::<i64>(wrong), None, "{wrong}");
        }
        assert_eq!(limit("1", 20), Ok(1));
        assert_eq!(limit("20", 20), Ok(20));
        for wrong in ["0", "21", "+5", ""] {
            assert_eq!(limit(wrong, 20).unwrap_err(), "`limit` is from 1 to 20.");
        }
    }

    #[test]
    fn times_that_no_answer_could_write_are_refused() {
        for query in [
            "to=9999-12-31T23:30:00Z",
            "to=9999-12-31T23:30:00-02:00",
            "to=9999-01-01T00:00:00Z",
            "to=0000-01-01T00:00:00Z",
            "to=0001-01-01T12:00:00Z",
        ] {
            assert_eq!(bounds(query), Err(YEARS), "{query}");
        }
        for (query, (from, to)) in [
            (
                "to=9998-12-31T23:59:59Z",
                ("9998-12-30T23:59:59Z", "9998-12-31T23:59:59Z"),
            ),
            (
                "to=0001-01-02T00:00:00Z",
                ("0001-01-01T00:00:00Z", "0001-01-02T00:00:00Z"),
            ),
        ] {
            let written = bounds(query).map(|(from, to)| (rfc3339(from), rfc3339(to)));
            assert_eq!(written, Ok((from.to_owned(), to.to_owned())), "{query}");
        }
    }
}
