//! The media type of a file, by its name.

use http::HeaderValue;

/// The parameter for text formats, whose charset browsers otherwise guess.
const UTF8: &str = "; charset=utf-8";

/// The media types of what games consist of, by the ends of names. Almost every request is for one of
/// these, and the library parses a type each time that it guesses one.
const USUAL: [(&str, &str); 20] = [
    ("js", "text/javascript; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("json", "application/json; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("webp", "image/webp"),
    ("gif", "image/gif"),
    ("svg", "image/svg+xml"),
    ("ico", "image/x-icon"),
    ("mp3", "audio/mpeg"),
    ("ogg", "audio/ogg"),
    ("wav", "audio/wav"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("woff2", "font/woff2"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain; charset=utf-8"),
];

/// Returns the media type of a file by its name.
#[must_use]
pub fn content_type(path: &str) -> HeaderValue {
    let end = path.rsplit_once('.').map(|(_, end)| end);
    match USUAL.iter().find(|(usual, _)| end == Some(usual)) {
        Some((_, kind)) => HeaderValue::from_static(kind),
        None => guess(path),
    }
}

/// Asks the library.
fn guess(path: &str) -> HeaderValue {
    // The library differs from the standard for modules (RFC 9239), and does not know source maps.
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

/// Unity compresses files that its loader requests by name, such as `game.wasm.br`, and expects the
/// server to declare it. Returns the name of the file inside, and its `Content-Encoding`.
#[must_use]
pub fn compressed_by_engine(path: &str) -> Option<(&str, &'static str)> {
    let (inner, coding) = match path.rsplit_once('.')? {
        (inner, "br") => (inner, "br"),
        (inner, "gz") => (inner, "gzip"),
        _ => return None,
    };
    let known = [".wasm", ".js", ".data", ".symbols.json"];
    let known = known.iter().any(|end| inner.ends_with(end));
    known.then_some((inner, coding))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_types_are_those_of_the_library() {
        for (end, kind) in USUAL {
            let path = format!("a.b/{end}.{end}");
            assert_eq!(guess(&path), kind, "{path}");
            assert_eq!(content_type(&path), kind, "{path}");
        }
        assert_eq!(content_type("js"), "application/octet-stream");
        assert_eq!(content_type("a.js.map"), "application/json; charset=utf-8");
    }
}
