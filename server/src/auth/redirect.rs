//! Where a player goes back to: the `redirect` of the auth service's pages.
//!
//! Open redirects live where two parsers disagree, so an address has to be
//! plain before it is parsed, its parsed origin has to be exactly one of this
//! platform's, and only what our parser wrote is ever sent to a browser. Of
//! the auth service's own pages one alone is an address to go back to, in the
//! one spelling that it gives itself.

use std::sync::Arc;

use platform_protocol::problem::ProblemCode;
use url::{Url, form_urlencoded};

use crate::auth::AuthState;
use crate::domain::device::UserCode;
use crate::games::catalogue::Game;
use crate::http::api_error::ApiError;
use crate::http::seal::may_be_seal;

/// The name of the parameter, in queries and in forms.
pub const REDIRECT: &str = "redirect";

/// The path of the page that signs in a device.
pub const DEVICE_PAGE: &str = "/device";
/// The name of its parameter (RFC 8628 §3.3.1).
pub const USER_CODE: &str = "user_code";
/// The parameter beside it that makes it believed: a seal of this browser
/// ([`Sealed`](crate::http::seal::Sealed)).
pub const PROOF: &str = "proof";

/// Bytes of an address, at most, as given and as written by our parser.
const MAX_BYTES: usize = 2_048;

/// An absolute address on the console or on a game of this platform, in the
/// one spelling that our parser gives it, or that of [`DEVICE_PAGE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnAddress(String);

impl ReturnAddress {
    /// Checks the address that a request gave; without one it is the console's.
    ///
    /// # Errors
    /// `invalid-redirect`
    pub fn read(state: &AuthState, given: Option<&str>) -> Result<Self, ApiError> {
        let Some(given) = given else {
            return Ok(Self::console(state));
        };
        if let Some(page) = device_page(&state.platform.auth_url, given) {
            return Ok(Self(page));
        }
        let console = state.platform.origin.to_string();
        canonical(given, |origin| {
            origin == console || state.games.catalogue.game_at(origin).is_some()
        })
        .map(Self)
        .ok_or_else(|| ProblemCode::InvalidRedirect.into())
    }

    /// The console's first page.
    #[must_use]
    pub fn console(state: &AuthState) -> Self {
        Self(format!("{}/", state.platform.origin))
    }

    /// The page that signs in a device; with a code, and the seal without
    /// which the page does not believe an address.
    #[must_use]
    pub fn device(state: &AuthState, code: Option<(&UserCode, &str)>) -> Self {
        let (code, proof) = code.unzip();
        Self(device_address(&state.platform.auth_url, code, proof))
    }

    /// The same, out of a query. Given twice it is nobody's guess which one
    /// counts, so it is refused.
    ///
    /// # Errors
    /// `invalid-redirect`
    pub fn from_query(state: &AuthState, query: Option<&str>) -> Result<Self, ApiError> {
        let query = query.unwrap_or_default().as_bytes();
        let mut given = form_urlencoded::parse(query).filter(|(name, _)| name == REDIRECT);
        match (given.next(), given.next()) {
            (None, _) => Self::read(state, None),
            (Some((_, only)), None) => Self::read(state, Some(&only)),
            (Some(_), Some(_)) => Err(ProblemCode::InvalidRedirect.into()),
        }
    }

    /// The address, in visible ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the page that signs in a device.
    #[must_use]
    pub fn is_device_page(&self, state: &AuthState) -> bool {
        device_page(&state.platform.auth_url, &self.0).is_some()
    }

    /// The path of the console that it leads to; none anywhere else.
    #[must_use]
    pub fn console_path(&self, state: &AuthState) -> Option<String> {
        let url = Url::parse(&self.0).ok()?;
        let here = url.origin().ascii_serialization() == state.platform.origin.to_string();
        here.then(|| url.path().to_owned())
    }

    /// The game that it leads to; none for the console.
    #[must_use]
    pub fn game(&self, state: &AuthState) -> Option<Arc<Game>> {
        let url = Url::parse(&self.0).ok()?;
        state
            .games
            .catalogue
            .game_at(&url.origin().ascii_serialization())
    }
}

fn device_address(auth_url: &str, code: Option<&UserCode>, proof: Option<&str>) -> String {
    let mut address = format!("{auth_url}{DEVICE_PAGE}");
    if let Some(code) = code {
        address.push_str(&format!("?{USER_CODE}={code}"));
        if let Some(proof) = proof {
            address.push_str(&format!("&{PROOF}={proof}"));
        }
    }
    address
}

/// The address of the page that signs in a device, if it is `given` to the
/// letter: nothing is parsed but the code and the characters of the seal, and
/// nothing else of the text is kept.
fn device_page(auth_url: &str, given: &str) -> Option<String> {
    let query = given.split_once('?').map(|(_, query)| query);
    let mut values = query
        .unwrap_or_default()
        .split('&')
        .map(|pair| pair.split_once('=').map(|(_, value)| value));
    let code = values.next().flatten().and_then(UserCode::parse);
    let proof = values.next().flatten().filter(|proof| may_be_seal(proof));
    let page = device_address(auth_url, code.as_ref(), proof);
    (page == given).then_some(page)
}

/// The address in our parser's spelling, if its origin is `known` and no other
/// parser could have found another one.
fn canonical(given: &str, known: impl Fn(&str) -> bool) -> Option<String> {
    if given.len() > MAX_BYTES || !is_plain(given) {
        return None;
    }
    let url = Url::parse(given).ok()?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none();
    if !plain || !known(&url.origin().ascii_serialization()) {
        return None;
    }
    // Past the path a backslash is a character like any other, which our
    // parser leaves as it is and others may not.
    let url = String::from(url).replace('\\', "%5C");
    (url.len() <= MAX_BYTES).then_some(url)
}

/// Whether every parser finds the same host: scheme, two slashes, a host and
/// port of plain characters, and no backslash or white space that some parsers
/// drop or turn into a slash. Percent-encoding and letters beyond ASCII are
/// decoded and mapped by some (RFC 3986 §3.2.2 against the URL Standard), so
/// no host has them.
fn is_plain(given: &str) -> bool {
    if given.chars().any(|char| char.is_control() || char == ' ') {
        return false;
    }
    let Some((scheme, rest)) = given.split_once("://") else {
        return false;
    };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = tail.split(['?', '#']).next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
        && !authority.is_empty()
        && authority
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':'))
        && !path.contains('\\')
}

#[cfg(test)]
mod tests;
