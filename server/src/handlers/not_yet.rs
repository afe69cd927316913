//! `GET {auth_url}/login` and `/profile`, until players can sign in: a page
//! that says so, with a way back.

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;

use crate::http::page;
use crate::http::page::STYLESHEET;
use crate::http::redirect::ReturnAddress;
use crate::http::refusal::Refusal;
use crate::state::AppState;

#[derive(Template)]
#[template(path = "not_yet.html")]
struct Page {
    stylesheet: &'static str,
    title: &'static str,
    sentence: &'static str,
    back: String,
}

/// Answers `GET /login`.
///
/// # Errors
/// `invalid-redirect`
pub async fn sign_in(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    answer(
        &state,
        query.as_deref(),
        "Signing in is not available yet",
        "This platform does not offer signing in yet. You can go on playing as a guest, and your \
         progress stays in this browser.",
    )
}

/// Answers `GET /profile`.
///
/// # Errors
/// `invalid-redirect`
pub async fn profile(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    answer(
        &state,
        query.as_deref(),
        "Profiles are not available yet",
        "This platform does not let you change your name yet. You can go on playing under the name \
         that you were given.",
    )
}

fn answer(
    state: &AppState,
    query: Option<&str>,
    title: &'static str,
    sentence: &'static str,
) -> Result<Response, Refusal> {
    let back = ReturnAddress::from_query(state, query)?;
    let page = Page {
        stylesheet: STYLESHEET,
        title,
        sentence,
        back: back.as_str().to_owned(),
    };
    Ok(page::render(StatusCode::SERVICE_UNAVAILABLE, &page))
}
