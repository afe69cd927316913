//! Problem Details (RFC 9457) and the slugs that name each problem.

use serde::{Deserialize, Serialize};

/// The media type of a Problem Details body.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// A Problem Details body as the platform writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// `{auth_url}/problems/<slug>`: an address with a page that explains it.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// The same short phrase for every occurrence of this problem.
    pub title: String,
    /// The HTTP status, repeated.
    pub status: u16,
    /// One sentence that can be shown to a player.
    pub detail: String,
    /// The id under which the request was logged.
    pub request_id: String,
}

macro_rules! slugs {
    ($($(#[$doc:meta])* $variant:ident = $slug:literal, $status:literal, $title:literal, $detail:literal;)*) => {
        /// Which problem it is: the last segment of its `type`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ProblemCode {
            $($(#[$doc])* $variant,)*
        }

        impl ProblemCode {
            /// Every problem of the platform, in the order of the documentation.
            pub const ALL: &[ProblemCode] = &[$(ProblemCode::$variant,)*];

            /// The slug as it stands in `type`, such as `session-expired`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(ProblemCode::$variant => $slug,)* }
            }

            /// The HTTP status that goes with it.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(ProblemCode::$variant => $status,)* }
            }

            /// The short phrase for `title`.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(ProblemCode::$variant => $title,)* }
            }

            /// The sentence for `detail` if nothing more exact is known.
            #[must_use]
            pub const fn default_detail(self) -> &'static str {
                match self { $(ProblemCode::$variant => $detail,)* }
            }
        }
    };
}

slugs! {
    /// A real account's session ended; no replacement guest is made.
    SessionExpired = "session-expired", 401, "Session expired", "Your session has ended. Please sign in again.";
    /// The cap on guests that one network address holds at a time is reached.
    GuestLimitReached = "guest-limit-reached", 429, "Guest limit reached", "Too many guests are playing from your network. Please sign in to play.";
    /// The platform suspended this player's account.
    AccountSuspended = "account-suspended", 403, "Account suspended", "This account has been suspended.";
    /// A page that is no game of this platform requested a token.
    UnknownOrigin = "unknown-origin", 403, "Unknown origin", "This page does not belong to a game of this platform.";
    /// Nothing is served at this host name.
    UnknownHost = "unknown-host", 404, "Unknown host", "There is no game at this address.";
    /// Nothing is served at this path.
    NotFound = "not-found", 404, "Not found", "There is nothing at this address.";
    /// The call needs a signed-in player.
    NotSignedIn = "not-signed-in", 401, "Not signed in", "Please sign in first.";
    /// The caller may not do this.
    NotAllowed = "not-allowed", 403, "Not allowed", "You are not allowed to do this.";
    /// Administration needs a recent sign-in, in a browser.
    StepUpRequired = "step-up-required", 403, "Sign in again", "Please sign in again in your browser to do this.";
    /// The request cannot be understood.
    InvalidRequest = "invalid-request", 400, "Invalid request", "The request could not be understood.";
    /// The address to return to belongs to no known game.
    InvalidRedirect = "invalid-redirect", 400, "Invalid redirect", "The address to return to is not part of this platform.";
    /// The username breaks the rules for usernames.
    InvalidUsername = "invalid-username", 422, "Invalid username", "A username has 3 to 24 letters, digits, _ or -.";
    /// Another player has this username.
    UsernameTaken = "username-taken", 409, "Username taken", "This username is taken. Please choose another.";
    /// Another project has this slug.
    SlugTaken = "slug-taken", 409, "Slug taken", "This project name is taken. Please choose another.";
    /// The domain is in use, by the project itself or by another one.
    DomainTaken = "domain-taken", 409, "Domain taken", "This domain is in use for another game of this platform.";
    /// The name cannot be a domain of a project.
    InvalidDomain = "invalid-domain", 422, "Invalid domain", "This name cannot be the domain of a game.";
    /// The project or the account has reached a storage limit.
    QuotaExceeded = "quota-exceeded", 409, "Storage limit reached", "There is no storage left for this.";
    /// The project was disabled or deleted, or its owner is suspended.
    ProjectDisabled = "project-disabled", 403, "Not available", "This game is not available: it was taken down.";
    /// The environment has no deployment yet.
    NotDeployed = "not-deployed", 409, "Not deployed", "This game has not been deployed yet.";
    /// The uploaded archive is invalid.
    DeploymentInvalid = "deployment-invalid", 422, "Deployment invalid", "The uploaded files cannot be deployed.";
    /// The body is larger than the endpoint accepts.
    PayloadTooLarge = "payload-too-large", 413, "Payload too large", "The request is too large.";
    /// The endpoint does not accept the body's media type.
    UnsupportedMediaType = "unsupported-media-type", 415, "Unsupported media type", "The content type of the request is not supported.";
    /// The path exists, but not for this method.
    MethodNotAllowed = "method-not-allowed", 405, "Method not allowed", "This address does not accept this kind of request.";
    /// A rate limit was reached; `Retry-After` says when to try again.
    TooManyRequests = "too-many-requests", 429, "Too many requests", "Too many requests. Please try again in a moment.";
    /// The game's own backend could not be reached.
    BackendUnreachable = "backend-unreachable", 502, "Backend unreachable", "The game's server could not be reached. Please try again in a moment.";
    /// The game's own backend did not answer in time.
    BackendTimeout = "backend-timeout", 504, "Backend timeout", "The game's server took too long to answer. Please try again.";
    /// The platform cannot respond now.
    Unavailable = "unavailable", 503, "Unavailable", "The platform is not available right now. Please try again in a moment.";
    /// Something broke; the log has the cause under the request id.
    Internal = "internal", 500, "Internal error", "Something went wrong on our side. Please try again.";
}

impl ProblemCode {
    /// The problem with exactly this slug.
    #[must_use]
    pub fn from_slug(slug: &str) -> Option<ProblemCode> {
        ProblemCode::ALL
            .iter()
            .copied()
            .find(|known| known.as_str() == slug)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slug_is_unique_and_found_again() {
        for slug in ProblemCode::ALL {
            assert_eq!(ProblemCode::from_slug(slug.as_str()), Some(*slug));
            assert!((400..600).contains(&slug.status()));
        }
        assert_eq!(ProblemCode::ALL.len(), 28);
    }
}
