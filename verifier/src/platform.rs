//! The axum extractor for requests that came through the platform.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::HeaderName;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use platform_protocol::claims::ASSERTION_HEADER;
use platform_protocol::problem::ProblemCode;

use crate::error::VerifyError;
use crate::player::{problem, request_id};
use crate::verifier::Verifier;

const HEADER: HeaderName = HeaderName::from_static(ASSERTION_HEADER);

/// The request came through the platform: it carries the platform's signature in the header
/// `Platform-Assertion`. For a whole router:
///
/// ```no_run
/// # use std::sync::Arc;
/// # use axum::Router;
/// # use axum::middleware::from_extractor_with_state;
/// # use platform_verifier::{ThroughPlatform, Verifier};
/// # fn guarded(app: Router, verifier: Arc<Verifier>) -> Router {
/// app.layer(from_extractor_with_state::<ThroughPlatform, _>(verifier))
/// # }
/// ```
///
/// It does not identify a player: use [`Player`](crate::Player) for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThroughPlatform;

impl<S> FromRequestParts<S> for ThroughPlatform
where
    Arc<Verifier>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = NotThroughPlatform;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let verifier = Arc::<Verifier>::from_ref(state);
        let refused = |error| NotThroughPlatform {
            error,
            issuer: verifier.config().issuer.clone(),
            request_id: request_id(&parts.headers),
        };
        let mut values = parts.headers.get_all(HEADER).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(refused(None));
        };
        let assertion = value.to_str().map_err(|_| refused(None))?;
        let verified = verifier.verify_assertion(assertion).await;
        verified.map_err(|error| refused(Some(error)))?;
        Ok(Self)
    }
}

/// The response to a request that did not come through the platform: Problem Details (RFC 9457)
/// with status 403, or 503 if there is no key set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotThroughPlatform {
    error: Option<VerifyError>,
    issuer: String,
    request_id: Option<String>,
}

impl NotThroughPlatform {
    /// Why the assertion was refused. `None` if the request carried none, or more than one.
    #[must_use]
    pub const fn error(&self) -> Option<&VerifyError> {
        self.error.as_ref()
    }
}

impl IntoResponse for NotThroughPlatform {
    fn into_response(self) -> Response {
        let (slug, detail) = match &self.error {
            Some(error) if error.is_unavailable() => {
                (ProblemCode::Unavailable, error.client_detail())
            }
            _ => (
                ProblemCode::NotAllowed,
                "The game answers at its own address alone.",
            ),
        };
        match &self.error {
            None => tracing::debug!("refused: not through the platform"),
            Some(error) => tracing::debug!(%error, "refused: not through the platform"),
        }
        problem(slug, detail, &self.issuer, self.request_id.as_deref())
    }
}
