//! Problems as HTML pages, for people who open an address in a browser; programs get Problem
//! Details.

use askama::Template;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use platform_protocol::paths;

use crate::origin::PlatformOrigin;
use crate::web::api_error::ApiError;
use crate::web::navigation::sign_in;
use crate::web::page::{self, Framing, Layout};
use crate::web::request_id::RequestId;

#[derive(Template)]
#[template(path = "refusal.html")]
struct Page<'a> {
    frame: Layout,
    title: &'static str,
    detail: &'a str,
    sign_in: Option<String>,
    ways: &'a Ways,
    is_framed: bool,
    about: String,
    status: u16,
    request_id: &'a str,
}

/// A link to a game.
#[derive(Debug)]
pub(super) struct GameLink {
    /// The game's title.
    pub(super) title: String,
    /// Its address.
    pub(super) url: String,
}

/// Where a page about a missing address leads to.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// The game on whose address nothing was found.
    pub(super) back: Option<GameLink>,
    /// The listed game whose address is almost the one that was typed.
    pub(super) meant: Option<GameLink>,
}

/// Converts the response to a navigation into a page. The host may be unknown, so the page loads
/// its stylesheet from the platform's own address. Returns whether this was possible.
pub(super) fn make_page(
    response: &mut Response,
    refusal: &ApiError,
    (origin, framing, ways): (&PlatformOrigin, Framing, &Ways),
    id: &RequestId,
) -> bool {
    let home = origin.to_string();
    let auth_url = origin.auth_url();
    let slug = refusal.slug();
    let page = page::render_from(
        &home,
        response.status(),
        &Page {
            frame: Layout::anywhere(origin),
            title: slug.title(),
            detail: refusal.detail(),
            sign_in: sign_in(slug, &auth_url),
            ways,
            is_framed: framing == Framing::Console,
            about: format!("{auth_url}{}{}", paths::PROBLEMS, slug.as_str()),
            status: response.status().as_u16(),
            request_id: id.as_str(),
        },
        framing,
    );
    let Some(page) = page else { return false };
    let (parts, body) = page.into_parts();
    *response.body_mut() = body;
    let headers = response.headers_mut();
    // Headers of the error response, such as `Allow`, are kept.
    headers.extend(parts.headers);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    true
}
