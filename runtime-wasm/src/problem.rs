//! The message of a `PlatformError` if the response explains nothing itself. `web/page.js` reads
//! responses with a Problem Details body (RFC 9457).

/// The page has no origin, so the auth service cannot tell which game it is:
/// the sentence and the type.
pub const UNSUPPORTED_CONTEXT: (&str, &str) = (
    "The game cannot know its player here: the page has no origin of its own, as in a sandboxed frame without allow-same-origin or in a file.",
    "unsupported-context",
);

/// A plain sentence for a response that explains nothing itself. Status 0 means that there was no
/// response.
#[must_use]
pub const fn sentence(status: u16) -> &'static str {
    match status {
        0 => "No answer arrived. Please check your connection and try again.",
        401 => "You are not signed in.",
        403 => "You are not allowed to do this.",
        404 => "This could not be found.",
        429 => "Too many requests. Please try again in a moment.",
        _ => "Something went wrong. Please try again.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_knows_an_ended_session_by_the_name_that_the_platform_gives_it() {
        let slug = platform_protocol::problem::ProblemCode::SessionExpired.as_str();
        let page = include_str!("web/page.js");
        assert!(page.contains(&format!("error.is(\"{slug}\")")));
    }

    #[test]
    fn every_status_has_a_sentence_for_the_player() {
        for status in [0, 400, 401, 403, 404, 418, 429, 500, 502, 999] {
            let sentence = sentence(status);
            assert!(sentence.ends_with('.'), "{status}: {sentence}");
        }
        assert_ne!(sentence(429), sentence(500));
    }
}
