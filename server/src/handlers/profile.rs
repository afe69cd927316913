//! `GET {auth_url}/profile` and `POST` to it: the player's name, how they sign
//! in, and in which browsers and devices they are.

use askama::Template;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use platform_protocol::paths;
use platform_protocol::problem::Slug;
use url::form_urlencoded;
use uuid::Uuid;

use super::token::suspended;
use super::visitor::Visitor;
use super::way_back::{WayBack, page_path};
use crate::domain::audit::Actor;
use crate::domain::device::client_name;
use crate::domain::session::Session;
use crate::domain::username::{self, Username};
use crate::http::cookies;
use crate::http::csrf::{self, BrowserSecret};
use crate::http::date::Date;
use crate::http::form::Form;
use crate::http::limiter::too_many_requests;
use crate::http::page::{self, FormTarget, Frame};
use crate::http::redirect::{REDIRECT, ReturnAddress};
use crate::http::refusal::Refusal;
use crate::state::AppState;
use crate::store::StoreError;

#[derive(Template)]
#[template(path = "profile.html")]
struct Page {
    frame: Frame,
    way_back: WayBack,
    csrf: String,
    username: String,
    is_guest: bool,
    sign_in: String,
    saved: Option<Saved>,
    /// What stands in the name's field.
    typed: String,
    error: Option<String>,
    identities: Vec<Linked>,
    devices: Vec<SignedIn>,
    /// How many other sessions the player has.
    others: usize,
    /// When this session began.
    since: Date,
}

struct Linked {
    provider: String,
    since: Date,
}

/// A device that is signed in.
struct SignedIn {
    id: Uuid,
    client: String,
    network: String,
    since: Date,
    used: Date,
}

/// What was done just before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saved {
    Name,
    SessionsEnded,
    DeviceEnded,
}

const RENAME: &str = "rename";
const SIGN_OUT: &str = "sign-out";
const SIGN_OUT_OTHERS: &str = "sign-out-others";
const END_DEVICE: &str = "end-device";

impl Saved {
    fn from_query(query: Option<&str>) -> Option<Self> {
        let query = query.unwrap_or_default().as_bytes();
        let (_, action) = form_urlencoded::parse(query).find(|(name, _)| name == "saved")?;
        match &*action {
            RENAME => Some(Self::Name),
            SIGN_OUT_OTHERS => Some(Self::SessionsEnded),
            END_DEVICE => Some(Self::DeviceEnded),
            _ => None,
        }
    }
}

/// A name that was not taken: the form is shown again with what was typed.
struct NotRenamed {
    status: Slug,
    typed: String,
    error: String,
}

