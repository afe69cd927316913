//! `GET {auth_url}/restore-guest` and `POST` to it: restores a guest that was signed out in this
//! browser, for example by a game without the player's consent.

use std::sync::Arc;

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;
use uuid::Uuid;

use super::own_form::{NewForm, OwnForm};
use super::page_visitor::Visitor;
use super::return_link::{ReturnLink, page_path};
use super::token::suspended;
use super::{browser_session, guest};
use crate::auth::AuthState;
use crate::auth::redirect::ReturnAddress;
use crate::domain::date::Date;
use crate::domain::left_guest::{LeftGuest, Restore, Restored};
use crate::domain::session::SessionSecret;
use crate::store::StoreError;
use crate::web::api_error::ApiError;
use crate::web::client_address::Network;
use crate::web::cookies;
use crate::web::form::Form;
use crate::web::limiter::too_many_requests;
use crate::web::page::{self, FormTarget, Layout};
use crate::web::redirects::see_other;
use crate::web::request_context::Context;
use crate::web::seal::SHOWN;

/// The path.
pub const PATH: &str = "/restore-guest";
/// The field that names the guest.
const GUEST: &str = "guest";
/// The parameter that says that a button was pressed before it could be read.
const HURRIED: &str = "hurried";
/// The maximum number of guests on the page.
const LISTED: usize = 20;

#[derive(Template)]
#[template(path = "restore_guest.html")]
struct Page {
    frame: Layout,
    way_back: ReturnLink,
    csrf: String,
    /// The seal of the time at which the forms are shown.
    shown: String,
    /// Whether a button was pressed before it could be read.
    hurried: bool,
    left: Vec<Left>,
    /// The account to which the browser is signed in.
    signed_in: Option<String>,
    /// The current guest of the browser.
    guest: Option<String>,
    profile: String,
}

/// A guest that can be restored.
struct Left {
    id: Uuid,
    name: String,
    left: Date,
}

/// What other pages say about the guests that were signed out in this browser.
pub(super) struct Offer {
    /// The name of the oldest guest.
    pub(super) name: String,
    /// The number of further guests.
    pub(super) more: usize,
    /// The address of the page that restores them.
    pub(super) address: String,
}

impl Offer {
    /// Returns which guests can be restored, with a link that returns to `address`.
    ///
    /// # Errors
    /// Errors of the store.
    pub(super) async fn of(
        state: &AuthState,
        headers: &HeaderMap,
        address: &ReturnAddress,
    ) -> Result<Option<Self>, StoreError> {
        let left = left_guests(state, headers).await?;
        let more = left.len().saturating_sub(1);
        Ok(left.into_iter().next().map(|first| Self {
            name: first.player.username,
            more,
            address: page_path(PATH, address, &[]),
        }))
    }
}

async fn left_guests(state: &AuthState, headers: &HeaderMap) -> Result<Vec<LeftGuest>, StoreError> {
    match cookies::read_left(headers, state.platform.origin.is_secure()) {
        None => Ok(Vec::new()),
        Some(secret) => {
            let now = state.platform.clock.now();
            let store = &state.platform.store;
            store.list_left_guests(&secret.hash(), now, LISTED).await
        }
    }
}

/// Responds to `GET /restore-guest`.
///
/// # Errors
/// `invalid-redirect`; `account-suspended`, since another guest must not get around a suspension;
/// errors of the store.
pub async fn show(
    State(state): State<Arc<AuthState>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let address = ReturnAddress::from_query(&state, query.as_deref())?;
    let (signed_in, guest) = match Visitor::of(&state, &headers).await? {
        Visitor::Account(session) => (Some(session.player.username), None),
        Visitor::Guest(session) => (None, Some(session.player.username)),
        Visitor::Unknown | Visitor::Ended | Visitor::Leaving(..) => (None, None),
        Visitor::Suspended { reason, .. } => return Err(suspended(reason)),
    };
    let NewForm {
        csrf,
        shown,
        set_cookie,
    } = NewForm::of(&state, &headers);
    let left = left_guests(&state, &headers).await?;
    let page = Page {
        frame: Layout::new(&state.platform.origin),
        way_back: ReturnLink::of(&state, &address).await,
        csrf,
        shown,
        hurried: Form::of_query(query.as_deref()).field(HURRIED)?.is_some(),
        left: left.into_iter().map(Left::of).collect(),
        signed_in,
        guest,
        profile: page_path(paths::PROFILE, &address, &[]),
    };
    // Like a sign-in, it finally leads to a game.
    let target = FormTarget::of_sign_in(&state.platform.origin);
    let mut response = page::render_form(StatusCode::OK, &page, target);
    if let Some(cookie) = set_cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

impl Left {
    fn of(guest: LeftGuest) -> Self {
        Self {
            id: guest.player.id,
            name: guest.player.username,
            left: Date::of(guest.left_at),
        }
    }
}

/// Responds to `POST /restore-guest` with 303 to the return address as that guest, or back to the
/// page if the guest does not exist any more or the button was pressed before it could be read.
///
/// # Errors
/// `not-allowed` for a form that is not ours and for a browser that is signed in to an account,
/// `invalid-request`, `invalid-redirect`, `unsupported-media-type`, `payload-too-large`,
/// `too-many-requests`, `account-suspended`; errors of the store.
pub async fn restore(
    State(state): State<Arc<AuthState>>,
    context: Context,
    headers: HeaderMap,
    OwnForm {
        form,
        secret,
        address,
    }: OwnForm,
) -> Result<Response, ApiError> {
    let secure = state.platform.origin.is_secure();
    let guest = form.field(GUEST)?.and_then(|id| id.parse().ok());
    let guest: Uuid = guest.ok_or(ProblemCode::InvalidRequest)?;
    if !secret.was_shown(form.field(SHOWN)?, state.platform.clock.now()) {
        return see_other(&page_path(PATH, &address, &[(HURRIED, "1")]));
    }
    let network = Network::of(context.client);
    state
        .limits
        .sign_ins
        .count(&network)
        .await
        .map_err(too_many_requests)?;
    let to_page = || see_other(&page_path(PATH, &address, &[]));
    let Some(browser) = cookies::read_left(&headers, secure) else {
        return to_page();
    };
    let held = match browser_session::secret(&state, &headers).await? {
        None => None,
        // The session that is created here is left immediately.
        Some(secret) => guest::find_or_make(&state, network, &secret).await?,
    };
    let secret = SessionSecret::generate(&*state.platform.entropy);
    let restore = Restore {
        browser: browser.hash(),
        guest,
        held: held.map(|session| session.hash),
        session: secret.hash(),
        address: network.to_string(),
        by: context.own(),
        now: state.platform.clock.now(),
    };
    match state.platform.store.restore_guest(restore).await? {
        Restored::NotThere => to_page(),
        Restored::Suspended { reason } => Err(suspended(reason)),
        Restored::SignedIn => Err(ApiError::new(ProblemCode::NotAllowed).with_detail(
            "You are signed in to an account in this browser. Sign out of it on your profile \
             page first, and then go on as the guest.",
        )),
        Restored::Back(_) => {
            let mut response = see_other(&address.arrival(&state))?;
            let headers = response.headers_mut();
            headers.append(header::SET_COOKIE, cookies::set_session(&secret, secure));
            headers.append(header::SET_COOKIE, cookies::set_left(&browser, secure));
            Ok(response)
        }
    }
}
