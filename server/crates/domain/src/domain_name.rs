//! Names of custom domains: which ones a project may have, and the form in which they are kept.

use std::fmt;
use std::net::IpAddr;

use platform_public_suffix::registrable_domain;
use unicode_security::{RestrictionLevel, RestrictionLevelDetection as _, skeleton};
use url::Host;

/// The label before a domain under which its proof is.
pub const PROOF_LABEL: &str = "_platform";
/// The maximum number of bytes of a text that is read at all.
const MAX_TEXT: usize = 1_024;
/// The maximum length of a name, with room for [`PROOF_LABEL`] and a full stop (RFC 1035 §2.3.4).
const MAX_NAME: usize = 253 - PROOF_LABEL.len() - 1;
/// The beginning of a label in another script than Latin (RFC 5890 §2.3.2.1).
const ENCODED: &str = "xn--";

/// A domain that a project may have: lower case, labels in other scripts encoded (A-labels, RFC 5890),
/// without the full stop of the root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainName(String);

/// Why a text is no domain that a project may have: a sentence that says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DomainNameError {
    /// It has a scheme, a port, a path or a user name.
    #[error(
        "Write the name of the domain alone, such as game.example, without https://, a port and a path."
    )]
    MoreThanName,
    /// It is a pattern.
    #[error("A domain is one name. A wildcard such as *.game.example is not possible.")]
    Wildcard,
    /// It is an IP address.
    #[error("An IP address is not a domain. Write a name, such as game.example.")]
    Address,
    /// It has one label.
    #[error("A domain has at least two parts, such as game.example.")]
    SingleLabel,
    /// It is not the name of a host (RFC 1123 §2.1), or not one of IDNA (UTS #46).
    #[error(
        "This is not the name of a domain: each part has letters, digits and hyphens, and begins and \
         ends with a letter or digit."
    )]
    Form,
    /// It is too long.
    #[error("This name is too long: a domain may have at most {MAX_NAME} characters.")]
    Length,
    /// It mixes scripts, or is one script's imitation of a name in Latin letters (UTS #39).
    #[error(
        "This name looks like another one, because letters of several alphabets are similar. Use \
         letters of one alphabet."
    )]
    LookAlike,
    /// Others register their names directly below it.
    #[error(
        "This is a public suffix, below which everybody can register names, such as com or co.uk. \
         Write a name below it, such as game.example."
    )]
    PublicSuffix,
}

impl DomainName {
    /// Reads a domain. Upper case, one full stop at the end and letters of other scripts are accepted,
    /// and written as DNS has them.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn parse(text: &str) -> Result<Self, DomainNameError> {
        use DomainNameError as Wrong;
        if text.len() > MAX_TEXT {
            return Err(Wrong::Length);
        }
        let bare = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        if bare.unwrap_or(text).parse::<IpAddr>().is_ok() {
            return Err(Wrong::Address);
        }
        if text.contains(['/', ':', '?', '#', '@', '\\']) {
            return Err(Wrong::MoreThanName);
        }
        if text.contains('*') {
            return Err(Wrong::Wildcard);
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        let name = idna::domain_to_ascii_strict(text).map_err(|_| Wrong::Form)?;
        match Host::parse(&name) {
            Ok(Host::Domain(parsed)) if parsed == name => {}
            Ok(Host::Ipv4(_) | Host::Ipv6(_)) => return Err(Wrong::Address),
            Ok(Host::Domain(_)) | Err(_) => return Err(Wrong::Form),
        }
        if name.len() > MAX_NAME {
            return Err(Wrong::Length);
        }
        if is_look_alike(&name) {
            return Err(Wrong::LookAlike);
        }
        if !name.contains('.') {
            return Err(Wrong::SingleLabel);
        }
        if registrable_domain(&name).is_none() {
            return Err(Wrong::PublicSuffix);
        }
        Ok(Self(name))
    }

