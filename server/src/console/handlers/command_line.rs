//! `GET /cli` on the platform origin: how to install the command line. `GET /cli/<name>`: the
//! installer, and the files that it installs.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use platform_protocol::command_line::{LIST, Machine, NPM_PACKAGE, Os, ReleaseFile, VITE_PLUGIN};
use platform_protocol::problem::ProblemCode;

use crate::console::ConsoleState;
use crate::console::command_line::HandedOut;
use crate::web::api_error::ApiError;
use crate::web::asset::is_unchanged;
use crate::web::byte_range::{Wanted, wanted};
use crate::web::page::{self, Layout};

/// The installer's name.
const INSTALLER: &str = "install.sh";
/// The name of the sums of all files.
const SUMS: &str = "SHA256SUMS";
/// The number of bytes per read.
const PIECE: u64 = 256 * 1024;

#[derive(Template)]
#[template(path = "command_line.html")]
struct Page {
    frame: Layout,
    origin: String,
    /// Whether Node.js may not find the platform, because its name ends in `localhost`.
    is_local: bool,
    handed_out: Option<Shown>,
}

/// What there is to install.
struct Shown {
    version: String,
    /// The systems that the installer is for.
    shell: String,
    has_installer: bool,
    npm: Option<Row>,
    /// The plugin for Vite.
    vite: Option<Row>,
    files: Vec<Row>,
    /// The systems that there is no program for.
    missing: String,
}

/// A file of the list.
struct Row {
    name: String,
    machine: String,
    size: String,
    sha256: String,
}

/// Returns the page.
pub async fn page(State(state): State<Arc<ConsoleState>>) -> Response {
    let origin = &state.platform.origin;
    let page = Page {
        frame: Layout::new(origin),
        is_local: origin.is_local(),
        origin: origin.to_string(),
        handed_out: state.command_line.release.as_ref().map(Shown::from),
    };
    page::render(StatusCode::OK, &page)
}

/// Returns a file.
///
/// # Errors
/// `not-found`
pub async fn file(
    State(state): State<Arc<ConsoleState>>,
    Path(name): Path<String>,
    method: Method,
    mut headers: HeaderMap,
) -> Result<Response, ApiError> {
    if name == INSTALLER {
        return Ok(state.command_line.installer.answer(&headers));
    }
    let page = format!("{}/cli", state.platform.origin);
    let Some(release) = &state.command_line.release else {
        let detail = format!("This server has no programs to hand out. {page} says what to do.");
        return Err(ApiError::new(ProblemCode::NotFound).with_detail(detail));
    };
    match name.as_str() {
        LIST => return Ok(release.json.answer(&headers)),
        SUMS => return Ok(release.sums.answer(&headers)),
        _ => {}
    }
    let Some((listed, file)) = release.find(&name) else {
        let detail = format!("There is no such file. {page} lists those that there are.");
        return Err(ApiError::new(ProblemCode::NotFound).with_detail(detail));
    };
    if method == Method::HEAD {
        // Only `GET` supports ranges (RFC 9110 §14.2).
        headers.remove(header::RANGE);
    }
    answer(listed, file, &headers).map_err(|error| ApiError::internal(&error))
}

fn answer(
    listed: &ReleaseFile,
    file: &Arc<File>,
    request: &HeaderMap,
) -> Result<Response, axum::http::header::InvalidHeaderValue> {
    let etag = HeaderValue::try_from(format!("\"{}\"", listed.sha256))?;
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::ETAG, etag.clone());
    if is_unchanged(request, &etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Ok(response);
    }
    let size = listed.bytes;
    let span = match wanted(request, &etag, size) {
        Wanted::Whole => 0..size,
        Wanted::Part(first, last) => {
            let part = HeaderValue::try_from(format!("bytes {first}-{last}/{size}"))?;
            headers.insert(header::CONTENT_RANGE, part);
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            first..last + 1
        }
        Wanted::Outside => {
            let part = HeaderValue::try_from(format!("bytes */{size}"))?;
            headers.insert(header::CONTENT_RANGE, part);
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            return Ok(response);
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_TYPE, content_type(&listed.name));
    let length = HeaderValue::from(span.end - span.start);
    headers.insert(header::CONTENT_LENGTH, length);
    *response.body_mut() = body(Arc::clone(file), span);
    Ok(response)
}

fn content_type(name: &str) -> HeaderValue {
    HeaderValue::from_static(if name.ends_with(".zip") {
        "application/zip"
    } else {
        "application/gzip"
    })
}

/// A part of a file, in pieces, so that a large one is never in memory as a whole.
fn body(file: Arc<File>, span: Range<u64>) -> Body {
    Body::from_stream(stream::try_unfold(span, move |span| {
        let file = Arc::clone(&file);
        async move {
            if span.is_empty() {
                return Ok(None);
            }
            let next = (span.start + PIECE).min(span.end);
            let reading = tokio::task::spawn_blocking(move || read(&file, span.start..next));
            let piece = reading.await.map_err(std::io::Error::other)??;
            Ok::<_, std::io::Error>(Some((piece, next..span.end)))
        }
    }))
}

/// Reads these bytes. Several readers share the file, so its position is not used.
fn read(file: &File, span: Range<u64>) -> std::io::Result<Bytes> {
    let length = usize::try_from(span.end - span.start).map_err(std::io::Error::other)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, span.start)?;
    Ok(bytes.into())
}

impl From<&HandedOut> for Shown {
    fn from(release: &HandedOut) -> Self {
        let machines: Vec<Machine> = release
            .list
            .files
            .iter()
            .filter_map(|file| file.machine)
            .collect();
        let has = |os: &Os| machines.iter().any(|machine| machine.os == *os);
        let systems = [Os::Linux, Os::MacOs, Os::Windows];
        let missing = systems.iter().filter(|os| !has(os));
        let shell = [Os::Linux, Os::MacOs];
        let shell = shell.iter().filter(|os| has(os));
        let shell: Vec<&str> = shell.map(|os| os.name()).collect();
        let files: Vec<&ReleaseFile> = release.list.files.iter().collect();
        let of_name = |name| files.iter().find(|file| file.name == name);
        let package = |name| of_name(name).map(|file| Row::from(*file));
        Self {
            version: release.list.version.clone(),
            has_installer: !shell.is_empty(),
            shell: shell.join(" and "),
            npm: package(NPM_PACKAGE),
            vite: package(VITE_PLUGIN),
            missing: missing.map(|os| os.name()).collect::<Vec<_>>().join(", "),
            files: files.into_iter().map(Row::from).collect(),
        }
    }
}

impl From<&ReleaseFile> for Row {
    fn from(file: &ReleaseFile) -> Self {
        let machine = file.machine;
        let machine = machine.map(|machine| (machine.os.name(), machine.cpu.name()));
        Self {
            name: file.name.clone(),
            machine: machine.map_or_else(
                || match file.name.as_str() {
                    VITE_PLUGIN => "npm package, the plugin for Vite".to_owned(),
                    _ => "npm package for all of them".to_owned(),
                },
                |(os, cpu)| format!("{os}, {cpu}"),
            ),
            size: match file.bytes {
                few @ 0..100_000 => format!("{} kB", few.div_ceil(1_000)),
                bytes => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
            },
            sha256: file.sha256.clone(),
        }
    }
}
