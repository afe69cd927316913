//! Serves a folder as the platform serves a deployment of it: the same paths, media types and hidden
//! files, the game's own page for missing paths. Nothing is cached.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use platform_checks::check_path;
use platform_checks::folder::is_deployed_name;
use platform_protocol::problem::ProblemCode;
use platform_serving::media_type::{compressed_by_engine, content_type};
use tower_http::services::ServeFile;

use super::problem::{NO_STORE, Problem, respond, wants_page};
use super::reload::Reload;
use crate::archive::INDEX;
use crate::client::{Body, full};
use crate::origin::PlatformOrigin;

/// The page for missing paths, if the game has one.
const NOT_FOUND: &str = "404.html";

/// A folder to serve.
pub(super) struct Files {
    /// With every link resolved.
    root: PathBuf,
    origin: PlatformOrigin,
    reload: Option<Reload>,
}

/// What a path means in the folder.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// A file, and its path in the deployment.
    File(PathBuf, String),
    /// A folder with a start page, without the slash at the end.
    Folder,
    Nothing,
}

impl Files {
    /// Serves `root`, which has no links in its path.
    pub(super) const fn new(root: PathBuf, origin: PlatformOrigin, reload: Option<Reload>) -> Self {
        Self {
            root,
            origin,
            reload,
        }
    }

    /// What reloads the pages.
    pub(super) const fn reload(&self) -> Option<&Reload> {
        self.reload.as_ref()
    }

    /// Responds with a file.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let shown_to = request.headers().clone();
        match self.try_answer(request).await {
            Ok(response) => response,
            Err(problem) => problem.shown_to(&shown_to),
        }
    }

    async fn try_answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Problem> {
        let path = request.uri().path();
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let detail = format!(
                "Nothing accepts {} {path}: files accept only GET and HEAD. If it is for the game's \
                 backend, name that with --backend, and its paths with --path.",
                request.method()
            );
            let problem = Problem::new(&self.origin, ProblemCode::MethodNotAllowed, detail);
            return Err(problem.allowing("GET, HEAD"));
        }
        match self.find(path) {
            Found::File(file, name) => self.file(&file, &name, StatusCode::OK, request).await,
            Found::Folder => Ok(redirect_into(request.uri())),
            Found::Nothing => {
                let missing = Problem::new(
                    &self.origin,
                    ProblemCode::NotFound,
                    format!("{} has no file for {path}.", self.root.display()),
                );
                let Found::File(file, name) = self.find(&format!("/{NOT_FOUND}")) else {
                    return Err(missing);
                };
                let status = StatusCode::NOT_FOUND;
                self.file(&file, &name, status, request).await
            }
        }
    }

    /// Finds what a deployment of the folder would show at this path.
    fn find(&self, path: &str) -> Found {
        let Ok(decoded) = percent_decode_str(path).decode_utf8() else {
            return Found::Nothing;
        };
        let name = decoded.strip_prefix('/').unwrap_or(&decoded);
        if name.is_empty() || name.ends_with('/') {
            let index = format!("{name}{INDEX}");
            return match self.real(&index) {
                Some(file) => Found::File(file, index),
                None => Found::Nothing,
            };
        }
        match self.real(name) {
            Some(file) => Found::File(file, name.to_owned()),
            None if self.real(&format!("{name}/{INDEX}")).is_some() => Found::Folder,
            None => Found::Nothing,
        }
    }

    /// The file of this name, if a deploy would send it. A link to the outside is none: a game of a
    /// stranger could read any file of its developer through it.
    fn real(&self, name: &str) -> Option<PathBuf> {
        let mut segments = name.split('/').enumerate();
        let is_deployed = segments.all(|(depth, segment)| is_deployed_name(segment, depth == 0));
        if !is_deployed || check_path(name).is_err() {
            return None;
        }
        let file = self.root.join(name).canonicalize().ok()?;
        (file.starts_with(&self.root) && file.is_file()).then_some(file)
    }

    async fn file(
        &self,
        file: &Path,
        name: &str,
        status: StatusCode,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, Problem> {
        let kind = content_type(compressed_by_engine(name).map_or(name, |(inner, _)| inner));
        if let Some(reload) = &self.reload
            && kind.as_bytes().starts_with(b"text/html")
            && wants_page(request.headers())
        {
            return self.page(reload, file, status).await;
        }
        let headers = request.headers_mut();
        // Two changes within a second have the same time.
        headers.remove(header::IF_MODIFIED_SINCE);
        headers.remove(header::IF_UNMODIFIED_SINCE);
        if status != StatusCode::OK || *request.method() == Method::HEAD {
            request.headers_mut().remove(header::RANGE);
        }
        let served = ServeFile::new(file).try_call(request).await;
        let mut response = served.map_err(|error| self.unreadable(file, &error))?;
        if response.status() == StatusCode::OK {
            *response.status_mut() = status;
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, kind);
        headers.insert(header::CACHE_CONTROL, NO_STORE);
        headers.remove(header::LAST_MODIFIED);
        if let Some((_, coding)) = compressed_by_engine(name) {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
        }
        Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
    }

    /// A page, with the script that reloads it.
    async fn page(
        &self,
        reload: &Reload,
        file: &Path,
        status: StatusCode,
    ) -> Result<Response<Body>, Problem> {
        // Before the page is read: a change after this counts as one.
        let tag = reload.tag();
        let page = tokio::fs::read(file).await;
        let mut page = page.map_err(|error| self.unreadable(file, &error))?;
        page.extend_from_slice(tag.as_bytes());
        Ok(respond(status, "text/html; charset=utf-8", page))
    }

    fn unreadable(&self, file: &Path, error: &std::io::Error) -> Problem {
        let detail = format!("{} cannot be read: {error}.", file.display());
        Problem::new(&self.origin, ProblemCode::NotFound, detail)
    }
}

