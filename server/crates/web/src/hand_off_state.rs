//! The parameter `state` of a hand-off, with which the auth service hands a player to a game on another
//! site. It comes back from a browser, so nothing of it is believed.

use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::paths;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::cookies::{self, NONCE_ID_CHARS};

/// The parameter, with its value, of a page's address that stops a second attempt in a browser without cookies.
pub const TRIED: &str = "platform-continued=1";

/// The maximum number of bytes of the path and the query that a visitor asked for.
const MAX_PATH_BYTES: usize = 2_048;
/// The maximum number of bytes of a state: hash, path in base64url, and the mark of a second pass,
/// with separators.
const MAX_STATE_BYTES: usize = 43 + 1 + MAX_PATH_BYTES.div_ceil(3) * 4 + AGAIN.len();
/// The end of the state of a second pass.
const AGAIN: &str = ".2";

/// What a hand-off carries there and back: the SHA-256 of the nonce in the browser, and the path and
/// query that the visitor asked for. The auth service reads nothing of it but its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandOffState {
    /// SHA-256 of the nonce.
    pub nonce: [u8; 32],
    /// The path and query, which begin with a slash.
    pub path: String,
    /// Whether this is the second time that the browser is sent away for one page.
    pub is_again: bool,
}

impl HandOffState {
    /// Reads the parameter.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_STATE_BYTES {
            return None;
        }
        let (nonce, path) = text.split_once('.')?;
        let first = path.strip_suffix(AGAIN);
        let (path, is_again) = (first.unwrap_or(path), first.is_some());
        let path = String::from_utf8(URL_SAFE_NO_PAD.decode(path).ok()?).ok()?;
        is_path(&path).then_some(())?;
        Some(Self {
            nonce: cookies::decode(nonce)?,
            path,
            is_again,
        })
    }

    /// Returns the parameter: base64url and full stops.
    #[must_use]
    pub fn text(&self) -> String {
        let nonce = URL_SAFE_NO_PAD.encode(self.nonce);
        let path = URL_SAFE_NO_PAD.encode(&self.path);
        let end = if self.is_again { AGAIN } else { "" };
        format!("{nonce}.{path}{end}")
    }

    /// The part of the nonce cookie's name that tells several of them apart.
    fn id(&self) -> String {
        let mut id = URL_SAFE_NO_PAD.encode(self.nonce);
        id.truncate(NONCE_ID_CHARS);
        id
    }

    /// Returns whether this browser was sent away with this state, or `None` if it brought no nonce:
    /// it is another browser, or one without cookies.
    #[must_use]
    pub fn is_of(&self, headers: &HeaderMap, secure: bool) -> Option<bool> {
        let nonce = cookies::read_nonce(headers, secure, &self.id())?;
        let hash: [u8; 32] = Sha256::digest(nonce).into();
        Some(hash.ct_eq(&self.nonce).into())
    }

    /// Whether another hand-off of this browser is under way.
    #[must_use]
    pub fn has_another(&self, headers: &HeaderMap, secure: bool) -> bool {
        cookies::has_other_nonce(headers, secure, &self.id())
    }

    /// Returns the `Set-Cookie` value that removes the nonce.
    #[must_use]
    pub fn clear_nonce(&self, secure: bool) -> HeaderValue {
        cookies::clear_nonce(secure, &self.id())
    }

    /// Returns the `Set-Cookie` value that keeps the nonce in the browser.
    #[must_use]
    pub fn set_nonce(&self, nonce: &[u8; 32], secure: bool) -> HeaderValue {
        cookies::set_nonce(nonce, secure, &self.id())
    }

    /// Returns the address of the page that the visitor asked for, at the origin of its game.
    #[must_use]
    pub fn page(&self, origin: &str) -> String {
        format!("{origin}{}", self.path)
    }

    /// Returns the same with the mark that stops a second attempt.
    #[must_use]
    pub fn marked_page(&self, origin: &str) -> String {
        let separator = if self.path.contains('?') { '&' } else { '?' };
        format!("{origin}{}{separator}{TRIED}", self.path)
    }
}

/// Whether a text can be the path and query of an address of the game itself.
#[must_use]
pub fn is_path(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\' && byte != b'#';
    text.starts_with('/')
        && text.len() <= MAX_PATH_BYTES
        && text.bytes().all(plain)
        && !paths::is_platforms(text.split('?').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_as_it_was_and_leads_to_the_game_alone() {
        let state = HandOffState {
            nonce: [9; 32],
            path: "/level?a=%2F&b=c".to_owned(),
            is_again: false,
        };
        assert_eq!(HandOffState::parse(&state.text()), Some(state.clone()));
        assert!(state.text().len() <= MAX_STATE_BYTES);
        let again = HandOffState {
            is_again: true,
            ..state.clone()
        };
        assert_eq!(HandOffState::parse(&again.text()), Some(again.clone()));
        assert_eq!(HandOffState::parse(&format!("{}.2", again.text())), None);
        let with = |path: &str| {
            let path = path.to_owned();
            HandOffState::parse(
                &HandOffState {
                    path,
                    ..state.clone()
                }
                .text(),
            )
        };
        assert!(
            with("//evil.example/").is_some(),
            "it follows the game's origin"
        );
        for bad in [
            "",
            "evil.example",
            "/\\evil.example",
            "/a b",
            "/a\nb",
            "/a#b",
            "/\u{e9}",
            "/__platform/continue?to=/",
            &format!("/{}", "a".repeat(MAX_PATH_BYTES)),
        ] {
            assert_eq!(with(bad), None, "{bad}");
        }
        let nonce = URL_SAFE_NO_PAD.encode([9; 32]);
        for bad in ["", ".", &nonce, &format!("{nonce}."), "AA.Lw", "x.y.z"] {
            assert_eq!(HandOffState::parse(bad), None, "{bad}");
        }
    }
}
