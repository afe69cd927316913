//! `POST {auth_url}/new-guest`: lets a player who cannot or does not want to sign in again continue
//! as a new guest.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;

use super::leave;
use super::own_form::OwnForm;
use super::page_visitor::Visitor;
use super::start_sign_in::{SignInNotice, back_to_login};
use super::token::suspended;
use crate::auth::AuthState;
use crate::web::api_error::ApiError;
use crate::web::cookies;
use crate::web::redirects::see_other;
use crate::web::request_context::Context;
use crate::web::seal::SHOWN;

/// The path. It is next to the path of the sign-in page and not below it, since the paths below are
/// for providers.
pub const PATH: &str = "/new-guest";

/// Returns 303 to the return address, and removes the session from the browser: the game there then
/// creates a guest. A valid session is kept, since a guest without its cookie would be lost. A
/// click that came before the page could be read leads back to the page.
///
/// # Errors
/// `not-allowed` for a form that is not ours, `invalid-request`, `invalid-redirect`,
/// `unsupported-media-type`, `payload-too-large`; `account-suspended`, since a new guest must not
/// get around a suspension; errors of the store.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    context: Context,
    headers: HeaderMap,
    OwnForm {
        form,
        secret,
        address,
    }: OwnForm,
) -> Result<Response, ApiError> {
    let secure = state.platform.origin.is_secure();
    let was_shown = secret.was_shown(form.field(SHOWN)?, state.platform.clock.now());
    let mut left = None;
    let forgets = match Visitor::of(&state, &headers).await? {
        Visitor::Guest(_) | Visitor::Account(_) => false,
        Visitor::Leaving(session, _) if was_shown => {
            // A guest takes its deletion back where guests that were signed out are restored.
            left = leave::sign_out(&state, &headers, &session.hash, context.own()).await?;
            true
        }
        Visitor::Unknown | Visitor::Ended | Visitor::Leaving(..) => true,
        Visitor::Suspended { reason, .. } => return Err(suspended(reason)),
    };
    if !was_shown {
        return back_to_login(&state, Some(address.as_str()), SignInNotice::Hurried);
    }
    let mut response = see_other(&address.arrival(&state))?;
    if forgets {
        let cookie = cookies::clear_session(secure);
        for cookie in [cookie].into_iter().chain(left) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    Ok(response)
}
