//! `GET {auth_url}/device` and `POST` to it: a person types the code that a device shows, sees what
//! asks for access, and decides (RFC 8628 §3.3).
//!
//! An attacker who persuades somebody to type a code gets access to their account (RFC 8628 §5.4),
//! and a game can navigate its player here between two clicks. So opening an address does nothing.
//! A code in an address is accepted only if the person opened the address themselves, or entered
//! the code in this browser before. The page shows what asks for access and from where, its form
//! names the account to which it was shown, and a click counts only after the page could be read.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;

use super::step::{Asking, NO_CODE, NO_SUCH_CODE, Step, ago};
use crate::auth::AuthState;
use crate::auth::handlers::page_visitor::Visitor;
use crate::auth::handlers::return_link::page_path;
use crate::auth::handlers::token::suspended;
use crate::auth::redirect::ReturnAddress;
use crate::clock::Millis;
use crate::domain::device::{CODE_MILLIS, Decided, UserCode, client_name};
use crate::domain::session::Session;
use crate::web::api_error::ApiError;
use crate::web::client_address::Network;
use crate::web::csrf::{self, BrowserSecret};
use crate::web::form::Form;
use crate::web::limiter::too_many_requests;
use crate::web::redirects::see_other;
use crate::web::request_context::Context;
use crate::web::return_address::{DEVICE_PAGE, PROOF, USER_CODE};
use crate::web::seal::{SHOWN, Sealed, opened_by_person};

const ACTION: &str = "action";
const APPROVE: &str = "approve";
const DENY: &str = "deny";
/// The parameter that says which decision was just made.
const DONE: &str = "done";
/// How long the address with this parameter is valid.
const DONE_MILLIS: Millis = 10 * 60 * 1_000;
/// The field that names the account to which a form was shown.
const ACCOUNT: &str = "account";

/// Responds to `GET /device`.
///
/// # Errors
/// `account-suspended`, `invalid-request`, `too-many-requests`; errors of the store.
pub async fn show(
    State(state): State<Arc<AuthState>>,
    RawQuery(query): RawQuery,
    context: Context,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let query = Form::of_query(query.as_deref());
    let secure = state.platform.origin.is_secure();
    let (secret, set_cookie) =
        BrowserSecret::of_browser(&headers, secure, &*state.platform.entropy);
    let given = Given::read(&state, &query, &headers, &secret)?;
    let Some(session) = account(&state, &headers).await? else {
        return to_sign_in(&state, &secret, given.own, set_cookie);
    };
    let step = match (given.decided, given.own) {
        (Some(APPROVE), _) => Step::Approved,
        (Some(_), _) => Step::Denied,
        (None, Some(typed)) => look_up(&state, &session, &context, typed).await?,
        (None, None) => Step::enter(given.led),
    };
    Ok(step.render(&state, session, &secret, set_cookie))
}

/// The accepted parts of an address.
struct Given<'a> {
    /// The code that the person provided themselves.
    own: Option<&'a str>,
    /// Whether there is a code that somebody else may have put there.
    led: bool,
    /// The decision that was just made in this browser.
    decided: Option<&'a str>,
}

impl<'a> Given<'a> {
    fn read(
        state: &AuthState,
        query: &'a Form,
        headers: &HeaderMap,
        secret: &BrowserSecret,
    ) -> Result<Self, ApiError> {
        let typed = query.field(USER_CODE)?;
        let proof = query.field(PROOF)?.unwrap_or_default();
        let now = state.platform.clock.now();
        let own = typed.filter(|typed| {
            let code = UserCode::parse(typed);
            let is_sealed = |code| secret.has_sealed(Sealed::Code(code), proof, CODE_MILLIS, now);
            opened_by_person(headers) || code.as_ref().is_some_and(is_sealed)
        });
        let decided = query.field(DONE)?.filter(|action| {
            matches!(*action, APPROVE | DENY)
                && secret.has_sealed(Sealed::Decision(action), proof, DONE_MILLIS, now)
        });
        Ok(Self {
            led: typed.is_some() && own.is_none(),
            own,
            decided,
        })
    }
}

