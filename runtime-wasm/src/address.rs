//! Where a page may be sent. Origins are as a URL parser serialises them
//! (WHATWG URL §4.7), so scheme and host are in lower case and a default port
//! is left out.

/// Whether a page of `origin` is part of the platform whose own origin is
/// `platform`: the platform's origin itself, or a sub-domain of it with the
/// same scheme and port.
#[must_use]
pub fn is_on_platform(origin: &str, platform: &str) -> bool {
    // Bytes and not a substring search, which would weigh more than the rest.
    let Some(colon) = platform.bytes().position(|byte| byte == b':') else { return false };
    let Some((scheme, host)) = platform.split_at_checked(colon + "://".len()) else { return false };
    origin
        .strip_prefix(scheme)
        .and_then(|rest| rest.strip_suffix(host))
        .is_some_and(|sub_domain| sub_domain.is_empty() || sub_domain.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_platform_and_its_sub_domains_are_on_the_platform() {
        let platform = "https://play.example:8443";
        let cases = [
            ("https://play.example:8443", true),
            ("https://auth.play.example:8443", true),
            ("https://dev-demo.play.example:8443", true),
            ("http://play.example:8443", false),
            ("https://play.example", false),
            ("https://evilplay.example:8443", false),
            ("https://play.example:8443.evil.example", false),
            ("https://play.example.evil.example:8443", false),
            ("https://evil.example", false),
            ("null", false),
            ("", false),
        ];
        for (origin, expected) in cases {
            assert_eq!(is_on_platform(origin, platform), expected, "{origin}");
        }
    }
}
