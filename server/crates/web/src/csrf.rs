//! Forms that only our own pages can send.
//!
//! Every page with a form gives the browser a cookie of random bits that no
//! script and no other host can read, and every form carries a token that
//! follows from it. Another site can make a browser post, and so send the
//! cookie, but it cannot know the token. The same cookie binds a sign-in to
//! the browser that began it, so that nobody ends a sign-in that somebody else
//! began (RFC 9700 §4.7).

use std::fmt;

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cookie::{Cookie, SameSite};
use platform_protocol::problem::ProblemCode;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::api_error::ApiError;
use super::cookies::{self, Named};
use super::cors::single_origin;
use platform_domain::entropy::Entropy;

/// Over https: the prefix makes browsers refuse it from a sub-domain.
const SECURE_NAME: &str = "__Host-platform-form";
/// Over http, which only an origin under `localhost` may use.
const PLAIN_NAME: &str = "platform-form";

/// The name of the field that carries the token.
pub const FIELD: &str = "csrf";

/// The name of the browser's cookie.
#[must_use]
pub const fn browser_cookie_name(secure: bool) -> &'static str {
    if secure { SECURE_NAME } else { PLAIN_NAME }
}

/// Between the secret and an address: a character that base64url has not.
const SEPARATOR: char = '.';

/// The secret of a cookie's value, and the address behind it.
fn halves(value: &str) -> (&str, Option<&str>) {
    match value.split_once(SEPARATOR) {
        Some((secret, address)) => (secret, Some(address)),
        None => (value, None),
    }
}

fn cookie_of(value: String, secure: bool) -> HeaderValue {
    let cookie = Cookie::build((browser_cookie_name(secure), value))
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(secure)
        .path("/")
        .build();
    cookies::header_value(&cookie)
}

/// The address that this browser's last sign-in goes back to, as its cookie has
/// it: to be checked as one that a request gave.
#[must_use]
pub fn address_to_go_back_to(headers: &HeaderMap, secure: bool) -> Option<String> {
    let Named::One(value) = cookies::find(headers, browser_cookie_name(secure)) else {
        return None;
    };
    let address = URL_SAFE_NO_PAD.decode(halves(&value).1?).ok()?;
    String::from_utf8(address).ok()
}

/// 256 random bits that one browser holds until it is closed. Nothing is kept
/// of it on the server; all that leaves it are hashes. Its cookie also has
/// where the browser's last sign-in goes back to.
#[derive(Clone)]
pub struct BrowserSecret([u8; 32]);

impl BrowserSecret {
    /// A new secret.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        Self(entropy.bytes())
    }

    /// The secret in the request's cookie. None where there is no such cookie,
    /// or one that is not ours, or several of the name.
    #[must_use]
    pub fn read(headers: &HeaderMap, secure: bool) -> Option<Self> {
        match cookies::find(headers, browser_cookie_name(secure)) {
            Named::One(value) => cookies::decode(halves(&value).0).map(Self),
            Named::None | Named::Several => None,
        }
    }

    /// `Set-Cookie` that gives it to the browser together with the address that
    /// a sign-in goes back to, so that one whose `state` is gone leads there
    /// as well.
    #[must_use]
    pub fn set_cookie_going_back(&self, secure: bool, address: &str) -> HeaderValue {
        let address = URL_SAFE_NO_PAD.encode(address);
        let value = format!("{}{SEPARATOR}{address}", URL_SAFE_NO_PAD.encode(self.0));
        cookie_of(value, secure)
    }

    /// The browser's secret, and `Set-Cookie` where it has none that counts and
    /// so gets a new one. For pages with forms.
    #[must_use]
    pub fn of_browser(
        headers: &HeaderMap,
        secure: bool,
        entropy: &dyn Entropy,
    ) -> (Self, Option<HeaderValue>) {
        if let Some(held) = Self::read(headers, secure) {
            return (held, None);
        }
        let fresh = Self::generate(entropy);
        let cookie = fresh.set_cookie(secure);
        (fresh, Some(cookie))
    }

    /// `Set-Cookie` that gives it to the browser, until that is closed.
    #[must_use]
    pub fn set_cookie(&self, secure: bool) -> HeaderValue {
        cookie_of(URL_SAFE_NO_PAD.encode(self.0), secure)
    }

    /// What forms carry: 43 characters of base64url, from which the cookie
    /// cannot be found.
    #[must_use]
    pub fn form_token(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.derive(b"platform form token"))
    }

    /// Whether a form carried the token of this browser. The time that it
    /// takes says nothing about the token.
    #[must_use]
    pub fn accepts(&self, form_token: &str) -> bool {
        let expected = self.form_token();
        expected.as_bytes().ct_eq(form_token.as_bytes()).into()
    }

    /// What is kept with a sign-in that this browser began.
    #[must_use]
    pub fn binding(&self) -> [u8; 32] {
        self.derive(b"platform sign-in binding")
    }

    /// A purpose is a fixed text and the secret of fixed length, so no two
    /// purposes hash the same bytes.
    pub(super) fn derive(&self, purpose: &[u8]) -> [u8; 32] {
        Sha256::new()
            .chain_update(purpose)
            .chain_update([0])
            .chain_update(self.0)
            .finalize()
            .into()
    }
}

