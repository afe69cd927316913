//! `GET {auth_url}/callback/<provider>`: a browser returns from a provider (OpenID Connect Core 1.0
//! §3.1.2.5), and its player is signed in.

use std::sync::Arc;

use axum::extract::{RawPathParams, RawQuery, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;

use super::browser_session;
use super::return_link::page_path;
use super::start_sign_in::{SignInNotice, back_to_login, provider_of};
use super::token::suspended;
use crate::auth::AuthState;
use crate::auth::redirect::{DELETION_PAGE, ReturnAddress};
use crate::auth::refusal_log;
use crate::clock::Millis;
use crate::config::provider::DEMO_PROVIDER;
use crate::domain::audit::{AuditKind, Refused};
use crate::domain::errors::chain;
use crate::domain::identity::Identity;
use crate::domain::session::{SessionHash, SessionSecret};
use crate::domain::sign_in::{PendingSignIn, SignIn, SignInOutcome, StateHash, TakenSignIn};
use crate::domain::username::{self, Username};
use crate::web::api_error::ApiError;
use crate::web::cookies;
use crate::web::csrf::{self, BrowserSecret};
use crate::web::form::Form;
use crate::web::redirects::see_other;
use crate::web::request_context::Context;
use platform_openid::returned::{Outcome, Returned};
use platform_openid::{Answer, Provider, SignInError, Subject};

/// The maximum number of characters of a failure's reason in the audit log.
const KEPT_CHARS: usize = 200;

/// Error codes for a player who cancelled: those of RFC 6749 §4.1.2.1, and others that providers
/// use instead.
const CANCELS: [&str; 5] = [
    "access_denied",
    "consent_required",
    "user_cancelled_authorize",
    "user_cancelled_login",
    "user_denied",
];

/// Returns 303 to the address that the player left, signed in; or to the sign-in page, with nothing
/// changed.
///
/// # Errors
/// `not-found`, `invalid-request`, `invalid-redirect`, `account-suspended`; errors of the store.
pub async fn handle(
    State(state): State<Arc<AuthState>>,
    path: RawPathParams,
    RawQuery(query): RawQuery,
    context: Context,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let provider = provider_of(&state, &path)?;
    let secure = state.platform.origin.is_secure();
    let held = browser_session::secret(&state, &headers).await?;
    let held = held.map(|secret| secret.hash());
    let query = Form::of_query(query.as_deref());
    // Whatever the result, this is where the browser's last sign-in began.
    let began = csrf::address_to_go_back_to(&headers, secure);
    let began = began.and_then(|address| ReturnAddress::read(&state, Some(&address)).ok());
    let began = began.as_ref().map(ReturnAddress::as_str);
    let Some(returned) = Returned::read(&query) else {
        failed(&state, provider, &context, "unreadable answer").await;
        return set_back(&state, provider, began, SignInNotice::Failed);
    };
    let Some(browser) = BrowserSecret::read(&headers, secure) else {
        return set_back(&state, provider, None, SignInNotice::OtherBrowser);
    };
    let hash = StateHash::of(returned.state);
    let pending = match state
        .platform
        .store
        .take_pending_sign_in(&hash, &browser.binding(), state.platform.clock.now())
        .await?
    {
        TakenSignIn::Taken(pending) => pending,
        TakenSignIn::OtherBrowser => {
            failed(&state, provider, &context, "another browser").await;
            return set_back(&state, provider, None, SignInNotice::OtherBrowser);
        }
        TakenSignIn::Unknown => {
            failed(&state, provider, &context, "unknown or too late").await;
            return set_back(&state, provider, began, SignInNotice::Expired);
        }
    };
    // Games may have been removed meanwhile, so the address is checked again before anything
    // happens.
    let redirect = ReturnAddress::read(&state, Some(&pending.redirect))?;
    match identify(provider, &returned, &pending).await {
        Ok(subject) => {
            let identity = Identity::new(provider.id(), &subject.issuer, &subject.subject);
            // Real providers' names may be those that people use elsewhere, or their real names.
            // Only a name typed for this platform is taken over.
            let wished = subject.preferred_username.as_deref();
            let wished = wished.filter(|_| provider.id() == DEMO_PROVIDER);
            let proved = Proved {
                identity,
                at: subject.authenticated_at,
                wished: wished.and_then(|name| username::check(name).ok()),
            };
            complete(&state, proved, &pending, held, &redirect, &context).await
        }
        Err(failure) => {
            failure.log(provider, &context);
            if failure.setback() != SignInNotice::Cancelled {
                failed(&state, provider, &context, &failure.reason()).await;
            }
            let redirect = Some(redirect.as_str());
            set_back(&state, provider, redirect, failure.setback())
        }
    }
}

/// Counts a sign-in that did not succeed, and returns the browser to the sign-in page.
fn set_back(
    state: &AuthState,
    provider: &Provider,
    redirect: Option<&str>,
    notice: SignInNotice,
) -> Result<Response, ApiError> {
    let metrics = &state.platform.metrics;
    metrics.sign_in(provider.id(), notice.code());
    back_to_login(state, redirect, notice)
}

/// Why nobody was signed in.
#[derive(Debug)]
enum Failure {
    /// The sign-in began at another provider.
    OtherProvider,
    /// The provider responded with an error.
    Answered(String),
    /// The exchange failed.
    Exchange(SignInError),
}

impl Failure {
    fn setback(&self) -> SignInNotice {
        match self {
            Self::Answered(error) if CANCELS.contains(&error.as_str()) => SignInNotice::Cancelled,
            Self::Exchange(SignInError::Unavailable(_)) => SignInNotice::ProviderUnavailable,
            Self::OtherProvider | Self::Answered(_) | Self::Exchange(SignInError::Refused(_)) => {
                SignInNotice::Failed
            }
        }
    }

    /// Returns the reason, for the operator.
    fn reason(&self) -> String {
        match self {
            Self::OtherProvider => "the sign-in began at another provider".to_owned(),
            Self::Answered(error) => format!("the provider answered: {error}"),
            Self::Exchange(error) => chain(error),
        }
    }

    /// Logs the reason for the operator, who alone can fix most of these errors.
    fn log(&self, provider: &Provider, context: &Context) {
        // A player who cancels is not worth a warning.
        if self.setback() == SignInNotice::Cancelled {
            return;
        }
        let error = self.reason();
        tracing::warn!(
            request_id = context.id.as_str(),
            provider = provider.id(),
            error,
            "a sign-in failed"
        );
    }
}

/// Records that a sign-in failed, and why.
async fn failed(state: &AuthState, provider: &Provider, context: &Context, why: &str) {
    keep_failed(state, provider.id(), context, why).await;
}

async fn keep_failed(state: &AuthState, provider: &str, context: &Context, why: &str) {
    let refused = Refused {
        kind: AuditKind::SignInFailed,
        player: None,
        subject: Some(provider.to_owned()),
        detail: why.chars().take(KEPT_CHARS).collect(),
    };
    refusal_log::keep(state, refused, context.source()).await;
}

async fn identify(
    provider: &Provider,
    returned: &Returned<'_>,
    pending: &PendingSignIn,
) -> Result<Subject, Failure> {
    if pending.provider != provider.id() {
        return Err(Failure::OtherProvider);
    }
    let code = match returned.outcome {
        Outcome::Code(code) => code,
        Outcome::Error(error) if provider.may_be(returned.issuer) => {
            return Err(Failure::Answered(shown(error)));
        }
        Outcome::Error(_) => {
            return Err(Failure::Exchange(SignInError::Refused(
                "the answer is from another issuer".to_owned(),
            )));
        }
    };
    let answer = Answer {
        code,
        issuer: returned.issuer,
        nonce: &pending.nonce,
        pkce_verifier: &pending.pkce_verifier,
        started_at: pending.started_at,
        again: pending.again,
    };
    provider.finish(answer).await.map_err(Failure::Exchange)
}

/// An error code consists of visible characters (RFC 6749 §4.1.2.1). Anything else is not repeated.
fn shown(error: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if error.len() <= 64 && error.bytes().all(plain) {
        error.to_owned()
    } else {
        "(unreadable)".to_owned()
    }
}

/// What the provider has verified.
struct Proved {
    identity: Identity,
    /// When the player authenticated, if the provider says so.
    at: Option<Millis>,
    /// The name that the player asks for.
    wished: Option<Username>,
}

/// The only operation of the store that changes anything.
async fn complete(
    state: &AuthState,
    proved: Proved,
    pending: &PendingSignIn,
    held: Option<SessionHash>,
    redirect: &ReturnAddress,
    context: &Context,
) -> Result<Response, ApiError> {
    let now = state.platform.clock.now();
    let secret = SessionSecret::generate(&*state.platform.entropy);
    let sign_in = SignIn {
        identity: proved.identity,
        guest: pending.guest,
        held,
        session: secret.hash(),
        // Clocks may differ slightly. A provider that does not say when the player authenticated
        // may have remembered the player, unless it was told to ask: only then does the sign-in
        // count as recent.
        authenticated_at: match proved.at {
            Some(at) => at.min(now),
            None if pending.again => now,
            None => 0,
        },
        new_player: state.platform.entropy.uuid_v7(now),
        usernames: username::generate_guest_names(&*state.platform.entropy),
        wished_username: proved.wished.map(|name| name.as_str().to_owned()),
        source: Some(context.source()),
        now,
    };
    let outcome = state.platform.store.complete_sign_in(sign_in).await?;
    let leaving = match outcome.player() {
        Some(player) => state.platform.store.find_deletion(player.id).await?,
        None => None,
    };
    let what = match outcome {
        SignInOutcome::Suspended { reason } => {
            let provider = &pending.provider;
            state.platform.metrics.sign_in(provider, "suspended");
            keep_failed(state, provider, context, "suspended").await;
            return Err(suspended(reason));
        }
        SignInOutcome::Linked(_) => "linked",
        SignInOutcome::Merged { .. } => "merged",
        SignInOutcome::Returned(_) => "returned",
        SignInOutcome::Created(_) => "created",
    };
    state.platform.metrics.sign_in(&pending.provider, what);
    tracing::info!(
        request_id = context.id.as_str(),
        provider = pending.provider,
        outcome = what,
        "a player signed in"
    );
    let mut response = match leaving {
        // The player decides first whether to keep the account.
        Some(_) => {
            let path = page_path(DELETION_PAGE, redirect, &[]);
            see_other(&format!("{}{path}", state.platform.auth_url))?
        }
        None => see_other(&redirect.arrival(state))?,
    };
    let cookie = cookies::set_session(&secret, state.platform.origin.is_secure());
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_who_changed_their_mind_is_told_apart_from_a_failure() {
        let setback = |error: &str| Failure::Answered(shown(error)).setback();
        assert_eq!(setback("access_denied"), SignInNotice::Cancelled);
        assert_eq!(setback("user_cancelled_login"), SignInNotice::Cancelled);
        assert_eq!(setback("server_error"), SignInNotice::Failed);
        assert_eq!(setback("ACCESS_DENIED"), SignInNotice::Failed);
        assert_eq!(setback("access_denied\n"), SignInNotice::Failed);
        let exchange = |error| Failure::Exchange(error).setback();
        assert_eq!(
            exchange(SignInError::Unavailable(String::new())),
            SignInNotice::ProviderUnavailable
        );
        assert_eq!(
            exchange(SignInError::Refused(String::new())),
            SignInNotice::Failed
        );
        assert_eq!(Failure::OtherProvider.setback(), SignInNotice::Failed);
    }

    #[test]
    fn what_is_logged_of_an_error_is_one_plain_word() {
        assert_eq!(shown("server_error"), "server_error");
        for odd in ["a b", "a\nb", "\u{e4}", &"a".repeat(65)] {
            assert_eq!(shown(odd), "(unreadable)");
        }
    }
}
