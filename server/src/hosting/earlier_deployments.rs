//! Which files of deployments before are still answered where the current one
//! has nothing.
//!
//! A page that was loaded from an earlier deployment is still being played, and
//! loads its next level now. Bundlers give each version of a file a name of its
//! own, so the name that it asks for is of a file that the current deployment has
//! under another. Which names those are is not guessed here: what nobody else
//! has taken since can only be meant for that page. Three things count, and none
//! is what the letters look like:
//!
//! - Its bytes were the same in every deployment that has the path and is kept
//!   (the store answers nothing else): else the name is of whatever is there today.
//! - Its name has room for a hash. So `game.js` and `robots.txt` are gone once they
//!   are not deployed any more.
//! - It is none that runs or is shown by itself, and none that should never have
//!   been public: those are to be gone with the deploy that leaves them out.

use platform_checks::private;

use super::headers::is_scriptable;
use crate::games::content_hash::is_of_mark;

/// Characters that the shortest hash in use has.
const SHORTEST_HASH: usize = 8;

/// Whether a file of an earlier deployment may be answered at this path.
#[must_use]
pub fn may_answer(path: &str) -> bool {
    !is_scriptable(path) && has_room_for_a_hash(path) && private::judge(path).is_none()
}

/// Whether there are as many characters of base64url in a row as the shortest
/// hash has, in the file's name or in that of a folder: some bundlers have the
/// hash there.
fn has_room_for_a_hash(path: &str) -> bool {
    let stem = match path.rsplit_once('.') {
        Some((stem, extension)) if !extension.contains('/') => stem,
        _ => path,
    };
    stem.split(|other| !u8::try_from(other).is_ok_and(is_of_mark))
        .any(|run| run.len() >= SHORTEST_HASH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_room_for_a_hash_is_answered_later() {
        for path in [
            "assets/index-DAkgGDa_.js",
            "assets/index-abcdefgh.js",
            "12345678.js",
            "main.deadbeef.chunk.css",
            "_next/static/Xk3_abcdefgh/page.js",
            "Build/0a1b2c3d.data.br",
            "photo-12345678",
        ] {
            assert!(may_answer(path), "{path}");
        }
        for path in [
            "game.js",
            "index.html",
            "page-DAkgGDa_.html",
            "logo-DAkgGDa_.svg",
            "feed-12345678.xml",
            "secrets-prod.env",
            "server-certificate.pem",
            "credentials.json",
            ".git/objects/0a1b2c3d",
            "a.webmanifest",
            "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}.js",
        ] {
            assert!(!may_answer(path), "{path}");
        }
    }

    #[test]
    fn what_a_browser_shows_as_a_document_with_scripts_is_never_answered_later() {
        for extension in [
            "html", "htm", "xhtml", "xht", "shtml", "svg", "svgz", "xml", "xsl", "xslt", "SVG",
            "Html", "rss", "atom", "mathml",
        ] {
            let path = format!("assets/page-DAkgGDa_.{extension}");
            assert!(!may_answer(&path), "{path}");
        }
    }

    /// Names as bundlers make them, ten thousand of each: how many characters
    /// of which alphabet, between what.
    #[test]
    fn every_name_that_a_bundler_can_make_is_answered_later() {
        let base64url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let base36 = "0123456789abcdefghijklmnopqrstuvwxyz";
        let hexadecimal = "0123456789abcdef";
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for (begin, alphabet, length, end) in [
            ("assets/index-", base64url, 8, ".js"),
            ("assets/tree-", base64url, 8, ".png"),
            ("", base64url, 8, ".js"),
            ("chunk-", base32, 8, ".js"),
            ("x-", base36, 8, ".js"),
            ("index.", hexadecimal, 8, ".js"),
            ("main.", hexadecimal, 20, ".js.map"),
            ("app-", hexadecimal, 15, "_bg.wasm"),
            ("Build/", hexadecimal, 32, ".framework.js.br"),
        ] {
            for _ in 0..10_000 {
                let hash: String = (0..length)
                    .map(|_| {
                        // xorshift64, so that a failure comes again.
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let at = usize::try_from(random % alphabet.len() as u64).unwrap();
                        char::from(alphabet.as_bytes()[at])
                    })
                    .collect();
                let path = format!("{begin}{hash}{end}");
                assert!(may_answer(&path), "{path}");
            }
        }
    }
}
