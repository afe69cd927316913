//! Protection of forms against requests from other sites (CSRF).
//!
//! Every page with a form sets a cookie of random bits that no script and no other host can read,
//! and every form contains a token that is derived from it. Another site can make a browser send a
//! POST request with the cookie, but it cannot know the token. The same cookie binds a sign-in to
//! the browser that began it, so that nobody can complete a sign-in that somebody else began (RFC
//! 9700 §4.7).

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

/// The name over https: browsers do not accept this prefix from a sub-domain.
const SECURE_NAME: &str = "__Host-platform-form";
/// The name over http, which only an origin under `localhost` may use.
const PLAIN_NAME: &str = "platform-form";

/// The name of the form field with the token.
pub const FIELD: &str = "csrf";

/// Returns the name of the browser's cookie.
#[must_use]
pub const fn browser_cookie_name(secure: bool) -> &'static str {
    if secure { SECURE_NAME } else { PLAIN_NAME }
}

/// Separates the secret from an address; base64url does not contain this character.
const SEPARATOR: char = '.';

/// Splits a cookie's value into the secret and the address after it.
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

/// Returns the return address of this browser's last sign-in from its cookie. It must be checked
/// like an address from a request.
#[must_use]
pub fn address_to_go_back_to(headers: &HeaderMap, secure: bool) -> Option<String> {
    let Named::One(value) = cookies::find(headers, browser_cookie_name(secure)) else {
        return None;
    };
    let address = URL_SAFE_NO_PAD.decode(halves(&value).1?).ok()?;
    String::from_utf8(address).ok()
}

/// 256 random bits that a browser keeps until it is closed. The server does not store them, and
/// only hashes of them are ever sent. The cookie also contains the return address of the browser's
/// last sign-in.
#[derive(Clone)]
pub struct BrowserSecret([u8; 32]);

impl BrowserSecret {
    /// Generates a new secret.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        Self(entropy.bytes())
    }

    /// Reads the secret from the request's cookie. Returns `None` if there is no such cookie, an
    /// invalid one, or several with the name.
    #[must_use]
    pub fn read(headers: &HeaderMap, secure: bool) -> Option<Self> {
        match cookies::find(headers, browser_cookie_name(secure)) {
            Named::One(value) => cookies::decode(halves(&value).0).map(Self),
            Named::None | Named::Several => None,
        }
    }

    /// Returns the `Set-Cookie` value with the secret and the return address of a sign-in, so that
    /// a sign-in whose `state` is gone still leads there.
    #[must_use]
    pub fn set_cookie_going_back(&self, secure: bool, address: &str) -> HeaderValue {
        let address = URL_SAFE_NO_PAD.encode(address);
        let value = format!("{}{SEPARATOR}{address}", URL_SAFE_NO_PAD.encode(self.0));
        cookie_of(value, secure)
    }

    /// Returns the browser's secret. If the browser has no valid one, generates a new one and
    /// returns its `Set-Cookie` value, too. For pages with forms.
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

    /// Returns the `Set-Cookie` value that keeps the secret until the browser is closed.
    #[must_use]
    pub fn set_cookie(&self, secure: bool) -> HeaderValue {
        cookie_of(URL_SAFE_NO_PAD.encode(self.0), secure)
    }

    /// Returns the token for forms: 43 characters of base64url, from which the cookie cannot be
    /// computed.
    #[must_use]
    pub fn form_token(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.derive(b"platform form token"))
    }

    /// Whether a form contains the token of this browser. The comparison takes constant time.
    #[must_use]
    pub fn accepts(&self, form_token: &str) -> bool {
        let expected = self.form_token();
        expected.as_bytes().ct_eq(form_token.as_bytes()).into()
    }

    /// Returns the value that is stored with a sign-in that this browser began.
    #[must_use]
    pub fn binding(&self) -> [u8; 32] {
        self.derive(b"platform sign-in binding")
    }

    /// Derives a value for one purpose. A purpose is a fixed text and the secret has a fixed
    /// length, so two purposes never hash the same bytes.
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

/// Rejects a form from another site, and one without the token of the browser that sends it.
/// `token` is the form's field [`FIELD`].
///
/// Headers about the sender (Fetch Metadata, `Origin`) are checked if the browser sends them; for
/// an older browser only the token counts. A game is on the same site as the auth service, but may
/// not send its forms.
///
/// # Errors
/// `not-allowed`; `invalid-request` if the browser sends two cookies with the name, since the
/// server cannot know which one another page has set (RFC 6265 §8.6).
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
            "Your browser sent two cookies with the same name, and another page set one of them. \
             That one has now been removed. Please go back, reload the page and try again.",
        ));
    }
    BrowserSecret::read(headers, secure)
        .filter(|secret| token.is_some_and(|token| secret.accepts(token)))
        .ok_or_else(|| {
            ApiError::new(ProblemCode::NotAllowed).with_detail(
                "This form is too old, or your browser does not accept cookies from this site. \
                 Please go back, reload the page and try again.",
            )
        })
}

/// Whether the browser says that one of our own pages sent a form that [`check_form`] rejects: the
/// page is then older than the browser's cookie, and the person's input may be shown to them again.
#[must_use]
pub fn is_own_stale_form(headers: &HeaderMap, secure: bool, auth_url: &str) -> bool {
    let cookies = cookies::find(headers, browser_cookie_name(secure));
    sender(headers, auth_url) == Sender::Own && !matches!(cookies, Named::Several)
}

/// The page that sent a form, according to the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// One of our own pages.
    Own,
    /// Unknown, since the browser is too old.
    Unknown,
    /// Another page.
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
