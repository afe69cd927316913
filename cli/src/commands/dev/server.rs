//! Accepts connections, and decides which part responds to a request.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use platform_protocol::problem::ProblemCode;
use platform_serving::paths::is_reserved;
use tokio::net::{TcpListener, TcpStream};

use super::backend::Backend;
use super::files::Files;
use super::forward::{Visit, is_loop};
use super::own_page::{is_own_page, local_host};
use super::players::Players;
use super::problem::Problem;
use super::upstream::Upstream;
use crate::client::Body;
use crate::clock::pause;

/// The pause after a connection could not be accepted, such as when too many files are open.
const BREATH: Duration = Duration::from_millis(100);

/// What responds to requests that are neither for the platform nor for the backend.
pub(super) enum Front {
    /// A folder.
    Folder(Files),
    /// Another dev server.
    Server(Upstream),
}

/// The dev server.
pub(super) struct Server {
    players: Players,
    backend: Option<Backend>,
    front: Front,
    /// Its name in `Via`.
    name: String,
}

impl Server {
    pub(super) fn new(players: Players, backend: Option<Backend>, front: Front, port: u16) -> Self {
        Self {
            players,
            backend,
            front,
            name: format!("platform-dev:{port}"),
        }
    }

    /// Serves on a socket, until the program ends.
    pub(super) async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, client)) => {
                    let server = Arc::clone(&self);
                    tokio::spawn(server.connection(stream, client.ip()));
                }
                Err(_) => pause(BREATH).await,
            }
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, client: IpAddr) {
        // Only speed depends on it.
        let _ = stream.set_nodelay(true);
        let service = service_fn(|request| {
            let server = Arc::clone(&self);
            async move { Ok::<_, Infallible>(server.answer(request, client).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        // A browser that closes a connection concerns nobody.
        let _ = connection.await;
    }

    async fn answer(&self, mut request: Request<Incoming>, client: IpAddr) -> Response<Body> {
        let (uri, headers) = (request.uri().clone(), request.headers());
        let problem = |code, detail: &str| Problem::new(self.players.origin(), code, detail);
        // Before everything else: another site may have led its name to this machine.
        let Some(host) = local_host(&uri, headers).map(str::to_owned) else {
            let detail = "Open the game as localhost or by an IP address.";
            return problem(ProblemCode::NotAllowed, detail).into_response();
        };
        let path = uri.path();
        if is_reserved(path) {
            if let Front::Folder(files) = &self.front
                && let Some(reload) = files.reload()
                && request.method() == Method::GET
                && is_own_page(&host, headers)
                && let Some(response) = reload.answer(&mut request)
            {
                return response;
            }
            let (method, headers) = (request.method(), request.headers());
            return self.players.answer(method, path, &host, headers).await;
        }
        if is_loop(headers, &self.name) {
            let detail = "The other server leads back to `platform dev` itself.";
            return problem(ProblemCode::BackendUnreachable, detail).into_response();
        }
        let visit = Visit {
            host: &host,
            via: &self.name,
        };
        match (&self.backend, &self.front) {
            (Some(backend), _) if backend.answers(path) => {
                backend.answer(request, visit, client).await
            }
            (_, Front::Server(upstream)) => upstream.answer(request, visit, client).await,
            (_, Front::Folder(files)) => files.answer(request).await,
        }
    }
}
