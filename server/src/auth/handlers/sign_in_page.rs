//! `GET {auth_url}/login`: the sign-in page, with one button per provider.

use std::sync::Arc;

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use platform_protocol::paths;
use url::form_urlencoded;

use super::own_form::NewForm;
use super::page_visitor::Visitor;
use super::restore_guest::Offer;
use super::return_link::{ReturnLink, page_path};
use super::start_sign_in::AGAIN;
use crate::auth::AuthState;
use crate::auth::redirect::{DELETION_PAGE, ReturnAddress};
use crate::config::provider::DEMO_PROVIDER;
use crate::domain::date::Date;
use crate::web::api_error::ApiError;
use crate::web::form::Form;
use crate::web::page::{self, FormTarget, Layout};
use crate::web::seal::led_by_another_site;

#[derive(Template)]
#[template(path = "login.html")]
struct Page {
    frame: Layout,
    way_back: ReturnLink,
    problem: Option<&'static str>,
    /// Whether the browser's session has ended.
    ended: bool,
    /// Whether a recent sign-in is required.
    again: bool,
    /// The last player of this browser, if they are to be deleted.
    leaving: Option<Leaving>,
    /// The last player of this browser, if they are suspended.
    suspended: Option<Suspended>,
    signed_in: Option<String>,
    guest: Option<String>,
    /// The guests that were signed out in this browser.
    left: Option<Offer>,
    profile: String,
    providers: Vec<Provider>,
    /// Whether a guest who signs in gets the name that they type there.
    renames: bool,
    csrf: String,
    /// The seal of the time at which the forms are shown.
    shown: String,
    /// Whether another site's page led here, perhaps between the two clicks of a double click.
    led: bool,
}

/// A suspended player, as the sign-in page describes them.
struct Suspended {
    username: String,
    reason: Option<String>,
}

/// A player who is to be deleted, as the sign-in page describes them.
struct Leaving {
    username: String,
    on: Date,
    /// The page where the player takes it back.
    address: String,
}

/// A provider's button.
pub(super) struct Provider {
    /// Its id, a path segment.
    pub(super) id: String,
    /// The provider's name.
    pub(super) name: String,
    /// The first letter of its name, as a decoration.
    initial: String,
}

impl Provider {
    fn new(id: &str, name: &str) -> Self {
        let initial = name.trim().chars().next();
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            initial: initial.map_or_else(String::new, |char| char.to_uppercase().collect()),
        }
    }
}

/// Responds to `GET /login`.
///
/// # Errors
/// `invalid-redirect`; errors of the store.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let address = ReturnAddress::from_query(&state, query.as_deref())?;
    // A suspended player can open this page, since somebody else may want to sign in with this
    // browser.
    let mut ended = false;
    let mut suspended = None;
    let mut leaving = None;
    let (signed_in, guest) = match Visitor::of(&state, &headers).await? {
        Visitor::Account(session) => (Some(session.player.username), None),
        Visitor::Guest(session) => (None, Some(session.player.username)),
        Visitor::Ended => {
            ended = true;
            (None, None)
        }
        Visitor::Leaving(session, deletion) => {
            leaving = Some(Leaving {
                username: session.player.username,
                on: Date::of(deletion.at),
                address: page_path(DELETION_PAGE, &address, &[]),
            });
            (None, None)
        }
        Visitor::Suspended { username, reason } => {
            suspended = Some(Suspended { username, reason });
            (None, None)
        }
        Visitor::Unknown => (None, None),
    };
    let left = match (&signed_in, &suspended) {
        (None, None) => Offer::of(&state, &headers, &address).await?,
        _ => None,
    };
    let NewForm {
        csrf,
        shown,
        set_cookie,
    } = NewForm::of(&state, &headers);
    let page = Page {
        frame: Layout::new(&state.platform.origin),
        way_back: ReturnLink::of(&state, &address).await,
        problem: problem(query.as_deref(), signed_in.is_some()),
        ended,
        again: Form::of_query(query.as_deref()).field(AGAIN)?.is_some(),
        leaving,
        suspended,
        signed_in,
        guest,
        left,
        profile: page_path(paths::PROFILE, &address, &[]),
        renames: state.providers.list().any(|(id, _)| id == DEMO_PROVIDER),
        providers: providers(&state),
        csrf,
        shown,
        led: led_by_another_site(&headers),
    };
    let target = FormTarget::of_sign_in(&state.platform.origin);
    let mut response = page::render_form(StatusCode::OK, &page, target);
    if address.is_frame_page(&state) {
        page::keep_opener(response.headers_mut());
    }
    if let Some(cookie) = set_cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Returns the configured providers.
pub(super) fn providers(state: &AuthState) -> Vec<Provider> {
    let known = state.providers.list();
    known.map(|(id, name)| Provider::new(id, name)).collect()
}

/// Returns a sentence that explains why the player is here again without being signed in, or as the
/// same player.
fn problem(query: Option<&str>, signed_in: bool) -> Option<&'static str> {
    let query = query.unwrap_or_default().as_bytes();
    let (_, code) = form_urlencoded::parse(query).find(|(name, _)| name == "problem")?;
    Some(match (&*code, signed_in) {
        ("cancelled", false) => {
            "You did not finish signing in. Nothing was changed; you can try again."
        }
        ("cancelled", true) => {
            "You did not finish signing in to another account. Nothing was changed: you are \
             signed in as before."
        }
        ("failed", _) => {
            "Signing in did not work. Nothing was changed; please try again, or sign in another \
             way."
        }
        ("provider-unavailable", _) => {
            "The service that you chose does not respond at the moment. Please try again in a \
             minute, or sign in another way."
        }
        ("expired", false) => {
            "Signing in took too long, or this step was already used. Please start again."
        }
        ("expired", true) => {
            "Signing in took too long, or this step was already used. Nothing was changed: you are \
             still signed in as shown here."
        }
        ("other-browser", _) => {
            "You started to sign in with another browser, or your browser does not accept cookies \
             from this site. Please start again here."
        }
        ("not-saved", false) => {
            "Nothing was saved: you are not signed in any more. Sign in, and change your profile \
             again."
        }
        ("not-saved", true) => {
            "Nothing was saved: you were not signed in any more. Change your profile again."
        }
        ("hurried", _) => {
            "Nothing was changed: the button was pressed less than two seconds after it was shown, \
             perhaps by a click that was meant for another page. Press it again if you want this."
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_problem_is_a_sentence_and_no_other_is() {
        for code in [
            "cancelled",
            "failed",
            "provider-unavailable",
            "expired",
            "other-browser",
            "not-saved",
            "hurried",
        ] {
            for signed_in in [false, true] {
                let query = format!("redirect=x&problem={code}");
                let sentence = problem(Some(&query), signed_in).unwrap();
                assert!(
                    sentence.ends_with('.') && !sentence.contains("  "),
                    "{sentence}"
                );
            }
        }
        for other in [
            None,
            Some(""),
            Some("problem="),
            Some("problem=Cancelled"),
            Some("problem=<b>"),
        ] {
            assert_eq!(problem(other, false), None, "{other:?}");
        }
    }

    #[test]
    fn a_provider_shows_its_first_letter() {
        for (name, initial) in [("google", "G"), (" \u{e9}cole", "\u{c9}"), ("", "")] {
            assert_eq!(Provider::new("id", name).initial, initial, "{name}");
        }
    }
}
