//! Sealed values that a page puts into an address or a form for its own browser. They are only
//! accepted from the same browser, and contain their time.
//!
//! A game can navigate a browser to any address of the auth service while the person clicks. So an
//! address alone is never trusted, and a form that acts with one click has no effect before it
//! could be read. The server stores nothing for this: a seal is derived from the secret in the
//! browser's form cookie ([`BrowserSecret`]), which no script and no other host can read.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;

use super::csrf::BrowserSecret;
use platform_domain::clock::{CLOCKS_DIFFER, Millis};
use platform_domain::device::UserCode;

/// The form field with the time at which the form was shown.
pub const SHOWN: &str = "shown";

/// How long a form must have been shown before a press counts: longer than a double click that
/// began on another page.
pub const PRESS_MILLIS: Millis = 2_000;

/// The maximum size of a seal in bytes: the time has 20, the full stop one, the hash 43.
const MAX_BYTES: usize = 64;

/// The sealed values. No two of them have the same text.
#[derive(Clone, Copy, Debug)]
pub enum Sealed<'a> {
    /// A form was shown.
    Form,
    /// The person at this browser entered this code, or opened its address
    /// themselves.
    Code(&'a UserCode),
    /// The decision about a device that the person at this browser made.
    Decision(&'a str),
}

impl Sealed<'_> {
    /// No value contains a colon or a NUL.
    fn text(self, at: Millis) -> String {
        let (kind, value) = match self {
            Self::Form => ("form", ""),
            Self::Code(code) => ("code", code.letters()),
            Self::Decision(action) => ("decision", action),
        };
        format!("platform seal:{kind}:{value}:{at}")
    }
}

impl BrowserSecret {
    /// Returns the seal of `what` at `now`: the time, and a hash that only we can compute, with
    /// this browser's cookie. It consists of letters, digits, `-`, `_` and one full stop.
    #[must_use]
    pub fn seal(&self, what: Sealed<'_>, now: Millis) -> String {
        let hash = self.derive(what.text(now).as_bytes());
        format!("{now}.{}", URL_SAFE_NO_PAD.encode(hash))
    }

    /// Returns how long ago `what` was sealed, or `None` if this is not its seal for this browser.
    /// The result is negative if the clock was set back, or another node's is ahead.
    #[must_use]
    pub fn age_of_seal(&self, what: Sealed<'_>, seal: &str, now: Millis) -> Option<Millis> {
        if !may_be_seal(seal) {
            return None;
        }
        let (at, _) = seal.split_once('.')?;
        let at: Millis = at.parse().ok()?;
        let expected = self.seal(what, at);
        let same: bool = expected.as_bytes().ct_eq(seal.as_bytes()).into();
        same.then(|| now.saturating_sub(at))
    }

    /// Whether `what` was sealed for this browser within the last `life` milliseconds. The seal may
    /// come from a node whose clock is ahead.
    #[must_use]
    pub fn has_sealed(&self, what: Sealed<'_>, seal: &str, life: Millis, now: Millis) -> bool {
        self.age_of_seal(what, seal, now)
            .is_some_and(|age| (-CLOCKS_DIFFER..life).contains(&age))
    }

    /// Whether a form had been shown long enough when it was submitted. `shown` is its field
    /// [`SHOWN`].
    #[must_use]
    pub fn was_shown(&self, shown: Option<&str>, now: Millis) -> bool {
        shown
            .and_then(|seal| self.age_of_seal(Sealed::Form, seal, now))
            .is_some_and(|age| age >= PRESS_MILLIS)
    }
}

/// Whether a text only contains characters of a seal, so that it can be put into an address
/// unchanged.
#[must_use]
pub fn may_be_seal(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.is_empty() && text.len() <= MAX_BYTES && text.bytes().all(plain)
}

/// Whether the person opened the address themselves: they typed it, chose a bookmark, or another
/// program opened it (Fetch Metadata, `Sec-Fetch-Site: none`). Without this header, the answer is
/// no.
#[must_use]
pub fn opened_by_person(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    let first = sites.next();
    first.is_some_and(|site| site == "none") && sites.next().is_none()
}

