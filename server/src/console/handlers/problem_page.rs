//! `GET {auth_url}/problems/<slug>`: the page to which a problem's `type` refers, with an
//! explanation for players and a note for developers.

use std::sync::Arc;

use askama::Template;
use axum::extract::{RawPathParams, State};
use axum::http::StatusCode;
use axum::response::Response;
use platform_protocol::problem::ProblemCode;

use crate::console::ConsoleState;
use crate::web::api_error::ApiError;
use crate::web::navigation::sign_in;
use crate::web::page::{self, Layout};

#[derive(Template)]
#[template(path = "problem.html")]
struct Page {
    frame: Layout,
    slug: &'static str,
    status: u16,
    title: &'static str,
    detail: &'static str,
    why: &'static str,
    next: &'static str,
    developers: &'static str,
    sign_in: Option<String>,
}

/// Returns the page of a problem.
///
/// # Errors
/// `not-found` for an unknown slug.
pub async fn handle(
    State(state): State<Arc<ConsoleState>>,
    path: RawPathParams,
) -> Result<Response, ApiError> {
    let named = path
        .iter()
        .find_map(|(name, value)| (name == "slug").then_some(value));
    let named = named.unwrap_or_default();
    let frame = Layout::new(&state.platform.origin);
    if let Some(problem) = OF_RUNTIME.iter().find(|known| known.slug == named) {
        return Ok(page::render(StatusCode::OK, &problem.page(frame)));
    }
    let slug = ProblemCode::from_slug(named).ok_or(ProblemCode::NotFound)?;
    let Explanation {
        why,
        next,
        developers,
    } = explain(slug);
    let page = Page {
        frame,
        slug: slug.as_str(),
        status: slug.status(),
        title: slug.title(),
        detail: slug.default_detail(),
        why,
        next,
        developers,
        sign_in: sign_in(slug, &state.platform.auth_url),
    };
    Ok(page::render(StatusCode::OK, &page))
}

/// A problem that the runtime finds in the page, without an answer of the platform: its status is 0.
struct OfRuntime {
    slug: &'static str,
    title: &'static str,
    detail: &'static str,
    explanation: Explanation,
}

/// Those problems, as the runtime names them (`loader/js/loader.js`, `runtime-wasm/src/web/page.js`).
const OF_RUNTIME: [OfRuntime; 2] = [
    OfRuntime {
        slug: "runtime-unavailable",
        title: "Runtime unavailable",
        detail: "The game cannot connect to its platform in this browser.",
        explanation: because(
            "The game's page, or the browser, does not allow WebAssembly, in which the platform's runtime is written.",
            "Try another browser, or switch off what limits this one for the game's address, such as a lockdown mode.",
            "A Content-Security-Policy must allow 'wasm-unsafe-eval' in script-src; the console has the browser's own message.",
        ),
    },
    OfRuntime {
        slug: "unsupported-context",
        title: "Unsupported context",
        detail: "The game cannot know its player on this page.",
        explanation: because(
            "The page that shows the game gave it no address of its own, or it was opened as a file.",
            "Open the game at its own address on this platform.",
            "The page's origin is opaque: it is in a frame with sandbox and without allow-same-origin, or its address begins with file: or data:. Add allow-same-origin, or serve the page.",
        ),
    },
];

impl OfRuntime {
    const fn page(&self, frame: Layout) -> Page {
        let Explanation {
            why,
            next,
            developers,
        } = self.explanation;
        Page {
            frame,
            slug: self.slug,
            status: 0,
            title: self.title,
            detail: self.detail,
            why,
            next,
            developers,
            sign_in: None,
        }
    }
}

/// The explanation of a problem, in addition to its sentence.
#[derive(Clone, Copy)]
struct Explanation {
    why: &'static str,
    next: &'static str,
    developers: &'static str,
}

const fn because(why: &'static str, next: &'static str, developers: &'static str) -> Explanation {
    Explanation {
        why,
        next,
        developers,
    }
}

