//! `GET /favicon.ico` and `/static/platform.svg`: the platform's mark, which
//! browsers ask for beside every page, and beside every address that is opened
//! in one.

use axum::http::{HeaderName, header};
use axum::response::IntoResponse;

/// A drawing: every browser of today takes one, whatever the path's ending.
const ICON: &str = include_str!("../../../../www/styles/platform.svg");

/// Answers the mark. It is so small that compressing it would gain nothing.
pub async fn handle() -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, "image/svg+xml"),
        (header::CACHE_CONTROL, "public, max-age=86400"),
        // Pages about what is not there, on any host, take their looks from here.
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "cross-origin",
        ),
    ];
    (headers, ICON)
}
