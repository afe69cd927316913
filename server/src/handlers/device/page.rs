//! `GET {auth_url}/device` and `POST` to it: a person types the code that a
//! device shows, sees what asks, and decides (RFC 8628 §3.3).
//!
//! Whoever has talked somebody into typing a code has their account
//! (RFC 8628 §5.4). So nothing happens by opening an address, the page says
//! what asks and from where, and the form names the account that it was shown
//! to.

use askama::Template;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use platform_protocol::paths;
use platform_protocol::problem::Slug;

use crate::clock::Millis;
use crate::domain::device::{Decided, UserCode, client_name};
use crate::domain::session::Session;
use crate::handlers::sign_in::see_other;
use crate::handlers::token::suspended;
use crate::handlers::visitor::Visitor;
use crate::handlers::way_back::page_path;
use crate::http::client_address::Network;
use crate::http::context::Context;
use crate::http::csrf::{self, BrowserSecret};
use crate::http::form::Form;
use crate::http::limiter::too_many_requests;
use crate::http::page::{self, FormTarget, Frame};
use crate::http::redirect::{DEVICE_PAGE, ReturnAddress, USER_CODE};
use crate::http::refusal::Refusal;
use crate::state::AppState;

/// What a code that no device shows is answered with.
const NO_SUCH_CODE: &str = "No device waits with this code. It may be mistyped, used already, or \
                            older than 15 minutes: look at your device, or begin there again.";
/// What anything else is answered with.
const NO_CODE: &str =
    "A code has eight letters, such as BCDF-GHJK, with no vowel, no Y and no digit.";
/// Characters of what somebody typed that are shown again.
const SHOWN: usize = 32;

const ACTION: &str = "action";
const APPROVE: &str = "approve";
const DENY: &str = "deny";
/// The parameter that says what was decided just before.
const DONE: &str = "done";
/// The field that names the account that a form was shown to.
const ACCOUNT: &str = "account";

#[derive(Template)]
#[template(path = "device.html")]
struct Page {
    frame: Frame,
    csrf: String,
    username: String,
    account: String,
    profile: String,
    step: Step,
}

enum Step {
    /// The code is typed.
    Enter {
        typed: String,
        error: Option<&'static str>,
    },
    /// What asks is shown.
    Decide(Asking),
    Approved,
    Denied,
}

/// A device that asks to be signed in.
struct Asking {
    code: UserCode,
    client: String,
    network: String,
    begun: String,
    /// Whether it is in another network than the browser.
    elsewhere: bool,
}

impl Step {
    /// The status of the page that shows it.
    fn status(&self) -> StatusCode {
        match self {
            Self::Enter {
                error: Some(error), ..
            } if *error == NO_SUCH_CODE => StatusCode::NOT_FOUND,
            Self::Enter { error: Some(_), .. } => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        }
    }
}

