//! The platform for games in Rust that run in the browser: who plays, calls of the game's own backend,
//! signing in and out.
//!
//! The page loads the runtime with its tag, before the game's own module:
//!
//! ```html
//! <script defer src="/__platform/runtime.js"></script>
//! ```
//!
//! Everything else is Rust:
//!
//! ```no_run
//! # #[derive(serde::Deserialize)]
//! # struct Standing { best: u32 }
//! # async fn play() -> Result<(), platform_game::PlatformError> {
//! let player = platform_game::player().await?;
//! let standing: Standing = platform_game::fetch("/api/score").json().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Natively, where `cargo test` runs, there is no browser, and the module `stub` answers for the
//! platform.
//!
//! | module | holds |
//! |---|---|
//! | [`error`] | what can go wrong, by its type |
//! | [`request`] | calls of the game's backend |
//! | [`retry`] | trying again, later each time |
//! | `stub` | natively, a platform that a test sets up |
//! | `web` | in the browser, the runtime in the page |

pub mod error;
pub mod request;
pub mod retry;
#[cfg(not(target_arch = "wasm32"))]
pub mod stub;
#[cfg(target_arch = "wasm32")]
mod web;

use serde::{Deserialize, Serialize};

#[cfg(not(target_arch = "wasm32"))]
use stub as place;
#[cfg(target_arch = "wasm32")]
use web as place;

pub use error::{PlatformError, Problem};
pub use place::PlayerChange;
pub use request::{Request, Response, fetch};
pub use retry::{Retry, retry};

/// Who plays.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Player {
    /// The player's id, a UUID: the same in every game and for good. Key data on it.
    pub id: String,
    /// The name to show. The player can change it.
    pub username: String,
    /// Whether the player has not signed in yet. By signing in, a guest keeps the id.
    pub is_guest: bool,
}

/// Returns who plays. A first visit makes a guest; most other calls send no request.
///
/// # Errors
/// There is no token for this player, such as [`PlatformError::SessionExpired`].
pub async fn player() -> Result<Player, PlatformError> {
    place::player().await
}

/// Returns the player's game token, for what [`fetch`] cannot call, such as a WebSocket. Call it each
/// time: the runtime keeps the token as long as it is good. `force_refresh` is for a token that the
/// backend has rejected.
///
/// # Errors
/// There is no token for this player, such as [`PlatformError::SessionExpired`].
pub async fn access_token(force_refresh: bool) -> Result<String, PlatformError> {
    place::access_token(force_refresh).await
}

/// Returns the address of the sign-in page, for a link. The player comes back to `redirect`, an
/// address of the game; to the current page if it is `None`.
///
/// # Errors
/// `redirect` is not an address, or the page has no runtime.
pub fn login_url(redirect: Option<&str>) -> Result<String, PlatformError> {
    place::login_url(redirect)
}

/// Returns the address of the page where the player can change the name.
///
/// # Errors
/// As for [`login_url`].
pub fn profile_url(redirect: Option<&str>) -> Result<String, PlatformError> {
    place::profile_url(redirect)
}

/// Leaves the page for the sign-in page, and comes back to the current page afterwards.
///
/// # Errors
/// The page has no runtime.
pub fn log_in() -> Result<(), PlatformError> {
    place::open(&login_url(None)?)
}

/// Signs the player out of the platform, in this game and all others, and loads the game's start page.
///
/// # Errors
/// The player could not be signed out, and the page stays open.
pub async fn sign_out() -> Result<(), PlatformError> {
    place::sign_out().await
}

/// Adds an error to the project's log, with a value that helps to understand it. It does not fail:
/// what cannot be sent is dropped.
pub fn report_error<T: Serialize + ?Sized>(message: &str, metadata: &T) {
    place::report_error(message, metadata);
}

/// Calls `handler` whenever another player plays than before, as after a sign-in in another tab.
/// [`player`] then says who it is.
pub fn on_player_change(handler: impl FnMut() + 'static) -> PlayerChange {
    PlayerChange::listen(handler)
}
