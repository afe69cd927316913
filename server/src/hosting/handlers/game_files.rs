//! Everything else on a game's address: requests to its backend, and the files of its current
//! deployment.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use percent_encoding::{CONTROLS, percent_decode_str, utf8_percent_encode};
use platform_checks::folder::INDEX;
use platform_protocol::names::Environment;
use platform_protocol::problem::ProblemCode;
use platform_serving::paths::is_reserved;

use crate::domain::project::{Deployment, FileEntry};
use crate::games::catalogue::Game;
use crate::games::files::FileError;
use crate::games::immutable_files::is_clear;
use crate::games::takedown;
use crate::hosting::HostingState;
use crate::hosting::backends::Backend;
use crate::hosting::earlier_deployments::may_answer;
use crate::hosting::file_cache::Contents;
use crate::hosting::headers::{self, Lives};
use crate::hosting::{preview_files, preview_use};
use crate::web::api_error::ApiError;
use crate::web::asset::is_unchanged;
use crate::web::byte_range::{Wanted, wanted};
use crate::web::encoding::{self, Coding};
use crate::web::navigation::is_navigation;
use crate::web::request_context::Context;

/// The file that a deployment may show for missing paths.
pub(in crate::hosting) const NOT_FOUND: &str = "404.html";
/// The endings of the variants of a file in other codings: gzip and brotli.
pub(in crate::hosting) const CODED: [&str; 2] = [".gz", ".br"];
/// The length of the longest of them.
const LONGEST_CODED: usize = 3;
/// The usual maximum number of headers of a response with a file.
const HEADERS: usize = 12;
/// The maximum number of bytes of a path in a sentence.
const PATH_SHOWN: usize = 200;

/// Responds for the game: with its `backend` if the path belongs to it, otherwise with its files.
///
/// # Errors
/// `not-found`, `method-not-allowed`; errors of the backend.
pub async fn handle(
    state: &HostingState,
    game: &Game,
    backend: Option<Arc<Backend>>,
    context: &Context,
    mut request: Request<Body>,
) -> Result<Response, ApiError> {
    if is_reserved(request.uri().path()) {
        return Err(ProblemCode::NotFound.into());
    }
    preview_use::note(state, game, request.headers());
    if let Some(backend) = backend {
        let forwarded = state.backends.forward(&backend, game, context, request);
        // This future is much larger than that of a file.
        let mut response = Box::pin(forwarded).await?;
        frame(response.headers_mut(), game);
        return Ok(response);
    }
    let console = asks_as_console(state, request.headers());
    let mut response = file(state, game, &mut request).await?;
    frame(response.headers_mut(), game);
    // In dev these headers are sent to everyone, since a cache may store the response and use it
    // for the console. Production's files should be stored once for everybody; if a cache therefore
    // has no source map for the console, it shows the position in the script.
    if game.environment == Environment::Dev || console.is_some() {
        let headers = response.headers_mut();
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        if let Some(console) = console {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, console);
        }
    }
    Ok(response)
}

/// Sets who may show the page in a frame. An existing policy applies as well (CSP 3 §8.1).
fn frame(headers: &mut HeaderMap, game: &Game) {
    if let Some(policy) = &game.framing {
        headers.append(header::CONTENT_SECURITY_POLICY, policy.clone());
    }
}

/// Returns the console's origin, if one of its pages requests a file: it uses source maps to find
/// the position of errors.
fn asks_as_console(state: &HostingState, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    let console = state.platform.origin.to_string();
    (origin.as_bytes() == console.as_bytes()).then(|| origin.clone())
}

/// Returns a file of the current deployment, or of an earlier one.
async fn file(
    state: &HostingState,
    game: &Game,
    request: &mut Request<Body>,
) -> Result<Response, ApiError> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        // The caller may have expected a backend, and reads this in the game's log.
        let path = shown(request.uri().path());
        return Err(ApiError::new(ProblemCode::MethodNotAllowed)
            .with_detail(format!(
                "This game has no backend for {path}, and files accept only GET and HEAD."
            ))
            .with_header(header::ALLOW, HeaderValue::from_static("GET, HEAD")));
    }
    if request.method() == Method::HEAD {
        // Only `GET` supports ranges (RFC 9110 §14.2).
        request.headers_mut().remove(header::RANGE);
    }
    let deployment = game.deployment.as_deref().ok_or_else(|| {
        ApiError::new(ProblemCode::NotFound).with_detail(ProblemCode::NotDeployed.default_detail())
    })?;
    let looked_up;
    let deployment = match &game.preview {
        None => deployment,
        Some(preview) => {
            let found = preview_files::find(state, game, preview, request.uri().path());
            // This future is rarely needed, and would be a part of that of every file.
            looked_up = Box::pin(found).await?;
            &looked_up
        }
    };
    let path = match find(deployment, request.uri().path()) {
        Found::File(path) => path,
        Found::Directory => return redirect_into(request.uri()),
        Found::Nothing if takedown::asks_for_worker(request.headers()) => {
            return Ok(takedown::unregistering_worker());
        }
        Found::Nothing => {
            let headers = request.headers();
            // This future is rarely needed, and would be a part of that of every file.
            return Box::pin(missing(state, game, deployment, request.uri(), headers)).await;
        }
    };
    let found = Siblings::find(deployment, &path).ok_or(ProblemCode::NotFound)?;
    let lives = lives(game.lasting.has(&path));
    answer(state, game, &path, found, lives, request.headers()).await
}

