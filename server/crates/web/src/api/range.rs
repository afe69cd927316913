//! The time range of a query.
//!
//! Errors are sentences that can be shown to the caller.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use platform_domain::clock::Millis;
use platform_domain::counting::DAY;
use platform_domain::date::parse_rfc3339;

const TIME: &str =
    "`from` and `to` must be times in the form of RFC 3339, such as 2026-11-21T12:00:00Z.";
const ORDER: &str = "`from` must be before `to`.";
const YEARS: &str = "`from` and `to` must be in the years 1 to 9998.";

/// The supported times. RFC 3339 allows the years 0 to 9999, and responses may round up or use
/// clocks that are hours away from UTC.
const ERA: std::ops::Range<Millis> = -62_135_596_800_000..253_370_764_800_000;

/// The parameter `from` or `to` of a query, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Millis);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // A `+` in a query means a space, and few callers write `%2B`.
        let text = String::deserialize(from)?.replace(' ', "+");
        let time = parse_rfc3339(&text).ok_or_else(|| de::Error::custom(TIME))?;
        Ok(Self(time))
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into()
    }
}

impl ToSchema for Time {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Time")
    }
}

/// The time range of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The start, inclusive.
    pub from: Option<Millis>,
    /// The end, exclusive.
    pub to: Option<Millis>,
}

impl Range {
    /// Creates a range between two times.
    #[must_use]
    pub fn new(from: Option<Time>, to: Option<Time>) -> Self {
        let millis = |time: Option<Time>| time.map(|Time(millis)| millis);
        Self {
            from: millis(from),
            to: millis(to),
        }
    }

    /// Rejects a range that ends before it begins.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn in_order(self) -> Result<Self, &'static str> {
        match (self.from, self.to) {
            (Some(from), Some(to)) => ordered(from, to).map(|()| self),
            _ => Ok(self),
        }
    }

    /// Returns start and end. The default is the day until `now`. A range that is longer than
    /// `longest` is rejected with the sentence `too_long`.
    ///
    /// # Errors
    /// What is wrong with it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::query::read;
    use platform_domain::date::rfc3339;

    const NOW: Millis = 1_795_262_400_000;

    #[derive(Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Wanted {
        from: Option<Time>,
        to: Option<Time>,
    }

    fn range(query: &str) -> Result<Range, String> {
        let wanted: Wanted = read(query).map_err(|error| error.to_string())?;
        Ok(Range::new(wanted.from, wanted.to))
    }

    fn bounds(query: &str) -> Result<(Millis, Millis), String> {
        let bounds = range(query)?.bounds(NOW, 2 * DAY, "two days");
        bounds.map_err(str::to_owned)
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
            ("from=yesterday", TIME),
            ("to=10000-01-01T00:00:00Z", TIME),
            ("limit=1", "Allowed parameters of the query: from and to."),
            ("from=2026-11-21T12:00:00Z&to=2026-11-21T12:00:00Z", ORDER),
            ("from=2026-11-22T12:00:00Z", ORDER),
            ("from=2026-11-18T12:00:00Z", "two days"),
        ] {
            assert_eq!(bounds(query), Err(sentence.to_owned()), "{query}");
        }
        let order = |query: &str| range(query).unwrap().in_order();
        let wrong = "from=2026-11-21T12:00:01Z&to=2026-11-21T12:00:00Z";
        assert_eq!(order(wrong), Err(ORDER));
        for open in ["", "from=2026-11-22T12:00:00Z", "to=1970-01-01T00:00:00Z"] {
            assert!(order(open).is_ok(), "{open}");
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
            assert_eq!(bounds(query), Err(YEARS.to_owned()), "{query}");
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
