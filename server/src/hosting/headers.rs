//! What a file is, and for how long it may be kept.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::http::encoding::Coding;

/// A browser asks each time whether the file is still the same one.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");
/// The name changes with the content, so nobody need ever ask again.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Names that a browser knows without asking whether they are text.
const UTF8: &str = "; charset=utf-8";

/// Says what the file at `path` is, in which coding it is sent, and for how
/// long it may be kept.
pub fn describe(headers: &mut HeaderMap, path: &str, coding: Coding) {
    let (path, coding) = match compressed_by_engine(path) {
        Some(inner) if coding == Coding::Identity => inner,
        _ => (path, coding),
    };
    headers.insert(header::CONTENT_TYPE, content_type(path));
    let cache = if has_content_hash(path) {
        FOR_EVER
    } else {
        ASK_AGAIN
    };
    headers.insert(header::CACHE_CONTROL, cache);
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if coding != Coding::Identity {
        let coding = HeaderValue::from_static(coding.as_str());
        headers.insert(header::CONTENT_ENCODING, coding);
    }
}

/// What a browser asks of a page before it gives it memory that threads share
/// (HTML, "cross-origin isolation"). Workers want the second one as well.
pub fn isolate(headers: &mut HeaderMap) {
    for (name, value) in [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-embedder-policy", "require-corp"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// The media type of a file by its name.
fn content_type(path: &str) -> HeaderValue {
    // What it says of modules is not what browsers' makers agreed on (RFC 9239),
    // and of source maps nothing.
    let guessed = match path.rsplit_once('.') {
        Some((_, "mjs")) => mime_guess::mime::TEXT_JAVASCRIPT,
        Some((inner, "map")) if inner.ends_with("js") || inner.ends_with("css") => {
            mime_guess::mime::APPLICATION_JSON
        }
        _ => mime_guess::from_path(path).first_or_octet_stream(),
    };
    let text = guessed.type_() == mime_guess::mime::TEXT
        || matches!(guessed.subtype().as_str(), "json" | "javascript");
    let charset = if text { UTF8 } else { "" };
    HeaderValue::try_from(format!("{}{charset}", guessed.essence_str()))
        .unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

/// Whether a browser that opens a file of this name runs the scripts in it:
/// pages, and all XML, of which pictures in SVG are the most frequent.
#[must_use]
pub fn is_scriptable(path: &str) -> bool {
    let path = compressed_by_engine(path).map_or(path, |(inner, _)| inner);
    let guessed = mime_guess::from_path(path).first_or_octet_stream();
    let is_xml = |name: &str| matches!(name, "xml" | "xslt+xml" | "xsl") || name.ends_with("+xml");
    guessed.subtype() == mime_guess::mime::HTML
        || is_xml(guessed.subtype().as_str())
        || guessed.suffix().is_some_and(|suffix| suffix == "xml")
}

/// Whether a file of this name gets smaller when it is compressed. Pictures,
/// sound, video and archives are compressed already.
#[must_use]
pub fn is_compressible(path: &str) -> bool {
    let guessed = mime_guess::from_path(path).first_or_octet_stream();
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, end)| end);
    guessed.type_() == mime_guess::mime::TEXT
        || guessed
            .suffix()
            .is_some_and(|suffix| suffix == "xml" || suffix == "json")
        || matches!(
            guessed.subtype().as_str(),
            "json" | "javascript" | "wasm" | "xml" | "manifest+json" | "x-font-ttf" | "ttf"
        )
        // What engines pack a game's data in, and models and shaders.
        || matches!(
            extension,
            "pck" | "data" | "gltf" | "glb" | "obj" | "glsl" | "vert" | "frag" | "map" | "ttf"
        )
}

/// Unity compresses what its loader asks for by name, `game.wasm.br`, and
/// counts on the server to say so. The name of the file inside, and the coding.
fn compressed_by_engine(path: &str) -> Option<(&str, Coding)> {
    let (inner, coding) = match path.rsplit_once('.')? {
        (inner, "br") => (inner, Coding::Brotli),
        (inner, "gz") => (inner, Coding::Gzip),
        _ => return None,
    };
    let known = [".wasm", ".js", ".data", ".symbols.json"];
    let known = known.iter().any(|end| inner.ends_with(end));
    known.then_some((inner, coding))
}

/// Whether the name holds a hash of the content, as bundlers write it:
/// `main.3f2a9c1b.js` or `index-BkX3s9aQ.css`. A name that only looks like one
/// would be kept for a year, so what is in doubt is none. A page is never kept.
#[must_use]
pub fn has_content_hash(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return false;
    };
    if matches!(extension, "html" | "htm" | "xhtml") {
        return false;
    }
    let without = |stem, endings: &[&str]| {
        let mut endings = endings.iter();
        let shorter = endings.find_map(|end| str::strip_suffix(stem, end)?.strip_suffix('.'));
        shorter.unwrap_or(stem)
    };
    // A file `x.js.map` or `x.wasm.br` has its hash before the inner extension,
    // and so have `x.chunk.js` and `x.min.css`.
    let stem = without(stem, &["js", "mjs", "css", "wasm", "data"]);
    let stem = without(stem, &["chunk", "min", "bundle", "module"]);
    let code = matches!(extension, "js" | "mjs" | "css" | "map");
    let made_up = code && path.contains("assets/");
    let marks = [eight_at_the_end(stem), after_the_last_separator(stem)];
    is_hexadecimal(stem)
        || marks.into_iter().flatten().any(|mark| {
            is_hexadecimal(mark)
                || is_mixed(mark) && (made_up || !has_word(mark))
                || code && is_base32(mark)
                || made_up && is_made_up(mark)
        })
}

