//! The entry point of all requests. Every request gets an id, a client address and a site; every
//! response gets its id, its problem body and its line in the log, in every case. Everything that
//! concerns all requests is here, since a layer would box each request once more. Layers for some
//! routes are in `routes.rs`.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use platform_protocol::paths;
use platform_protocol::problem::ProblemCode;
use platform_serving::paths::is_domain_validation;
use platform_telemetry::{Answered, Traced, TracedRequest};
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::app::error_page::{self, GameLink, Ways};
use crate::app::guard::{HANDLING, guard};
use crate::app::matched_route::with_route;
use crate::app::overload::{Class, Overload};
use crate::app::routes::Routes;
use crate::app::state::AppState;
use crate::auth::hand_off;
use crate::auth::panes::{self, PaneSession};
use crate::games::canonical;
use crate::games::catalogue::Game;
use crate::games::hosts::{self, Site};
use crate::games::page_metadata;
use crate::games::panes::Pane;
use crate::games::takedown::{self, Forgetting};
use crate::hosting::backends::Backend;
use crate::hosting::handlers::game_files;
use crate::platform::Platform;
use crate::platform::metrics::requests::{HostKind, RouteId};
use crate::web::api_error::ApiError;
use crate::web::client_address::client_address;
use crate::web::cors::{self, ForPrograms};
use crate::web::foreign_cookies;
use crate::web::navigation;
use crate::web::page::Framing;
use crate::web::places::Stay;
use crate::web::request_context::Context;
use crate::web::request_id::{RequestId, X_REQUEST_ID};
use crate::web::requested_host::requested_host;
use crate::web::serve::{Application, OpenConnections};

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
    /// Admission control.
    pub overload: Arc<Overload>,
}

impl Application for App {
    async fn answer(&self, peer: SocketAddr, request: Request<Body>) -> Response {
        let (mut arrival, target, request) = self.receive(peer, request);
        let response = match target {
            Target::Ready(response) => response,
            Target::Router(router) => {
                let answer = Traced::new(router.oneshot(request), arrival.traced.as_ref());
                let (answered, route) = with_route(answer).await;
                arrival.route = route.unwrap_or(arrival.route);
                match answered {
                    Ok(response) => response,
                    Err(never) => match never {},
                }
            }
            Target::Game(game, backend) => {
                let answer = self.play(&game, backend, &arrival.context, request);
                Traced::new(answer, arrival.traced.as_ref()).await
            }
            Target::Visit(game) => {
                // Few requests begin a visit, and every request copies the future of all.
                let answer = Box::pin(self.visit(&game, &arrival.context, request));
                Traced::new(answer, arrival.traced.as_ref()).await
            }
            Target::Pane(game, backend, delay) => {
                let answer = async {
                    panes::wait(delay).await;
                    self.play(&game, backend, &arrival.context, request).await
                };
                // Few requests are for a pane, and every request copies the future of all.
                Traced::new(Box::pin(answer), arrival.traced.as_ref()).await
            }
        };
        if arrival.navigates && response.status() == StatusCode::NOT_FOUND {
            // This future is rarely needed, and would be a part of that of every request.
            arrival.ways = Box::pin(self.ways(&arrival)).await;
        }
        self.finish(response, arrival)
    }

    /// No handler ran, so there is nothing else to log.
    fn explain_unread(&self, status: StatusCode) -> (RequestId, Vec<u8>) {
        let id = RequestId::generate(&*self.state.platform.entropy);
        let metrics = &self.state.platform.metrics;
        metrics.answered(RouteId::UNREAD, status.as_u16(), Instant::now());
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

    fn accepts(&self, open: OpenConnections) {
        self.state.platform.metrics.count_connections(open);
    }
}

impl App {
    /// Creates it. Nothing is refused for overload until [`Overload::watch`] runs.
    #[must_use]
    pub fn new(state: AppState, routes: Routes) -> Self {
        let limit = Duration::from_millis(state.platform.config.overload_millis.into());
        let overload = Arc::new(Overload::new(limit, &state.platform.metrics));
        Self {
            state,
            routes,
            overload,
        }
    }

