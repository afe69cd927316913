//! What the profile page shows.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use platform_protocol::paths;
use uuid::Uuid;

use crate::auth::AuthState;
use crate::auth::handlers::login;
use crate::auth::handlers::return_link::{ReturnLink, page_path};
use crate::auth::redirect::ReturnAddress;
use crate::domain::date::Date;
use crate::domain::device::client_name;
use crate::domain::session::{Session, SessionHash, SessionSummary};
use crate::http::api_error::ApiError;
use crate::http::csrf::BrowserSecret;
use crate::http::page::{self, FormTarget, Layout};
use crate::http::seal::Sealed;

/// The page.
#[derive(Template)]
#[template(path = "profile.html")]
pub(super) struct Page {
    frame: Layout,
    way_back: ReturnLink,
    csrf: String,
    /// The seal of the moment at which the forms are shown.
    shown: String,
    /// The player that they are of.
    account: Uuid,
    username: String,
    is_guest: bool,
    sign_in: String,
    /// What was done just before.
    pub(super) saved: Option<Saved>,
    /// Why what was asked for was not done.
    pub(super) problem: Option<&'static str>,
    /// What stands in the name's field.
    pub(super) typed: String,
    /// What is wrong with it.
    pub(super) error: Option<String>,
    identities: Vec<Linked>,
    /// The browsers that the player is in, this one first.
    browsers: Vec<Browser>,
    devices: Vec<SignedIn>,
    /// How many other sessions the player has.
    others: usize,
}

/// A browser that the player is in.
struct Browser {
    /// Which session it is.
    id: String,
    /// What it is called.
    name: String,
    /// Whether the page is open in it.
    is_here: bool,
    since: Date,
    used: Date,
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
pub(super) enum Saved {
    /// The player has another name.
    Name,
    /// All other sessions and devices have ended.
    SessionsEnded,
    /// One other session has ended.
    SessionEnded,
    /// A device has ended.
    DeviceEnded,
}

impl Page {
    /// The page as it is without anything that has just happened.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn of(
        state: &AuthState,
        address: &ReturnAddress,
        session: Session,
        secret: &BrowserSecret,
    ) -> Result<Self, ApiError> {
        let now = state.platform.clock.now();
        let player = session.player;
        let sessions = state.platform.store.list_sessions(player.id, now).await?;
        let mut browsers: Vec<Browser> = sessions
            .into_iter()
            .map(|one| Browser::of(one, &session.hash))
            .collect();
        // A stable sort: the others stay in the order of their use.
        browsers.sort_by_key(|browser| !browser.is_here);
        let identities = state.platform.store.list_identities(player.id).await?;
        let devices = state.platform.store.list_devices(player.id, now).await?;
        Ok(Self {
            frame: Layout::new(&state.platform.origin),
            way_back: ReturnLink::of(state, address).await,
            csrf: secret.form_token(),
            shown: secret.seal(Sealed::Form, now),
            account: player.id,
            is_guest: player.is_anonymous(),
            sign_in: page_path(paths::LOGIN, address, &[]),
            saved: None,
            problem: None,
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
                .into_iter()
                .map(|device| SignedIn {
                    id: device.id,
                    client: client_name(&device.client).to_owned(),
                    network: device.network,
                    since: Date::of(device.signed_in_at),
                    used: Date::of(device.used_at),
                })
                .collect(),
            others: browsers.iter().filter(|browser| !browser.is_here).count(),
            browsers,
        })
    }

    /// Renders it; with `set_cookie` where the browser has just got the secret
    /// of its forms.
    pub(super) fn render(&self, status: StatusCode, set_cookie: Option<HeaderValue>) -> Response {
        let mut response = page::render_form(status, self, FormTarget::Own);
        if let Some(cookie) = set_cookie {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }
}

impl Browser {
    fn of(session: SessionSummary, here: &SessionHash) -> Self {
        Self {
            id: session.hash.public_id(),
            is_here: session.hash == *here,
            name: session.browser.unwrap_or_else(|| "A browser".to_owned()),
            since: Date::of(session.created_at),
            used: Date::of(session.renewed_at),
        }
    }
}

/// What a provider is called. One that is no longer in the settings has only
/// its id left.
fn provider_name(state: &AuthState, id: String) -> String {
    login::providers(state)
        .into_iter()
        .find_map(|provider| (provider.id == id).then_some(provider.name))
        .unwrap_or(id)
}