const fn lives(lasts: bool) -> Lives {
    if lasts {
        Lives::ForEver
    } else {
        Lives::UntilTheNextDeploy
    }
}

/// Returns what there is instead of a file that the current deployment does not have.
async fn missing(
    state: &HostingState,
    game: &Game,
    deployment: &Deployment,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    match earlier(state, game, uri.path(), headers).await? {
        Some(response) => Ok(response),
        None => not_found(state, game, deployment, nothing_at(uri, headers)).await,
    }
}

/// Returns a file of a kept earlier deployment, for a page that was loaded from it and is still
/// being played.
async fn earlier(
    state: &HostingState,
    game: &Game,
    path: &str,
    headers: &HeaderMap,
) -> Result<Option<Response>, ApiError> {
    let Ok(path) = percent_decode_str(path).decode_utf8() else {
        return Ok(None);
    };
    let path = path.strip_prefix('/').unwrap_or(&path);
    // A file that can run scripts as a page is only served from its own deployment, so that it does
    // not remain after a change of owner or a fix. Of a preview, only one deployment is kept.
    if game.preview.is_some() || !may_answer(path) {
        return Ok(None);
    }
    let kept = state
        .platform
        .store
        .find_kept_file(&game.slug, game.environment, path);
    let Some(entry) = kept.await? else {
        return Ok(None);
    };
    let found = Siblings::alone(&entry);
    let answer = answer(state, game, path, found, lives(is_clear(path)), headers);
    answer.await.map(Some)
}

/// What a path refers to in a deployment.
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

/// Redirects to a directory's path with a slash, since its relative links only work there. Two
/// slashes at the beginning would lead to another host, so they become one.
fn redirect_into(uri: &Uri) -> Result<Response, ApiError> {
    let path = uri.path().trim_start_matches('/');
    let query = uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let location = HeaderValue::from_str(&format!("/{path}/{query}"))
        .map_err(|error| ApiError::internal(&error))?;
    // If a browser cached it, it would outlive the deployment that has the folder.
    let cache = HeaderValue::from_static("no-cache");
    Ok((
        StatusCode::PERMANENT_REDIRECT,
        [(header::LOCATION, location), (header::CACHE_CONTROL, cache)],
    )
        .into_response())
}

/// Returns a path for a sentence: a long path is cut, and special characters are encoded as
/// browsers do.
fn shown(path: &str) -> String {
    let path = utf8_percent_encode(path, CONTROLS).to_string();
    match path.get(..PATH_SHOWN) {
        Some(begin) => format!("{begin}…"),
        None => path,
    }
}

/// Returns the error for a missing path. For a program it names the path; a page for people does
/// not repeat what a link contains.
fn nothing_at(uri: &Uri, headers: &HeaderMap) -> ApiError {
    let refusal = ApiError::new(ProblemCode::NotFound);
    if is_navigation(headers) {
        return refusal;
    }
    let path = shown(uri.path());
    refusal.with_detail(format!("This game has no file at {path}."))
}

/// Returns the game's own page for missing paths, or the platform's.
async fn not_found(
    state: &HostingState,
    game: &Game,
    deployment: &Deployment,
    refusal: ApiError,
) -> Result<Response, ApiError> {
    let Some(entry) = deployment.files.get(NOT_FOUND) else {
        return Err(refusal);
    };
    let body = state.contents.body(&game.slug, entry, 0..entry.size).await;
    let body = body.map_err(|error| broken(&error))?;
    let mut response = (StatusCode::NOT_FOUND, body).into_response();
    let (coding, lives) = (Coding::Identity, Lives::UntilTheNextDeploy);
    headers::describe(response.headers_mut(), NOT_FOUND, coding, lives);
    if game.isolated {
        headers::isolate(response.headers_mut());
    }
    Ok(response)
}

