//! `GET {auth_url}/sign-out`: the page that ends the session, for games that are apart, whose pages
//! the cookie never reaches. A game that has just ended its own session brings a code, which ends
//! the session that this one came from, if it is this browser's.

use std::sync::Arc;

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use subtle::ConstantTimeEq as _;

use super::own_form::{NewForm, OwnForm};
use super::page_visitor::Visitor;
use super::return_link::{ReturnLink, page_path};
use super::token::suspended;
use super::{browser_session, leave};
use crate::auth::AuthState;
use crate::auth::hand_off::CODE;
use crate::auth::redirect::ReturnAddress;
use crate::domain::game_session::HandOffCode;
use crate::domain::session::SessionHash;
use crate::web::api_error::ApiError;
use crate::web::cookies::decode;
use crate::web::form::Form;
use crate::web::page::{self, FormTarget, Layout};
use crate::web::redirects::see_other;
use crate::web::request_context::Context;
use crate::web::seal::SHOWN;

/// Where the page's form is sent.
pub const FORM: &str = "/sign-out/now";
/// The parameter that says that the button was pressed before it could be read.
const HURRIED: &str = "hurried";

#[derive(Template)]
#[template(path = "sign_out.html")]
struct Page {
    frame: Layout,
    way_back: ReturnLink,
    csrf: String,
    /// The seal of the time at which the form is shown.
    shown: String,
    hurried: bool,
    name: String,
    is_guest: bool,
}

/// Responds to `GET /sign-out?redirect=…`, and with `code` from a game. Whoever has no session is
/// sent on to the return address.
///
/// # Errors
/// `invalid-redirect`, `invalid-request`, `account-suspended`; errors of the store.
pub async fn show(
    State(state): State<Arc<AuthState>>,
    context: Context,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let address = ReturnAddress::from_query(&state, query.as_deref())?;
    let fields = Form::of_query(query.as_deref());
    if let Some(code) = fields.field(CODE)?.and_then(decode) {
        let code = HandOffCode::from_bytes(code).hash();
        let now = state.platform.clock.now();
        let asked = state.platform.store.take_sign_out(&code, now).await?;
        if let Some(asked) = asked
            && is_of_browser(&state, &headers, &asked).await?
        {
            return end(&state, &headers, &address, &context).await;
        }
    }
    let (name, is_guest) = match Visitor::of(&state, &headers).await? {
        Visitor::Account(session) => (session.player.username, false),
        Visitor::Guest(session) => (session.player.username, true),
        Visitor::Unknown | Visitor::Ended | Visitor::Leaving(..) => {
            return see_other(address.as_str());
        }
        Visitor::Suspended { reason, .. } => return Err(suspended(reason)),
    };
    let NewForm {
        csrf,
        shown,
        set_cookie,
    } = NewForm::of(&state, &headers);
    let page = Page {
        frame: Layout::new(&state.platform.origin),
        way_back: ReturnLink::of(&state, &address).await,
        csrf,
        shown,
        hurried: fields.field(HURRIED)?.is_some(),
        name,
        is_guest,
    };
    // Like a sign-in, it finally leads to a game.
    let target = FormTarget::of_sign_in(&state.platform.origin);
    let mut response = page::render_form(StatusCode::OK, &page, target);
    if let Some(cookie) = set_cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Responds to the page's form with 303 to the return address.
///
/// # Errors
/// `not-allowed` for a form that is not ours, `invalid-request`, `invalid-redirect`,
/// `unsupported-media-type`, `payload-too-large`; errors of the store.
pub async fn submit(
    State(state): State<Arc<AuthState>>,
    context: Context,
    headers: HeaderMap,
    OwnForm {
        form,
        secret,
        address,
    }: OwnForm,
) -> Result<Response, ApiError> {
    if !secret.was_shown(form.field(SHOWN)?, state.platform.clock.now()) {
        let path = page_path(
            platform_protocol::paths::SIGN_OUT,
            &address,
            &[(HURRIED, "1")],
        );
        return see_other(&path);
    }
    end(&state, &headers, &address, &context).await
}

/// Whether this browser holds the session with this hash.
async fn is_of_browser(
    state: &AuthState,
    headers: &HeaderMap,
    asked: &SessionHash,
) -> Result<bool, ApiError> {
    let secret = browser_session::secret(state, headers).await?;
    Ok(secret.is_some_and(|secret| secret.hash().0.ct_eq(&asked.0).into()))
}

/// Ends the session of this browser, blank or not. A suspended player's browser keeps the cookie.
async fn end(
    state: &AuthState,
    headers: &HeaderMap,
    address: &ReturnAddress,
    context: &Context,
) -> Result<Response, ApiError> {
    let mut response = see_other(address.as_str())?;
    let Some(secret) = browser_session::secret(state, headers).await? else {
        return Ok(response);
    };
    let (store, hash) = (&state.platform.store, secret.hash());
    let session = store.lookup_session(&hash).await?;
    if session.is_none() {
        store.end_blank_session(&hash).await?;
    }
    for cookie in leave::end(state, headers, session, context.own()).await? {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