/// A fourth of Vite's hashes, `index-DUEEZswr.js`, are letters alone. In the
/// folder that it writes code to, what is no word in any spelling is taken for
/// one: `MainMenu`, `mainmenu` and `MAINMENU` are not.
fn is_made_up(mark: &str) -> bool {
    let letters = mark.len() == 8 && mark.bytes().all(|byte| byte.is_ascii_alphabetic());
    let mut before_is_upper = false;
    let two_upper = mark.bytes().any(|byte| {
        let upper = byte.is_ascii_uppercase();
        std::mem::replace(&mut before_is_upper, upper) && upper
    });
    letters && two_upper && mark.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// A hash in base64url may itself hold the separators.
fn eight_at_the_end(stem: &str) -> Option<&str> {
    let (before, mark) = stem.split_at_checked(stem.len().checked_sub(8)?)?;
    before.ends_with(['.', '-']).then_some(mark)
}

fn after_the_last_separator(stem: &str) -> Option<&str> {
    stem.rsplit_once(['.', '-']).map(|(_, mark)| mark)
}

fn count(mark: &str, kind: fn(&u8) -> bool) -> usize {
    mark.bytes().filter(kind).count()
}

/// As webpack writes hashes, and many others.
fn is_hexadecimal(mark: &str) -> bool {
    let digits = count(mark, u8::is_ascii_digit);
    let letters = count(mark, |byte| matches!(byte, b'a'..=b'f'));
    mark.len() >= 8 && letters > 0 && digits + letters == mark.len() && has_digit_inside(mark)
}

/// Whether there is a digit that does not number something, as those at the end
/// of `facade01` do.
fn has_digit_inside(mark: &str) -> bool {
    let word = mark.trim_end_matches(|end: char| end.is_ascii_digit());
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// As Rollup and Vite write them: eight of base64url.
fn is_mixed(mark: &str) -> bool {
    let digits = count(mark, u8::is_ascii_digit);
    let lower = count(mark, u8::is_ascii_lowercase);
    let upper = count(mark, u8::is_ascii_uppercase);
    let others = count(mark, |byte| matches!(byte, b'_' | b'-'));
    mark.len() == 8
        && digits > 0
        && lower > 0
        && upper > 0
        && digits + lower + upper + others == mark.len()
}

/// Whether there may be a word in it, as in `Player12` and `Forest01`. So may
/// there be in a fourth of all hashes, which are then asked about.
fn has_word(mark: &str) -> bool {
    let mark = mark.as_bytes();
    mark.windows(3)
        .any(|three| three.iter().all(u8::is_ascii_lowercase))
}

/// As esbuild writes them: eight of base32.
fn is_base32(mark: &str) -> bool {
    let known = |byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7');
    mark.len() == 8 && mark.bytes().all(known) && has_digit_inside(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_hashes_are_kept_for_ever() {
        for name in [
            "main.3f2a9c1b.js",
            "a/index-BkX3s9aQ.css",
            "x-0a1b2c3d4e5f.png",
            "i-Bk3sQ9aZ.js.map",
            "index-Bk_3Q-aZ.js",
            "index--k_3Q-aZ.js",
            "engine.0a1b2c3d4e5f6071.wasm",
            "engine.0a1b2c3d4e5f6071.wasm.br",
            "index-CpR-2CVW.js",
            "assets/index-DUEEZswr.js",
            "game/assets/index-DUEEZswr.css",
            "assets/index-DUEEZswr.js.map",
            "assets/index-B1orestX.js",
            "main.abcd3f12.chunk.js",
            "style.4f2c8d9e.min.css",
            "static/js/main.4f2c8d9e.chunk.js.map",
            "3f2a9c1b.js",
            "static/3f2a9c1b8d7e6f5a4b3c.png",
            "chunk-2B3C4D5E.js",
            "main-5VNF3CZB.css",
        ] {
            assert!(has_content_hash(name), "{name}");
        }
        for name in [
            "index.html",
            "page.3f2a9c1b.html",
            "game.js",
            "level-20240101.json",
            "deadbeef.js",
            "main.decade.js",
            "texture-background1.png",
            "map-MainMenu.json",
            "index-DUEEZswr.js",
            "assets/map-DUEEZswr.json",
            "assets/scene-MainMenu.js",
            "assets/scene-mainmenu.js",
            "assets/scene-MAINMENU.js",
            "sprite-Player12.png",
            "assets/tileset-Forest01.png",
            "Build-Release1.data",
            "music-MyLevel1.ogg",
            "map-Level1Bg.json",
            "main-FOREST22.js",
            "sprite-2B3C4D5E.png",
            "20240101.json",
            "facade01.png",
            "wall-facade01.png",
            "x.facade.js",
            "noextension-3f2a9c1b",
            "-3f2a9c1\u{e9}.js",
            "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}.js",
        ] {
            assert!(!has_content_hash(name), "{name}");
        }
    }

    #[test]
    fn what_an_engine_compressed_is_said_to_be_compressed() {
        for (path, content_type, coding) in [
            ("Build/game.wasm.br", "application/wasm", Some("br")),
            ("Build/game.wasm.gz", "application/wasm", Some("gzip")),
            ("Build/game.data.br", "application/octet-stream", Some("br")),
            (
                "Build/game.framework.js.gz",
                "text/javascript; charset=utf-8",
                Some("gzip"),
            ),
            (
                "Build/game.symbols.json.br",
                "application/json; charset=utf-8",
                Some("br"),
            ),
            ("level.tar.gz", "application/gzip", None),
            ("scores.json.gz", "application/gzip", None),
        ] {
            let mut headers = HeaderMap::new();
            describe(&mut headers, path, Coding::Identity);
            assert_eq!(headers[header::CONTENT_TYPE], content_type, "{path}");
            let said = headers.get(header::CONTENT_ENCODING);
            assert_eq!(said.map(|said| said.to_str().unwrap()), coding, "{path}");
        }
    }

    #[test]
    fn what_runs_scripts_when_it_is_opened_is_known() {
        for path in [
            "a.html", "a.htm", "a.xhtml", "a.svg", "a/b.SVG", "a.xml", "a.xsl", "a.xslt", "a.rdf",
            "a.atom", "a.mathml",
        ] {
            assert!(is_scriptable(path), "{path}");
        }
        for path in [
            "a.js", "a.css", "a.png", "a.wasm", "a.json", "a.map", "a", "svg",
        ] {
            assert!(!is_scriptable(path), "{path}");
        }
    }

    #[test]
    fn what_is_compressed_already_is_left_alone() {
        for path in [
            "index.html",
            "a.js",
            "a.mjs",
            "a.css",
            "a.wasm",
            "a.json",
            "a.svg",
            "a.map",
            "game.pck",
            "site.webmanifest",
            "font.ttf",
            "model.glb",
        ] {
            assert!(is_compressible(path), "{path}");
        }
        for path in [
            "a.png", "a.jpg", "a.webp", "a.mp3", "a.ogg", "a.mp4", "a.zip", "a.woff2", "a.br",
            "a.gz", "a.bin", "a",
        ] {
            assert!(!is_compressible(path), "{path}");
        }
    }
}
