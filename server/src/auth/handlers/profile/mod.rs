//! `GET {auth_url}/profile` and `POST` to it: the player's name, their identities, and their
//! browsers and devices. `data` and `deletion` have the pages below it.

pub mod data;
pub mod deletion;
mod page;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;
use url::form_urlencoded;

use self::page::{Page, Saved};
use super::leave;
use super::page_visitor::{Visitor, note_browser};
use super::return_link::page_path;
use super::start_sign_in::{SignInNotice, login_path};
use super::token::suspended;
use crate::auth::AuthState;
use crate::auth::redirect::{REDIRECT, ReturnAddress};
use crate::domain::session::Session;
use crate::domain::username::{self, Username};
use crate::store::StoreError;
use crate::web::api_error::ApiError;
use crate::web::cookies;
use crate::web::csrf::{self, BrowserSecret};
use crate::web::form::Form;
use crate::web::limiter::too_many_requests;
use crate::web::redirects::see_other;
use crate::web::request_context::Context;
use crate::web::seal::SHOWN;

const ACTION: &str = "action";
/// The field that names the player to whom a form was shown.
const ACCOUNT: &str = "account";
const USERNAME: &str = "username";

const RENAME: &str = "rename";
const SIGN_OUT: &str = "sign-out";
const SIGN_OUT_OTHERS: &str = "sign-out-others";
const END_SESSION: &str = "end-session";
const END_DEVICE: &str = "end-device";

/// The message for a click that came too early.
const HURRIED: &str = "Nothing was changed: the button was pressed less than two seconds after it \
                       was shown, perhaps by a click that was meant for another page. Press it \
                       again if you want this.";
/// The message for a form of another browser session.
const STALE: &str = "Nothing was saved: your browser no longer has its cookie for this page, for \
                     example because the browser was closed. Your text is still here; send it \
                     again.";
/// The message for a form that was shown to another player.
const OTHER_PLAYER: &str = "Nothing was saved: another player now plays in this browser. Your text \
                            is still here, but it would become the name of that player.";

impl Saved {
    fn from_query(query: Option<&str>) -> Option<Self> {
        let query = query.unwrap_or_default().as_bytes();
        let (_, action) = form_urlencoded::parse(query).find(|(name, _)| name == "saved")?;
        match &*action {
            RENAME => Some(Self::Name),
            SIGN_OUT_OTHERS => Some(Self::SessionsEnded),
            END_SESSION => Some(Self::SessionEnded),
            END_DEVICE => Some(Self::DeviceEnded),
            "keep" => Some(Self::Kept),
            _ => None,
        }
    }
}

/// A name that was rejected: the form is shown again with the input.
struct NotRenamed {
    status: ProblemCode,
    error: String,
}

/// Responds to `GET /profile`.
///
/// # Errors
/// `invalid-redirect`, `account-suspended`; errors of the store.
pub async fn show(
    State(state): State<Arc<AuthState>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let address = ReturnAddress::from_query(&state, query.as_deref())?;
    let Some(session) = session(&state, &headers).await? else {
        return see_other(&page_path(paths::LOGIN, &address, &[]));
    };
    if session.deletion.is_some() {
        return see_other(&page_path(deletion::PATH, &address, &[]));
    }
    let secure = state.platform.origin.is_secure();
    let (secret, set_cookie) =
        BrowserSecret::of_browser(&headers, secure, &*state.platform.entropy);
    note_browser(&state, &headers, &session, false).await;
    let mut page = Page::of(&state, &address, session, &secret).await?;
    page.saved = Saved::from_query(query.as_deref());
    Ok(page.render(StatusCode::OK, set_cookie))
}

/// Responds to `POST /profile`.
///
/// # Errors
/// `not-allowed` for a form that is not ours, `invalid-redirect`, `account-suspended`,
/// `invalid-request` for an unknown action; errors of the store. A rejected name, a form that is
/// too old and a click that came too early are no such errors: the response is the page with a
/// message and the input.
pub async fn change(
    State(state): State<Arc<AuthState>>,
    context: Context,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = Form::read(&headers, body).await?;
    let token = form.field(csrf::FIELD)?;
    let secure = state.platform.origin.is_secure();
    let checked = csrf::check_form(&headers, secure, &state.platform.auth_url, token);
    let is_stale =
        checked.is_err() && csrf::is_own_stale_form(&headers, secure, &state.platform.auth_url);
    let (secret, set_cookie) = if is_stale {
        BrowserSecret::of_browser(&headers, secure, &*state.platform.entropy)
    } else {
        (checked?, None)
    };
    let address = ReturnAddress::read(&state, form.field(REDIRECT)?)?;
    let Some(session) = session(&state, &headers).await? else {
        let address = Some(address.as_str());
        return see_other(&login_path(address, SignInNotice::NotSaved));
    };
    if session.deletion.is_some() {
        return see_other(&page_path(deletion::PATH, &address, &[]));
    }
    let player = session.player.id.to_string();
    let other = form.field(ACCOUNT)?.is_some_and(|shown| shown != player);
    let action = form.field(ACTION)?.unwrap_or_default();
    let hurried =
        action != RENAME && !secret.was_shown(form.field(SHOWN)?, state.platform.clock.now());
    let not_done = match (is_stale, other) {
        (true, _) => Some((StatusCode::FORBIDDEN, STALE)),
        (false, true) => Some((StatusCode::CONFLICT, OTHER_PLAYER)),
        (false, false) if hurried && ACTIONS.contains(&action) => {
            Some((StatusCode::CONFLICT, HURRIED))
        }
        (false, false) => None,
    };
    if let Some((status, problem)) = not_done {
        let mut page = Page::of(&state, &address, session, &secret).await?;
        page.problem = Some(problem);
        if let (RENAME, Some(typed)) = (action, form.field(USERNAME)?) {
            typed.clone_into(&mut page.typed);
        }
        return Ok(page.render(status, set_cookie));
    }
    act(
        &state, &headers, &address, session, &secret, &form, &context,
    )
    .await
}

