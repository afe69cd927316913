//! Everything else on a game's address: its backend, or the files of its
//! current deployment.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use headers::{HeaderMapExt as _, Range};
use percent_encoding::percent_decode_str;
use platform_protocol::problem::Slug;

use crate::domain::project::{Deployment, FileEntry};
use crate::files::{FileError, FileStore};
use crate::http::asset::is_unchanged;
use crate::http::context::Context;
use crate::http::encoding::{self, Coding};
use crate::http::refusal::Refusal;
use crate::sites::Game;
use crate::state::AppState;

/// What a directory shows.
const INDEX: &str = "index.html";
/// What a deployment may show where there is nothing.
const NOT_FOUND: &str = "404.html";
/// Bytes of a file that are read at one time.
const PIECE: u64 = 256 * 1024;

/// Answers for the game.
///
/// # Errors
/// `not-found`, `method-not-allowed`; those of the backend.
pub async fn handle(
    State(state): State<AppState>,
    Extension(game): Extension<Arc<Game>>,
    context: Context,
    mut request: Request<Body>,
) -> Result<Response, Refusal> {
    if let Some(proxy) = state.backends.find(&game, request.uri().path()) {
        return state
            .backends
            .forward(&proxy, &game, &context, request)
            .await;
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(Refusal::new(Slug::MethodNotAllowed)
            .with_header(header::ALLOW, HeaderValue::from_static("GET, HEAD")));
    }
    if request.method() == Method::HEAD {
        // Only `GET` has parts (RFC 9110 §14.2).
        request.headers_mut().remove(header::RANGE);
    }
    let deployment = game.deployment.as_deref().ok_or_else(|| {
        Refusal::new(Slug::NotFound).with_detail(Slug::NotDeployed.default_detail())
    })?;
    let path = match find(deployment, request.uri().path()) {
        Found::File(path) => path,
        Found::Directory => return redirect_into(request.uri()),
        Found::Nothing => return not_found(&state, deployment).await,
    };
    let whole = request.headers().contains_key(header::RANGE);
    let coding = encoding::choose(request.headers(), |coding| {
        !whole && sibling(deployment, &path, coding).is_some()
    });
    let entry = sibling(deployment, &path, coding).ok_or(Slug::NotFound)?;
    let mut response = answer_file(&state.files, entry, request.headers())?;
    describe(response.headers_mut(), &path, coding);
    Ok(response)
}

/// What a path names in a deployment.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    File(String),
    Directory,
    Nothing,
}

fn find(deployment: &Deployment, path: &str) -> Found {
    let Ok(path) = percent_decode_str(path).decode_utf8() else {
        return Found::Nothing;
    };
    let path = path.strip_prefix('/').unwrap_or(&path);
    let is_file = |path: &str| deployment.files.contains_key(path);
    if path.is_empty() || path.ends_with('/') {
        let index = format!("{path}{INDEX}");
        return if is_file(&index) {
            Found::File(index)
        } else {
            Found::Nothing
        };
    }
    if is_file(path) {
        Found::File(path.to_owned())
    } else if is_file(&format!("{path}/{INDEX}")) {
        Found::Directory
    } else {
        Found::Nothing
    }
}

/// The file in this coding: itself, or the compressed one beside it.
fn sibling<'a>(deployment: &'a Deployment, path: &str, coding: Coding) -> Option<&'a FileEntry> {
    match coding {
        Coding::Identity => deployment.files.get(path),
        Coding::Gzip => deployment.files.get(&format!("{path}.gz")),
        Coding::Brotli => deployment.files.get(&format!("{path}.br")),
    }
}

/// A directory's relative links only work below its slash. Two slashes at the
/// beginning would lead to another host, so they become one.
fn redirect_into(uri: &Uri) -> Result<Response, Refusal> {
    let path = uri.path().trim_start_matches('/');
    let query = uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let location = HeaderValue::from_str(&format!("/{path}/{query}"))
        .map_err(|error| Refusal::internal(&error))?;
    Ok((
        StatusCode::PERMANENT_REDIRECT,
        [(header::LOCATION, location)],
    )
        .into_response())
}