const fn explain(slug: ProblemCode) -> Explanation {
    match slug {
        ProblemCode::SessionExpired
        | ProblemCode::GuestLimitReached
        | ProblemCode::AccountSuspended
        | ProblemCode::NotSignedIn
        | ProblemCode::NotAllowed
        | ProblemCode::StepUpRequired
        | ProblemCode::InvalidUsername
        | ProblemCode::UsernameTaken => of_players(slug),
        ProblemCode::UnknownOrigin
        | ProblemCode::UnknownHost
        | ProblemCode::NotFound
        | ProblemCode::InvalidRedirect
        | ProblemCode::SlugTaken
        | ProblemCode::DomainTaken
        | ProblemCode::InvalidDomain
        | ProblemCode::NotDeployed
        | ProblemCode::ProjectDisabled
        | ProblemCode::QuotaExceeded
        | ProblemCode::DeploymentInvalid => of_games(slug),
        _ => of_requests(slug),
    }
}

/// Problems about the player's identity.
const fn of_players(slug: ProblemCode) -> Explanation {
    match slug {
        ProblemCode::SessionExpired => because(
            "Your sign-in has ended: you signed out in another place, or did not visit for a very long time.",
            "Sign in again. You come back to the same player with the same progress.",
            "Navigate to platform.loginUrl() with a full page load. The runtime requests no further token until the page is loaded again.",
        ),
        ProblemCode::GuestLimitReached => because(
            "Many people who are not signed in play from the same network as you, such as a school's or a mobile carrier's.",
            "Sign in to play at once, or come back later.",
            "Navigate to platform.loginUrl(). Existing players are never refused.",
        ),
        ProblemCode::AccountSuspended => because(
            "The platform's operators have suspended the account.",
            "Write to the platform's operators if you think that this is a mistake.",
            "Show the problem's detail to the player. Do not retry, and do not send the player to the sign-in page.",
        ),
        ProblemCode::NotSignedIn => because(
            "What you wanted to do belongs to a player, and the request did not say which one.",
            "Sign in and try again.",
            "Send a game token as Authorization: Bearer. platform.fetch() does so by itself.",
        ),
        ProblemCode::StepUpRequired => because(
            "This is administration, which needs a sign-in in a browser within the last 15 minutes: a session that somebody left open, or a device that signed in once, is not enough.",
            "Sign in again. You come back to where you were.",
            "Lead the person to /login on the auth service with again=1 and a redirect back here. A device's token never allows administration, however new it is.",
        ),
        ProblemCode::NotAllowed => because(
            "Only others may do this, such as the game's owner; or the form was too old, or was sent from another page.",
            "Go back, reload the page and try again, or sign in with an account that is allowed to do this.",
            "Check the owner of the project and the audience of the token. A form needs the cookie of the browser that loaded it, and cookies must be allowed.",
        ),
        ProblemCode::InvalidUsername => because(
            "The name is too short, too long, or has a character that names cannot have.",
            "Choose a name of 3 to 24 letters, digits, underscores or hyphens.",
            "Names are normalised (NFKC) before they are checked, and must have letters of one script.",
        ),
        _ => because(
            "Names are unique. Capitals make no difference, and names that look alike, such as those with 0 and O, count as one.",
            "Choose another name.",
            "Key a player's data on sub, never on the username, which can change.",
        ),
    }
}

