//! The states of the page for devices: the field for a code, the question, or the decision.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use platform_protocol::paths;

use crate::auth::AuthState;
use crate::auth::handlers::return_link::page_path;
use crate::auth::redirect::ReturnAddress;
use crate::clock::Millis;
use crate::domain::device::UserCode;
use crate::domain::session::Session;
use crate::web::csrf::BrowserSecret;
use crate::web::page::{self, FormTarget, Layout};
use crate::web::seal::Sealed;

/// The message for a code that no device is waiting for.
pub(super) const NO_SUCH_CODE: &str = "No device is waiting with this code. It may be mistyped, \
                                       already used, or older than ten minutes. Check your device, \
                                       or start again there.";
/// The message for any other input.
pub(super) const NO_CODE: &str =
    "A code has eight letters, such as BCDF-GHJK, without vowels, Y or digits.";
/// The maximum number of characters of the input that are shown again.
const SHOWN_CHARS: usize = 32;

#[derive(Template)]
#[template(path = "device.html")]
struct Page {
    frame: Layout,
    csrf: String,
    /// The seal of the time at which the forms are shown.
    shown: String,
    username: String,
    account: String,
    profile: String,
    step: Step,
}

/// The state of the page.
pub(super) enum Step {
    /// The person types a code.
    Enter {
        /// The previous input.
        typed: String,
        /// The error in it.
        error: Option<&'static str>,
        /// Whether the address had a code that was not accepted.
        led: bool,
    },
    /// The page shows what asks for access.
    Decide(Asking),
    /// The person approved the device.
    Approved,
    /// The person denied the device.
    Denied,
}

/// A device that asks for access.
pub(super) struct Asking {
    /// The code that it shows.
    pub(super) code: UserCode,
    /// The name of the client.
    pub(super) client: String,
    /// The address from which it asked.
    pub(super) network: String,
    /// How long ago it asked, in words.
    pub(super) begun: String,
    /// Whether it is in another network than the browser.
    pub(super) elsewhere: bool,
    /// Whether a button was pressed before the page could be read.
    pub(super) hurried: bool,
}

impl Step {
    /// Returns the empty field for a code.
    pub(super) const fn enter(led: bool) -> Self {
        Self::Enter {
            typed: String::new(),
            error: None,
            led,
        }
    }

    /// Returns the field for a code with the input and its error.
    pub(super) fn refused(typed: &str, error: &'static str) -> Self {
        let visible = typed.chars().filter(|char| !char.is_control());
        Self::Enter {
            typed: visible.take(SHOWN_CHARS).collect(),
            error: Some(error),
            led: false,
        }
    }

    /// Returns the status of the page in this state.
    fn status(&self) -> StatusCode {
        match self {
            Self::Enter {
                error: Some(error), ..
            } if *error == NO_SUCH_CODE => StatusCode::NOT_FOUND,
            Self::Enter { error: Some(_), .. } => StatusCode::BAD_REQUEST,
            Self::Decide(asking) if asking.hurried => StatusCode::CONFLICT,
            _ => StatusCode::OK,
        }
    }

    /// Renders the page for the browser with this secret; `set_cookie` is set if the browser gets
    /// the secret now.
    pub(super) fn render(
        self,
        state: &AuthState,
        session: Session,
        secret: &BrowserSecret,
        set_cookie: Option<HeaderValue>,
    ) -> Response {
        let address = ReturnAddress::console(state);
        let status = self.status();
        let page = Page {
            frame: Layout::new(&state.platform.origin),
            csrf: secret.form_token(),
            shown: secret.seal(Sealed::Form, state.platform.clock.now()),
            account: session.player.id.to_string(),
            username: session.player.username,
            profile: page_path(paths::PROFILE, &address, &[]),
            step: self,
        };
        let mut response = page::render_form(status, &page, FormTarget::Own);
        if let Some(cookie) = set_cookie {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }
}

/// Returns how long ago something was, in words.
pub(super) fn ago(passed: Millis) -> String {
    match passed / 60_000 {
        ..=0 => "less than a minute ago".to_owned(),
        1 => "1 minute ago".to_owned(),
        minutes => format!("{minutes} minutes ago"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_is_told_in_minutes() {
        for (passed, words) in [
            (-1, "less than a minute ago"),
            (59_999, "less than a minute ago"),
            (60_000, "1 minute ago"),
            (899_999, "14 minutes ago"),
        ] {
            assert_eq!(ago(passed), words);
        }
    }

    #[test]
    fn what_was_typed_is_shown_in_part() {
        let refused = Step::refused(&format!("a\0{}", "b".repeat(99)), NO_CODE);
        let Step::Enter { typed, .. } = refused else {
            panic!("the code is typed again");
        };
        assert_eq!(typed, format!("a{}", "b".repeat(31)));
    }
}
