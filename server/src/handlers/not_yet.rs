//! `GET {auth_url}/login` and `/profile`, until players can sign in: a page
//! that says so, with a way back.

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use platform_protocol::problem::Slug;
use url::Url;

use crate::http::page;
use crate::http::page::STYLESHEET;
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
    let back = way_back(state, query)?;
    let page = Page {
        stylesheet: STYLESHEET,
        title,
        sentence,
        back,
    };
    Ok(page::render(StatusCode::SERVICE_UNAVAILABLE, &page))
}

/// The `redirect` of the query, if it leads to this platform, or the console
/// where there is none.
fn way_back(state: &AppState, query: Option<&str>) -> Result<String, Refusal> {
    let query = query.unwrap_or_default();
    let mut given =
        url::form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "redirect");
    match (given.next(), given.next()) {
        (None, _) => Ok(format!("{}/", state.origin)),
        (Some((_, redirect)), None) => {
            known_address(&redirect, |origin| state.sites.caller(origin).is_some())
                .ok_or_else(|| Slug::InvalidRedirect.into())
        }
        (Some(_), Some(_)) => Err(Slug::InvalidRedirect.into()),
    }
}

/// The address as the parser understood it, so that a browser cannot
/// understand it otherwise. Backslashes, control characters and user names
/// are where parsers differ, so none of them passes.
fn known_address(redirect: &str, known: impl Fn(&str) -> bool) -> Option<String> {
    if redirect.contains('\\')
        || redirect
            .chars()
            .any(|char| char.is_control() || char == ' ')
    {
        return None;
    }
    let url = Url::parse(redirect).ok()?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none();
    (plain && known(&url.origin().ascii_serialization())).then(|| url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_platform_lead_back() {
        let known = |origin: &str| origin == "http://demo.platform.localhost:8787";
        let good = "http://demo.platform.localhost:8787/level?n=1#start";
        assert_eq!(known_address(good, known).as_deref(), Some(good));
        for bad in [
            "",
            "/level",
            "//demo.platform.localhost:8787/",
            "javascript:alert(1)",
            "http://demo.platform.localhost/",
            "https://demo.platform.localhost:8787/",
            "http://evil.example/",
            "http://demo.platform.localhost:8787@evil.example/",
            "http://me@demo.platform.localhost:8787/",
            "http:\\\\demo.platform.localhost:8787\\",
            "http://demo.platform.localhost:8787/\n",
            " http://demo.platform.localhost:8787/",
            "http://demo.platform.localhost.:8787/",
            "http://demo.platform.localhost:8787.evil.example/",
        ] {
            assert_eq!(known_address(bad, known), None, "{bad}");
        }
    }
}