/// Answers `GET /profile`.
///
/// # Errors
/// `invalid-redirect`, `account-suspended`; the store's.
pub async fn show(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let address = ReturnAddress::from_query(&state, query.as_deref())?;
    let Some(session) = session(&state, &headers).await? else {
        return Ok(to_sign_in(&address));
    };
    let secure = state.origin.is_secure();
    let (secret, set_cookie) = BrowserSecret::of_browser(&headers, secure, &*state.entropy);
    let mut page = page(&state, &address, session, &secret).await?;
    page.saved = Saved::from_query(query.as_deref());
    let mut response = page::render_form(StatusCode::OK, &page, FormTarget::Own);
    if let Some(cookie) = set_cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Answers `POST /profile`.
///
/// # Errors
/// `not-allowed` for a form that is not ours, `invalid-redirect`,
/// `account-suspended`, `invalid-request` for an action that there is not; the
/// store's. A name that cannot be had is no error of this kind: its answer is
/// the page with what was typed.
pub async fn change(
    State(state): State<AppState>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let form = Form::read(&headers, body).await?;
    let token = form.field(csrf::FIELD)?;
    let secure = state.origin.is_secure();
    let secret = csrf::check_form(&headers, secure, &state.auth_url, token)?;
    let address = ReturnAddress::read(&state, form.field(REDIRECT)?)?;
    let Some(session) = session(&state, &headers).await? else {
        return Ok(to_sign_in(&address));
    };
    let action = match form.field("action")? {
        Some(RENAME) => {
            let typed = form.field("username")?.unwrap_or_default();
            match rename(&state, &session, typed).await? {
                Ok(()) => RENAME,
                Err(not_renamed) => {
                    let mut page = page(&state, &address, session, &secret).await?;
                    page.typed = not_renamed.typed;
                    page.error = Some(not_renamed.error);
                    let status = Refusal::new(not_renamed.status).status();
                    return Ok(page::render_form(status, &page, FormTarget::Own));
                }
            }
        }
        Some(SIGN_OUT_OTHERS) => {
            let (player, now) = (session.player.id, state.clock.now());
            let store = &state.store;
            store
                .end_other_sessions(player, Some(&session.hash), Actor::Own, now)
                .await?;
            SIGN_OUT_OTHERS
        }
        Some(END_DEVICE) => {
            let device = form.field("device")?.and_then(|id| id.parse().ok());
            let device = device.ok_or(Slug::InvalidRequest)?;
            let (player, now) = (session.player.id, state.clock.now());
            // One that is there no more has ended as well.
            state.store.end_device(player, device, now).await?;
            END_DEVICE
        }
        Some(SIGN_OUT) => return sign_out(&state, &session, &address).await,
        _ => return Err(Slug::InvalidRequest.into()),
    };
    // By itself a reload then repeats nothing (RFC 9110 §15.4.4).
    Ok(see_other(&page_path(
        paths::PROFILE,
        &address,
        &[("saved", action)],
    )))
}

/// Ends the session of this browser. It leads to the sign-in page: the page's
/// policy lets its forms lead to no game.
async fn sign_out(
    state: &AppState,
    session: &Session,
    address: &ReturnAddress,
) -> Result<Response, Refusal> {
    let now = state.clock.now();
    state.store.end_session(&session.hash, now).await?;
    let mut response = to_sign_in(address);
    let cookie = cookies::clear_session(state.origin.is_secure());
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// The session of a visitor who has a profile.
async fn session(state: &AppState, headers: &HeaderMap) -> Result<Option<Session>, Refusal> {
    match Visitor::of(state, headers).await? {
        Visitor::Unknown | Visitor::Ended => Ok(None),
        Visitor::Guest(session) | Visitor::Account(session) => Ok(Some(session)),
        Visitor::Suspended { reason } => Err(suspended(reason)),
    }
}

async fn rename(
    state: &AppState,
    session: &Session,
    typed: &str,
) -> Result<Result<(), NotRenamed>, Refusal> {
    let refused = |status, error: String| NotRenamed {
        status,
        typed: typed.to_owned(),
        error,
    };
    let name = match username::check(typed) {
        Ok(name) => name,
        Err(error) => return Ok(Err(refused(Slug::InvalidUsername, error.to_string()))),
    };
    state
        .rename_limiter
        .count(&session.player.id)
        .map_err(too_many_requests)?;
    match store_name(state, session, &name).await {
        Ok(()) => Ok(Ok(())),
        Err(StoreError::Conflict { .. }) => Ok(Err(refused(
            Slug::UsernameTaken,
            "Another player has this name, or one that looks like it. Please choose another one."
                .to_owned(),
        ))),
        Err(error) => Err(error.into()),
    }
}

async fn store_name(
    state: &AppState,
    session: &Session,
    name: &Username,
) -> Result<(), StoreError> {
    if name.as_str() == session.player.username {
        return Ok(());
    }
    let (player, now) = (session.player.id, state.clock.now());
    state.store.rename_player(player, name.as_str(), now).await
}

async fn page(
    state: &AppState,
    address: &ReturnAddress,
    session: Session,
    secret: &BrowserSecret,
) -> Result<Page, Refusal> {
    let player = session.player;
    let sessions = state
        .store
        .list_sessions(player.id, state.clock.now())
        .await?;
    let identities = state.store.list_identities(player.id).await?;
    let devices = state.store.list_devices(player.id, state.clock.now());
    Ok(Page {
        frame: Frame::new(&state.origin),
        way_back: WayBack::of(state, address).await,
        csrf: secret.form_token(),
        is_guest: player.is_anonymous(),
        sign_in: page_path(paths::LOGIN, address, &[]),
        saved: None,
        typed: player.username.clone(),
        username: player.username,
        error: None,
        identities: identities
            .into_iter()
            .map(|identity| Linked {
                since: Date::of(identity.linked_at),
                provider: provider_name(state, identity.provider),
            })
            .collect(),
        devices: devices
            .await?
            .into_iter()
            .map(|device| SignedIn {
                id: device.id,
                client: client_name(&device.client).to_owned(),
                network: device.network,
                since: Date::of(device.signed_in_at),
                used: Date::of(device.used_at),
            })
            .collect(),
        others: sessions
            .iter()
            .filter(|other| other.hash != session.hash)
            .count(),
        since: Date::of(session.created_at),
    })
}

/// What a provider is called. One that is no longer in the settings has only
/// its id left.
fn provider_name(state: &AppState, id: String) -> String {
    super::login::providers(state)
        .into_iter()
        .find_map(|provider| (provider.id == id).then_some(provider.name))
        .unwrap_or(id)
}

fn to_sign_in(address: &ReturnAddress) -> Response {
    see_other(&page_path(paths::LOGIN, address, &[]))
}

fn see_other(location: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    // Path and query are percent-encoded, so this cannot fail.
    if let Ok(location) = HeaderValue::from_str(location) {
        headers.insert(header::LOCATION, location);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