/// Responds to `POST /device`.
///
/// # Errors
/// `not-allowed` for a form that is not ours, `account-suspended`, `invalid-request`,
/// `too-many-requests`; errors of the store. An invalid code and a click that came too early are no
/// such errors: the response is the page again.
pub async fn decide(
    State(state): State<Arc<AuthState>>,
    context: Context,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = Form::read(&headers, body).await?;
    let token = form.field(csrf::FIELD)?;
    let secure = state.platform.origin.is_secure();
    let secret = csrf::check_form(&headers, secure, &state.platform.auth_url, token)?;
    let typed = form.field(USER_CODE)?.unwrap_or_default();
    let Some(session) = account(&state, &headers).await? else {
        return to_sign_in(&state, &secret, Some(typed), None);
    };
    let Some(code) = UserCode::parse(typed) else {
        let step = look_up(&state, &session, &context, typed).await?;
        return Ok(step.render(&state, session, &secret, None));
    };
    let now = state.platform.clock.now();
    let action = match form.field(ACTION)? {
        None => return see_other(with_code(&state, &secret, Some(&code)).as_str()),
        Some(APPROVE) => APPROVE,
        Some(DENY) => DENY,
        Some(_) => return Err(ProblemCode::InvalidRequest.into()),
    };
    // Another person has signed in with this browser since the page was shown: nobody decides for
    // an account that they did not see.
    if form.field(ACCOUNT)? != Some(session.player.id.to_string().as_str()) {
        return see_other(with_code(&state, &secret, Some(&code)).as_str());
    }
    if !secret.was_shown(form.field(SHOWN)?, now) {
        let mut step = look_up(&state, &session, &context, typed).await?;
        if let Step::Decide(asking) = &mut step {
            asking.hurried = true;
        }
        return Ok(step.render(&state, session, &secret, None));
    }
    count_code(&state, &session, &context).await?;
    let (player, approves, by) = (session.player.id, action == APPROVE, context.own());
    let store = &state.platform.store;
    let decided = store.decide_device_authorization(&code, player, approves, by, now);
    match decided.await? {
        // After a redirect, a reload does not repeat the decision (RFC 9110 §15.4.4).
        Decided::Done => see_other(&decision(&state, &secret, action)),
        Decided::Suspended { reason } => Err(suspended(reason)),
        Decided::Guest => to_sign_in(&state, &secret, Some(typed), None),
        Decided::Unknown => {
            Ok(Step::refused(typed, NO_SUCH_CODE).render(&state, session, &secret, None))
        }
    }
}

/// Returns the session of a visitor with an account: a guest has nothing that a device could
/// access.
async fn account(state: &AuthState, headers: &HeaderMap) -> Result<Option<Session>, ApiError> {
    match Visitor::of(state, headers).await? {
        Visitor::Unknown | Visitor::Ended | Visitor::Guest(_) | Visitor::Leaving(..) => Ok(None),
        Visitor::Account(session) => Ok(Some(session)),
        Visitor::Suspended { reason, .. } => Err(suspended(reason)),
    }
}

/// Returns the address of this page with the code that the person provided in this browser.
fn with_code(state: &AuthState, secret: &BrowserSecret, code: Option<&UserCode>) -> ReturnAddress {
    let proof = code.map(|code| secret.seal(Sealed::Code(code), state.platform.clock.now()));
    ReturnAddress::device(state, code.zip(proof.as_deref()))
}

/// Returns the address that says which decision was made.
fn decision(state: &AuthState, secret: &BrowserSecret, action: &str) -> String {
    let proof = secret.seal(Sealed::Decision(action), state.platform.clock.now());
    format!(
        "{}{DEVICE_PAGE}?{DONE}={action}&{PROOF}={proof}",
        state.platform.auth_url
    )
}

/// Redirects to the sign-in page, which leads back here with the code.
fn to_sign_in(
    state: &AuthState,
    secret: &BrowserSecret,
    typed: Option<&str>,
    set_cookie: Option<HeaderValue>,
) -> Result<Response, ApiError> {
    let code = typed.and_then(UserCode::parse);
    let address = with_code(state, secret, code.as_ref());
    let mut response = see_other(&page_path(paths::LOGIN, &address, &[]))?;
    // The return address is only accepted from this browser.
    if let Some(cookie) = set_cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

async fn count_code(
    state: &AuthState,
    session: &Session,
    context: &Context,
) -> Result<(), ApiError> {
    let network = Network::of(context.client);
    state
        .limits
        .devices
        .look_at_code(&session.player.id, &network)
        .await
        .map_err(too_many_requests)
}

/// Looks up a code.
async fn look_up(
    state: &AuthState,
    session: &Session,
    context: &Context,
    typed: &str,
) -> Result<Step, ApiError> {
    let Some(code) = UserCode::parse(typed) else {
        return Ok(Step::refused(typed, NO_CODE));
    };
    count_code(state, session, context).await?;
    let now = state.platform.clock.now();
    let found = state
        .platform
        .store
        .find_device_authorization(&code, now)
        .await?;
    let Some(found) = found else {
        return Ok(Step::refused(typed, NO_SUCH_CODE));
    };
    Ok(Step::Decide(Asking {
        code,
        client: client_name(&found.client).to_owned(),
        elsewhere: found.network != Network::of(context.client).to_string(),
        network: found.network,
        begun: ago(now - found.started_at),
        hurried: false,
    }))
}
