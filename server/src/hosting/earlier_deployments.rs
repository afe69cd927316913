//! Decides which files of earlier deployments are still served if the current one has no file at
//! their path.
//!
//! A page that was loaded from an earlier deployment is still being played, and loads its next
//! level now. Bundlers give each version of a file a different name, so it requests a name that the
//! current deployment does not have. We do not guess which names contain a hash: a path that no
//! other content has used can only be meant for that page. Three conditions apply, none of which
//! depends on what the letters look like:
//!
//! - Its bytes were the same in every kept deployment that has the path (the store returns nothing
//!   otherwise). If not, the name refers to the current file.
//! - Its name has room for a hash. So `game.js` and `robots.txt` are not served any more once they
//!   are not deployed.
//! - It is not a file that runs or is displayed on its own, and none that should never have been
//!   public: those must disappear with the deploy that leaves them out.

use platform_checks::private;

use super::headers::is_scriptable;
use crate::games::content_hash::is_of_mark;

/// The length of the shortest hash in use.
const SHORTEST_HASH: usize = 8;

/// Whether a file of an earlier deployment may be served at this path.
#[must_use]
pub fn may_answer(path: &str) -> bool {
    !is_scriptable(path) && has_room_for_a_hash(path) && private::judge(path).is_none()
}

/// Whether there are as many base64url characters in a row as the shortest hash has, in the name of
/// the file or of a folder: some bundlers put the hash there.
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

    /// Ten thousand names in the style of each bundler: the length and alphabet of the hash, and
    /// the text around it.
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
                        // xorshift64, so that a failure can be reproduced.
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
