//! `{auth_url}/demo-provider/authorize`: the page on which a person types a name.
//!
//! The form needs no CSRF token: it works once, with an id that only the page knows.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use platform_protocol::problem::ProblemCode;

use crate::auth::AuthState;
use crate::auth::demo_provider::grant::{MAX_NAME_CHARS, subject_of};
use crate::auth::demo_provider::{AUTHORIZE, Asked, DemoProvider};
use crate::origin::PlatformOrigin;
use crate::web::api_error::ApiError;
use crate::web::form::Form;
use crate::web::page::{self, FormTarget, Layout};
use crate::web::redirects::see_other;

#[derive(Template)]
#[template(path = "demo_provider.html")]
struct Page<'a> {
    frame: Layout,
    action: &'static str,
    request: &'a str,
    name: &'a str,
    most: usize,
    wrong: bool,
}

/// Responds to `GET` with the page, or with 303 back to the platform with an error.
///
/// # Errors
/// `invalid-request`
pub async fn page(
    State(state): State<Arc<AuthState>>,
    Extension(provider): Extension<Arc<DemoProvider>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let query = Form::of_query(query.as_deref());
    let asked = Asked {
        response_type: query.field("response_type")?,
        client_id: query.field("client_id")?,
        redirect: query.field("redirect_uri")?,
        scope: query.field("scope")?,
        state: query.field("state")?,
        nonce: query.field("nonce")?,
        challenge: query.field("code_challenge")?,
        challenge_method: query.field("code_challenge_method")?,
    };
    match provider.ask(&asked) {
        Ok(Ok(request)) => Ok(render(
            &state.platform.origin,
            StatusCode::OK,
            &request,
            None,
        )),
        Ok(Err(address)) => see_other(address.as_str()),
        Err(_) => Err(ApiError::new(ProblemCode::InvalidRequest).with_detail(
            "The demo provider only signs players in to this platform. Please start on its sign-in \
             page.",
        )),
    }
}

/// Responds to `POST` with 303 back to the platform, or with the page again if the name is invalid.
///
/// # Errors
/// `unsupported-media-type`, `payload-too-large`, `invalid-request`.
pub async fn answer(
    State(state): State<Arc<AuthState>>,
    Extension(provider): Extension<Arc<DemoProvider>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = Form::read(&headers, body).await?;
    let request = form.field("request")?.unwrap_or_default();
    let name = form.field("name")?.unwrap_or_default();
    let address = match form.field("action")? {
        Some("cancel") => provider.cancel(request),
        _ => match subject_of(name) {
            Some(_) => provider.grant(request, name),
            None if provider.is_waiting(request) => {
                let status = StatusCode::UNPROCESSABLE_ENTITY;
                return Ok(render(&state.platform.origin, status, request, Some(name)));
            }
            None => None,
        },
    };
    match address {
        Some(address) => see_other(address.as_str()),
        None => Err(ApiError::new(ProblemCode::InvalidRequest)
            .with_detail("This page was already used, or is too old. Please sign in again.")),
    }
}

fn render(
    origin: &PlatformOrigin,
    status: StatusCode,
    request: &str,
    wrong_name: Option<&str>,
) -> Response {
    let page = Page {
        frame: Layout::new(origin),
        action: AUTHORIZE,
        request,
        name: wrong_name.unwrap_or_default(),
        most: MAX_NAME_CHARS,
        wrong: wrong_name.is_some(),
    };
    let mut response = page::render_form(status, &page, FormTarget::of_sign_in(origin));
    // The game in a frame may have opened the sign-in in a tab.
    page::keep_opener(response.headers_mut());
    response
}