async fn not_found(state: &AppState, deployment: &Deployment) -> Result<Response, Refusal> {
    let Some(entry) = deployment.files.get(NOT_FOUND) else {
        return Err(Slug::NotFound.into());
    };
    let content = state
        .files
        .read(&entry.sha256)
        .await
        .map_err(|error| broken(&error))?;
    let mut response = (StatusCode::NOT_FOUND, content).into_response();
    describe(response.headers_mut(), NOT_FOUND, Coding::Identity);
    Ok(response)
}

/// The file, the part of it that was asked for, or that it has not changed.
fn answer_file(
    files: &FileStore,
    entry: &FileEntry,
    request: &HeaderMap,
) -> Result<Response, Refusal> {
    let etag = HeaderValue::from_str(&format!("\"{}\"", entry.sha256))
        .map_err(|error| Refusal::internal(&error))?;
    let mut response = Response::new(Body::empty());
    if is_unchanged(request, &etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().insert(header::ETAG, etag);
        return Ok(response);
    }
    let span = match wanted(request, &etag, entry.size) {
        Wanted::Whole => 0..entry.size,
        Wanted::Part(first, last) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let part = format!("bytes {first}-{last}/{}", entry.size);
            insert_text(response.headers_mut(), header::CONTENT_RANGE, &part);
            first..last + 1
        }
        Wanted::Outside => {
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            let size = format!("bytes */{}", entry.size);
            insert_text(response.headers_mut(), header::CONTENT_RANGE, &size);
            return Ok(response);
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, etag);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(
        header::CONTENT_LENGTH,
        HeaderValue::from(span.end - span.start),
    );
    *response.body_mut() = content(files.clone(), entry.sha256.clone(), span);
    Ok(response)
}

fn insert_text(headers: &mut HeaderMap, name: header::HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

/// Which part of a file was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Whole,
    /// From the first to the last byte, both included.
    Part(u64, u64),
    Outside,
}

/// One part is answered; for several the whole file is allowed too (RFC 9110
/// §14.2). With `If-Range` the part must be of the same file (§13.1.5).
fn wanted(request: &HeaderMap, etag: &HeaderValue, size: u64) -> Wanted {
    if request
        .get(header::IF_RANGE)
        .is_some_and(|condition| condition != etag)
    {
        return Wanted::Whole;
    }
    let Some(range) = request.typed_get::<Range>() else {
        return Wanted::Whole;
    };
    let mut parts = range.satisfiable_ranges(size);
    let (first, more) = (parts.next(), parts.next());
    if more.is_some() {
        return Wanted::Whole;
    }
    let bounds = first.and_then(|(start, end)| {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let start = match start {
            Included(start) => start,
            Excluded(start) => start.checked_add(1)?,
            Unbounded => 0,
        };
        let last = match end {
            Included(end) => end.min(size.checked_sub(1)?),
            Excluded(end) => end.min(size).checked_sub(1)?,
            Unbounded => size.checked_sub(1)?,
        };
        (start <= last).then_some((start, last))
    });
    match bounds {
        Some((first, last)) => Wanted::Part(first, last),
        None => Wanted::Outside,
    }
}

/// The bytes, read piece by piece, so that a large file never lies in memory.
fn content(files: FileStore, sha256: String, span: std::ops::Range<u64>) -> Body {
    let pieces = stream::try_unfold((files, sha256, span), |(files, sha256, span)| async move {
        if span.is_empty() {
            return Ok::<_, FileError>(None);
        }
        let end = span.end.min(span.start + PIECE);
        let piece: Bytes = files.read_range(&sha256, span.start..end).await?;
        Ok(Some((piece, (files, sha256, end..span.end))))
    });
    Body::from_stream(pieces)
}

fn broken(error: &FileError) -> Refusal {
    Refusal::internal(error)
}

/// Says what the file is and for how long it may be kept.
fn describe(headers: &mut HeaderMap, path: &str, coding: Coding) {
    let guessed = mime_guess::from_path(path).first_or_octet_stream();
    let text = guessed.type_() == mime_guess::mime::TEXT
        || matches!(guessed.subtype().as_str(), "json" | "javascript");
    let charset = if text { "; charset=utf-8" } else { "" };
    insert_text(
        headers,
        header::CONTENT_TYPE,
        &format!("{}{charset}", guessed.essence_str()),
    );
    let html = guessed.subtype() == mime_guess::mime::HTML;
    let cache = if html {
        "no-cache"
    } else if has_content_hash(path) {
        "public, max-age=31536000, immutable"
    } else {
        "public, max-age=60"
    };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if coding != Coding::Identity {
        headers.insert(
            header::CONTENT_ENCODING,
            HeaderValue::from_static(coding.as_str()),
        );
    }
}

