//! A page in a player's browser, from its load to its end.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A page's id: 128 random bits that the page chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId(pub [u8; 16]);

impl PageId {
    /// Parses base64url without padding: 22 characters in their canonical form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_22_characters_of_base64url_are_a_page() {
        assert_eq!(
            PageId::parse("AAAAAAAAAAAAAAAAAAAAAA"),
            Some(PageId([0; 16]))
        );
        assert!(PageId::parse("-_-_-_-_-_-_-_-_-_-_-w").is_some());
        for bad in [
            "",
            "AAAAAAAAAAAAAAAAAAAAA",
            "AAAAAAAAAAAAAAAAAAAAAAA",
            "AAAAAAAAAAAAAAAAAAAAAA==",
            "AAAAAAAAAAAAAAAAAAAAAB",
            "AAAAAAAAAAAAAAAAAAAAA+",
            "AAAAAAAAAAAAAAAAAAAA A",
        ] {
            assert_eq!(PageId::parse(bad), None, "{bad}");
        }
    }
}
