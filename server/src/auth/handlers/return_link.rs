//! The return link of a page of the auth service, in words.

use platform_protocol::names::check_slug_form;
use platform_protocol::paths;

use crate::auth::AuthState;
use crate::auth::redirect::ReturnAddress;
use crate::games::page_metadata;

/// The target of a page's return link.
#[derive(Debug)]
pub(super) struct ReturnLink {
    /// The address.
    pub(super) address: String,
    /// The address at which the browser arrives as the player that it has now.
    pub(super) arrival: String,
    /// The game to which it leads; `None` for the platform's own pages.
    pub(super) game: Option<String>,
    /// Whether it leads to a device that waits for approval, for which a guest cannot continue.
    pub(super) device: bool,
    /// The name of the page for developers to which it leads. Guests see nothing there.
    pub(super) page: Option<String>,
    /// The text of the link.
    pub(super) label: String,
    /// The text of the link after the player has finished here.
    pub(super) onward: String,
    /// The link for a player who does not sign in.
    pub(super) as_guest: Link,
}

/// An address and its text.
#[derive(Debug)]
pub(super) struct Link {
    /// The address.
    pub(super) address: String,
    /// The text.
    pub(super) label: String,
}

impl ReturnLink {
    /// Looks up the game's name.
    pub(super) async fn of(state: &AuthState, address: &ReturnAddress) -> Self {
        let game = address.game(state).map(|game| page_metadata::title(&game));
        let device = address.is_device_page(state);
        let deletion = address.is_deletion_page(state);
        let path = address.console_path(state);
        let page = path.as_deref().and_then(developers_page);
        let place = match (game.as_deref(), page.as_deref()) {
            (Some(name), _) | (None, Some(name)) => name,
            (None, None) if device => "the device's code",
            (None, None) if deletion => "deleting your account",
            (None, None) => ALL_GAMES,
        };
        let label = format!("Back to {place}");
        let as_guest = if deletion {
            Link {
                address: format!("{}{}", state.platform.auth_url, paths::PROFILE),
                label: "Back to your profile".to_owned(),
            }
        } else if page.is_some() {
            Link {
                address: ReturnAddress::console(state).as_str().to_owned(),
                label: format!("Back to {ALL_GAMES}"),
            }
        } else {
            Link {
                address: address.as_str().to_owned(),
                label: label.clone(),
            }
        };
        Self {
            address: address.as_str().to_owned(),
            arrival: address.arrival(state),
            onward: format!("Go on to {place}"),
            label,
            game,
            device,
            page,
            as_guest,
        }
    }
}

/// The name of the platform's home page.
const ALL_GAMES: &str = "all games";

/// Returns the name of a page for developers by its path on the console.
fn developers_page(path: &str) -> Option<String> {
    let of_project = |path: &str, pages: &str, words: &str| {
        let slug = path.strip_prefix(pages)?.strip_prefix('/')?;
        check_slug_form(slug).ok()?;
        Some(format!("{words} {slug}"))
    };
    if path == paths::BUILD_PAGES {
        return Some("your projects".to_owned());
    }
    if path == paths::INVITATION_PAGE {
        return Some("your invitation".to_owned());
    }
    if path == paths::ADMIN_PAGES || path.starts_with(&format!("{}/", paths::ADMIN_PAGES)) {
        return Some("administration".to_owned());
    }
    let without_tab = paths::PROJECT_TABS
        .iter()
        .find_map(|tab| path.strip_suffix(tab)?.strip_suffix('/'));
    of_project(path, paths::BUILD_PAGES, "the Build page of")
        .or_else(|| of_project(path, paths::PROJECT_PAGES, "the project"))
        .or_else(|| of_project(without_tab?, paths::PROJECT_PAGES, "the project"))
}

/// Returns the path of a page with the return address in its query.
pub(super) fn page_path(path: &str, address: &ReturnAddress, more: &[(&str, &str)]) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair(crate::auth::redirect::REDIRECT, address.as_str())
        .extend_pairs(more)
        .finish();
    format!("{path}?{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_for_developers_are_called_what_they_are() {
        for (path, words) in [
            ("/build", Some("your projects")),
            ("/invitations", Some("your invitation")),
            ("/build/my-game", Some("the Build page of my-game")),
            ("/projects/my-game", Some("the project my-game")),
            ("/projects/my-game/logs", Some("the project my-game")),
            ("/projects/logs", Some("the project logs")),
            ("/projects/logs/logs", Some("the project logs")),
            ("/projects/my-game/nothing", None),
            ("/build/my-game/logs", None),
            ("/admin", Some("administration")),
            ("/admin/events", Some("administration")),
            ("/", None),
            ("/build/", None),
            ("/build/<b>", None),
            ("/build/my-game/more", None),
            ("/projects", None),
            ("/administer", None),
        ] {
            assert_eq!(developers_page(path).as_deref(), words, "{path}");
        }
    }
}