    /// Reads a domain that the store has kept. It was checked when it was claimed; a newer list of
    /// public suffixes may contain it.
    #[must_use]
    pub fn stored(text: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = text.contains('.')
            && text.len() <= MAX_NAME
            && text
                .split('.')
                .all(|label| !label.is_empty() && label.bytes().all(plain));
        is_name.then(|| Self(text.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the TXT record that proves the domain.
    #[must_use]
    pub fn proof_name(&self) -> String {
        format!("{PROOF_LABEL}.{}", self.0)
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a label mixes scripts that no language mixes, or consists of letters that all look like
/// Latin ones while the name ends in Latin letters (UTS #39 §4 and §5.2).
fn is_look_alike(name: &str) -> bool {
    let ends_in_latin = name
        .rsplit('.')
        .next()
        .is_some_and(|last| !last.starts_with(ENCODED));
    let encoded = name.split('.').filter(|label| label.starts_with(ENCODED));
    encoded.into_iter().any(|label| {
        let (shown, read) = idna::domain_to_unicode(label);
        let letters: String = shown.chars().filter(|char| *char != '-').collect();
        let imitates = || skeleton(&letters).all(|char| char.is_ascii_alphanumeric());
        read.is_err()
            || !letters
                .as_str()
                .check_restriction_level(RestrictionLevel::HighlyRestrictive)
            || (ends_in_latin && imitates())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Result<String, DomainNameError> {
        DomainName::parse(text).map(|name| name.to_string())
    }

    #[test]
    fn a_domain_is_kept_as_dns_has_it() {
        for (text, name) in [
            ("game.example", "game.example"),
            ("Play.Game.EXAMPLE", "play.game.example"),
            ("game.example.", "game.example"),
            ("münchen.example", "xn--mnchen-3ya.example"),
            ("MÜNCHEN.example", "xn--mnchen-3ya.example"),
            ("xn--mnchen-3ya.example", "xn--mnchen-3ya.example"),
            ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
            ("игра.example", "xn--80afo7a.example"),
            ("game.localhost", "game.localhost"),
            ("my-game.github.io", "my-game.github.io"),
            ("1.game.example", "1.game.example"),
        ] {
            assert_eq!(kept(text), Ok(name.to_owned()), "{text}");
            let stored = DomainName::stored(name);
            assert_eq!(stored.map(|name| name.to_string()).as_deref(), Some(name));
        }
        for text in [
            "game",
            "Game.example",
            "game.example.",
            "a..b",
            "a b.example",
        ] {
            assert_eq!(DomainName::stored(text), None, "{text}");
        }
        let name = DomainName::parse("game.example").unwrap();
        assert_eq!(name.proof_name(), "_platform.game.example");
    }

    #[test]
    fn what_is_no_domain_is_refused_with_what_to_do() {
        use DomainNameError as Wrong;
        let long = format!("{}.example", "a.".repeat(130));
        let label = format!("{}.example", "a".repeat(64));
        for (text, expected) in [
            ("", Wrong::Form),
            (".", Wrong::Form),
            ("game..example", Wrong::Form),
            ("game.example..", Wrong::Form),
            (".game.example", Wrong::Form),
            ("-game.example", Wrong::Form),
            ("my_game.example", Wrong::Form),
            ("_platform.game.example", Wrong::Form),
            ("a b.example", Wrong::Form),
            ("game.exa\nmple", Wrong::Form),
            ("xn--.example", Wrong::Form),
            ("xn--zzzzzzzz.example", Wrong::Form),
            (&long, Wrong::Form),
            (&label, Wrong::Form),
            ("https://game.example", Wrong::MoreThanName),
            ("game.example/", Wrong::MoreThanName),
            ("game.example:443", Wrong::MoreThanName),
            ("me@game.example", Wrong::MoreThanName),
            ("*.game.example", Wrong::Wildcard),
            ("*", Wrong::Wildcard),
            ("192.0.2.1", Wrong::Address),
            ("0x7f.1", Wrong::Address),
            ("１92.0.2.1", Wrong::Address),
            ("::1", Wrong::Address),
            ("[2001:db8::1]", Wrong::Address),
            ("localhost", Wrong::SingleLabel),
            ("com", Wrong::SingleLabel),
            ("co.uk", Wrong::PublicSuffix),
            ("github.io", Wrong::PublicSuffix),
            ("xn--55qx5d.cn", Wrong::PublicSuffix),
        ] {
            assert_eq!(kept(text), Err(expected), "{text}");
            assert!(expected.to_string().ends_with('.'));
        }
        let longest = format!("{}{}.example", "a.".repeat(117), "b".repeat(10));
        assert_eq!(kept(&longest), Err(Wrong::Length), "{}", longest.len());
        assert_eq!(kept(&"a".repeat(MAX_TEXT + 1)), Err(Wrong::Length));
    }

    #[test]
    fn a_name_that_imitates_another_is_refused() {
        for text in [
            // A Cyrillic а among Latin letters, and a name of Cyrillic letters alone that looks Latin.
            "p\u{430}ypal.example",
            "xn--pypal-4ve.example",
            "\u{430}\u{440}\u{440}\u{4cf}\u{435}.com",
            "xn--80ak6aa92e.com",
            // A Greek omicron, and a dotless i.
            "g\u{3bf}ogle.example",
            "\u{131}stanbul.example",
        ] {
            assert_eq!(kept(text), Err(DomainNameError::LookAlike), "{text}");
        }
    }
}
