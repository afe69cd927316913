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
use platform_protocol::problem::Slug;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::cookies::{self, Named};
use super::cors::single_origin;
use super::refusal::Refusal;
use crate::entropy::Entropy;

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

/// 256 random bits that one browser holds until it is closed. Nothing is kept
/// of it on the server; all that leaves it are hashes.
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
            Named::One(value) => cookies::decode(&value).map(Self),
            Named::None | Named::Several => None,
        }
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
        let cookie = Cookie::build((browser_cookie_name(secure), URL_SAFE_NO_PAD.encode(self.0)))
            .http_only(true)
            .same_site(SameSite::Lax)
            .secure(secure)
            .path("/")
            .build();
        cookies::header_value(&cookie)
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
) -> Result<BrowserSecret, Refusal> {
    if sender(headers, auth_url) == Sender::Foreign {
        return Err(Refusal::new(Slug::NotAllowed).with_detail(
            "This form was sent from another page, so nothing was done. Please use the form on \
             the platform's own page.",
        ));
    }
    if matches!(
        cookies::find(headers, browser_cookie_name(secure)),
        Named::Several
    ) {
        return Err(Refusal::new(Slug::InvalidRequest).with_detail(
            "Your browser sent two cookies of one name. Please clear the cookies of this site and \
             try again.",
        ));
    }
    BrowserSecret::read(headers, secure)
        .filter(|secret| token.is_some_and(|token| secret.accepts(token)))
        .ok_or_else(|| {
            Refusal::new(Slug::NotAllowed).with_detail(
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
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    const AUTH: &str = "http://auth.platform.localhost:8787";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn cookie(secret: &BrowserSecret) -> String {
        let set = secret.set_cookie(false);
        set.to_str().unwrap().split(';').next().unwrap().to_owned()
    }

    #[test]
    fn the_cookie_goes_with_the_browser_and_stays_on_the_host() {
        let secret = BrowserSecret([0; 32]);
        let value = "A".repeat(43);
        assert_eq!(
            secret.set_cookie(false).to_str().unwrap(),
            format!("platform-form={value}; HttpOnly; SameSite=Lax; Path=/")
        );
        let secure = secret.set_cookie(true);
        assert_eq!(
            secure.to_str().unwrap(),
            format!("__Host-platform-form={value}; HttpOnly; SameSite=Lax; Secure; Path=/")
        );
        assert!(secure.is_sensitive());
    }

    #[test]
    fn nothing_that_leaves_the_secret_gives_it_away() {
        let secret = BrowserSecret::generate(&SystemEntropy);
        let held = cookie(&secret);
        let value = held.strip_prefix("platform-form=").unwrap();
        assert_ne!(secret.form_token(), value);
        assert_ne!(
            URL_SAFE_NO_PAD.encode(secret.binding()),
            secret.form_token()
        );
        assert_eq!(format!("{secret:?}"), "BrowserSecret(hidden)");
        let read = BrowserSecret::read(&headers(&[("cookie", &held)]), false).unwrap();
        assert_eq!(read.form_token(), secret.form_token());
        assert_eq!(read.binding(), secret.binding());
    }

    #[test]
    fn only_one_readable_cookie_counts() {
        let secret = BrowserSecret::generate(&SystemEntropy);
        let held = cookie(&secret);
        let huge = format!("platform-form={}", "x".repeat(8_192));
        for lines in [
            &[][..],
            &["platform-form="],
            &["platform-form"],
            &["platform-form=short"],
            &[&huge],
            &[&format!("{held}A")],
            &[&format!("__Host-{held}")],
            &[&format!("{held}; {held}")],
            &[&held, "platform-form=tossed"],
        ] {
            let lines: Vec<_> = lines.iter().map(|line| ("cookie", *line)).collect();
            assert!(
                BrowserSecret::read(&headers(&lines), false).is_none(),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn only_our_own_form_of_this_browser_is_taken() {
        let secret = BrowserSecret::generate(&SystemEntropy);
        let other = BrowserSecret::generate(&SystemEntropy);
        let held = cookie(&secret);
        let token = secret.form_token();
        let ask = |more: &[(&'static str, &str)], token: Option<&str>| {
            let mut headers = headers(more);
            headers.append("cookie", HeaderValue::from_str(&held).unwrap());
            check_form(&headers, false, AUTH, token).map_err(|refusal| refusal.slug())
        };
        for good in [
            &[][..],
            &[("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "none")],
            &[("origin", AUTH)],
            &[("sec-fetch-site", "same-origin"), ("origin", AUTH)],
        ] {
            let taken = ask(good, Some(&token)).unwrap();
            assert_eq!(taken.binding(), secret.binding(), "{good:?}");
        }
        for bad in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "SAME-ORIGIN")],
            &[("sec-fetch-site", "")],
            &[
                ("sec-fetch-site", "same-origin"),
                ("sec-fetch-site", "cross-site"),
            ],
            &[("origin", "null")],
            &[("origin", "")],
            &[("origin", "http://demo.platform.localhost:8787")],
            &[("origin", "http://platform.localhost:8787")],
            &[("origin", "https://auth.platform.localhost:8787")],
            &[("origin", "http://auth.platform.localhost")],
            &[("origin", "http://auth.platform.localhost:8787/")],
            &[("origin", AUTH), ("origin", AUTH)],
        ] {
            let refused = ask(bad, Some(&token)).unwrap_err();
            assert_eq!(refused, Slug::NotAllowed, "{bad:?}");
        }
        let wrong = other.form_token();
        let short = &token[..42];
        let long = format!("{token}A");
        for bad in [None, Some(""), Some(&wrong), Some(short), Some(&long)] {
            assert_eq!(ask(&[], bad).unwrap_err(), Slug::NotAllowed, "{bad:?}");
        }
        let twice = ask(&[("cookie", &held)], Some(&token)).unwrap_err();
        assert_eq!(twice, Slug::InvalidRequest);
        let without = check_form(&HeaderMap::new(), false, AUTH, Some(&token));
        assert_eq!(without.unwrap_err().slug(), Slug::NotAllowed);
    }
}
