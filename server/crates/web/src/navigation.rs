//! Whether a person opens an address in a browser, or a program requests it.

use axum::http::{HeaderMap, header};
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;

/// Whether a browser opens the address to show it: it accepts HTML, and says that it navigates
/// (Fetch Metadata), or, without that header, accepts HTML first.
#[must_use]
pub fn is_navigation(headers: &HeaderMap) -> bool {
    let accept = headers.get_all(header::ACCEPT);
    let mut kinds = accept
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .filter_map(|range| range.split(|byte| *byte == b';').next())
        .map(<[u8]>::trim_ascii);
    let is_html = |kind: &[u8]| kind.eq_ignore_ascii_case(b"text/html");
    match headers.get("sec-fetch-mode") {
        Some(mode) => mode == "navigate" && kinds.any(is_html),
        None => kinds.next().is_some_and(is_html),
    }
}

/// Returns the link to the sign-in page for problems that signing in solves.
#[must_use]
pub fn sign_in(slug: ProblemCode, auth_url: &str) -> Option<String> {
    matches!(
        slug,
        ProblemCode::SessionExpired | ProblemCode::GuestLimitReached
    )
    .then(|| format!("{auth_url}{}", paths::LOGIN))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_what_a_browser_opens_is_a_navigation() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for (accept, mode, expected) in [
            (browser, Some("navigate"), true),
            (browser, None, true),
            ("Text/HTML; charset=utf-8", None, true),
            ("application/xml, text/html", Some("navigate"), true),
            ("application/xml, text/html", None, false),
            (browser, Some("cors"), false),
            ("*/*", Some("navigate"), false),
            ("*/*", None, false),
            ("application/json", None, false),
            ("application/json, text/html", None, false),
            ("text/htmlx", None, false),
            ("", None, false),
        ] {
            let accept_value = HeaderValue::from_static(accept);
            let mut headers = HeaderMap::from_iter([(header::ACCEPT, accept_value)]);
            if let Some(mode) = mode {
                headers.insert("sec-fetch-mode", HeaderValue::from_static(mode));
            }
            assert_eq!(is_navigation(&headers), expected, "{accept} {mode:?}");
        }
        assert!(!is_navigation(&HeaderMap::new()));
    }
}
