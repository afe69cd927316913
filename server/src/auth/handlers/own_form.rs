//! A form of the auth service's own pages, with the fields that all of them have.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequest, Request};
use axum::http::{HeaderMap, HeaderValue};

use crate::auth::AuthState;
use crate::auth::redirect::{REDIRECT, ReturnAddress};
use crate::web::api_error::ApiError;
use crate::web::csrf::{self, BrowserSecret, check_form};
use crate::web::form::Form;
use crate::web::seal::Sealed;

/// What a page needs to show a form of the service's own.
pub(super) struct NewForm {
    /// The token that makes it a form of this browser.
    pub(super) csrf: String,
    /// The seal of the time at which the form is shown.
    pub(super) shown: String,
    /// The cookie of a browser that had no secret.
    pub(super) set_cookie: Option<HeaderValue>,
}

impl NewForm {
    /// Makes what a form in this browser needs.
    pub(super) fn of(state: &AuthState, headers: &HeaderMap) -> Self {
        let (secure, entropy) = (state.platform.origin.is_secure(), &*state.platform.entropy);
        let (secret, set_cookie) = BrowserSecret::of_browser(headers, secure, entropy);
        Self {
            csrf: secret.form_token(),
            shown: secret.seal(Sealed::Form, state.platform.clock.now()),
            set_cookie,
        }
    }
}

/// A submitted form of one of the service's own pages.
#[derive(Debug)]
pub struct OwnForm {
    /// The fields.
    pub form: Form,
    /// The secret of the browser for which the form was made.
    pub secret: BrowserSecret,
    /// The return address of its page.
    pub address: ReturnAddress,
}

impl<S> FromRequest<S> for OwnForm
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    /// Reads a form, and rejects one that does not come from a page of ours in this browser:
    /// `not-allowed` for a form that is not ours, `invalid-request`, `invalid-redirect`,
    /// `unsupported-media-type`, `payload-too-large`.
    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let state: &Arc<AuthState> = &Arc::from_ref(state);
        let (parts, body) = request.into_parts();
        let form = Form::read(&parts.headers, body).await?;
        let (secure, auth_url) = (state.platform.origin.is_secure(), &state.platform.auth_url);
        let token = form.field(csrf::FIELD)?;
        let secret = check_form(&parts.headers, secure, auth_url, token)?;
        let address = ReturnAddress::read(state, form.field(REDIRECT)?)?;
        Ok(Self {
            form,
            secret,
            address,
        })
    }
}
