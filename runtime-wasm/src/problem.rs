//! What a failed answer becomes: the members of a `PlatformError`, from a
//! Problem Details body (RFC 9457) where there is a readable one.

/// The members of a `PlatformError` besides its status.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem<S> {
    /// A sentence that can be shown to the player.
    pub message: S,
    /// The body's `type` as received, or empty.
    pub type_uri: S,
    /// The id under which the request was logged, or empty.
    pub request_id: S,
}

/// The string members of a Problem Details body that a `PlatformError` takes
/// over. A member that is missing, empty or no string is `None`.
#[derive(Debug)]
pub struct Body<S> {
    /// The sentence for people.
    pub detail: Option<S>,
    /// Which problem it is.
    pub type_uri: Option<S>,
    /// Where the log has it.
    pub request_id: Option<S>,
}

impl<S> Default for Body<S> {
    fn default() -> Self {
        Self {
            detail: None,
            type_uri: None,
            request_id: None,
        }
    }
}

/// Reads a failed answer. `header` is the answer's `X-Request-Id`, which
/// counts where the body has none, and `sentence` is said where it says none.
/// `S` is a string, of Rust or of the page.
#[must_use]
pub fn read<S>(sentence: &str, body: Body<S>, header: Option<S>) -> Problem<S>
where
    S: for<'a> From<&'a str>,
{
    Problem {
        message: body.detail.unwrap_or_else(|| sentence.into()),
        type_uri: body.type_uri.unwrap_or_else(|| "".into()),
        request_id: body.request_id.or(header).unwrap_or_else(|| "".into()),
    }
}

/// The page has no origin, so the auth service cannot tell which game it is.
#[must_use]
pub fn unsupported_context<S: for<'a> From<&'a str>>() -> Problem<S> {
    Problem {
        message: "The game cannot know its player here: the page has no origin of its own, as in a sandboxed frame without allow-same-origin or in a file.".into(),
        type_uri: "unsupported-context".into(),
        request_id: "".into(),
    }
}

/// Said where a local dev server gives no test player's token and no reason.
pub const NO_TEST_TOKEN: &str = "The dev server gives no test players: it has to answer POST /__platform/token/user/<n> and /__platform/token/guest/<n> with what `platform test-token <n> --json` prints.";

/// A plain sentence for an answer that explains nothing itself. Status 0
/// stands for no answer at all.
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

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_problem_body_is_taken_over_as_received() {
        let body = Body {
            detail: some("Out of coins."),
            type_uri: some("https://game.example/problems/coins"),
            request_id: some("r1"),
        };
        let problem = read("Said.", body, some("r2"));
        assert_eq!(problem.message, "Out of coins.");
        assert_eq!(problem.type_uri, "https://game.example/problems/coins");
        assert_eq!(problem.request_id, "r1");
    }

    #[test]
    fn without_a_body_there_is_a_plain_sentence_and_the_header_s_request_id() {
        let problem = read(sentence(502), Body::<String>::default(), some("r2"));
        assert_eq!(problem.message, sentence(502));
        assert_eq!(problem.type_uri, "");
        assert_eq!(problem.request_id, "r2");
        assert_eq!(
            read(sentence(0), Body::<String>::default(), None).request_id,
            ""
        );
    }
}
