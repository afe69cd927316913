//! `GET /projects/<slug>` on the platform origin: the page of a project. Like the [Build
//! page](super::build), it contains no data.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use platform_protocol::names::{Environment, check_slug_form};
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;

use super::build::sign_in;
use crate::console::ConsoleState;
use crate::web::api_error::ApiError;
use crate::web::page::{self, Layout};

#[derive(Template)]
#[template(path = "project.html")]
struct Project<'a> {
    frame: Layout,
    auth_url: &'a str,
    sign_in: String,
    slug: &'a str,
}

/// Returns the page of a project, even if it does not exist: only its owner learns that.
///
/// # Errors
/// `not-found`
pub async fn handle(
    State(state): State<Arc<ConsoleState>>,
    Path(slug): Path<String>,
) -> Result<Response, ApiError> {
    check_slug_form(&slug).map_err(|_| ApiError::from(ProblemCode::NotFound))?;
    let page = Project {
        frame: Layout::new(&state.platform.origin),
        auth_url: &state.platform.auth_url,
        sign_in: sign_in(&state, &format!("{}/{slug}", paths::PROJECT_PAGES)),
        slug: &slug,
    };
    let address =
        |environment: Environment| state.platform.origin.sub_domain(&environment.label(&slug));
    let (dev, prod) = (address(Environment::Dev), address(Environment::Prod));
    Ok(page::render_project(
        &page,
        &state.platform.auth_url,
        [&dev, &prod],
    ))
}
