//! Return addresses: the parameter `redirect` of the auth service's pages.
//!
//! The text is read by [`return_address`](crate::web::return_address). Of the auth service's own
//! pages, only two are valid return addresses, in the exact form that the pages themselves use.

use std::sync::Arc;

use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;
use url::{Url, form_urlencoded};

use crate::auth::AuthState;
use crate::auth::hand_off::{self, STATE, TO};
use crate::domain::device::UserCode;
use crate::games::catalogue::Game;
use crate::web::api_error::ApiError;
use crate::web::cookies;
use crate::web::hand_off_state::is_path;
use crate::web::return_address::{canonical, device_address, device_page};

/// The name of the parameter in queries and forms.
pub const REDIRECT: &str = "redirect";

/// The path of the page that deletes a player, which may ask for a fresh sign-in.
pub const DELETION_PAGE: &str = "/profile/delete";

/// An absolute address on the console or on a game of this platform as our parser writes it, or the
/// address of [`DEVICE_PAGE`](crate::web::return_address::DEVICE_PAGE) or [`DELETION_PAGE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnAddress(String);

impl ReturnAddress {
    /// Checks the address of a request; the default is the console's.
    ///
    /// # Errors
    /// `invalid-redirect`
    pub fn read(state: &AuthState, given: Option<&str>) -> Result<Self, ApiError> {
        let Some(given) = given else {
            return Ok(Self::console(state));
        };
        if let Some(page) = device_page(&state.platform.auth_url, given) {
            return Ok(Self(page));
        }
        let deletion = Self::deletion(state);
        if deletion.0 == given {
            return Ok(deletion);
        }
        if let Some(page) = Self::frame(state, given) {
            return Ok(page);
        }
        let console = state.platform.origin.to_string();
        canonical(given, |origin| {
            origin == console || state.games.catalogue.game_at(origin).is_some()
        })
        .map(Self)
        .ok_or_else(|| ProblemCode::InvalidRedirect.into())
    }

    /// Returns the page that hands the player to the game in a frame that opened it, if `given` is
    /// exactly the address that the runtime makes.
    fn frame(state: &AuthState, given: &str) -> Option<Self> {
        let url = Url::parse(given).ok()?;
        let mut pairs = url.query_pairs();
        let (to, wanted) = (pairs.next()?.1, pairs.next()?.1);
        let game = state
            .games
            .catalogue
            .game_at(&to)
            .filter(|game| game.is_apart)?;
        cookies::decode(&wanted)?;
        let page = Self::of_frame(state, &game, &wanted);
        (page.0 == given).then_some(page)
    }

    /// Returns the page that hands the player to the game in a frame, with the secret of the frame.
    #[must_use]
    pub fn of_frame(state: &AuthState, game: &Game, wanted: &str) -> Self {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair(TO, &game.origin)
            .append_pair(STATE, wanted)
            .finish();
        let auth_url = &state.platform.auth_url;
        Self(format!("{auth_url}{}?{query}", paths::FRAME))
    }

    /// Returns the console's home page.
    #[must_use]
    pub fn console(state: &AuthState) -> Self {
        Self(format!("{}/", state.platform.origin))
    }

    /// Returns the page that signs in a device; if given, with a code and the seal that the page
    /// requires to accept it.
    #[must_use]
    pub fn device(state: &AuthState, code: Option<(&UserCode, &str)>) -> Self {
        let (code, proof) = code.unzip();
        Self(device_address(&state.platform.auth_url, code, proof))
    }

    /// Returns the page that deletes the player.
    #[must_use]
    pub fn deletion(state: &AuthState) -> Self {
        Self(format!("{}{DELETION_PAGE}", state.platform.auth_url))
    }

    /// Checks the address in a query. A repeated parameter is rejected, since it is ambiguous.
    ///
    /// # Errors
    /// `invalid-redirect`
    pub fn from_query(state: &AuthState, query: Option<&str>) -> Result<Self, ApiError> {
        let query = query.unwrap_or_default().as_bytes();
        let mut given = form_urlencoded::parse(query).filter(|(name, _)| name == REDIRECT);
        match (given.next(), given.next()) {
            (None, _) => Self::read(state, None),
            (Some((_, only)), None) => Self::read(state, Some(&only)),
            (Some(_), Some(_)) => Err(ProblemCode::InvalidRedirect.into()),
        }
    }

    /// Returns where to send the browser so that it arrives here as the player that it has now: a
    /// game that is apart must take the player over first.
    #[must_use]
    pub fn arrival(&self, state: &AuthState) -> String {
        let Some(game) = self.game(state).filter(|game| game.is_apart) else {
            return self.0.clone();
        };
        let Some(rest) = self.0.strip_prefix(&game.origin) else {
            return self.0.clone();
        };
        let (path, fragment) = match rest.split_once('#') {
            Some((path, fragment)) => (path, format!("#{fragment}")),
            None => (rest, String::new()),
        };
        if !is_path(path) {
            return self.0.clone();
        }
        format!("{}{fragment}", hand_off::arrival(&game, path))
    }

    /// Returns the address, in visible ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the page that signs in a device.
    #[must_use]
    pub fn is_device_page(&self, state: &AuthState) -> bool {
        device_page(&state.platform.auth_url, &self.0).is_some()
    }

    /// Whether it is the page that deletes the player.
    #[must_use]
    pub fn is_deletion_page(&self, state: &AuthState) -> bool {
        *self == Self::deletion(state)
    }

    /// Returns the path if it leads to the console.
    #[must_use]
    pub fn console_path(&self, state: &AuthState) -> Option<String> {
        let url = Url::parse(&self.0).ok()?;
        let here = url.origin().ascii_serialization() == state.platform.origin.to_string();
        here.then(|| url.path().to_owned())
    }

    /// Whether it is the page that hands the player to a game in a frame.
    #[must_use]
    pub fn is_frame_page(&self, state: &AuthState) -> bool {
        Self::frame(state, &self.0).is_some()
    }

    /// Returns the game to which it leads; `None` for the console.
    #[must_use]
    pub fn game(&self, state: &AuthState) -> Option<Arc<Game>> {
        let url = Url::parse(&self.0).ok()?;
        if self.is_frame_page(state) {
            let (_, to) = url.query_pairs().next()?;
            return state.games.catalogue.game_at(&to);
        }
        state
            .games
            .catalogue
            .game_at(&url.origin().ascii_serialization())
    }
}
