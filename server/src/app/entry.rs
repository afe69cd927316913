//! The entry point of all requests. Every request gets an id, a client address and a site; every
//! response gets its id, its problem body and its line in the log, in every case. Everything that
//! concerns all requests is in one function, since a layer would box each request once more. Layers
//! for some routes are in `routes.rs`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use platform_protocol::paths;
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::app::error_page;
use crate::app::guard::{HANDLING, guard};
use crate::app::routes::Routes;
use crate::app::state::AppState;
use crate::games::catalogue::Game;
use crate::games::hosts::{self, Site};
use crate::games::takedown::{self, Forgetting};
use crate::hosting::handlers::game_files;
use crate::web::api_error::ApiError;
use crate::web::client_address::client_address;
use crate::web::cors::ForPrograms;
use crate::web::foreign_cookies;
use crate::web::navigation;
use crate::web::places::Stay;
use crate::web::request_context::Context;
use crate::web::request_id::{RequestId, X_REQUEST_ID};
use crate::web::serve::Application;

/// How long browsers use only TLS (RFC 6797). It does not include sub-domains: every address of the
/// platform sends this header itself, and other names under it are not affected.
const SECURE_FOR_A_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// The routers of all hosts, and their state.
#[derive(Clone, Debug)]
pub struct App {
    /// The state of the handlers.
    pub state: AppState,
    /// The routers, by host.
    pub routes: Routes,
}

impl Application for App {
    async fn answer(&self, peer: SocketAddr, request: Request<Body>) -> Response {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let context = self.context(peer, &parts);
        let seen = Seen {
            method: parts.method.clone(),
            uri: parts.uri.clone(),
        };

        let believed = context.trusted_peer && self.state.platform.config.forwarded_host;
        let found = hosts::requested_host(&parts, believed);
        let navigates = navigation::is_navigation(&parts.headers);
        let looped = self.state.hosting.backends.refuse_loop(&parts.headers);
        let (host, site) = match found {
            Ok(host) => {
                let site = looped.and_then(|()| self.find_site(&host));
                (host, site)
            }
            Err(refusal) => ("-".to_owned(), looped.and(Err(refusal))),
        };
        let expired = match &site {
            Ok(Site::Auth | Site::Console) => {
                let turn = || u16::from_be_bytes(self.state.platform.entropy.bytes());
                let path = parts.uri.path();
                let keep = &self.state.platform.config.keep_cookies;
                foreign_cookies::expire(
                    &parts.headers,
                    &self.state.platform.origin,
                    path,
                    keep,
                    turn,
                )
            }
            _ => Vec::new(),
        };
        let response = match site {
            Err(refusal) => refusal.into_response(),
            Ok(site) => {
                let request = Request::from_parts(parts, body);
                self.dispatch(site, &context, request).await
            }
        };

        let mut response = self.finish(response, &context, navigates);
        expire(response.headers_mut(), expired);
        log(&seen, &host, &context.id, &response, started);
        response
    }

    /// No handler ran, so there is nothing else to log.
    fn explain_unread(&self, status: StatusCode) -> (RequestId, Vec<u8>) {
        let id = RequestId::generate(&*self.state.platform.entropy);
        tracing::info!(
            status = status.as_u16(),
            request_id = id.as_str(),
            "a request's head could not be read"
        );
        let body = ApiError::unread(status).problem(&self.state.platform.auth_url, &id);
        (id, body)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.state.platform.config.trusts(address)
    }
}

impl App {
    fn context(&self, peer: SocketAddr, parts: &Parts) -> Context {
        let config = &self.state.platform.config;
        let trusted_peer = config.trusts(peer.ip().to_canonical());
        let from_proxy = trusted_peer
            .then(|| RequestId::from_proxy(&parts.headers))
            .flatten();
        Context {
            id: from_proxy.unwrap_or_else(|| RequestId::generate(&*self.state.platform.entropy)),
            peer,
            trusted_peer,
            client: client_address(peer.ip(), &parts.headers, |address| config.trusts(address)),
        }
    }

    fn find_site(&self, host: &str) -> Result<Site, ApiError> {
        let state = &self.state;
        hosts::find_site(
            host,
            &state.platform.origin,
            state.platform.listening.port(),
            &state.games.catalogue,
        )
    }

