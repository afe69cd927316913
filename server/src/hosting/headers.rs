//! The headers of a file: its media type, and how long it may be cached.

use axum::http::{HeaderMap, HeaderValue, header};
use platform_serving::media_type::{compressed_by_engine, content_type};

use crate::web::encoding::Coding;

/// A browser revalidates the file each time.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");
/// The name changes with the content, so it never needs to be revalidated.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Whether the content at a path can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lives {
    /// It can: the name stays, and the content changes.
    UntilTheNextDeploy,
    /// It cannot: new content gets a new name.
    ForEver,
}

/// Sets the headers of the file at `path`: its media type, its coding, and how long it may be
/// cached.
pub fn describe(headers: &mut HeaderMap, path: &str, coding: Coding, lives: Lives) {
    let (path, coding) = match compressed_by_engine(path) {
        Some(inner) if coding == Coding::Identity => inner,
        _ => (path, coding.as_str()),
    };
    headers.insert(header::CONTENT_TYPE, content_type(path));
    let cache = match lives {
        Lives::ForEver => FOR_EVER,
        Lives::UntilTheNextDeploy => ASK_AGAIN,
    };
    headers.insert(header::CACHE_CONTROL, cache);
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if coding != Coding::Identity.as_str() {
        let coding = HeaderValue::from_static(coding);
        headers.insert(header::CONTENT_ENCODING, coding);
    }
}

/// Sets the headers that a browser requires before a page may share memory between threads (HTML,
/// "cross-origin isolation"). Workers need the second one as well.
pub fn isolate(headers: &mut HeaderMap) {
    for (name, value) in [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-embedder-policy", "require-corp"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Whether a browser that opens a file with this name runs the scripts in it: pages, and all XML,
/// most often SVG images.
#[must_use]
pub fn is_scriptable(path: &str) -> bool {
    let path = compressed_by_engine(path).map_or(path, |(inner, _)| inner);
    let guessed = mime_guess::from_path(path).first_or_octet_stream();
    let is_xml = |name: &str| matches!(name, "xml" | "xslt+xml" | "xsl") || name.ends_with("+xml");
    guessed.subtype() == mime_guess::mime::HTML
        || is_xml(guessed.subtype().as_str())
        || guessed.suffix().is_some_and(|suffix| suffix == "xml")
}

/// Whether a file with this name gets smaller when it is compressed. Images, sound, video and
/// archives are already compressed.
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
        // Formats of engines for a game's data, and models and shaders.
        || matches!(
            extension,
            "pck" | "data" | "gltf" | "glb" | "obj" | "glsl" | "vert" | "frag" | "map" | "ttf"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

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
            describe(
                &mut headers,
                path,
                Coding::Identity,
                Lives::UntilTheNextDeploy,
            );
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
