//! Range requests (RFC 9110 §14).

use axum::http::{HeaderMap, HeaderValue, header};

/// The requested part of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of it.
    Whole,
    /// From the first to the last byte, inclusive.
    Part(u64, u64),
    /// Only bytes beyond the end of the file.
    Outside,
}

/// Returns which part of a file of `size` bytes is requested. One range is supported; for several,
/// the whole file is a valid response (RFC 9110 §14.2). With `If-Range` the range must be of the
/// same version of the file (§13.1.5).
#[must_use]
pub fn wanted(request: &HeaderMap, etag: &HeaderValue, size: u64) -> Wanted {
    if request
        .get(header::IF_RANGE)
        .is_some_and(|condition| condition != etag)
    {
        return Wanted::Whole;
    }
    let asked = request
        .get(header::RANGE)
        .and_then(|text| text.to_str().ok());
    asked
        .and_then(part)
        .map_or(Wanted::Whole, |part| part.of(size))
}

/// The one requested range.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// From one byte to another, inclusive.
    Between(u64, u64),
    /// This number of bytes at the end.
    Last(u64),
}

/// Parses a single range. Returns `None` for several ranges, for other units, and for an invalid
/// one, which is ignored (RFC 9110 §14.2).
fn part(text: &str) -> Option<Part> {
    let (unit, range) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    match (first.is_empty(), last.is_empty()) {
        (true, _) => Some(Part::Last(position(last)?)),
        (false, true) => Some(Part::Between(position(first)?, u64::MAX)),
        (false, false) => {
            let (first, last) = (position(first)?, position(last)?);
            (first <= last).then_some(Part::Between(first, last))
        }
    }
}

/// Parses a position of any number of digits; one that is too large is beyond every file.
fn position(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

impl Part {
    /// Resolves the range for a file of `size` bytes (RFC 9110 §14.1.2).
    fn of(self, size: u64) -> Wanted {
        let Some(end) = size.checked_sub(1) else {
            return Wanted::Outside;
        };
        match self {
            Part::Between(first, last) if first <= end => Wanted::Part(first, last.min(end)),
            Part::Last(count) if count > 0 => Wanted::Part(size.saturating_sub(count), end),
            Part::Between(..) | Part::Last(_) => Wanted::Outside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_answered_as_the_standard_says() {
        let etag = HeaderValue::from_static("\"e\"");
        for (range, expected) in [
            ("bytes=0-0", Wanted::Part(0, 0)),
            ("bytes=2-", Wanted::Part(2, 9)),
            ("bytes=-3", Wanted::Part(7, 9)),
            ("bytes=5-99", Wanted::Part(5, 9)),
            ("bytes=10-", Wanted::Outside),
            ("bytes=10-12", Wanted::Outside),
            ("bytes=0-99999999999999999999999", Wanted::Part(0, 9)),
            ("bytes=99999999999999999999999-", Wanted::Outside),
            ("bytes=-10", Wanted::Part(0, 9)),
            ("bytes=-500", Wanted::Part(0, 9)),
            ("bytes=-99999999999999999999999", Wanted::Part(0, 9)),
            ("bytes=-0", Wanted::Outside),
            ("Bytes=0-0", Wanted::Part(0, 0)),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=", Wanted::Whole),
            ("bytes=5-2", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes=1--2", Wanted::Whole),
            ("bytes", Wanted::Whole),
        ] {
            let headers = HeaderMap::from_iter([(header::RANGE, HeaderValue::from_static(range))]);
            assert_eq!(wanted(&headers, &etag, 10), expected, "{range}");
        }
        for range in ["bytes=0-0", "bytes=-1"] {
            let headers = HeaderMap::from_iter([(header::RANGE, HeaderValue::from_static(range))]);
            assert_eq!(wanted(&headers, &etag, 0), Wanted::Outside, "of nothing");
        }
        let mut headers =
            HeaderMap::from_iter([(header::RANGE, HeaderValue::from_static("bytes=0-0"))]);
        headers.insert(header::IF_RANGE, HeaderValue::from_static("\"other\""));
        assert_eq!(wanted(&headers, &etag, 10), Wanted::Whole);
    }
}