/// Leads to a folder's path with a slash, since its relative links only work there. Two slashes at
/// the beginning would lead to another host, so they become one.
fn redirect_into(uri: &Uri) -> Response<Body> {
    let path = uri.path().trim_start_matches('/');
    let query = uri.query().map(|query| format!("?{query}"));
    let location = format!("/{path}/{}", query.unwrap_or_default());
    let mut response = Response::new(full(Bytes::new()));
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    let headers = response.headers_mut();
    if let Ok(location) = HeaderValue::try_from(location) {
        headers.insert(header::LOCATION, location);
    }
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_what_it_means_in_a_deployment() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for file in [
            "index.html",
            "a b.js",
            "level/index.html",
            ".env",
            ".git/config",
            ".well-known/x",
            "platform.toml",
            "node_modules/a.js",
            "src/node_modules/a.js",
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(outside.path().join("secret"), root.join("link")).unwrap();
        let files = Files::new(root, "https://games.example".parse().unwrap(), None);
        let name = |path: &str| match files.find(path) {
            Found::File(_, name) => name,
            Found::Folder => "folder".to_owned(),
            Found::Nothing => "nothing".to_owned(),
        };
        for (path, found) in [
            ("/", "index.html"),
            ("/index.html", "index.html"),
            ("/a%20b.js", "a b.js"),
            ("/level", "folder"),
            ("/level/", "level/index.html"),
            ("/.well-known/x", ".well-known/x"),
            ("/src/node_modules/a.js", "src/node_modules/a.js"),
        ] {
            assert_eq!(name(path), found, "{path}");
        }
        for path in [
            "/missing",
            "/src",
            "/src/",
            "/.env",
            "/.git/config",
            "/platform.toml",
            "/node_modules/a.js",
            "/link",
            "/../secret",
            "/level/../index.html",
            "/level%2f..%2findex.html",
            "/level\\index.html",
            "//index.html",
            "/index.html%00",
            "/%ff",
            "/%",
        ] {
            assert_eq!(name(path), "nothing", "{path}");
        }
    }
}
