//! `GET {auth_url}/frame` and `POST` to it: hands a visitor to the game in a frame of another site,
//! which opened the sign-in page in a tab. The first page asks; the second one sends the code to its
//! opener, to exactly the game's origin. Any script of the game can open the page, so a person must
//! press a button that could be read.

use std::sync::Arc;

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;
use sha2::{Digest as _, Sha256};

use super::hand_off::{Parent, game_to};
use super::own_form::{NewForm, OwnForm};
use super::page_visitor::Visitor;
use super::return_link::page_path;
use crate::auth::AuthState;
use crate::auth::hand_off::{STATE, opens_tab};
use crate::auth::redirect::ReturnAddress;
use crate::games::page_metadata;
use crate::web::api_error::ApiError;
use crate::web::client_address::Network;
use crate::web::cookies::decode;
use crate::web::form::Form;
use crate::web::limiter::too_many_requests;
use crate::web::page::{self, FormTarget, Layout};
use crate::web::redirects::see_other;
use crate::web::request_context::Context;
use crate::web::seal::SHOWN;

/// The parameter that says that the button was pressed before it could be read.
const HURRIED: &str = "hurried";
/// The path of the page's script.
pub const SCRIPT: &str = "/static/frame.js";

#[derive(Template)]
#[template(path = "frame.html")]
struct Page {
    frame: Layout,
    script: &'static str,
    /// The name of the game.
    game: String,
    /// The origin of the game.
    to: String,
    code: String,
    /// The secret of the frame, which says that the code is for it.
    state: String,
    /// Where the game is played in a tab of its own.
    address: String,
}

#[derive(Template)]
#[template(path = "frame_question.html")]
struct Question {
    frame: Layout,
    game: String,
    csrf: String,
    /// The seal of the time at which the form is shown.
    shown: String,
    /// Whether the button was pressed before it could be read.
    hurried: bool,
    /// The page's own address, as a return address.
    here: String,
    /// The player's name; `None` for a visitor who has not played yet.
    name: Option<String>,
}

/// Responds to `GET /frame?to=<origin of the game>&state=<secret of the frame>` with the question.
/// Whoever must sign in again is sent there.
///
/// # Errors
/// `invalid-redirect`, `invalid-request`, `not-allowed` for what is no navigation,
/// `account-suspended`; errors of the store.
pub async fn show(
    State(state): State<Arc<AuthState>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let query = Form::of_query(query.as_deref());
    let game = game_to(&state, &query)?;
    let wanted = query.field(STATE)?.unwrap_or_default();
    decode(wanted).ok_or(ProblemCode::InvalidRequest)?;
    if headers.contains_key("sec-fetch-dest") && !opens_tab(&headers) {
        return Err(ProblemCode::NotAllowed.into());
    }
    let here = ReturnAddress::of_frame(&state, &game, wanted);
    let name = match Visitor::of(&state, &headers).await? {
        Visitor::Account(session) | Visitor::Guest(session) => Some(session.player.username),
        Visitor::Unknown => None,
        Visitor::Ended | Visitor::Leaving(..) => {
            return see_other(&page_path(paths::LOGIN, &here, &[]));
        }
        Visitor::Suspended { reason, .. } => return Err(ApiError::suspended(reason)),
    };
    let NewForm {
        csrf,
        shown,
        set_cookie,
    } = NewForm::of(&state, &headers);
    let page = Question {
        frame: Layout::new(&state.platform.origin),
        game: page_metadata::title(&game),
        csrf,
        shown,
        hurried: query.field(HURRIED)?.is_some(),
        here: here.as_str().to_owned(),
        name,
    };
    let mut response = page::render_form(StatusCode::OK, &page, FormTarget::Own);
    page::keep_opener(response.headers_mut());
    if let Some(cookie) = set_cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Responds to the question's form with the page that hands the player over.
///
/// # Errors
/// `not-allowed` for a form that is not ours, `invalid-redirect`, `invalid-request`,
/// `unsupported-media-type`, `payload-too-large`, `too-many-requests`; errors of the store.
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
    let query = address.as_str().split_once('?').map(|(_, query)| query);
    let query = Form::of_query(query);
    let game = game_to(&state, &query)?;
    let wanted = query.field(STATE)?.unwrap_or_default();
    if !secret.was_shown(form.field(SHOWN)?, state.platform.clock.now()) {
        return see_other(&format!("{}&{HURRIED}=1", address.as_str()));
    }
    let secret = decode(wanted).ok_or(ProblemCode::InvalidRequest)?;
    let network = Network::of(context.client);
    let counted = state.limits.hand_offs.count(&network).await;
    counted.map_err(too_many_requests)?;
    let parent = Parent::of(&state, &headers).await?;
    let nonce = Sha256::digest(secret).into();
    let page = Page {
        frame: Layout::new(&state.platform.origin),
        script: SCRIPT,
        game: page_metadata::title(&game),
        to: game.origin.clone(),
        code: parent.code(&state, &game, nonce).await?,
        state: wanted.to_owned(),
        address: format!("{}/", game.origin),
    };
    let mut response = page::render_opened(&page);
    if let Some(cookie) = parent.cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Returns the page's script.
pub async fn script() -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/javascript; charset=utf-8"),
        ),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=300"),
        ),
    ];
    (headers, include_str!("../../../../www/auth/frame.js")).into_response()
}
