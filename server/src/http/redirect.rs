//! Where a player goes back to: the `redirect` of the auth service's pages.
//!
//! Open redirects live where two parsers disagree, so an address has to be
//! plain before it is parsed, its parsed origin has to be exactly one of this
//! platform's, and only what our parser wrote is ever sent to a browser.

use std::sync::Arc;

use platform_protocol::problem::Slug;
use url::{Url, form_urlencoded};

use super::refusal::Refusal;
use crate::sites::Game;
use crate::state::AppState;

/// The name of the parameter, in queries and in forms.
pub const REDIRECT: &str = "redirect";

/// Bytes of an address, at most, as given and as written by our parser.
const MAX_BYTES: usize = 2_048;

/// An absolute address on the console or on a game of this platform, in the
/// one spelling that our parser gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnAddress(String);

impl ReturnAddress {
    /// Checks the address that a request gave; without one it is the console's.
    ///
    /// # Errors
    /// `invalid-redirect`
    pub fn read(state: &AppState, given: Option<&str>) -> Result<Self, Refusal> {
        let Some(given) = given else {
            return Ok(Self(format!("{}/", state.origin)));
        };
        let console = state.origin.to_string();
        canonical(given, |origin| {
            origin == console || state.sites.game_at(origin).is_some()
        })
        .map(Self)
        .ok_or_else(|| Slug::InvalidRedirect.into())
    }

    /// The same, out of a query. Given twice it is nobody's guess which one
    /// counts, so it is refused.
    ///
    /// # Errors
    /// `invalid-redirect`
    pub fn from_query(state: &AppState, query: Option<&str>) -> Result<Self, Refusal> {
        let query = query.unwrap_or_default().as_bytes();
        let mut given = form_urlencoded::parse(query).filter(|(name, _)| name == REDIRECT);
        match (given.next(), given.next()) {
            (None, _) => Self::read(state, None),
            (Some((_, only)), None) => Self::read(state, Some(&only)),
            (Some(_), Some(_)) => Err(Slug::InvalidRedirect.into()),
        }
    }

    /// The address, in visible ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The game that it leads to; none for the console.
    #[must_use]
    pub fn game(&self, state: &AppState) -> Option<Arc<Game>> {
        let url = Url::parse(&self.0).ok()?;
        state.sites.game_at(&url.origin().ascii_serialization())
    }
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