/// The actions of the page's forms.
const ACTIONS: [&str; 5] = [RENAME, SIGN_OUT, SIGN_OUT_OTHERS, END_SESSION, END_DEVICE];

/// Performs a form's action.
async fn act(
    state: &AuthState,
    headers: &HeaderMap,
    address: &ReturnAddress,
    session: Session,
    secret: &BrowserSecret,
    form: &Form,
    context: &Context,
) -> Result<Response, ApiError> {
    let (player, now) = (session.player.id, state.platform.clock.now());
    let store = &state.platform.store;
    let action = match form.field(ACTION)? {
        Some(RENAME) => {
            let typed = form.field(USERNAME)?.unwrap_or_default();
            match rename(state, &session, typed, context).await? {
                Ok(()) => RENAME,
                Err(NotRenamed { status, error }) => {
                    let mut page = Page::of(state, address, session, secret).await?;
                    typed.clone_into(&mut page.typed);
                    page.error = Some(error);
                    return Ok(page.render(ApiError::new(status).status(), None));
                }
            }
        }
        Some(SIGN_OUT_OTHERS) => {
            store
                .end_other_sessions(player, Some(&session.hash), context.own(), now)
                .await?;
            SIGN_OUT_OTHERS
        }
        Some(END_SESSION) => {
            let id = form.field("session")?.ok_or(ProblemCode::InvalidRequest)?;
            let sessions = store.list_sessions(player, now).await?;
            // A session that does not exist any more has ended, too.
            if let Some(named) = sessions.iter().find(|one| one.hash.public_id() == id) {
                store
                    .end_session_of(player, &named.hash, context.own(), now)
                    .await?;
            }
            END_SESSION
        }
        Some(END_DEVICE) => {
            let device = form.field("device")?.and_then(|id| id.parse().ok());
            let device = device.ok_or(ProblemCode::InvalidRequest)?;
            // A device that does not exist any more has ended, too.
            store.end_device(player, device, context.own(), now).await?;
            END_DEVICE
        }
        Some(SIGN_OUT) => return sign_out(state, headers, &session, address, context).await,
        _ => return Err(ProblemCode::InvalidRequest.into()),
    };
    // After a redirect, a reload does not repeat the action (RFC 9110 §15.4.4).
    let saved = [("saved", action)];
    see_other(&page_path(paths::PROFILE, address, &saved))
}

/// Ends the session of this browser and leads to the sign-in page: the page's policy does not let
/// its forms lead to a game.
async fn sign_out(
    state: &AuthState,
    headers: &HeaderMap,
    session: &Session,
    address: &ReturnAddress,
    context: &Context,
) -> Result<Response, ApiError> {
    let left = leave::sign_out(state, headers, &session.hash, context.own()).await?;
    let mut response = see_other(&page_path(paths::LOGIN, address, &[]))?;
    let cookie = cookies::clear_session(state.platform.origin.is_secure());
    for cookie in [cookie].into_iter().chain(left) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Returns the session of a visitor with a profile, who may be to be deleted.
async fn session(state: &AuthState, headers: &HeaderMap) -> Result<Option<Session>, ApiError> {
    match Visitor::of(state, headers).await? {
        Visitor::Unknown | Visitor::Ended => Ok(None),
        Visitor::Guest(session) | Visitor::Account(session) | Visitor::Leaving(session, _) => {
            Ok(Some(session))
        }
        Visitor::Suspended { reason, .. } => Err(suspended(reason)),
    }
}

async fn rename(
    state: &AuthState,
    session: &Session,
    typed: &str,
    context: &Context,
) -> Result<Result<(), NotRenamed>, ApiError> {
    let refused = |status, error: String| NotRenamed { status, error };
    let name = match username::check(typed) {
        Ok(name) => name,
        Err(error) => {
            return Ok(Err(refused(
                ProblemCode::InvalidUsername,
                error.to_string(),
            )));
        }
    };
    state
        .limits
        .renames
        .count(&session.player.id)
        .await
        .map_err(too_many_requests)?;
    match store_name(state, session, &name, context).await {
        Ok(()) => Ok(Ok(())),
        Err(StoreError::Conflict { .. }) => Ok(Err(refused(
            ProblemCode::UsernameTaken,
            "Another player has this name, or a name that looks like it. Please choose another one."
                .to_owned(),
        ))),
        Err(error) => Err(error.into()),
    }
}

async fn store_name(
    state: &AuthState,
    session: &Session,
    name: &Username,
    context: &Context,
) -> Result<(), StoreError> {
    if name.as_str() == session.player.username {
        return Ok(());
    }
    let (player, now) = (session.player.id, state.platform.clock.now());
    let name = name.as_str();
    state
        .platform
        .store
        .rename_player(player, name, context.own(), now)
        .await
}
