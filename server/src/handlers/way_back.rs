//! The way back from a page of the auth service, in words.

use crate::http::redirect::ReturnAddress;
use crate::state::AppState;

/// Where a page leads back to.
#[derive(Debug)]
pub(super) struct WayBack {
    /// The address.
    pub(super) address: String,
    /// The game that it leads to; none for the platform's first page.
    pub(super) game: Option<String>,
    /// What stands on the link.
    pub(super) label: String,
    /// The same, for who has done here what they came for.
    pub(super) onward: String,
}

impl WayBack {
    /// Finds out what the game is called.
    pub(super) async fn of(state: &AppState, address: &ReturnAddress) -> Self {
        let game = match address.game(state) {
            Some(game) => Some(state.titles.of(&game, &state.files).await.to_string()),
            None => None,
        };
        let (label, onward) = match &game {
            Some(game) => (format!("Back to {game}"), format!("Go on to {game}")),
            None => (
                "Back to all games".to_owned(),
                "Go on to all games".to_owned(),
            ),
        };
        Self {
            address: address.as_str().to_owned(),
            game,
            label,
            onward,
        }
    }
}

/// The path of a page with the way back in its query.
pub(super) fn page_path(path: &str, address: &ReturnAddress, more: &[(&str, &str)]) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair(crate::http::redirect::REDIRECT, address.as_str())
        .extend_pairs(more)
        .finish();
    format!("{path}?{query}")
}