    /// Does everything before a handler runs. It is not part of the future of a request, since what
    /// it borrows would make that larger, and every request copies its future.
    fn receive(
        &self,
        peer: SocketAddr,
        request: Request<Body>,
    ) -> (Arrival, Target, Request<Body>) {
        let started = Instant::now();
        let (mut parts, body) = request.into_parts();
        let context = self.context(peer, &parts);
        let believed = context.trusted_peer && self.state.platform.config.forwarded_host;
        let found = requested_host(&parts, believed);
        let looped = self.state.hosting.backends.refuse_loop(&parts.headers);
        let (host, site) = match found {
            Ok(host) => {
                let site = looped.and_then(|()| self.find_site(&host));
                (host, site)
            }
            Err(refusal) => ("-".to_owned(), looped.and(Err(refusal))),
        };
        let from_proxy = context.trusted_peer.then_some(&parts.headers);
        let mut arrival = Arrival {
            started,
            traced: self.state.platform.telemetry.request(from_proxy),
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            host,
            context,
            navigates: navigation::is_navigation(&parts.headers),
            expired: self.expired(site.as_ref().ok(), &parts),
            forgetting: None,
            stay: None,
            game: None,
            route: RouteId::none(match &site {
                Ok(Site::Console) => HostKind::Console,
                Ok(Site::Auth) => HostKind::Auth,
                Ok(Site::Game(_)) => HostKind::Game,
                Ok(Site::Pane(_)) => HostKind::Pane,
                Err(_) => HostKind::Other,
            }),
            ways: Ways::default(),
            framing: match &site {
                Ok(Site::Pane(_)) => Framing::Console,
                Ok(Site::Game(_) | Site::Console | Site::Auth) | Err(_) => Framing::Nobody,
            },
        };
        let target = match site {
            Err(refusal) => Target::Ready(refusal.into_response()),
            Ok(site) => match self.overload.admit(Class::of(&site, parts.uri.path())) {
                Ok(()) => self.target(site, &mut parts, &mut arrival),
                Err(refusal) => Target::Ready(self.refuse(refusal, &site, &parts.headers)),
            },
        };
        (arrival, target, Request::from_parts(parts, body))
    }

