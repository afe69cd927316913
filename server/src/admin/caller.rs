//! The extractor for administrators.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use uuid::Uuid;

use crate::auth::AuthState;
use crate::auth::caller::ApiCaller;
use crate::domain::audit::{Actor, By, Source};
use crate::web::api_error::ApiError;

/// The administrator whose token the request contains, with a recent sign-in in a browser.
#[derive(Clone, Debug)]
pub struct AdminCaller {
    /// The player.
    pub player: Uuid,
    /// The origin of the request.
    pub source: Source,
}

impl AdminCaller {
    /// Returns the actor that the audit log records for the administrator.
    #[must_use]
    pub fn by(&self) -> By {
        By::request(Actor::Admin(self.player), self.source.clone())
    }
}

impl<S> FromRequestParts<S> for AdminCaller
where
    S: Send + Sync,
    Arc<AuthState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = ApiCaller::from_request_parts(parts, state).await?;
        caller.administration(&Arc::from_ref(state)).await?;
        Ok(Self {
            player: caller.player,
            source: caller.source,
        })
    }
}
