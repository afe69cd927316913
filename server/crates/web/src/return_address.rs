//! Reading return addresses: the parameter `redirect` of the auth service's pages.
//!
//! Open redirects exist where two parsers disagree. So an address must be plain before it is parsed,
//! its parsed origin must be exactly one of this platform's, and only the output of our parser is ever
//! sent to a browser.

use platform_domain::device::UserCode;
use url::Url;

use crate::seal::may_be_seal;

/// The path of the page that signs in a device.
pub const DEVICE_PAGE: &str = "/device";
/// The name of its parameter for the code (RFC 8628 §3.3.1).
pub const USER_CODE: &str = "user_code";
/// The parameter that makes the code accepted: a seal of this browser
/// ([`Sealed`](crate::seal::Sealed)).
pub const PROOF: &str = "proof";

/// The maximum number of bytes of an address, both as given and as written by our parser.
pub const MAX_BYTES: usize = 2_048;

/// Returns the address of the page that signs in a device; if given, with a code and the seal that the
/// page requires to accept it.
#[must_use]
pub fn device_address(auth_url: &str, code: Option<&UserCode>, proof: Option<&str>) -> String {
    let mut address = format!("{auth_url}{DEVICE_PAGE}");
    if let Some(code) = code {
        address.push_str(&format!("?{USER_CODE}={code}"));
        if let Some(proof) = proof {
            address.push_str(&format!("&{PROOF}={proof}"));
        }
    }
    address
}

/// Returns the address of the page that signs in a device, if `given` matches it exactly: only the
/// code and the characters of the seal are parsed, and nothing else of the text is used.
#[must_use]
pub fn device_page(auth_url: &str, given: &str) -> Option<String> {
    let query = given.split_once('?').map(|(_, query)| query);
    let mut values = query
        .unwrap_or_default()
        .split('&')
        .map(|pair| pair.split_once('=').map(|(_, value)| value));
    let code = values.next().flatten().and_then(UserCode::parse);
    let proof = values.next().flatten().filter(|proof| may_be_seal(proof));
    let page = device_address(auth_url, code.as_ref(), proof);
    (page == given).then_some(page)
}

/// Returns the address as our parser writes it, if its origin is `known` and no other parser could
/// have found another one.
#[must_use]
pub fn canonical(given: &str, known: impl Fn(&str) -> bool) -> Option<String> {
    if given.len() > MAX_BYTES || !is_plain(given) {
        return None;
    }
    let url = Url::parse(given).ok()?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none();
    if !plain || !known(&url.origin().ascii_serialization()) {
        return None;
    }
    // After the path, a backslash is a normal character, which our parser keeps; other parsers may
    // not.
    let url = String::from(url).replace('\\', "%5C");
    (url.len() <= MAX_BYTES).then_some(url)
}

/// Whether every parser finds the same host: the address has a scheme, two slashes, a host and port
/// of plain characters, and no backslash or white space that some parsers drop or turn into a
/// slash. Some parsers decode percent-encoding and map letters beyond ASCII (RFC 3986 §3.2.2,
/// unlike the URL Standard), so a host may not contain either.
fn is_plain(given: &str) -> bool {
    if given.chars().any(|char| char.is_control() || char == ' ') {
        return false;
    }
    let Some((scheme, rest)) = given.split_once("://") else {
        return false;
    };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = tail.split(['?', '#']).next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
        && !authority.is_empty()
        && authority
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':'))
        && !path.contains('\\')
}

#[cfg(test)]
mod tests;
