//! `GET /projects/<slug>` on the platform origin: the page of a project. As with
//! the [Build page](super::build), this is the frame alone.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use platform_protocol::names::{Environment, check_slug_form};
use platform_protocol::problem::Slug;

use super::build::sign_in;
use crate::http::page::{self, Frame};
use crate::http::refusal::Refusal;
use crate::state::AppState;

/// Below this are the pages of projects.
pub const PATH: &str = "/projects";

#[derive(Template)]
#[template(path = "project.html")]
struct Project<'a> {
    frame: Frame,
    auth_url: &'a str,
    sign_in: String,
    slug: &'a str,
}

/// Answers the page of a project, whether there is one of this name or not: only
/// its owner is told.
///
/// # Errors
/// `not-found`
pub async fn handle(
    State(state): State<AppState>,
    Path(slug): Path<String>,
) -> Result<Response, Refusal> {
    check_slug_form(&slug).map_err(|_| Refusal::from(Slug::NotFound))?;
    let page = Project {
        frame: Frame::new(&state.origin),
        auth_url: &state.auth_url,
        sign_in: sign_in(&state, &format!("{PATH}/{slug}")),
        slug: &slug,
    };
    let address = |environment: Environment| state.origin.sub_domain(&environment.label(&slug));
    let (dev, prod) = (address(Environment::Dev), address(Environment::Prod));
    Ok(page::render_project(&page, &state.auth_url, [&dev, &prod]))
}
