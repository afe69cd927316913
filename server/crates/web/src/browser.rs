//! Describes the browser of a request in a few words by which its owner recognises it, such as
//! "Firefox on Linux".
//!
//! A client can put anything into `User-Agent` (RFC 9110 §10.1.5), so nothing of it is stored: the
//! words are our own, and an unknown browser is not described.

use axum::http::{HeaderMap, header};

/// Substrings of `User-Agent` that identify browsers. Most browsers also claim to be others, so
/// names that others claim come last.
const BROWSERS: [(&str, &str); 12] = [
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Vivaldi/", "Vivaldi"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chromium/", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
];

/// Substrings that identify operating systems.
const SYSTEMS: [(&str, &str); 8] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("X11", "Linux"),
    ("Linux", "Linux"),
];

/// Returns a description of the browser that sends the request, or `None` if it is unknown.
#[must_use]
pub fn describe(headers: &HeaderMap) -> Option<String> {
    let agent = headers.get(header::USER_AGENT)?.to_str().ok()?;
    let find = |parts: &[(&str, &'static str)]| {
        let mut parts = parts.iter();
        let found = parts.find(|(part, _)| agent.contains(part));
        found.map(|(_, name)| *name)
    };
    let browser = find(&BROWSERS)?;
    Some(match find(&SYSTEMS) {
        Some(system) => format!("{browser} on {system}"),
        None => browser.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_told_by_what_they_say() {
        let described = |agent: &str| {
            let headers = HeaderMap::from_iter([(header::USER_AGENT, agent.parse().unwrap())]);
            describe(&headers)
        };
        let webkit = "AppleWebKit/537.36 (KHTML, like Gecko)";
        let chrome = format!(
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) {webkit} Chrome/142.0.0.0 Safari/537.36"
        );
        for (agent, words) in [
            (chrome.clone(), "Chrome on Windows"),
            (format!("{chrome} Edg/142.0.0.0"), "Edge on Windows"),
            (format!("{chrome} OPR/120.0.0.0"), "Opera on Windows"),
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0".to_owned(),
                "Firefox on Linux",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like \
                 Gecko) Version/18.5 Safari/605.1.15"
                    .to_owned(),
                "Safari on macOS",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, \
                 like Gecko) CriOS/142.0 Mobile/15E148 Safari/604.1"
                    .to_owned(),
                "Chrome on iPhone",
            ),
            (
                format!("Mozilla/5.0 (Linux; Android 15; SM-S938B) {webkit} SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36"),
                "Samsung Internet on Android",
            ),
            ("Mozilla/5.0 Firefox/145.0".to_owned(), "Firefox"),
        ] {
            assert_eq!(described(&agent).as_deref(), Some(words), "{agent}");
        }
        for nobody in ["", "curl/8.14.1", "<script>", "Mozilla/5.0"] {
            assert_eq!(described(nobody), None, "{nobody}");
        }
        assert_eq!(describe(&HeaderMap::new()), None);
    }
}
