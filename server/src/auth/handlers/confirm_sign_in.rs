//! The page between the sign-in page and the provider, for a button that was pressed immediately:
//! the click may have been meant for the page that led to the sign-in page, so the player can read
//! what happens, and can stay.

use askama::Template;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;

use super::return_link::ReturnLink;
use crate::auth::AuthState;
use crate::auth::redirect::ReturnAddress;
use crate::clock::Millis;
use crate::web::api_error::ApiError;
use crate::web::csrf::BrowserSecret;
use crate::web::page::{self, FormTarget, Layout};

/// The number of seconds after which the page continues to the provider.
const PAUSE_SECONDS: u32 = 3;

/// The header with which a page continues automatically (HTML, "shared declarative refresh steps").
const REFRESH: HeaderName = HeaderName::from_static("refresh");

#[derive(Template)]
#[template(path = "hurried.html")]
struct Page<'a> {
    frame: Layout,
    way_back: ReturnLink,
    /// The provider's name.
    provider: &'a str,
    /// The address at which it signs the player in.
    address: &'a str,
    seconds: u32,
}

/// Whether the button of a form was pressed before it could be read. `shown` is the form's field,
/// which only exists if another site led to the page: otherwise every click counts at once.
pub(super) fn is_hurried(browser: &BrowserSecret, shown: Option<&str>, now: Millis) -> bool {
    shown.is_some() && !browser.was_shown(shown, now)
}

/// Returns 200 with a page that continues to `address`, where `provider` signs the player in, after
/// [`PAUSE_SECONDS`].
///
/// # Errors
/// `internal` if the address cannot be in a header.
pub(super) async fn pause(
    state: &AuthState,
    redirect: &ReturnAddress,
    provider: &str,
    address: &str,
) -> Result<Response, ApiError> {
    let refresh = HeaderValue::from_str(&format!("{PAUSE_SECONDS}; url={address}"));
    let refresh = refresh.map_err(|error| ApiError::internal(&error))?;
    let page = Page {
        frame: Layout::new(&state.platform.origin),
        way_back: ReturnLink::of(state, redirect).await,
        provider,
        address,
        seconds: PAUSE_SECONDS,
    };
    // The address contains the sign-in's state: the page is never cached, and no referrer is sent
    // to the provider.
    let mut response = page::render_form(StatusCode::OK, &page, FormTarget::Own);
    response.headers_mut().insert(REFRESH, refresh);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;
    use crate::web::seal::{PRESS_MILLIS, Sealed};

    #[test]
    fn only_a_form_that_says_when_it_was_shown_is_pressed_too_soon() {
        const NOW: Millis = 1_767_225_600_000;
        let browser = BrowserSecret::generate(&SystemEntropy);
        let shown = browser.seal(Sealed::Form, NOW);
        for (shown, now, expected) in [
            (None, NOW, false),
            (Some(&*shown), NOW, true),
            (Some(&*shown), NOW + PRESS_MILLIS - 1, true),
            (Some(&*shown), NOW + PRESS_MILLIS, false),
            // The value is not one of our seals.
            (Some(""), NOW + PRESS_MILLIS, true),
        ] {
            assert_eq!(
                is_hurried(&browser, shown, now),
                expected,
                "{shown:?} {now}"
            );
        }
    }
}