/// Whether the name holds a hash of the content, as bundlers write it:
/// `main.3f2a9c1b.js` or `index-BkX3s9aQ.css`. A name that only looks like one
/// would be kept for a year, so what is in doubt is none.
fn has_content_hash(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((stem, _)) = name.rsplit_once('.') else {
        return false;
    };
    // A file `x.js.map` or `x.wasm.br` has its hash before the inner extension.
    let stem = stem
        .strip_suffix(".js")
        .or(stem.strip_suffix(".css"))
        .unwrap_or(stem);
    let Some((_, mark)) = stem.rsplit_once(['.', '-']) else {
        return false;
    };
    let count = |kind: fn(&u8) -> bool| mark.bytes().filter(kind).count();
    let digits = count(u8::is_ascii_digit);
    let lower = count(u8::is_ascii_lowercase);
    let upper = count(u8::is_ascii_uppercase);
    let hexadecimal = mark
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if hexadecimal {
        return mark.len() >= 8 && digits > 0 && lower > 0;
    }
    mark.len() == 8 && digits > 0 && lower > 0 && upper > 0 && digits + lower + upper == 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform_protocol::names::Environment;
    use std::collections::BTreeMap;

    #[test]
    fn only_clear_hashes_are_kept_for_ever() {
        for name in [
            "main.3f2a9c1b.js",
            "a/index-BkX3s9aQ.css",
            "x-0a1b2c3d4e5f.png",
            "i-Bk3sQ9aZ.js.map",
        ] {
            assert!(has_content_hash(name), "{name}");
        }
        for name in [
            "index.html",
            "game.js",
            "level-20240101.json",
            "deadbeef.js",
            "main.decade.js",
            "texture-background1.png",
            "map-MainMenu.json",
            "x.facade.js",
            "noextension-3f2a9c1b",
        ] {
            assert!(!has_content_hash(name), "{name}");
        }
    }

    #[test]
    fn paths_name_files_and_directories() {
        let entry = FileEntry {
            sha256: "0".repeat(64),
            size: 1,
        };
        let files = ["index.html", "a/index.html", "b c.js", "\u{e9}.txt"];
        let deployment = Deployment {
            id: uuid::Uuid::nil(),
            slug: "demo".into(),
            environment: Environment::Prod,
            files: files
                .iter()
                .map(|name| ((*name).to_owned(), entry.clone()))
                .collect::<BTreeMap<_, _>>(),
            created_at: 0,
        };
        let file = |name: &str| Found::File(name.to_owned());
        for (path, expected) in [
            ("/", file("index.html")),
            ("/index.html", file("index.html")),
            ("/a", Found::Directory),
            ("/a/", file("a/index.html")),
            ("/b%20c.js", file("b c.js")),
            ("/%C3%A9.txt", file("\u{e9}.txt")),
            ("/%ff", Found::Nothing),
            ("/nothing", Found::Nothing),
            ("/../index.html", Found::Nothing),
            ("//index.html", Found::Nothing),
        ] {
            assert_eq!(find(&deployment, path), expected, "{path}");
        }
    }

    #[test]
    fn ranges_are_answered_as_the_standard_says() {
        let etag = HeaderValue::from_static("\"e\"");
        for (range, expected) in [
            ("bytes=0-0", Wanted::Part(0, 0)),
            ("bytes=2-", Wanted::Part(2, 9)),
            ("bytes=-3", Wanted::Part(7, 9)),
            ("bytes=5-99", Wanted::Part(5, 9)),
            ("bytes=10-", Wanted::Outside),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
        ] {
            let headers = HeaderMap::from_iter([(header::RANGE, HeaderValue::from_static(range))]);
            assert_eq!(wanted(&headers, &etag, 10), expected, "{range}");
        }
        let mut headers =
            HeaderMap::from_iter([(header::RANGE, HeaderValue::from_static("bytes=0-0"))]);
        headers.insert(header::IF_RANGE, HeaderValue::from_static("\"other\""));
        assert_eq!(wanted(&headers, &etag, 10), Wanted::Whole);
    }
}
