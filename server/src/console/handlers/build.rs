//! `GET /build` and `GET /build/<slug>` on the platform origin: a developer's
//! projects, and the Build page of one.
//!
//! The pages contain no data and are the same for everybody: their scripts request the data from
//! the project API as the signed-in player.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use platform_protocol::names::{Environment, check_slug_form};
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;
use url::form_urlencoded;

use crate::auth::redirect::REDIRECT;
use crate::console::ConsoleState;
use crate::console::files::Scripts;
use crate::games::panes;
use crate::web::api_error::ApiError;
use crate::web::page::{self, Layout};

#[derive(Template)]
#[template(path = "projects.html")]
struct Projects<'a> {
    frame: Layout,
    scripts: Scripts,
    origin: String,
    auth_url: &'a str,
    sign_in: String,
}

#[derive(Template)]
#[template(path = "build.html")]
struct Build<'a> {
    frame: Layout,
    scripts: Scripts,
    auth_url: &'a str,
    sign_in: String,
    slug: &'a str,
    /// The dev address, without a trailing slash.
    game: &'a str,
    game_host: &'a str,
}

/// Returns the page of a developer's projects.
pub async fn projects(State(state): State<Arc<ConsoleState>>) -> Response {
    let page = Projects {
        origin: state.platform.origin.to_string(),
        frame: Layout::new(&state.platform.origin),
        scripts: state.files.scripts("projects"),
        auth_url: &state.platform.auth_url,
        sign_in: sign_in(&state, paths::BUILD_PAGES),
    };
    page::render_console(&page, &state.platform.auth_url, None)
}

/// Returns the Build page of a project, even if it does not exist: only its owner learns that.
///
/// # Errors
/// `not-found`
pub async fn project(
    State(state): State<Arc<ConsoleState>>,
    Path(slug): Path<String>,
) -> Result<Response, ApiError> {
    check_slug_form(&slug).map_err(|_| ApiError::from(ProblemCode::NotFound))?;
    let game = state
        .platform
        .games_origin
        .sub_domain(&Environment::Dev.label(&slug));
    let page = Build {
        frame: Layout::new(&state.platform.origin),
        scripts: state.files.scripts("build"),
        auth_url: &state.platform.auth_url,
        sign_in: sign_in(&state, &format!("{}/{slug}", paths::BUILD_PAGES)),
        slug: &slug,
        game: &game,
        game_host: game.split_once("://").map_or("", |(_, host)| host),
    };
    let mut shown = panes::origins(&slug, &state.platform.games_origin);
    shown.insert(0, game.clone());
    Ok(page::render_console(
        &page,
        &state.platform.auth_url,
        Some(&shown.join(" ")),
    ))
}

/// Returns a script or the stylesheet of the console's pages.
///
/// # Errors
/// `not-found`
pub async fn file(
    State(state): State<Arc<ConsoleState>>,
    Path((version, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let file = state.files.answer(&version, &name, &headers);
    Ok(file.ok_or(ProblemCode::NotFound)?)
}

/// Returns the sign-in page's address, with `path` as the return address.
pub(super) fn sign_in(state: &ConsoleState, path: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair(REDIRECT, &format!("{}{path}", state.platform.origin))
        .finish();
    format!("{}{}?{query}", state.platform.auth_url, paths::LOGIN)
}