    /// Responds to a request that is not admitted. A page may read why it got no token.
    fn refuse(&self, refusal: ApiError, site: &Site, headers: &HeaderMap) -> Response {
        let mut response = refusal.into_response();
        if matches!(site, Site::Auth) {
            cors::allow(&*self.state.games, headers, response.headers_mut());
        }
        response
    }

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
            state.platform.listening.port(),
            &state.games.catalogue,
        )
    }

    /// Returns the headers that delete foreign cookies.
    fn expired(&self, site: Option<&Site>, parts: &Parts) -> Vec<HeaderValue> {
        let platform = &self.state.platform;
        match site {
            Some(Site::Auth | Site::Console) => foreign_cookies::expire(
                &parts.headers,
                &platform.origin,
                parts.uri.path(),
                &platform.config.keep_cookies,
                || u16::from_be_bytes(platform.entropy.id_bytes()),
            ),
            Some(Site::Game(_) | Site::Pane(_)) | None => Vec::new(),
        }
    }

    /// Returns what handles a request, and hands it what it needs. Most requests are for a game's
    /// files, which need no router.
    fn target(&self, site: Site, parts: &mut Parts, arrival: &mut Arrival) -> Target {
        arrival.stay = parts.extensions.get::<Stay>().cloned();
        if let Some(stay) = &arrival.stay {
            let game = match &site {
                Site::Game(game) => Some(Arc::clone(&game.audience)),
                Site::Pane(pane) => Some(Arc::clone(&pane.game.audience)),
                Site::Console | Site::Auth => None,
            };
            stay.is_of(arrival.context.client, game);
        }
        if self.proves_platforms_name(&site, parts.uri.path()) {
            return Target::Ready(ApiError::from(ProblemCode::NotFound).into_response());
        }
        let router = match site {
            Site::Console => &self.routes.console,
            Site::Auth => &self.routes.auth,
            Site::Pane(pane) => return self.pane_target(pane, parts, arrival),
            Site::Game(game) => {
                arrival.game = arrival.navigates.then(|| Arc::clone(&game));
                arrival.forgetting = self.forgetting(&game, &parts.headers);
                if game.taken_down {
                    return Target::Ready(takedown::answer(&parts.headers));
                }
                let path = parts.uri.path();
                if !paths::is_platforms(path) {
                    if let Some(redirect) = canonical::redirect(&game, parts) {
                        return Target::Ready(redirect);
                    }
                    let backend = self.state.hosting.backends.find(&game, path);
                    arrival.route = match backend {
                        Some(_) => RouteId::GAME_BACKEND,
                        None => RouteId::GAME_FILES,
                    };
                    let secure = self.state.platform.origin.is_secure();
                    if backend.is_none() && hand_off::may_begin(&game, parts, secure) {
                        return Target::Visit(game);
                    }
                    return Target::Game(game, backend);
                }
                parts.extensions.insert(game);
                &self.routes.game
            }
        };
        parts.extensions.insert(arrival.context.clone());
        Target::Router(router.clone())
    }

    /// Whether this is where a certificate authority looks for a proof of control over a name of the
    /// platform. A game that answered there, or redirected from there, could get a certificate for it. A
    /// domain of a game's own belongs to the game's people, who may need it.
    fn proves_platforms_name(&self, site: &Site, path: &str) -> bool {
        is_domain_validation(path)
            && match site {
                Site::Game(game) => !self.state.games.catalogue.is_at_domain(game),
                Site::Console | Site::Auth | Site::Pane(_) => true,
            }
    }

    /// Returns what handles a request to a pane of the Build page. Without a session it shows
    /// nothing of the game.
    fn pane_target(&self, pane: Pane, parts: &mut Parts, arrival: &mut Arrival) -> Target {
        let game = Arc::clone(&pane.game);
        arrival.forgetting = self.forgetting(&game, &parts.headers);
        if game.taken_down {
            return Target::Ready(takedown::answer(&parts.headers));
        }
        let session = PaneSession::of(&self.state.auth, &pane, &parts.headers);
        let path = parts.uri.path();
        if paths::is_platforms(path) {
            if let Some(session) = session {
                if let Some(response) = session.decides(path, &parts.headers) {
                    return Target::Ready(response);
                }
                parts.extensions.insert(session);
            }
            parts.extensions.insert(pane);
            parts.extensions.insert(game);
            parts.extensions.insert(arrival.context.clone());
            return Target::Router(self.routes.pane.clone());
        }
        let Some(session) = session else {
            return Target::Ready(panes::closed().into_response());
        };
        let backend = self.state.hosting.backends.find(&game, path);
        let to_backend = backend.is_some();
        arrival.route = match to_backend {
            true => RouteId::PANE_BACKEND,
            false => RouteId::PANE_FILES,
        };
        if let Some(response) = session.decides_for_game(&parts.headers, to_backend) {
            return Target::Ready(response);
        }
        if to_backend {
            address_as_dev(&mut parts.headers, &pane);
        }
        Target::Pane(game, backend, session.delay(to_backend))
    }

    /// Returns which of the game's data the browser must delete.
    fn forgetting(&self, game: &Game, headers: &HeaderMap) -> Option<Forgetting> {
        // Most games were never taken down.
        game.forget_from?;
        let secure = self.state.platform.origin.is_secure();
        Forgetting::wanted(game, headers, self.state.platform.clock.now(), secure)
    }

    /// Responds for the game itself. Requests to a game's backend have separate limits, which allow
    /// a long upload to take any time.
    async fn play(
        &self,
        game: &Game,
        backend: Option<Arc<Backend>>,
        context: &Context,
        request: Request<Body>,
    ) -> Response {
        let limit = backend.is_none().then_some(HANDLING);
        let hosting = &self.state.hosting;
        let answer = pin!(game_files::handle(hosting, game, backend, context, request));
        guard(limit, answer).await
    }

    /// Responds to a navigation to a page of a game that is apart: a browser without a session of
    /// the game gets one first.
    async fn visit(&self, game: &Game, context: &Context, request: Request<Body>) -> Response {
        let wanted = request
            .uri()
            .path_and_query()
            .map_or("/", PathAndQuery::as_str);
        let (auth, headers) = (&self.state.auth, request.headers());
        match hand_off::begin_if_needed(auth, game, headers, wanted).await {
            Some(response) => response,
            None => self.play(game, None, context, request).await,
        }
    }

    /// Returns where the page about a missing address leads to: back to the game that is there, or
    /// to the listed game whose address is almost this one.
    async fn ways(&self, arrival: &Arrival) -> Ways {
        let path = arrival.uri.path();
        if let Some(game) = &arrival.game {
            // On its start page, this would lead nowhere.
            let back = (game.deployment.is_some() && path != "/").then(|| GameLink {
                title: page_metadata::title(game),
                url: format!("{}/", game.origin),
            });
            return Ways { back, meant: None };
        }
        let state = &self.state;
        let platform = state.platform.origin.to_string();
        let host = arrival.host.split(':').next().unwrap_or_default();
        let label = host.to_ascii_lowercase();
        let label = label
            .strip_suffix(state.platform.origin.host())
            .or_else(|| label.strip_suffix(state.platform.games_origin.host()));
        let typed = match (label, path.strip_prefix(paths::GAME_PAGES)) {
            (Some(""), Some(slug)) => slug.strip_prefix('/'),
            (Some(label), _) => label.strip_suffix('.'),
            (None, _) => None,
        };
        let Some(typed) = typed else {
            return Ways::default();
        };
        let front = state.console.storefronts.load(&state.players).await;
        let meant = front.nearest(typed).map(|entry| GameLink {
            title: entry.listing.title.clone(),
            url: match label {
                Some("") => format!("{platform}{}/{}", paths::GAME_PAGES, entry.slug),
                _ => entry.url.clone(),
            },
        });
        Ways { back: None, meant }
    }

    /// Does everything after a handler has run.
    fn finish(&self, mut response: Response, mut arrival: Arrival) -> Response {
        let traced = arrival.traced.take();
        let _entered = traced.as_ref().map(TracedRequest::enter);
        if let Some(forgetting) = arrival.forgetting.take() {
            forgetting.apply(response.headers_mut());
        }
        let response = lasting(response, arrival.stay.as_ref());
        let mut response = self.complete(response, &arrival);
        let (metrics, status) = (&self.state.platform.metrics, response.status());
        metrics.answered(arrival.route, status.as_u16(), arrival.started);
        log(&arrival, &response);
        if let Some(traced) = &traced {
            self.end(traced, &arrival, status);
        }
        expire(response.headers_mut(), arrival.expired);
        response
    }

    /// Ends the span of a request. Its route is the one that is counted, never a path.
    fn end(&self, traced: &TracedRequest, arrival: &Arrival, status: StatusCode) {
        let Platform {
            metrics, origin, ..
        } = &*self.state.platform;
        let requests = metrics.requests();
        let named = requests.and_then(|requests| requests.name(arrival.route));
        let (host, route) = named.unwrap_or((HostKind::Other, "(none)"));
        traced.end(&Answered {
            method: &arrival.method,
            scheme: if origin.is_secure() { "https" } else { "http" },
            address: origin.host(),
            host: host.name(),
            route,
            status: status.as_u16(),
        });
    }

    /// Adds the problem body and the headers that every response has.
    fn complete(&self, mut response: Response, arrival: &Arrival) -> Response {
        let context = &arrival.context;
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
            let is_page = arrival.navigates
                && !for_programs
                && error_page::make_page(
                    &mut response,
                    &refusal,
                    (&self.state.platform.origin, arrival.framing, &arrival.ways),
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

/// What is known about a request before a handler runs, for its response and its line in the log.
struct Arrival {
    started: Instant,
    /// The span of the request, if it is traced.
    traced: Option<TracedRequest>,
    method: Method,
    uri: Uri,
    host: String,
    context: Context,
    /// Whether a browser navigates, so that an error is a page.
    navigates: bool,
    /// The headers that delete foreign cookies.
    expired: Vec<HeaderValue>,
    /// Which of the game's data the browser must delete.
    forgetting: Option<Forgetting>,
    /// The slot of the connection.
    stay: Option<Stay>,
    /// The game to whose address a browser navigates.
    game: Option<Arc<Game>>,
    /// The route that answers, as far as it is known.
    route: RouteId,
    /// Where a page about a missing address leads to.
    ways: Ways,
    /// Which pages may show an error page of this address in a frame.
    framing: Framing,
}

/// What handles a request.
enum Target {
    /// Nothing more is needed.
    Ready(Response),
    /// The platform's own paths of a host.
    Router(Router),
    /// The game itself: its backend if the path belongs to it, otherwise its files.
    Game(Arc<Game>, Option<Arc<Backend>>),
    /// A page of a game that is apart, to which a browser navigates.
    Visit(Arc<Game>),
    /// The same in a pane of the Build page, after a delay.
    Pane(Arc<Game>, Option<Arc<Backend>>, Duration),
}

/// Names the dev environment in place of a pane as the origin of a request: a backend may compare
/// it, and knows no panes.
fn address_as_dev(headers: &mut HeaderMap, pane: &Pane) {
    for name in [header::ORIGIN, header::REFERER] {
        let value = headers.get(&name).and_then(|value| value.to_str().ok());
        let rest = value.and_then(|value| value.strip_prefix(&pane.origin));
        let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let value = rest.map(|rest| format!("{}{rest}", pane.game.origin));
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
}

/// Logs a request: never a header or a query.
fn log(arrival: &Arrival, response: &Response) {
    let status = response.status();
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                method = arrival.method.as_str(),
                host = arrival.host,
                path = arrival.uri.path(),
                status = status.as_u16(),
                ms = u64::try_from(arrival.started.elapsed().as_millis()).unwrap_or(u64::MAX),
                request_id = arrival.context.id.as_str(),
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
