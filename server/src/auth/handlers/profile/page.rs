//! The content of the profile page.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use platform_protocol::names::label_of_audience;
use platform_protocol::paths;
use uuid::Uuid;

use crate::auth::AuthState;
use crate::auth::handlers::return_link::{ReturnLink, page_path};
use crate::auth::handlers::sign_in_page;
use crate::auth::redirect::{DELETION_PAGE, ReturnAddress};
use crate::domain::date::Date;
use crate::domain::device::client_name;
use crate::domain::game_session::GameOfSession;
use crate::domain::session::{Session, SessionHash, SessionSummary};
use crate::games::page_metadata;
use crate::web::api_error::ApiError;
use crate::web::csrf::BrowserSecret;
use crate::web::page::{self, FormTarget, Layout};
use crate::web::seal::Sealed;

/// The page.
#[derive(Template)]
#[template(path = "profile.html")]
pub(super) struct Page {
    frame: Layout,
    way_back: ReturnLink,
    csrf: String,
    /// The seal of the time at which the forms are shown.
    shown: String,
    /// The player of the forms.
    account: Uuid,
    username: String,
    is_guest: bool,
    sign_in: String,
    /// The page that deletes the player.
    deletion: String,
    /// The result of the last action.
    pub(super) saved: Option<Saved>,
    /// Why the last action was not performed.
    pub(super) problem: Option<&'static str>,
    /// The content of the name's field.
    pub(super) typed: String,
    /// The error in it.
    pub(super) error: Option<String>,
    identities: Vec<Linked>,
    /// The player's browsers, this one first.
    browsers: Vec<Browser>,
    devices: Vec<SignedIn>,
    /// The number of the player's other sessions.
    others: usize,
}

/// A browser with a session of the player.
struct Browser {
    /// The id of the session.
    id: String,
    /// The description of the browser.
    name: String,
    /// Whether the page is open in this browser.
    is_here: bool,
    since: Date,
    used: Date,
    /// The names of the games on sites of their own that it is signed in at, at most [`GAMES`].
    games: Vec<String>,
    /// How many more such games there are.
    more_games: usize,
}

/// How many games of a browser the page names.
const GAMES: usize = 8;

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

/// The result of the last action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saved {
    /// The name was changed.
    Name,
    /// All other sessions and devices have ended.
    SessionsEnded,
    /// One other session has ended.
    SessionEnded,
    /// A device has ended.
    DeviceEnded,
    /// The player is not to be deleted any more.
    Kept,
}

impl Page {
    /// Creates the page without the result of an action.
    ///
    /// # Errors
    /// Errors of the store.
    pub(super) async fn of(
        state: &AuthState,
        address: &ReturnAddress,
        session: Session,
        secret: &BrowserSecret,
    ) -> Result<Self, ApiError> {
        let now = state.platform.clock.now();
        let player = session.player;
        let sessions = state.platform.store.list_sessions(player.id, now).await?;
        let games = state.platform.store.list_games_of_sessions(player.id);
        let games = games.await?;
        let mut browsers: Vec<Browser> = sessions
            .into_iter()
            .map(|one| Browser::of(state, one, &session.hash, &games))
            .collect();
        // The sort is stable: the others stay in the order of their use.
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
            deletion: page_path(DELETION_PAGE, address, &[]),
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

    /// Renders the page; `set_cookie` is set if the browser gets the secret of its forms now.
    pub(super) fn render(&self, status: StatusCode, set_cookie: Option<HeaderValue>) -> Response {
        let mut response = page::render_form(status, self, FormTarget::Own);
        if let Some(cookie) = set_cookie {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }
}

impl Browser {
    fn of(
        state: &AuthState,
        session: SessionSummary,
        here: &SessionHash,
        games: &[GameOfSession],
    ) -> Self {
        let games = games.iter().filter(|game| game.parent == session.hash);
        let mut games: Vec<String> = games
            .filter_map(|game| name_of(state, &game.game))
            .collect();
        games.sort_unstable();
        games.dedup();
        let more_games = games.len().saturating_sub(GAMES);
        games.truncate(GAMES);
        Self {
            games,
            more_games,
            id: session.hash.public_id(),
            is_here: session.hash == *here,
            name: session.browser.unwrap_or_else(|| "A browser".to_owned()),
            since: Date::of(session.created_at),
            used: Date::of(session.renewed_at),
        }
    }
}

/// Returns the name of the game with this audience; `None` if it is gone.
fn name_of(state: &AuthState, audience: &str) -> Option<String> {
    let label = label_of_audience(audience)?;
    let game = state.games.catalogue.find(label)?;
    Some(page_metadata::title(&game))
}

/// Returns the name of a provider, or its id if it is not in the settings any more.
fn provider_name(state: &AuthState, id: String) -> String {
    sign_in_page::providers(state)
        .into_iter()
        .find_map(|provider| (provider.id == id).then_some(provider.name))
        .unwrap_or(id)
}
