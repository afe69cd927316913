//! `POST {auth_url}/demo-provider/token`: exchanges a code for an ID token (OpenID Connect Core 1.0
//! §3.1.3).

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use headers::authorization::Basic;
use headers::{Authorization, HeaderMapExt as _};
use serde::Serialize;

use super::json;
use crate::auth::demo_provider::{DemoProvider, Exchange, Refused};
use crate::web::api_error::ApiError;
use crate::web::form::Form;

#[derive(Serialize)]
struct Error {
    error: &'static str,
}

/// Returns the token, or an error of RFC 6749 §5.2.
///
/// # Errors
/// `unsupported-media-type`, `payload-too-large`, `invalid-request`.
pub async fn handle(
    Extension(provider): Extension<Arc<DemoProvider>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = Form::read(&headers, body).await?;
    // Id and secret are base64url, so form encoding (RFC 6749 §2.3.1) does not change them.
    let basic = headers.typed_get::<Authorization<Basic>>();
    let exchange = Exchange {
        client: basic
            .as_ref()
            .map(|basic| (basic.username(), basic.password())),
        grant_type: form.field("grant_type")?,
        code: form.field("code")?,
        redirect: form.field("redirect_uri")?,
        verifier: form.field("code_verifier")?,
    };
    let error = match provider.exchange(&exchange) {
        Ok(token) => return json(StatusCode::OK, &token),
        Err(Refused::Client) => "invalid_client",
        Err(Refused::GrantType) => "unsupported_grant_type",
        Err(Refused::Grant) => "invalid_grant",
        Err(Refused::Key(error)) => return Err(ApiError::internal(&error)),
    };
    if error != "invalid_client" {
        return json(StatusCode::BAD_REQUEST, &Error { error });
    }
    let mut response = json(StatusCode::UNAUTHORIZED, &Error { error })?;
    response.headers_mut().insert(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static("Basic realm=\"demo-provider\""),
    );
    Ok(response)
}
