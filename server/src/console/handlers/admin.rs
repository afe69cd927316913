//! `/admin` on the platform origin, and what is below it: administration in a
//! browser.
//!
//! These are the frames alone, the same for everybody who asks: what is in them
//! the pages' own scripts ask `/api/admin/` for, as who is signed in, and only
//! administrators are answered.

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
    Events,
}

impl Part {
    /// Those that the others lead to.
    const MENU: [Self; 5] = [
        Self::Players,
        Self::Guests,
        Self::Projects,
        Self::Keys,
        Self::Events,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::Players => "Players",
            Self::Player => "Player",
            Self::Guests => "Guests by address",
            Self::Projects => "Projects",
            Self::Keys => "Signing keys",
            Self::Events => "Audit log",
        }
    }

    /// What it is called in the menu.
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
            Self::Events => "/admin/events",
        }
    }

    /// The name of the page's own script.
    const fn script(self) -> &'static str {
        match self {
            Self::Players => "admin_players",
            Self::Player => "admin_player",
            Self::Guests => "admin_guests",
            Self::Projects => "admin_projects",
            Self::Keys => "admin_keys",
            Self::Events => "admin_events",
        }
    }

    /// How an entry of the menu is marked on this page (`aria-current`).
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
    auth_url: &'a str,
    sign_in: String,
    part: Part,
    /// The player that the page is about; empty where it is about none.
    player: String,
}

impl Admin<'_> {
    /// The menu: paths, names, and which entry stands for this page.
    fn menu(
        &self,
    ) -> impl Iterator<Item = (&'static str, &'static str, Option<&'static str>)> + use<> {
        let part = self.part;
        let entries = Part::MENU.into_iter();
        entries.map(move |entry| (entry.path(), entry.entry(), part.current(entry)))
    }

    /// What the log can be narrowed down to: names, and how they are read.
    fn kinds() -> impl Iterator<Item = (&'static str, String)> {
        let kinds = AuditKind::ALL.into_iter().map(AuditKind::as_str);
        kinds.map(|kind| (kind, kind.replace('-', " ")))
    }
}

/// The addresses of the pages.
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

/// Answers the page of one player, whether there is one of this id or not.
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
        auth_url: &state.platform.auth_url,
        sign_in: build::sign_in(state, &path),
        part,
        player,
    };
    page::render_console(&page, &state.platform.auth_url, None)
}
