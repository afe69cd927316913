//! `GET {auth_url}/profile/delete` and `POST` to it: deletes the player's account, or the guest, and
//! takes that back.

use std::sync::Arc;

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;
use uuid::Uuid;

use super::{ACCOUNT, ACTION, HURRIED, OTHER_PLAYER, SIGN_OUT, sign_out};
use crate::auth::AuthState;
use crate::auth::handlers::own_form::OwnForm;
use crate::auth::handlers::page_visitor::Visitor;
use crate::auth::handlers::return_link::{ReturnLink, page_path};
use crate::auth::handlers::start_sign_in::{AGAIN, SignInNotice, login_path};
use crate::auth::handlers::token::suspended;
use crate::auth::redirect::{DELETION_PAGE, ReturnAddress};
use crate::domain::console_token::Hold;
use crate::domain::date::Date;
use crate::domain::deletion::{AskDeletion, Deletion, DeletionAsked, REGRET_MILLIS};
use crate::domain::session::{Session, SessionSecret};
use crate::web::api_error::ApiError;
use crate::web::cookies;
use crate::web::csrf::BrowserSecret;
use crate::web::limiter::too_many_requests;
use crate::web::page::{self, FormTarget, Layout};
use crate::web::redirects::see_other;
use crate::web::request_context::Context;
use crate::web::seal::{SHOWN, Sealed};

/// The path.
pub const PATH: &str = DELETION_PAGE;

const DELETE: &str = "delete";
const KEEP: &str = "keep";

/// The maximum number of projects on the page.
const LISTED: usize = 20;

/// The page.
#[derive(Template)]
#[template(path = "deletion.html")]
struct Page {
    frame: Layout,
    way_back: ReturnLink,
    csrf: String,
    /// The seal of the time at which the forms are shown.
    shown: String,
    /// The player of the forms.
    account: Uuid,
    username: String,
    is_guest: bool,
    profile: String,
    step: Step,
    /// Why the last action was not performed.
    problem: Option<&'static str>,
}

/// What the page asks of the player.
enum Step {
    /// To confirm; the player would be removed on this day.
    Confirm(Date),
    /// To sign in once more, at this address.
    SignIn(String),
    /// To hand on or delete these projects first; so many more are not listed.
    Projects(Vec<Owned>, usize),
    /// Nothing: the player is removed on this day, and can take that back.
    Leaving(Date),
}

/// A project that has to find another owner.
struct Owned {
    slug: String,
    settings: String,
}