impl fmt::Debug for BrowserSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BrowserSecret(hidden)")
    }
}

/// Refuses a form that another site sent, and one without the token of the
/// browser that sends it. `token` is the form's field [`FIELD`].
///
/// What a browser says of itself (Fetch Metadata, `Origin`) is looked at where
/// it says it; a browser too old to say it has the token alone. A game is of
/// the same site as the auth service, and yet not a page that may send its
/// forms.
///
/// # Errors
/// `not-allowed`; `invalid-request` where the browser sends two cookies of the
/// name, since nobody can tell which one another page has tossed in
/// (RFC 6265 §8.6).
pub fn check_form(
    headers: &HeaderMap,
    secure: bool,
    auth_url: &str,
    token: Option<&str>,
) -> Result<BrowserSecret, ApiError> {
    if sender(headers, auth_url) == Sender::Foreign {
        return Err(ApiError::new(ProblemCode::NotAllowed).with_detail(
            "This form was sent from another page, so nothing was done. Please use the form on \
             the platform's own page.",
        ));
    }
    if matches!(
        cookies::find(headers, browser_cookie_name(secure)),
        Named::Several
    ) {
        return Err(ApiError::new(ProblemCode::InvalidRequest).with_detail(
            "Your browser sent two cookies of one name, one of which another page has set. That \
             one is removed now. Please go back, reload the page and try again.",
        ));
    }
    BrowserSecret::read(headers, secure)
        .filter(|secret| token.is_some_and(|token| secret.accepts(token)))
        .ok_or_else(|| {
            ApiError::new(ProblemCode::NotAllowed).with_detail(
                "This form is too old, or your browser takes no cookies from this site. Please go \
                 back, reload the page and try again.",
            )
        })
}

/// Whether the browser says of a form which [`check_form`] refuses that one of
/// our own pages sent it: the page is older than the browser's cookie, and what
/// was typed into it may be shown to the person once more.
#[must_use]
pub fn is_own_stale_form(headers: &HeaderMap, secure: bool, auth_url: &str) -> bool {
    let cookies = cookies::find(headers, browser_cookie_name(secure));
    sender(headers, auth_url) == Sender::Own && !matches!(cookies, Named::Several)
}

/// Which page sent a form, as the browser says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// One of ours.
    Own,
    /// The browser is too old to say.
    Unknown,
    /// Another one.
    Foreign,
}

fn sender(headers: &HeaderMap, auth_url: &str) -> Sender {
    let mut sites = headers.get_all("sec-fetch-site").iter().peekable();
    let (says_site, says_origin) = (sites.peek().is_some(), headers.contains_key(header::ORIGIN));
    let foreign_site = sites.any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"));
    let foreign_origin = says_origin && single_origin(headers) != Some(auth_url);
    if foreign_site || foreign_origin {
        Sender::Foreign
    } else if says_site || says_origin {
        Sender::Own
    } else {
        Sender::Unknown
    }
}

#[cfg(test)]
mod tests;