/// Returns the file at `path` in a coding that the client accepts: a deployed variant, or one that
/// is compressed here.
async fn answer(
    state: &HostingState,
    game: &Game,
    path: &str,
    found: Siblings<'_>,
    lives: Lives,
    request: &HeaderMap,
) -> Result<Response, ApiError> {
    let plain = request
        .contains_key(header::IF_NONE_MATCH)
        .then(|| etag(&found.plain.sha256, ""))
        .transpose()?
        .filter(|plain| is_unchanged(request, plain));
    let (coding, mut response) = match plain {
        // A client that has the uncompressed file needs no other coding of it.
        Some(plain) => (Coding::Identity, unchanged(plain)),
        None => in_coding(&state.contents, &game.slug, path, found, request).await?,
    };
    response.headers_mut().reserve(HEADERS);
    headers::describe(response.headers_mut(), path, coding, lives);
    if response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
        // The response is only for this range, whatever the file's name is.
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if game.isolated {
        headers::isolate(response.headers_mut());
    }
    Ok(response)
}

/// Returns the file in the client's preferred coding of those that are available.
async fn in_coding(
    contents: &Contents,
    game: &str,
    path: &str,
    found: Siblings<'_>,
    request: &HeaderMap,
) -> Result<(Coding, Response), ApiError> {
    // A range refers to the uncompressed file.
    let whole = !request.contains_key(header::RANGE);
    let deployed = |coding| whole && found.of(coding).is_some();
    let could_be_made = || whole && headers::is_compressible(path);
    let wish = encoding::choose(request, |coding| deployed(coding) || could_be_made());
    if !deployed(wish)
        && could_be_made()
        && let Some(bytes) = contents.compressed(game, found.plain, wish).await
    {
        return Ok((wish, answer_compressed(found.plain, wish, bytes, request)?));
    }
    let coding = encoding::choose(request, deployed);
    let entry = found.of(coding).unwrap_or(found.plain);
    Ok((coding, answer_file(contents, game, entry, request).await?))
}

/// A file, and the variants of it in other codings that the deployment has.
#[derive(Clone, Copy, Debug)]
struct Siblings<'a> {
    plain: &'a FileEntry,
    gzip: Option<&'a FileEntry>,
    brotli: Option<&'a FileEntry>,
}

impl<'a> Siblings<'a> {
    fn find(deployment: &'a Deployment, path: &str) -> Option<Self> {
        let mut name = String::with_capacity(path.len() + LONGEST_CODED);
        let [gzip, brotli] = CODED;
        let mut beside = |ending| {
            name.clear();
            name.push_str(path);
            name.push_str(ending);
            deployment.files.get(&name)
        };
        Some(Self {
            plain: deployment.files.get(path)?,
            gzip: beside(gzip),
            brotli: beside(brotli),
        })
    }

    fn alone(plain: &'a FileEntry) -> Self {
        Self {
            plain,
            gzip: None,
            brotli: None,
        }
    }

    fn of(&self, coding: Coding) -> Option<&'a FileEntry> {
        match coding {
            Coding::Identity => Some(self.plain),
            Coding::Gzip => self.gzip,
            Coding::Brotli => self.brotli,
        }
    }
}

/// Returns the file, the requested range of it, or 304.
async fn answer_file(
    contents: &Contents,
    game: &str,
    entry: &FileEntry,
    request: &HeaderMap,
) -> Result<Response, ApiError> {
    let etag = etag(&entry.sha256, "")?;
    if is_unchanged(request, &etag) {
        return Ok(unchanged(etag));
    }
    let mut response = Response::new(Body::empty());
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
    let body = contents.body(game, entry, span).await;
    *response.body_mut() = body.map_err(|error| broken(&error))?;
    Ok(response)
}

/// Returns a file that was compressed here, as a whole: it has its own length and `ETag`.
fn answer_compressed(
    entry: &FileEntry,
    coding: Coding,
    bytes: Bytes,
    request: &HeaderMap,
) -> Result<Response, ApiError> {
    let etag = etag(&entry.sha256, coding.as_str())?;
    if is_unchanged(request, &etag) {
        return Ok(unchanged(etag));
    }
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::ETAG, etag);
    Ok(response)
}

/// A strong `ETag` identifies one sequence of bytes, so each coding has its own (RFC 9110
/// §8.8.3.3).
fn etag(sha256: &str, coding: &str) -> Result<HeaderValue, ApiError> {
    let dash = if coding.is_empty() { "" } else { "-" };
    HeaderValue::try_from(format!("\"{sha256}{dash}{coding}\""))
        .map_err(|error| ApiError::internal(&error))
}

fn unchanged(etag: HeaderValue) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().insert(header::ETAG, etag);
    response
}

fn insert_text(headers: &mut HeaderMap, name: header::HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

fn broken(error: &FileError) -> ApiError {
    error.refusal("so this one cannot be shown; please try again in a moment")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::project::Made;
    use platform_protocol::names::Environment;
    use std::collections::BTreeMap;

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
            made: Made::default(),
            inspection: None,
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
}