/// Answers `GET /device`.
///
/// # Errors
/// `account-suspended`, `invalid-request`, `too-many-requests`; the store's.
pub async fn show(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
    context: Context,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let query = Form::of_query(query.as_deref());
    let typed = query.field(USER_CODE)?;
    let Some(session) = account(&state, &headers).await? else {
        return to_sign_in(&state, typed);
    };
    let step = match (query.field(DONE)?, typed) {
        (Some(APPROVE), _) => Step::Approved,
        (Some(DENY), _) => Step::Denied,
        (_, Some(typed)) => look_up(&state, &session, &context, typed).await?,
        (_, None) => Step::Enter {
            typed: String::new(),
            error: None,
        },
    };
    let secure = state.origin.is_secure();
    let (secret, set_cookie) = BrowserSecret::of_browser(&headers, secure, &*state.entropy);
    let mut response = render(&state, session, &secret, step);
    if let Some(cookie) = set_cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Answers `POST /device`.
///
/// # Errors
/// `not-allowed` for a form that is not ours, `account-suspended`,
/// `invalid-request`, `too-many-requests`; the store's. A code that does not
/// count is no error of this kind: its answer is the page with what was typed.
pub async fn decide(
    State(state): State<AppState>,
    context: Context,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let form = Form::read(&headers, body).await?;
    let token = form.field(csrf::FIELD)?;
    let secure = state.origin.is_secure();
    let secret = csrf::check_form(&headers, secure, &state.auth_url, token)?;
    let typed = form.field(USER_CODE)?.unwrap_or_default();
    let Some(session) = account(&state, &headers).await? else {
        return to_sign_in(&state, Some(typed));
    };
    let Some(code) = UserCode::parse(typed) else {
        let step = look_up(&state, &session, &context, typed).await?;
        return Ok(render(&state, session, &secret, step));
    };
    let action = match form.field(ACTION)? {
        None => return see_other(ReturnAddress::device(&state, Some(&code)).as_str()),
        Some(APPROVE) => APPROVE,
        Some(DENY) => DENY,
        Some(_) => return Err(Slug::InvalidRequest.into()),
    };
    // Somebody else has signed in with this browser since the page was shown:
    // nobody decides for an account that they did not see.
    if form.field(ACCOUNT)? != Some(session.player.id.to_string().as_str()) {
        return see_other(ReturnAddress::device(&state, Some(&code)).as_str());
    }
    count_code(&state, &session, &context)?;
    let (player, now) = (session.player.id, state.clock.now());
    let decided = state
        .store
        .decide_device_authorization(&code, player, action == APPROVE, now);
    match decided.await? {
        // By itself a reload then repeats nothing (RFC 9110 §15.4.4).
        Decided::Done => see_other(&format!("{}{DEVICE_PAGE}?{DONE}={action}", state.auth_url)),
        Decided::Suspended { reason } => Err(suspended(reason)),
        Decided::Guest => to_sign_in(&state, Some(typed)),
        Decided::Unknown => {
            let step = refused(typed, NO_SUCH_CODE);
            Ok(render(&state, session, &secret, step))
        }
    }
}

/// The session of a visitor who has an account: a guest has nothing yet that a
/// device could be signed in to.
async fn account(state: &AppState, headers: &HeaderMap) -> Result<Option<Session>, Refusal> {
    match Visitor::of(state, headers).await? {
        Visitor::Unknown | Visitor::Ended | Visitor::Guest(_) => Ok(None),
        Visitor::Account(session) => Ok(Some(session)),
        Visitor::Suspended { reason } => Err(suspended(reason)),
    }
}

/// To the sign-in page, which leads back here with the code.
fn to_sign_in(state: &AppState, typed: Option<&str>) -> Result<Response, Refusal> {
    let code = typed.and_then(UserCode::parse);
    let address = ReturnAddress::device(state, code.as_ref());
    see_other(&page_path(paths::LOGIN, &address, &[]))
}

fn count_code(state: &AppState, session: &Session, context: &Context) -> Result<(), Refusal> {
    let network = Network::of(context.client);
    state
        .device_limits
        .look_at_code(&session.player.id, &network)
        .map_err(too_many_requests)
}

/// What stands behind a code.
async fn look_up(
    state: &AppState,
    session: &Session,
    context: &Context,
    typed: &str,
) -> Result<Step, Refusal> {
    let Some(code) = UserCode::parse(typed) else {
        return Ok(refused(typed, NO_CODE));
    };
    count_code(state, session, context)?;
    let now = state.clock.now();
    let found = state.store.find_device_authorization(&code, now).await?;
    let Some(found) = found else {
        return Ok(refused(typed, NO_SUCH_CODE));
    };
    Ok(Step::Decide(Asking {
        code,
        client: client_name(&found.client).to_owned(),
        elsewhere: found.network != Network::of(context.client).to_string(),
        network: found.network,
        begun: ago(now - found.started_at),
    }))
}

fn refused(typed: &str, error: &'static str) -> Step {
    let visible = typed.chars().filter(|char| !char.is_control());
    Step::Enter {
        typed: visible.take(SHOWN).collect(),
        error: Some(error),
    }
}

fn render(state: &AppState, session: Session, secret: &BrowserSecret, step: Step) -> Response {
    let address = ReturnAddress::console(state);
    let status = step.status();
    let page = Page {
        frame: Frame::new(&state.origin),
        csrf: secret.form_token(),
        account: session.player.id.to_string(),
        username: session.player.username,
        profile: page_path(paths::PROFILE, &address, &[]),
        step,
    };
    page::render_form(status, &page, FormTarget::Own)
}

/// How long ago something was, in words.
fn ago(passed: Millis) -> String {
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
        let Step::Enter { typed, .. } = refused(&format!("a\0{}", "b".repeat(99)), NO_CODE) else {
            panic!("the code is typed again");
        };
        assert_eq!(typed, format!("a{}", "b".repeat(31)));
    }
}
