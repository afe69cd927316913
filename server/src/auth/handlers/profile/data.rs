//! `POST {auth_url}/profile/data`: everything that the platform knows about the player, as one JSON
//! file.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use platform_protocol::problem::ProblemCode;
use uuid::Uuid;

use crate::auth::AuthState;
use crate::auth::exports;
use crate::auth::handlers::own_form::OwnForm;
use crate::auth::handlers::page_visitor::Visitor;
use crate::auth::handlers::start_sign_in::{SignInNotice, login_path};
use crate::auth::handlers::token::suspended;
use crate::web::api_error::ApiError;
use crate::web::limiter::too_many_requests;
use crate::web::redirects::see_other;

/// The path.
pub const PATH: &str = "/profile/data";

/// Responds to `POST /profile/data` with the file, or with 303 to the sign-in page.
///
/// # Errors
/// `not-allowed` for a form that is not ours, `invalid-redirect`, `account-suspended`,
/// `too-many-requests`; errors of the store.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    headers: HeaderMap,
    form: OwnForm,
) -> Result<Response, ApiError> {
    let player = match Visitor::of(&state, &headers).await? {
        Visitor::Guest(session) | Visitor::Account(session) | Visitor::Leaving(session, _) => {
            session.player.id
        }
        Visitor::Suspended { reason, .. } => return Err(suspended(reason)),
        Visitor::Unknown | Visitor::Ended => {
            let address = Some(form.address.as_str());
            return see_other(&login_path(address, SignInNotice::NotSaved));
        }
    };
    state
        .limits
        .exports
        .count(&player)
        .await
        .map_err(too_many_requests)?;
    let (store, now) = (&*state.platform.store, state.platform.clock.now());
    let file = exports::file(store, player, now).await?;
    let file = file.ok_or(ProblemCode::NotFound)?;
    answer(player, file)
}

/// Returns the file, which the browser saves and does not show.
fn answer(player: Uuid, file: String) -> Result<Response, ApiError> {
    let name = format!("attachment; filename=\"player-{player}.json\"");
    let name = HeaderValue::from_str(&name).map_err(|error| ApiError::internal(&error))?;
    let mut response = Response::new(Body::from(file));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_DISPOSITION, name);
    for (name, value) in [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}
