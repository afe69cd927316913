//! The parameters with which a browser returns from a provider (OpenID Connect Core 1.0 §3.1.2.5).

use platform_web::form::Form;

/// The maximum number of bytes of a `state`: ours have 43.
pub const MAX_STATE_BYTES: usize = 128;
/// The maximum number of bytes of a code: some providers put a whole token into it.
pub const MAX_CODE_BYTES: usize = 8 * 1_024;
/// The maximum number of bytes of an issuer and of an error code.
pub const MAX_SHORT_BYTES: usize = 1_024;

/// The parameters with which the browser returned.
#[derive(Clone, Copy, Debug)]
pub struct Returned<'a> {
    /// The `state`; empty if there is none that could be ours.
    pub state: &'a str,
    /// The issuer that the response names (RFC 9207).
    pub issuer: Option<&'a str>,
    /// What the provider says.
    pub outcome: Outcome<'a>,
}

/// What a provider says.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// The authorization code.
    Code(&'a str),
    /// An error code (RFC 6749 §4.1.2.1).
    Error(&'a str),
}

impl<'a> Returned<'a> {
    /// Returns `None` if this is not a valid response of a provider: a parameter is repeated (RFC
    /// 6749 §3.1) or too long, or there is neither code nor error.
    #[must_use]
    pub fn read(query: &'a Form) -> Option<Self> {
        let field = |name, most| match query.field(name) {
            Ok(Some(text)) if text.len() > most => Err(()),
            Ok(text) => Ok(text),
            Err(_) => Err(()),
        };
        let code = field("code", MAX_CODE_BYTES).ok()?;
        let error = field("error", MAX_SHORT_BYTES).ok()?;
        // A value that we cannot have issued is treated like a missing one, which is treated like
        // an unknown one.
        let state = query.field("state").ok()?.unwrap_or_default();
        let state = if state.len() > MAX_STATE_BYTES {
            ""
        } else {
            state
        };
        let outcome = match (code, error) {
            (Some(code), None) if !code.is_empty() => Outcome::Code(code),
            (None, Some(error)) => Outcome::Error(error),
            _ => return None,
        };
        Some(Self {
            state,
            issuer: field("iss", MAX_SHORT_BYTES).ok()?,
            outcome,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_provider_may_answer_is_read() {
        let read = |query: &str| {
            let form = Form::of_query(Some(query));
            Returned::read(&form).map(|returned| match returned.outcome {
                Outcome::Code(code) => format!("{}: code {code}", returned.state),
                Outcome::Error(error) => format!("{}: error {error}", returned.state),
            })
        };
        assert_eq!(read("code=c&state=s").as_deref(), Some("s: code c"));
        assert_eq!(read("error=e&state=s&x=1").as_deref(), Some("s: error e"));
        assert_eq!(read("code=c").as_deref(), Some(": code c"));
        let long_state = format!("code=c&state={}", "s".repeat(MAX_STATE_BYTES + 1));
        assert_eq!(read(&long_state).as_deref(), Some(": code c"));
        let long_code = format!("state=s&code={}", "c".repeat(MAX_CODE_BYTES + 1));
        for bad in [
            "",
            "state=s",
            "code=&state=s",
            "code=c&error=e&state=s",
            "code=c&code=c&state=s",
            "code=c&state=s&state=s",
            "error=e&error=e&state=s",
            "code=c&state=s&iss=a&iss=a",
            &long_code,
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