/// Whether a page of another host led here, such as a game (Fetch Metadata, `Sec-Fetch-Site:
/// same-site` or `cross-site`). Without this header, as from a program, the answer is no.
#[must_use]
pub fn led_by_another_site(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    sites.any(|site| site == "same-site" || site == "cross-site")
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform_domain::entropy::SystemEntropy;

    const NOW: Millis = 1_767_225_600_000;

    fn code(text: &str) -> UserCode {
        UserCode::parse(text).unwrap()
    }

    #[test]
    fn a_seal_is_believed_of_its_own_browser_and_of_nothing_else() {
        let here = BrowserSecret::generate(&SystemEntropy);
        let there = BrowserSecret::generate(&SystemEntropy);
        let (one, other) = (code("BCDFGHJK"), code("BCDFGHJL"));
        let seal = here.seal(Sealed::Code(&one), NOW);
        assert!(may_be_seal(&seal), "{seal}");
        let age =
            |secret: &BrowserSecret, what, seal: &str| secret.age_of_seal(what, seal, NOW + 5);
        assert_eq!(age(&here, Sealed::Code(&one), &seal), Some(5));
        assert_eq!(age(&there, Sealed::Code(&one), &seal), None);
        assert_eq!(age(&here, Sealed::Code(&other), &seal), None);
        assert_eq!(age(&here, Sealed::Form, &seal), None);
        let (_, hash) = seal.split_once('.').unwrap();
        for forged in [
            String::new(),
            ".".to_owned(),
            hash.to_owned(),
            format!("{NOW}."),
            format!("{}.{hash}", NOW - 1),
            format!("0{seal}"),
            format!("+{seal}"),
            format!("{seal}A"),
            format!("{seal}.{hash}"),
        ] {
            assert_eq!(age(&here, Sealed::Code(&one), &forged), None, "{forged}");
        }
    }

    #[test]
    fn a_form_counts_two_seconds_after_it_was_shown() {
        let secret = BrowserSecret::generate(&SystemEntropy);
        let shown = secret.seal(Sealed::Form, NOW);
        for (now, counts) in [
            (NOW, false),
            (NOW + 1_999, false),
            (NOW + 2_000, true),
            (NOW + 86_400_000, true),
            // The clock was set back.
            (NOW - 1, false),
        ] {
            assert_eq!(secret.was_shown(Some(&shown), now), counts, "{now}");
        }
        assert!(!secret.was_shown(None, NOW + 2_000));
        let other = secret.seal(Sealed::Decision("approve"), NOW);
        assert!(!secret.was_shown(Some(&other), NOW + 2_000));
    }

    #[test]
    fn a_seal_is_believed_for_its_life_alone() {
        let secret = BrowserSecret::generate(&SystemEntropy);
        let what = Sealed::Decision("approve");
        let seal = secret.seal(what, NOW);
        for (now, believed) in [
            (NOW, true),
            (NOW + 9, true),
            (NOW + 10, false),
            (NOW - CLOCKS_DIFFER, true),
            (NOW - CLOCKS_DIFFER - 1, false),
        ] {
            assert_eq!(secret.has_sealed(what, &seal, 10, now), believed, "{now}");
        }
        assert!(!secret.has_sealed(Sealed::Decision("deny"), &seal, 10, NOW));
    }

    #[test]
    fn only_an_address_that_no_page_led_to_was_opened_by_the_person() {
        for (sites, expected) in [
            (&["none"][..], true),
            (&[], false),
            (&["same-origin"], false),
            (&["same-site"], false),
            (&["cross-site"], false),
            (&["None"], false),
            (&["none", "cross-site"], false),
            (&["none", "none"], false),
        ] {
            let mut headers = HeaderMap::new();
            for site in sites {
                headers.append("sec-fetch-site", site.parse().unwrap());
            }
            assert_eq!(opened_by_person(&headers), expected, "{sites:?}");
        }
    }

    #[test]
    fn a_page_is_led_to_by_another_site_only_where_the_browser_says_so() {
        for (sites, expected) in [
            (&["same-site"][..], true),
            (&["cross-site"], true),
            (&["none", "cross-site"], true),
            (&["none"], false),
            (&["same-origin"], false),
            (&["Same-Site"], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            for site in sites {
                headers.append("sec-fetch-site", site.parse().unwrap());
            }
            assert_eq!(led_by_another_site(&headers), expected, "{sites:?}");
        }
    }
}