/// Responds to `GET /profile/delete`.
///
/// # Errors
/// `invalid-redirect`, `account-suspended`; errors of the store.
pub async fn show(
    State(state): State<Arc<AuthState>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let address = ReturnAddress::from_query(&state, query.as_deref())?;
    let Some((session, deletion)) = visitor(&state, &headers).await? else {
        return see_other(&page_path(paths::LOGIN, &address, &[]));
    };
    let secure = state.platform.origin.is_secure();
    let (secret, set_cookie) =
        BrowserSecret::of_browser(&headers, secure, &*state.platform.entropy);
    let step = step(&state, &session, deletion).await?;
    let page = Page::of(&state, &address, session, &secret, step).await;
    let mut response = page::render_form(StatusCode::OK, &page, FormTarget::Own);
    if let Some(cookie) = set_cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Responds to `POST /profile/delete`.
///
/// # Errors
/// `not-allowed` for a form that is not ours, `invalid-redirect`, `account-suspended`,
/// `invalid-request` for an unknown action, `too-many-requests`; errors of the store. A click that
/// came too early and a form of another player are no such errors: the response is the page with a
/// message.
pub async fn change(
    State(state): State<Arc<AuthState>>,
    context: Context,
    headers: HeaderMap,
    OwnForm {
        form,
        secret,
        address,
    }: OwnForm,
) -> Result<Response, ApiError> {
    let Some((session, deletion)) = visitor(&state, &headers).await? else {
        let address = Some(address.as_str());
        return see_other(&login_path(address, SignInNotice::NotSaved));
    };
    let player = session.player.id.to_string();
    let is_other = form.field(ACCOUNT)?.is_some_and(|shown| shown != player);
    let is_hurried = !secret.was_shown(form.field(SHOWN)?, state.platform.clock.now());
    if is_other || is_hurried {
        let step = step(&state, &session, deletion).await?;
        let mut page = Page::of(&state, &address, session, &secret, step).await;
        page.problem = Some(if is_other { OTHER_PLAYER } else { HURRIED });
        return Ok(page::render_form(
            StatusCode::CONFLICT,
            &page,
            FormTarget::Own,
        ));
    }
    let here = page_path(PATH, &address, &[]);
    match (form.field(ACTION)?, deletion) {
        (Some(SIGN_OUT), Some(_)) => sign_out(&state, &headers, &session, &address, &context).await,
        (Some(KEEP), Some(_)) => {
            let (store, now) = (&state.platform.store, state.platform.clock.now());
            store
                .take_deletion_back(session.player.id, context.own(), now)
                .await?;
            let saved = [("saved", KEEP)];
            see_other(&page_path(paths::PROFILE, &address, &saved))
        }
        // Both were done before, perhaps in another tab.
        (Some(KEEP), None) | (Some(DELETE), Some(_)) => see_other(&here),
        (Some(DELETE), None) => delete(&state, session, &here, &context).await,
        _ => Err(ProblemCode::InvalidRequest.into()),
    }
}

/// Asks for the deletion, and gives the browser another session, with which it can only be taken
/// back. If the player may not do so yet, the page says why.
async fn delete(
    state: &AuthState,
    session: Session,
    here: &str,
    context: &Context,
) -> Result<Response, ApiError> {
    let player = session.player.id;
    state
        .limits
        .renames
        .count(&player)
        .await
        .map_err(too_many_requests)?;
    if !is_proved(state, &session).await? {
        return see_other(here);
    }
    let next = SessionSecret::generate(&*state.platform.entropy);
    let now = state.platform.clock.now();
    let ask = AskDeletion {
        player,
        browser: Some((session.hash, next.hash())),
        at: now + REGRET_MILLIS,
        by: context.own(),
        now,
    };
    let mut response = see_other(here)?;
    match state.platform.store.ask_for_deletion(ask).await? {
        DeletionAsked::At(_) => {
            let cookie = cookies::set_session(&next, state.platform.origin.is_secure());
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        DeletionAsked::Owns(_) | DeletionAsked::Unknown => {}
    }
    Ok(response)
}

/// Whether the player has proved lately to be it. A guest has nothing to prove it with but the
/// browser.
async fn is_proved(state: &AuthState, session: &Session) -> Result<bool, ApiError> {
    if session.player.is_anonymous() {
        return Ok(true);
    }
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    let holder = store.find_holder(&Hold::Session(session.hash), now).await?;
    Ok(holder.is_some_and(|holder| holder.is_fresh(now)))
}

/// Returns what the page asks of the player.
async fn step(
    state: &AuthState,
    session: &Session,
    deletion: Option<Deletion>,
) -> Result<Step, ApiError> {
    if let Some(deletion) = deletion {
        return Ok(Step::Leaving(Date::of(deletion.at)));
    }
    let mut owned = Vec::new();
    let store = &state.platform.store;
    for project in store.list_projects_of(session.player.id).await? {
        let standing = store.find_standing(&project.slug).await?;
        if standing.is_some_and(|standing| standing.deleted.is_none()) {
            owned.push(project.slug);
        }
    }
    if !owned.is_empty() {
        let more = owned.len().saturating_sub(LISTED);
        let origin = state.platform.origin.to_string();
        let owned = owned.into_iter().take(LISTED).map(|slug| Owned {
            settings: format!("{origin}{}/{slug}/settings", paths::PROJECT_PAGES),
            slug,
        });
        return Ok(Step::Projects(owned.collect(), more));
    }
    if !is_proved(state, session).await? {
        let back = ReturnAddress::deletion(state);
        return Ok(Step::SignIn(page_path(
            paths::LOGIN,
            &back,
            &[(AGAIN, "1")],
        )));
    }
    let now = state.platform.clock.now();
    Ok(Step::Confirm(Date::of(now + REGRET_MILLIS)))
}

/// Returns the session of a visitor who can be deleted, and the deletion if it was asked for.
async fn visitor(
    state: &AuthState,
    headers: &HeaderMap,
) -> Result<Option<(Session, Option<Deletion>)>, ApiError> {
    Ok(match Visitor::of(state, headers).await? {
        Visitor::Guest(session) | Visitor::Account(session) => Some((session, None)),
        Visitor::Leaving(session, deletion) => Some((session, Some(deletion))),
        Visitor::Unknown | Visitor::Ended => None,
        Visitor::Suspended { reason, .. } => return Err(suspended(reason)),
    })
}

impl Page {
    async fn of(
        state: &AuthState,
        address: &ReturnAddress,
        session: Session,
        secret: &BrowserSecret,
        step: Step,
    ) -> Self {
        Self {
            frame: Layout::new(&state.platform.origin),
            way_back: ReturnLink::of(state, address).await,
            csrf: secret.form_token(),
            shown: secret.seal(Sealed::Form, state.platform.clock.now()),
            account: session.player.id,
            is_guest: session.player.is_anonymous(),
            username: session.player.username,
            profile: page_path(paths::PROFILE, address, &[]),
            step,
            problem: None,
        }
    }
}
