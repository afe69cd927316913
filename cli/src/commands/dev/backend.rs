//! The game's backend behind this dev server: the same paths, headers and limits as behind the
//! platform, so that what works here works there.

use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use platform_protocol::problem::ProblemCode;
use platform_serving::forwarding::{drop_spoofed, introduce};
use platform_serving::paths::{is_below, leads_out};
use tokio::sync::watch;

use super::forward::{self, Address, Connections, Visit};
use super::problem::Problem;
use crate::client::{Body, BoxError};
use crate::clock::pause;
use crate::failure::Failure;
use crate::origin::PlatformOrigin;

/// The largest body that the platform passes on.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// How long the platform waits, by default, while nothing of a body is sent and no response begins.
const QUIET: Duration = Duration::from_secs(30);

/// A backend.
pub(super) struct Backend {
    connections: Connections,
    address: Address,
    paths: Vec<String>,
    origin: PlatformOrigin,
}

impl Backend {
    /// The backend at `address` for requests under `paths`.
    ///
    /// # Errors
    /// A path is not one; exit status 2.
    pub(super) fn new(
        connections: Connections,
        address: Address,
        paths: &[String],
        origin: PlatformOrigin,
    ) -> Result<Self, Failure> {
        if let Some(path) = paths.iter().find(|path| !path.starts_with('/')) {
            return Err(Failure::usage(format!(
                "{path} is not a path: write --path /{path}."
            )));
        }
        Ok(Self {
            connections,
            address,
            paths: paths.to_owned(),
            origin,
        })
    }

    /// Its address.
    pub(super) const fn address(&self) -> &Address {
        &self.address
    }

    /// The paths that it gets.
    pub(super) fn paths(&self) -> String {
        self.paths.join(", ")
    }

    /// Whether requests of this path are for it.
    pub(super) fn answers(&self, path: &str) -> bool {
        self.paths.iter().any(|prefix| is_below(path, prefix))
    }

    /// Passes a request on, and its response back.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        visit: Visit<'_>,
        client: IpAddr,
    ) -> Response<Body> {
        let answer = self.try_answer(request, visit, client).await;
        answer.unwrap_or_else(Problem::into_response)
    }

    async fn try_answer(
        &self,
        request: Request<Incoming>,
        visit: Visit<'_>,
        client: IpAddr,
    ) -> Result<Response<Body>, Problem> {
        self.check(&request)?;
        let (progress, mut flowing) = watch::channel(());
        let watched = |body: Incoming| {
            let body = Limited::new(body, usize::try_from(MAX_BYTES).unwrap_or(usize::MAX));
            body.map_frame(move |frame| {
                progress.send_replace(());
                frame
            })
            .boxed_unsync()
        };
        let own = format!("http://{}", visit.host);
        let prepare = |headers: &mut HeaderMap| {
            drop_spoofed(headers);
            // The client sets the backend's own.
            headers.remove(header::HOST);
            introduce(headers, &own, client);
        };
        let sent = forward::send(
            &self.connections,
            &self.address,
            visit.via,
            request,
            watched,
            prepare,
        );
        let quiet = async {
            loop {
                match tokio::time::timeout(QUIET, flowing.changed()).await {
                    Ok(Ok(())) => {}
                    // The body was sent as a whole: only the response is awaited.
                    Ok(Err(_)) => return pause(QUIET).await,
                    Err(_) => return,
                }
            }
        };
        tokio::select! {
            biased;
            answer = sent => answer.map_err(|error| self.failed(&error)),
            () = quiet => Err(self.problem(
                ProblemCode::BackendTimeout,
                format!("The backend at {} did not respond within {} seconds.", self.address, QUIET.as_secs()),
            )),
        }
    }

    /// Refuses what the platform refuses.
    fn check(&self, request: &Request<Incoming>) -> Result<(), Problem> {
        let method = request.method();
        let path = request.uri().path();
        if *method == Method::TRACE
            || *method == Method::CONNECT
            || method.as_str().eq_ignore_ascii_case("track")
        {
            let detail = format!("The platform passes no {method} on to a backend.");
            return Err(self
                .problem(ProblemCode::MethodNotAllowed, detail)
                .allowing("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
        }
        if leads_out(path) {
            let detail = format!("The platform refuses the path {path}: it could mean another.");
            return Err(self.problem(ProblemCode::InvalidRequest, detail));
        }
        if request.body().size_hint().lower() > MAX_BYTES {
            return Err(self.too_large());
        }
        Ok(())
    }

    fn failed(&self, error: &BoxError) -> Problem {
        if is_limit(&**error) {
            return self.too_large();
        }
        let detail = format!(
            "The backend at {} does not answer: start it, or name another with --backend.",
            self.address
        );
        self.problem(ProblemCode::BackendUnreachable, detail)
    }

    fn too_large(&self) -> Problem {
        let detail = "The platform passes on at most 32 MiB in one request.".to_owned();
        self.problem(ProblemCode::PayloadTooLarge, detail)
    }

    fn problem(&self, code: ProblemCode, detail: String) -> Problem {
        Problem::new(&self.origin, code, detail)
    }
}

/// Whether the limit of the body is the cause of an error.
fn is_limit(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
