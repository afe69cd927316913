//! `GET /.well-known/security.txt` of console and auth service: where to report vulnerabilities of
//! this platform (RFC 9116).

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use platform_protocol::problem::ProblemCode;
use time::{Duration, OffsetDateTime};

use crate::clock::Millis;
use crate::console::ConsoleState;
use crate::domain::date::rfc3339;
use crate::web::api_error::ApiError;

/// The path.
pub const PATH: &str = "/.well-known/security.txt";

/// How long the content is valid. RFC 9116 §2.5.5 recommends less than a year.
const GOOD_FOR: Duration = Duration::days(180);

/// Returns the contact, if the operator has set one.
///
/// # Errors
/// `not-found`
pub async fn handle(State(state): State<Arc<ConsoleState>>) -> Result<Response, ApiError> {
    let contact = state.platform.config.security_contact.as_ref();
    let contact = contact.ok_or(ProblemCode::NotFound)?;
    let expires = expires(state.platform.clock.now());
    let (console, auth) = (&state.platform.origin, &state.platform.auth_url);
    let text = format!(
        "Contact: {contact}\nExpires: {expires}\nCanonical: {console}{PATH}\n\
         Canonical: {auth}{PATH}\n"
    );
    let headers = [
        // RFC 9116 §3
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=3600"),
    ];
    Ok((headers, text).into_response())
}

/// Returns the beginning of a day, so that the file stays the same all day.
fn expires(now: Millis) -> String {
    let now = OffsetDateTime::from_unix_timestamp(now / 1_000);
    let day = now.unwrap_or(OffsetDateTime::UNIX_EPOCH) + GOOD_FOR;
    rfc3339(day.replace_time(time::Time::MIDNIGHT).unix_timestamp() * 1_000)
}
