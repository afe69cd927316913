//! The endpoints of the built-in demo provider, below `{auth_url}/demo-provider`, if it exists.
//!
//! | module | endpoints |
//! |---|---|
//! | this one | metadata and key set |
//! | [`authorize`] | the page on which a person types a name |
//! | [`token`] | the exchange of a code |

pub mod authorize;
pub mod token;

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;

use crate::auth::demo_provider::DemoProvider;
use crate::web::api_error::ApiError;

/// Responds to `GET …/.well-known/openid-configuration`.
///
/// # Errors
/// None in practice.
pub async fn metadata(
    Extension(provider): Extension<Arc<DemoProvider>>,
) -> Result<Response, ApiError> {
    json(StatusCode::OK, &provider.metadata())
}

/// Responds to `GET …/jwks.json`.
pub async fn key_set(Extension(provider): Extension<Arc<DemoProvider>>) -> Response {
    fresh(StatusCode::OK, provider.key_set().to_owned())
}

fn json(status: StatusCode, value: &impl Serialize) -> Result<Response, ApiError> {
    let json = serde_json::to_string(value).map_err(|error| ApiError::internal(&error))?;
    Ok(fresh(status, json))
}

/// Returns JSON that is not cached: keys and codes end with the process.
fn fresh(status: StatusCode, json: String) -> Response {
    let mut response = Response::new(Body::from(json));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
