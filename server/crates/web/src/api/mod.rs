//! What every call of the project API is read with and answered with.
//!
//! | module | holds |
//! |---|---|
//! | [`json`] | bodies and answers |
//! | [`query`] | queries, and what is wrong with them |
//! | [`range`] | the time that a query asks about |

pub mod json;
pub mod query;
pub mod range;

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use platform_protocol::names::Environment;
use platform_protocol::problem::ProblemCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

pub use self::json::ApiJson;
pub use self::query::ApiQuery;
use super::api_error::ApiError;

/// Which environment.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum EnvironmentName {
    /// Where it is tried.
    Dev,
    /// Where it is played.
    Prod,
}

/// Says what is wrong with a request.
pub fn invalid(sentence: impl Into<Cow<'static, str>>) -> ApiError {
    ApiError::new(ProblemCode::InvalidRequest).with_detail(sentence)
}

/// What a path names.
#[derive(Clone, Debug)]
pub struct PathParams(HashMap<String, String>);

impl<S: Sync + Send> FromRequestParts<S> for PathParams {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        // What cannot be decoded names nothing.
        let names = Path::from_request_parts(parts, state).await;
        Ok(Self(names.map(|Path(names)| names).unwrap_or_default()))
    }
}

impl PathParams {
    /// What stands in the place of this name; nothing where there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The project's slug, as it was asked for.
    #[must_use]
    pub fn slug(&self) -> &str {
        self.get("slug")
    }

    /// The environment.
    ///
    /// # Errors
    /// `not-found`
    pub fn environment(&self) -> Result<Environment, ApiError> {
        environment(self.get("environment")).ok_or_else(|| {
            ApiError::new(ProblemCode::NotFound).with_detail("An environment is dev or prod.")
        })
    }
}

/// The environment of this name.
fn environment(name: &str) -> Option<Environment> {
    Environment::ALL
        .into_iter()
        .find(|environment| environment.as_str() == name)
}

/// A request's JSON that is yet to be read: who may not ask learns nothing of
/// what is wrong with it.
#[derive(Debug)]
pub struct JsonBody {
    headers: HeaderMap,
    body: Body,
}

impl<S: Sync> FromRequest<S> for JsonBody {
    type Rejection = Infallible;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Infallible> {
        let (parts, body) = request.into_parts();
        let headers = parts.headers;
        Ok(Self { headers, body })
    }
}

impl JsonBody {
    /// Reads it. The body is the caller's own, so that the answer may say what
    /// is wrong with it.
    ///
    /// # Errors
    /// `invalid-request`, and those of [`super::json::read`].
    pub async fn read<T: DeserializeOwned>(self) -> Result<T, ApiError> {
        let bytes = super::json::read(&self.headers, self.body, 16 * 1024).await?;
        // A list would be taken for the members in their order.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(invalid("The request's body is to be a JSON object."));
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            invalid(format!(
                "The request's JSON is not what is asked for: {error}."
            ))
        })
    }
}

/// Answers with JSON that no cache keeps.
///
/// # Errors
/// `internal`, if the body cannot be written as JSON.
pub fn answer<T: Serialize>(status: StatusCode, body: &T) -> Result<Response, ApiError> {
    let bytes = serde_json::to_vec(body).map_err(|error| ApiError::internal(&error))?;
    let mut response = (status, bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
