//! HTML pages: they work without scripts, and say so to the browser.

use askama::Template;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::refusal::Refusal;

/// The path of the stylesheet of all pages, on every host that has pages.
pub const STYLESHEET: &str = "/static/platform.css";

/// The path of the icon of all pages, on every host that has pages.
pub const ICON: &str = "/static/platform.svg";

/// Nothing but our own stylesheet, and no frame around the page.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// The same for a page that takes its looks from the platform's own address.
fn policy_from(home: &str) -> Option<HeaderValue> {
    let policy = format!(
        "default-src 'none'; style-src {home}; img-src {home}; form-action 'none'; base-uri \
         'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).ok()
}

/// Renders a page.
#[must_use]
pub fn render(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => answer(status, html, HeaderValue::from_static(POLICY)),
        Err(error) => Refusal::internal(&error).into_response(),
    }
}

/// Renders a page for any host, with its looks from `home`, an origin. `None`
/// if it could not.
#[must_use]
pub fn render_from(home: &str, status: StatusCode, template: &impl Template) -> Option<Response> {
    Some(answer(status, template.render().ok()?, policy_from(home)?))
}

fn answer(status: StatusCode, html: String, policy: HeaderValue) -> Response {
    let mut response = (status, html).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    let fixed = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
