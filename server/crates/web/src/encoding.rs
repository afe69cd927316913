//! Negotiation of the content coding (RFC 9110 §12.5.3).

use axum::http::{HeaderMap, header};

/// A content coding that may be available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// As it is.
    Identity,
    /// `gzip`
    Gzip,
    /// `br`
    Brotli,
}

impl Coding {
    /// Returns its name in `Content-Encoding`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Coding::Identity => "identity",
            Coding::Gzip => "gzip",
            Coding::Brotli => "br",
        }
    }
}

/// Returns the available coding with the highest weight of the client, and of several the smallest
/// one. The uncompressed file is always available, even for a client that refuses every coding.
#[must_use]
pub fn choose(headers: &HeaderMap, is_there: impl Fn(Coding) -> bool) -> Coding {
    let mut brotli = None;
    let mut gzip = None;
    let mut others = None;
    let mut identity = None;
    for value in headers.get_all(header::ACCEPT_ENCODING) {
        let Ok(value) = value.to_str() else { continue };
        for entry in value.split(',') {
            let (name, weight) = weighed(entry);
            let slot = match name {
                _ if name.eq_ignore_ascii_case("br") => &mut brotli,
                _ if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") => {
                    &mut gzip
                }
                _ if name.eq_ignore_ascii_case("identity") => &mut identity,
                "*" => &mut others,
                _ => continue,
            };
            *slot = Some(weight);
        }
    }
    let brotli = brotli.or(others).unwrap_or(0);
    let gzip = gzip.or(others).unwrap_or(0);
    // A coding that is not named is acceptable, but comes last.
    let identity = identity.unwrap_or(1);
    let gzip = if is_there(Coding::Gzip) { gzip } else { 0 };
    if brotli > 0 && brotli >= gzip && brotli >= identity && is_there(Coding::Brotli) {
        Coding::Brotli
    } else if gzip > 0 && gzip >= identity {
        Coding::Gzip
    } else {
        Coding::Identity
    }
}

/// Returns an entry's name and its weight in thousandths. An unreadable weight counts as zero.
fn weighed(entry: &str) -> (&str, u16) {
    let (name, parameters) = entry.split_once(';').unwrap_or((entry, ""));
    let weight = match parameters.trim() {
        "" => 1_000,
        parameters => parameters
            .strip_prefix("q=")
            .or_else(|| parameters.strip_prefix("Q="))
            .and_then(|weight| weight.trim().parse::<f32>().ok())
            .filter(|weight| (0.0..=1.0).contains(weight))
            // At most 1,000, because of the check above.
            .map_or(0, |weight| (weight * 1_000.0).round() as u16),
    };
    (name.trim(), weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn the_highest_weight_wins_and_of_equals_the_smallest_file() {
        let cases = [
            ("", Coding::Identity),
            ("gzip, deflate, br, zstd", Coding::Brotli),
            ("gzip", Coding::Gzip),
            ("GZIP", Coding::Gzip),
            ("gzip;q=1.0, br;q=0.5", Coding::Gzip),
            ("gzip;q=0.5, br;q=0.5", Coding::Brotli),
            ("br;q=0, gzip", Coding::Gzip),
            ("br;q=0", Coding::Identity),
            ("*", Coding::Brotli),
            ("*;q=0", Coding::Identity),
            ("br;q=0, *", Coding::Gzip),
            ("identity, br;q=0.9", Coding::Identity),
            ("identity;q=0.5, gzip;q=0.9", Coding::Gzip),
            ("br;q=nonsense", Coding::Identity),
            ("br;q=2", Coding::Identity),
            ("deflate", Coding::Identity),
            ("br ; q=0.3", Coding::Brotli),
        ];
        for (value, expected) in cases {
            let headers =
                HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            assert_eq!(choose(&headers, |_| true), expected, "{value}");
        }
        assert_eq!(choose(&HeaderMap::new(), |_| true), Coding::Identity);
    }

    #[test]
    fn a_coding_that_is_not_there_is_not_chosen() {
        let headers = HeaderMap::from_iter([(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("br, gzip"),
        )]);
        assert_eq!(
            choose(&headers, |coding| coding != Coding::Brotli),
            Coding::Gzip
        );
        assert_eq!(
            choose(&headers, |coding| coding != Coding::Gzip),
            Coding::Brotli
        );
        assert_eq!(choose(&headers, |_| false), Coding::Identity);
    }
}
