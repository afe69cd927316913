//! `GET /favicon.ico` and `/static/platform.svg`: the platform's icon, which browsers request for
//! every page.

use axum::http::{HeaderName, header};
use axum::response::IntoResponse;

/// An SVG image: every current browser accepts one, whatever the path's extension.
const ICON: &str = include_str!("../../../../www/styles/platform.svg");

/// Returns the icon. It is too small to be worth compressing.
pub async fn handle() -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, "image/svg+xml"),
        (header::CACHE_CONTROL, "public, max-age=86400"),
        // Error pages on any host load it from here.
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "cross-origin",
        ),
    ];
    (headers, ICON)
}
