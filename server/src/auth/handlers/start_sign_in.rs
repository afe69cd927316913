//! `POST {auth_url}/login/<provider>`: a player has chosen a provider, and the browser is
//! redirected to it.

use std::sync::Arc;

use axum::extract::{RawPathParams, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;
use url::form_urlencoded;
use uuid::Uuid;

use super::browser_session;
use super::confirm_sign_in;
use super::guest;
use super::own_form::OwnForm;
use crate::auth::AuthState;
use crate::auth::redirect::REDIRECT;
use crate::clock::Millis;
use crate::domain::errors::chain;
use crate::domain::player::PlayerState;
use crate::domain::sign_in::{PendingSignIn, StateHash};
use crate::web::api_error::ApiError;
use crate::web::client_address::Network;
use crate::web::limiter::too_many_requests;
use crate::web::redirects::see_other;
use crate::web::request_context::Context;
use crate::web::seal::SHOWN;
use platform_openid::{Provider, Who};

/// The name of the provider in the path.
const PROVIDER: &str = "provider";
/// The form field for signing in with another account than the one that the provider remembers in
/// this browser.
const ANOTHER: &str = "another";

/// The parameter of the sign-in page, and the field of its forms, for a new sign-in: the provider
/// asks, even if it remembers somebody.
pub(super) const AGAIN: &str = "again";

/// What the sign-in page says about a failed sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignInNotice {
    /// The player cancelled.
    Cancelled,
    /// The provider's response is invalid, or an error.
    Failed,
    /// The provider does not respond.
    ProviderUnavailable,
    /// It was never started, has ended, or took too long.
    Expired,
    /// Another browser started it, or this one has lost its cookies.
    OtherBrowser,
    /// A form of the profile page was submitted after the session had ended.
    NotSaved,
    /// A button was pressed before its page could be read.
    Hurried,
}

impl SignInNotice {
    /// Returns its name in addresses and in the metrics.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::ProviderUnavailable => "provider-unavailable",
            Self::Expired => "expired",
            Self::OtherBrowser => "other-browser",
            Self::NotSaved => "not-saved",
            Self::Hurried => "hurried",
        }
    }
}

/// Returns 303 to the provider, or back to the sign-in page if the provider does not respond. If
/// the button was pressed before it could be read, the response is a page that continues to the
/// provider a little later.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`, `invalid-redirect`, `unsupported-media-type`,
/// `payload-too-large`, `too-many-requests`; errors of the store.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    path: RawPathParams,
    context: Context,
    headers: HeaderMap,
    OwnForm {
        form,
        secret: browser,
        address: redirect,
    }: OwnForm,
) -> Result<Response, ApiError> {
    let provider = provider_of(&state, &path)?;
    let secure = state.platform.origin.is_secure();
    let again = form.field(AGAIN)?.is_some();
    let who = match form.field(ANOTHER)? {
        _ if again => Who::Again,
        Some(_) => Who::Another,
        None => Who::Anyone,
    };
    let network = Network::of(context.client);
    state
        .limits
        .sign_ins
        .count(&network)
        .await
        .map_err(too_many_requests)?;

    let started_at = state.platform.clock.now();
    let hurried = confirm_sign_in::is_hurried(&browser, form.field(SHOWN)?, started_at);
    let guest = guest_of(&state, &headers, network, started_at).await?;
    let beginning = match provider.begin(&*state.platform.entropy, who).await {
        Ok(beginning) => beginning,
        Err(error) => {
            tracing::warn!(
                request_id = context.id.as_str(),
                provider = provider.id(),
                error = chain(&error),
                "a sign-in could not begin"
            );
            let notice = SignInNotice::ProviderUnavailable;
            let metrics = &state.platform.metrics;
            metrics.sign_in(provider.id(), notice.code());
            return back_to_login(&state, Some(redirect.as_str()), notice);
        }
    };
    let pending = PendingSignIn {
        state: StateHash::of(&beginning.state),
        browser: browser.binding(),
        provider: provider.id().to_owned(),
        nonce: beginning.nonce,
        pkce_verifier: beginning.pkce_verifier,
        guest,
        redirect: redirect.as_str().to_owned(),
        started_at,
        again,
    };
    state.platform.store.add_pending_sign_in(pending).await?;
    let address = beginning.address.as_str();
    let mut response = if hurried {
        confirm_sign_in::pause(&state, &redirect, provider.name(), address).await?
    } else {
        see_other(address)?
    };
    // The sign-in is stored for minutes, the return address as long as the browser is open.
    let cookie = browser.set_cookie_going_back(secure, redirect.as_str());
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// Returns the provider that the path names.
///
/// # Errors
/// `not-found`
pub(super) fn provider_of<'a>(
    state: &'a AuthState,
    path: &RawPathParams,
) -> Result<&'a Provider, ApiError> {
    path.iter()
        .find(|(name, _)| *name == PROVIDER)
        .and_then(|(_, id)| state.providers.find(id))
        .ok_or_else(|| ProblemCode::NotFound.into())
}

/// Returns the current guest of this browser, which may become an account. A suspended guest is
/// linked only if the suspension is lifted meanwhile.
async fn guest_of(
    state: &AuthState,
    headers: &HeaderMap,
    network: Network,
    now: Millis,
) -> Result<Option<Uuid>, ApiError> {
    let Some(secret) = browser_session::secret(state, headers).await? else {
        return Ok(None);
    };
    let session = guest::find_or_make(state, network, &secret).await?;
    // Whoever asked to be deleted does not become a part of an account.
    let session = session.filter(|session| session.deletion.is_none());
    Ok(session.and_then(|session| {
        let is_guest = match session.player.state {
            PlayerState::Guest => !session.has_ended(now),
            PlayerState::Suspended { linked, .. } => !linked,
            PlayerState::Account | PlayerState::Merged { .. } => false,
        };
        is_guest.then_some(session.player.id)
    }))
}

/// Returns 303 to the sign-in page with a message, and with the return address if it is known.
pub(super) fn back_to_login(
    state: &AuthState,
    redirect: Option<&str>,
    setback: SignInNotice,
) -> Result<Response, ApiError> {
    let path = login_path(redirect, setback);
    see_other(&format!("{}{path}", state.platform.auth_url))
}

/// Returns the path of the sign-in page with a message.
pub(super) fn login_path(redirect: Option<&str>, setback: SignInNotice) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(redirect.map(|redirect| (REDIRECT, redirect)))
        .append_pair("problem", setback.code())
        .finish();
    format!("{}?{query}", paths::LOGIN)
}