    async fn dispatch(&self, site: Site, context: &Context, request: Request<Body>) -> Response {
        let forgetting = match &site {
            Site::Game(game) => self.forgetting(game, request.headers()),
            Site::Console | Site::Auth => None,
        };
        let held = request.extensions().get::<Stay>().cloned();
        if let Some(stay) = &held {
            let game = match &site {
                Site::Game(game) => Some(Arc::clone(&game.audience)),
                Site::Console | Site::Auth => None,
            };
            stay.is_of(context.client, game);
        }
        let mut response = self.route(site, context, request).await;
        if let Some(forgetting) = forgetting {
            forgetting.apply(response.headers_mut());
        }
        lasting(response, held.as_ref())
    }

    /// Returns which of the game's data the browser must delete.
    fn forgetting(&self, game: &Game, headers: &HeaderMap) -> Option<Forgetting> {
        // Most games were never taken down.
        game.forget_from?;
        let secure = self.state.platform.origin.is_secure();
        Forgetting::wanted(game, headers, self.state.platform.clock.now(), secure)
    }

    /// Routes a request. Most are for a game's files, which need no router.
    async fn route(&self, site: Site, context: &Context, mut request: Request<Body>) -> Response {
        let router = match site {
            Site::Console => &self.routes.console,
            Site::Auth => &self.routes.auth,
            Site::Game(game) if game.taken_down => return takedown::answer(request.headers()),
            Site::Game(game) if !paths::is_platforms(request.uri().path()) => {
                return self.play(&game, context, request).await;
            }
            Site::Game(game) => {
                request.extensions_mut().insert(game);
                &self.routes.game
            }
        };
        request.extensions_mut().insert(context.clone());
        match router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// Responds for the game itself. Requests to a game's backend have separate limits, which allow
    /// a long upload to take any time.
    async fn play(&self, game: &Game, context: &Context, request: Request<Body>) -> Response {
        let hosting = &self.state.hosting;
        let backend = hosting.backends.find(game, request.uri().path());
        let limit = backend.is_none().then_some(HANDLING);
        let answer = game_files::handle(hosting, game, backend, context, request);
        let answer = async { answer.await.unwrap_or_else(ApiError::into_response) };
        guard(limit, answer).await
    }

    /// Adds the problem body and the headers that every response has.
    fn finish(&self, mut response: Response, context: &Context, navigates: bool) -> Response {
        let for_programs = response.extensions_mut().remove::<ForPrograms>().is_some();
        if let Some(refusal) = response.extensions_mut().remove::<ApiError>() {
            if let Some(cause) = refusal.cause() {
                tracing::error!(
                    request_id = context.id.as_str(),
                    slug = refusal.slug().as_str(),
                    cause,
                    "request failed"
                );
            }
            let is_page = navigates
                && !for_programs
                && error_page::make_page(
                    &mut response,
                    &refusal,
                    &self.state.platform.origin,
                    &context.id,
                );
            if !is_page {
                *response.body_mut() = refusal.body(&self.state.platform.auth_url, &context.id);
            }
            let headers = response.headers_mut();
            headers.remove(header::CONTENT_LENGTH);
            if !for_programs {
                headers.append(
                    header::VARY,
                    HeaderValue::from_static("Accept, Sec-Fetch-Mode"),
                );
            }
        }
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, context.id.header().clone());
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        if self.state.platform.origin.is_secure() {
            // This replaces a header of the backend.
            headers.insert(header::STRICT_TRANSPORT_SECURITY, SECURE_FOR_A_YEAR);
        }
        response
    }
}

/// Marks the connection of a stream of events (HTML, "Server-sent events") as long-lived, or
/// refuses the stream.
fn lasting(mut response: Response, held: Option<&Stay>) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    match held.filter(|_| is_stream).map(Stay::last) {
        None => response,
        Some(Err(refusal)) => refusal.into_response(),
        Some(Ok(lasting)) => {
            response.extensions_mut().insert(lasting);
            response
        }
    }
}

/// Expires foreign cookies with this response, unless a shared cache may store it.
fn expire(headers: &mut HeaderMap, expired: Vec<HeaderValue>) {
    let kept = headers.get(header::CACHE_CONTROL);
    if kept.is_some_and(|kept| kept.as_bytes().starts_with(b"public")) {
        return;
    }
    for cookie in expired {
        headers.append(header::SET_COOKIE, cookie);
    }
}

/// The logged data of a request: never a header or a query.
struct Seen {
    method: Method,
    uri: Uri,
}

fn log(seen: &Seen, host: &str, id: &RequestId, response: &Response, started: Instant) {
    let status = response.status();
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                method = seen.method.as_str(),
                host,
                path = seen.uri.path(),
                status = status.as_u16(),
                ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                request_id = id.as_str(),
                "answered"
            )
        };
    }
    if status.is_server_error() {
        line!(warn);
    } else if status.is_client_error() {
        line!(info);
    } else {
        line!(debug);
    }
}
