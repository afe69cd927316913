//! `/admin` on the platform origin, and paths below it: administration in a browser.
//!
//! The pages contain no data and are the same for everybody: their scripts request the data from
//! `/api/admin/` as the signed-in player, and only administrators get it.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{FromRef, Path, State};
use axum::response::Response;
use axum::routing::get;
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;
use uuid::Uuid;

use super::build;
use crate::console::ConsoleState;
use crate::console::files::Scripts;
use crate::domain::audit::AuditKind;
use crate::web::api_error::ApiError;
use crate::web::page::{self, Layout};

/// One of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Players,
    Player,
    Guests,
    Projects,
    Keys,
    Nodes,
    Events,
}

impl Part {
    /// The pages in the menu.
    const MENU: [Self; 6] = [
        Self::Players,
        Self::Guests,
        Self::Projects,
        Self::Keys,
        Self::Nodes,
        Self::Events,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::Players => "Players",
            Self::Player => "Player",
            Self::Guests => "Guests by address",
            Self::Projects => "Projects",
            Self::Keys => "Signing keys",
            Self::Nodes => "Nodes",
            Self::Events => "Audit log",
        }
    }

    /// Returns its name in the menu.
    const fn entry(self) -> &'static str {
        match self {
            Self::Guests => "Guests",
            Self::Keys => "Keys",
            _ => self.title(),
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Players => paths::ADMIN_PAGES,
            Self::Player => "/admin/players",
            Self::Guests => "/admin/guests",
            Self::Projects => "/admin/projects",
            Self::Keys => "/admin/keys",
            Self::Nodes => "/admin/nodes",
            Self::Events => "/admin/events",
        }
    }

    /// Returns the name of the page's own script.
    const fn script(self) -> &'static str {
        match self {
            Self::Players => "admin_players",
            Self::Player => "admin_player",
            Self::Guests => "admin_guests",
            Self::Projects => "admin_projects",
            Self::Keys => "admin_keys",
            Self::Nodes => "admin_nodes",
            Self::Events => "admin_events",
        }
    }

    /// Returns how an entry of the menu is marked on this page (`aria-current`).
    fn current(self, entry: Self) -> Option<&'static str> {
        match (self, entry) {
            (Self::Player, Self::Players) => Some("true"),
            _ => (self == entry).then_some("page"),
        }
    }
}

#[derive(Template)]
#[template(path = "admin.html")]
struct Admin<'a> {
    frame: Layout,
    scripts: Scripts,
    auth_url: &'a str,
    sign_in: String,
    part: Part,
    /// The player that the page is about; empty if there is none.
    player: String,
}

impl Admin<'_> {
    /// Returns the menu: paths, names, and which entry is the current page.
    fn menu(
        &self,
    ) -> impl Iterator<Item = (&'static str, &'static str, Option<&'static str>)> + use<> {
        let part = self.part;
        let entries = Part::MENU.into_iter();
        entries.map(move |entry| (entry.path(), entry.entry(), part.current(entry)))
    }

    /// Returns the filters for kinds of events: names and labels.
    fn kinds() -> impl Iterator<Item = (&'static str, String)> {
        let kinds = AuditKind::ALL.into_iter().map(AuditKind::as_str);
        kinds.map(|kind| (kind, kind.replace('-', " ")))
    }
}

/// Returns the routes of the pages.
pub fn routes<S>() -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    Arc<ConsoleState>: FromRef<S>,
{
    let pages = Part::MENU.into_iter().map(|part| {
        let handler =
            async move |State(state): State<Arc<ConsoleState>>| frame(&state, part, String::new());
        (part.path(), get(handler))
    });
    pages
        .fold(Router::new(), |router, (path, page)| {
            router.route(path, page)
        })
        .route(&format!("{}/{{player}}", Part::Player.path()), get(player))
}

/// Returns the page of one player, even if there is no player with this id.
///
/// # Errors
/// `not-found`
async fn player(
    State(state): State<Arc<ConsoleState>>,
    Path(player): Path<String>,
) -> Result<Response, ApiError> {
    let player: Uuid = player.parse().map_err(|_| ProblemCode::NotFound)?;
    Ok(frame(&state, Part::Player, player.to_string()))
}

fn frame(state: &ConsoleState, part: Part, player: String) -> Response {
    let path = match part {
        Part::Player => format!("{}/{player}", part.path()),
        _ => part.path().to_owned(),
    };
    let page = Admin {
        frame: Layout::new(&state.platform.origin),
        scripts: state.files.scripts(part.script()),
        auth_url: &state.platform.auth_url,
        sign_in: build::sign_in(state, &path),
        part,
        player,
    };
    page::render_console(&page, &state.platform.auth_url, None)
}