/// Problems about games and their addresses.
const fn of_games(slug: ProblemCode) -> Explanation {
    match slug {
        ProblemCode::UnknownOrigin => because(
            "A page asked who you are. The platform does not know that page, and told it nothing.",
            "Open the game from its own address on this platform.",
            "The Origin header must be exactly a deployed game's address: scheme, host and port. Frames with an opaque origin have none.",
        ),
        ProblemCode::UnknownHost => because(
            "The address may be misspelled, or the game has moved or was never there.",
            "Check the address, or look for the game on the platform's start page.",
            "Games have the hosts <slug> and dev-<slug> under the platform's own host, with its port. A host with a dot at its end is a different host.",
        ),
        ProblemCode::NotFound => because(
            "The address may be misspelled, or what was here is gone.",
            "Go back to the start page of the game.",
            "Files are served exactly as deployed, and /__platform/ is reserved for the platform.",
        ),
        ProblemCode::InvalidRedirect => because(
            "The link said where to return to, and that place is not part of this platform.",
            "Go back to the game and try again from there.",
            "redirect must be an absolute http or https address whose origin is a game of this platform or its console.",
        ),
        ProblemCode::SlugTaken => because(
            "Every game has its own name, which is part of its address.",
            "Choose another name.",
            "Slugs are unique across the platform and are never reused.",
        ),
        ProblemCode::DomainTaken => because(
            "A domain leads to one game at a time: to that of the project that proved it first.",
            "Choose another domain, or have it removed where it is in use.",
            "If the domain is yours, change its DNS records: a domain whose records do not lead to its game any more is free after 72 hours.",
        ),
        ProblemCode::InvalidDomain => because(
            "The domain of a game is a name of its owner's own, such as play.my-game.example.",
            "Write the name alone, without https:// and a path.",
            "The detail says what is wrong. Names of the platform, IP addresses, wildcards, public suffixes, and names that imitate others are refused.",
        ),
        ProblemCode::NotDeployed => because(
            "The game exists, but nobody has uploaded it here yet.",
            "Come back later.",
            "Deploy to this environment first.",
        ),
        ProblemCode::ProjectDisabled => because(
            "The game's maker, or the platform's operators, took it down.",
            "There is nothing that you could do. Your player is not lost: other games still know you, and so will this one if it comes back.",
            "The project page says who took it down, when and why, and whether you can enable it again. `platform projects enable` and `platform projects restore` do the same.",
        ),
        ProblemCode::QuotaExceeded => because(
            "The storage of a project, and of all projects of one person, is limited.",
            "If you are playing, there is nothing to do: the game stays as it was.",
            "The detail says which limit it is and how much is taken. Earlier deployments are removed automatically. To free more, delete a project, or ask the platform's operator for a larger limit (a PLATFORM_ setting).",
        ),
        _ => because(
            "Something in the uploaded files cannot be served safely.",
            "If you are playing, there is nothing to do: the game stays as it was.",
            "The detail names the file. Paths must be relative, without .. and outside __platform/.",
        ),
    }
}

/// Problems about a request, and internal ones.
const fn of_requests(slug: ProblemCode) -> Explanation {
    match slug {
        ProblemCode::PayloadTooLarge => because(
            "More was sent than this address accepts.",
            "Try something smaller.",
            "Limits are in the documentation of each endpoint.",
        ),
        ProblemCode::UnsupportedMediaType => because(
            "This address does not accept this type of content.",
            "Tell the game's author.",
            "Check the Content-Type of the request.",
        ),
        ProblemCode::MethodNotAllowed => because(
            "The address is right, but it does not accept this kind of request.",
            "Go back to the game and try again.",
            "The Allow header lists the accepted methods.",
        ),
        ProblemCode::TooManyRequests => because(
            "More requests came in a short time than are allowed.",
            "Wait a moment and try again.",
            "Retry-After says how many seconds to wait.",
        ),
        ProblemCode::BackendUnreachable => because(
            "The game's own server is not running, or could not be reached.",
            "Wait a moment and try again. The rest of the game may go on working.",
            "The platform could not connect to the backend that is set for this environment, or the connection was lost.",
        ),
        ProblemCode::BackendTimeout => because(
            "The game's own server is too slow at the moment.",
            "Wait a moment and try again.",
            "The setting PLATFORM_BACKEND_TIMEOUT_SECONDS says how long a backend has to begin its answer.",
        ),
        ProblemCode::Unavailable => because(
            "The platform is busy, starting, or under maintenance.",
            "Wait a moment and try again. Nothing of yours is lost.",
            "Nothing was written. The request can be sent again.",
        ),
        ProblemCode::Internal => because(
            "This is an error of the platform, and it was logged.",
            "Try again. If it happens again, tell the platform's operator the request id.",
            "The cause is in the server's log under the request id.",
        ),
        _ => because(
            "Something that the request needs is missing, duplicated or malformed.",
            "Go back to the game and try again. If it happens again, clear the cookies of this site.",
            "The problem's detail says which part. A request names one host and carries one session cookie.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_problem_is_explained_in_the_words_of_another() {
        let words: HashSet<_> = ProblemCode::ALL
            .iter()
            .map(|slug| explain(*slug).why)
            .chain(OF_RUNTIME.map(|problem| problem.explanation.why))
            .collect();
        assert_eq!(words.len(), ProblemCode::ALL.len() + OF_RUNTIME.len());
    }
}
