//! What can go wrong, by its type.

use thiserror::Error;

/// What the platform or the game's backend said about an error (RFC 9457).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// One sentence that can be shown to the player.
    pub message: String,
    /// The HTTP status, or 0 if no response arrived.
    pub status: u16,
    /// The kind of problem, such as `https://auth.example/problems/session-expired`; empty if the
    /// response named none.
    pub kind: String,
    /// The id under which the request was logged; empty if there is none.
    pub request_id: String,
}

impl Problem {
    /// Returns the name of its kind: what follows the last `/`, `#` or `:`.
    #[must_use]
    pub fn slug(&self) -> &str {
        let mut parts = self.kind.rsplit(['/', '#', ':']);
        parts.next().unwrap_or_default()
    }
}

/// Why a call failed. Each has a [`message`](PlatformError::message) for the player.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlatformError {
    /// The session of the player's account has ended: call [`log_in`](crate::log_in).
    #[error("{}", .0.message)]
    SessionExpired(Problem),
    /// Too many guests play from the player's network; who signs in can play:
    /// [`log_in`](crate::log_in).
    #[error("{}", .0.message)]
    GuestLimitReached(Problem),
    /// The account is suspended: show the message.
    #[error("{}", .0.message)]
    AccountSuspended(Problem),
    /// The game was taken down: show the message.
    #[error("{}", .0.message)]
    ProjectDisabled(Problem),
    /// Nothing arrived, most likely because of the player's network.
    #[error("{}", .0.message)]
    NoAnswer(Problem),
    /// There were too many requests: later there may be fewer.
    #[error("{}", .0.message)]
    TooManyRequests(Problem),
    /// The platform or the game's backend cannot answer at the moment.
    #[error("{}", .0.message)]
    Unavailable(Problem),
    /// The page or the browser forbids the runtime: its console says what to allow.
    #[error("{}", .0.message)]
    RuntimeUnavailable(Problem),
    /// The page has no origin of its own, as in a sandboxed frame.
    #[error("{}", .0.message)]
    UnsupportedContext(Problem),
    /// The backend refused the call, with any other problem: see its status and kind.
    #[error("{}", .0.message)]
    Refused(Problem),
    /// The answer, or the value to send, has another form than its type in Rust.
    #[error("The answer was not understood: {0}")]
    NotUnderstood(String),
    /// The page does not load the runtime with its tag, or loads it after the game.
    #[error("This page does not load the platform's runtime.")]
    NoRuntime,
    /// The call itself is wrong, such as an address of another site. Nothing was sent.
    #[error("{0}")]
    Misused(String),
}

impl PlatformError {
    /// The error that a problem is.
    #[must_use]
    pub fn of(problem: Problem) -> Self {
        match (problem.slug(), problem.status) {
            ("session-expired", _) => Self::SessionExpired(problem),
            ("guest-limit-reached", _) => Self::GuestLimitReached(problem),
            ("account-suspended", _) => Self::AccountSuspended(problem),
            ("project-disabled", _) => Self::ProjectDisabled(problem),
            ("runtime-unavailable", _) => Self::RuntimeUnavailable(problem),
            ("unsupported-context", _) => Self::UnsupportedContext(problem),
            (_, 0) => Self::NoAnswer(problem),
            (_, 429) => Self::TooManyRequests(problem),
            (_, 502..=504) => Self::Unavailable(problem),
            _ => Self::Refused(problem),
        }
    }

    /// What was said about it, unless the call did not get that far.
    #[must_use]
    pub const fn problem(&self) -> Option<&Problem> {
        match self {
            Self::SessionExpired(problem)
            | Self::GuestLimitReached(problem)
            | Self::AccountSuspended(problem)
            | Self::ProjectDisabled(problem)
            | Self::NoAnswer(problem)
            | Self::TooManyRequests(problem)
            | Self::Unavailable(problem)
            | Self::RuntimeUnavailable(problem)
            | Self::UnsupportedContext(problem)
            | Self::Refused(problem) => Some(problem),
            Self::NotUnderstood(_) | Self::NoRuntime | Self::Misused(_) => None,
        }
    }

    /// One sentence that can be shown to the player.
    #[must_use]
    pub fn message(&self) -> String {
        self.to_string()
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::NoAnswer(_) | Self::TooManyRequests(_) | Self::Unavailable(_)
        )
    }

    /// Whether the player can go on after signing in.
    #[must_use]
    pub const fn asks_for_login(&self) -> bool {
        matches!(self, Self::SessionExpired(_) | Self::GuestLimitReached(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: &str, status: u16) -> PlatformError {
        PlatformError::of(Problem {
            message: "Something.".into(),
            status,
            kind: kind.into(),
            request_id: String::new(),
        })
    }

    #[test]
    fn an_error_is_told_by_its_type_and_then_by_its_status() {
        let auth = "https://auth.example/problems/";
        for (kind, status, is) in [
            ("session-expired", 401, "SessionExpired"),
            ("guest-limit-reached", 403, "GuestLimitReached"),
            ("account-suspended", 403, "AccountSuspended"),
            ("project-disabled", 403, "ProjectDisabled"),
            ("runtime-unavailable", 0, "RuntimeUnavailable"),
            ("unsupported-context", 0, "UnsupportedContext"),
            ("backend-unreachable", 502, "Unavailable"),
            ("unavailable", 503, "Unavailable"),
            ("not-allowed", 403, "Refused"),
        ] {
            for kind in [format!("{auth}{kind}"), kind.to_owned()] {
                let shown = format!("{:?}", error(&kind, status));
                assert!(shown.starts_with(&format!("{is}(")), "{kind}: {shown}");
            }
        }
        assert!(matches!(error("", 0), PlatformError::NoAnswer(_)));
        assert!(matches!(error("", 429), PlatformError::TooManyRequests(_)));
        assert!(
            matches!(error("urn:mine:full", 409), PlatformError::Refused(problem) if problem.slug() == "full")
        );
    }

    #[test]
    fn only_what_may_pass_is_temporary() {
        for (error, temporary) in [
            (error("", 0), true),
            (error("", 429), true),
            (error("", 503), true),
            (error("session-expired", 401), false),
            (error("", 500), false),
            (PlatformError::NoRuntime, false),
        ] {
            assert_eq!(error.is_temporary(), temporary, "{error:?}");
            assert!(!error.message().is_empty());
        }
        assert!(error("guest-limit-reached", 403).asks_for_login());
        assert!(!error("account-suspended", 403).asks_for_login());
    }
}
