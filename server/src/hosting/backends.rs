//! The reverse proxy to games' own backends.
//!
//! | module | contents |
//! |---|---|
//! | `headers` | the headers of forwarded requests and responses |
//! | `address_policy` | which addresses a backend may have |
//! | `response_body` | responses that stall |
//! | `open_connections` | closing of open connections when a game is taken down |
//! | `connection_test` | the test request when a backend is set |
//! | `event` | requests to webhooks |
//! | `assertion` | the signed statement in forwarded requests |
//! | `forward` | forwarding of requests and responses, including WebSockets |
//! | `early_response` | responses that arrive before the whole request was sent |

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use axum::response::Response;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use platform_protocol::names::Environment;
use platform_protocol::problem::ProblemCode;
use platform_serving::paths::is_reserved;
use platform_serving::{forwarding, paths};
use platform_telemetry::trace_context::TRACEPARENT;
use platform_telemetry::{Step, Telemetry, method_name};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::domain::errors::chain;
use crate::domain::project::BackendSettings;
use crate::games::catalogue::{Catalogue, Game};
use crate::hosting::request_body::{self, Upload};
use crate::origin::PlatformOrigin;
use crate::web::api_error::ApiError;
use crate::web::client_address::Network;
use crate::web::fair_shares::{Share, Shares};
use crate::web::places::{Group, Lasting, Stay};
use crate::web::request_context::Context;
use crate::web::tls;

mod address_policy;
mod assertion;
mod connection_test;
mod early_response;
mod event;
mod forward;
mod headers;
mod open_connections;
mod own_sockets;
mod response_body;
mod tunnel;

pub use self::address_policy::AddressPolicy;
pub use self::assertion::Assertions;
use self::assertion::LastAssertion;
pub use self::connection_test::Trial;
pub use self::event::{Event, Sent};
use self::forward::{BackendClient, Handshake};
use self::open_connections::{Door, Doors};
pub use self::own_sockets::OwnSockets;

/// The default paths of a game that are forwarded to its backend.
const PATHS: &str = "/api/";
/// How long an idle connection is kept. Node and other servers close theirs after 5 s, and a
/// request that is sent at that moment is lost.
const KEPT: Duration = Duration::from_secs(4);
/// The maximum number of idle connections per backend.
const KEPT_CONNECTIONS: usize = 64;
/// The maximum number of concurrent requests and WebSockets per backend, so that a backend that
/// does not respond does not affect other games.
const IN_FLIGHT: usize = 1_024;
/// The part of these that one network may use, and the part for it and its surrounding network
/// together, once more than half are in use: few visitors cannot use all of them, but a school may
/// share one network. This machine has no limit: programs that measure simulate many visitors.
const SHARES: (usize, usize) = (16, 8);

/// A backend, and the paths of its game that are forwarded to it.
pub struct Backend {
    settings: BackendSettings,
    places: Arc<Semaphore>,
    networks: Shares<Group>,
    assertion: LastAssertion,
    /// Set when its game has no backend any more. Its replacement shares this flag.
    removed: Arc<AtomicBool>,
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

/// Settings for requests to backends.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The limits for a request's body, and for the time until a response begins.
    pub limits: request_body::Limits,
    /// How long a response may stall.
    pub idle: Duration,
    /// The maximum number of concurrent requests per backend.
    pub in_flight: usize,
    /// The addresses that a backend may have.
    pub reach: AddressPolicy,
}

impl Settings {
    /// Returns the values of the platform's settings; the origins are those of the platform and of
    /// games.
    #[must_use]
    pub fn new(
        config: &Config,
        (origin, games): (&PlatformOrigin, &PlatformOrigin),
        listening: Vec<SocketAddr>,
    ) -> Self {
        let own = OwnSockets::new(listening, config.services());
        let private = config.private_backends.clone();
        Self {
            limits: request_body::Limits {
                quiet: Duration::from_secs(config.backend_timeout_seconds),
                ..request_body::Limits::default()
            },
            idle: Duration::from_secs(config.backend_idle_seconds),
            in_flight: IN_FLIGHT,
            reach: AddressPolicy::new(private, origin, own).with_games(games),
        }
    }
}

/// One environment of one project.
type Key = (String, Environment);

/// The backends of all games.
type Table = HashMap<Key, Arc<Backend>>;

/// All backends. They may be changed while requests are in progress.
pub struct Backends {
    /// The platform's own backends, which no setting changes.
    built_in: ArcSwap<Table>,
    /// The backends that games' owners have set. They take precedence.
    set: ArcSwap<Table>,
    /// Held while the backends are changed.
    following: Mutex<()>,
    client: BackendClient,
    /// The platform's name in `Via`.
    name: String,
    settings: Settings,
    assertions: Option<Assertions>,
    telemetry: Telemetry,
    closing: CancellationToken,
    doors: Doors,
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.built_in.load().keys())
            .entries(self.set.load().keys())
            .finish()
    }
}

impl Backends {
    /// Creates an empty set of backends.
    ///
    /// # Errors
    /// Returns an error if TLS cannot be set up at all.
    pub fn new(origin: &PlatformOrigin, settings: Settings) -> Result<Self, rustls::Error> {
        let name = origin.to_string();
        let name = name
            .split_once("://")
            .map_or("", |(_, name)| name)
            .to_owned();
        let closing = CancellationToken::new();
        Ok(Self {
            built_in: ArcSwap::default(),
            set: ArcSwap::default(),
            following: Mutex::default(),
            client: client(settings.reach.clone())?,
            name,
            settings,
            assertions: None,
            telemetry: Telemetry::default(),
            doors: Doors::new(closing.clone()),
            closing,
        })
    }

    /// Sets the signer for forwarded requests.
    #[must_use]
    pub fn signed_by(mut self, assertions: Assertions) -> Self {
        self.assertions = Some(assertions);
        self
    }

    /// Sends the traces of requests to webhooks with `telemetry`.
    #[must_use]
    pub fn traced_by(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Returns the addresses that a backend may have.
    #[must_use]
    pub const fn reach(&self) -> &AddressPolicy {
        &self.settings.reach
    }

    /// Closes all current and later WebSockets, because the server stops.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Forwards `/api/` of a game to this backend from now on, unless its owner has set another
    /// one.
    pub fn add(&self, slug: &str, environment: Environment, backend: SocketAddr) {
        let settings = BackendSettings {
            url: format!("http://{backend}"),
            paths: vec![PATHS.to_owned()],
        };
        let backend = self.backend(settings, Arc::default());
        self.built_in.rcu(|table| {
            let mut table = Table::clone(table);
            table.insert((slug.to_owned(), environment), Arc::clone(&backend));
            table
        });
    }

    /// Whether a game uses the platform's own backend because its owner has set none.
    #[must_use]
    pub fn is_built_in(&self, slug: &str, environment: Environment) -> bool {
        let key = (slug.to_owned(), environment);
        self.built_in.load().contains_key(&key)
    }

    /// Applies a change of all games, or of those of one project. Closes WebSockets and unfinished
    /// responses of removed backends, and of games that are taken down. If only the address or
    /// paths of a backend change, open connections continue with the old one.
    pub fn follow(&self, catalogue: &Catalogue, slug: Option<&str>) {
        {
            // An older state must not replace a newer one.
            let _following = self.following.lock();
            match slug {
                Some(slug) => self.follow_project(catalogue, slug),
                None => {
                    let games = catalogue.all();
                    let set = games.iter().filter_map(|game| {
                        let key = (game.slug.clone(), game.environment);
                        Some((key, game.backend.as_ref()?))
                    });
                    self.replace(set);
                }
            }
        }
        self.doors.follow(|slug, environment| {
            let game = catalogue.find(&environment.label(slug))?;
            Some(!game.taken_down)
        });
    }

    fn follow_project(&self, catalogue: &Catalogue, slug: &str) {
        let games = Environment::ALL.map(|environment| {
            let game = catalogue.find(&environment.label(slug));
            ((slug.to_owned(), environment), game)
        });
        let before = self.set.load_full();
        let is_as_before = games.iter().all(|(key, game)| {
            let settings = game.as_ref().and_then(|game| game.backend.as_ref());
            before.get(key).map(|known| &known.settings) == settings
        });
        if is_as_before {
            return;
        }
        let others = before.iter().filter(|((of, _), _)| of != slug);
        let others = others.map(|(key, known)| (key.clone(), &known.settings));
        let own = games.iter().filter_map(|(key, game)| {
            let settings = game.as_ref()?.backend.as_ref()?;
            Some((key.clone(), settings))
        });
        self.replace(others.chain(own));
    }

    /// Replaces the backends that games' owners have set by `set`.
    fn replace<'a>(&self, set: impl Iterator<Item = (Key, &'a BackendSettings)>) {
        let before = self.set.load_full();
        let table: Table = set
            .map(|(key, settings)| {
                let backend = match before.get(&key) {
                    Some(known) if known.settings == *settings => Arc::clone(known),
                    Some(known) => self.backend(settings.clone(), Arc::clone(&known.removed)),
                    None => self.backend(settings.clone(), Arc::default()),
                };
                (key, backend)
            })
            .collect();
        let table = Arc::new(table);
        self.set.store(Arc::clone(&table));
        for (key, gone) in before.iter().filter(|(key, _)| !table.contains_key(*key)) {
            // A request that found the backend before this finds it closed, or, if it comes later,
            // sees this flag.
            gone.removed.store(true, Ordering::Release);
            self.doors.end(key);
        }
    }

    fn backend(&self, settings: BackendSettings, removed: Arc<AtomicBool>) -> Arc<Backend> {
        Arc::new(Backend {
            settings,
            places: Arc::new(Semaphore::new(self.settings.in_flight)),
            networks: Shares::default(),
            assertion: LastAssertion::default(),
            removed,
        })
    }

    /// Returns the backend for this path of a game, if any.
    #[must_use]
    pub fn find(&self, game: &Game, path: &str) -> Option<Arc<Backend>> {
        let key = (game.slug.clone(), game.environment);
        let set = self.set.load().get(&key).cloned();
        let backend = set.or_else(|| self.built_in.load().get(&key).cloned())?;
        let answers = |prefix: &String| paths::is_below(path, prefix);
        // Reserved paths belong to the platform, whatever was set.
        (backend.settings.paths.iter().any(answers) && !is_reserved(path)).then_some(backend)
    }

    /// Rejects a request that has been here before: a backend that leads back to the platform would
    /// cause an endless loop.
    ///
    /// # Errors
    /// `backend-unreachable`
    pub fn refuse_loop(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        if headers.contains_key(header::VIA) && forwarding::came_through(headers, &self.name) {
            return Err(ApiError::new(ProblemCode::BackendUnreachable)
                .with_detail("The game's backend address leads back to the platform itself."));
        }
        Ok(())
    }

    /// Forwards a request to a backend and returns its response, streaming in both directions.
    ///
    /// # Errors
    /// `backend-unreachable`, `backend-timeout`, `payload-too-large`,
    /// `invalid-request`, `unavailable`, 408.
    pub async fn forward(
        &self,
        backend: &Backend,
        game: &Game,
        context: &Context,
        mut request: Request<Body>,
    ) -> Result<Response, ApiError> {
        let handshake = Handshake::of(&mut request);
        let (mut parts, body) = request.into_parts();
        self.check(&parts)?;
        let place = self.place(backend, context)?;
        let held = parts.extensions.remove::<Stay>();
        let lasting = upgraded(&parts.headers, held.as_ref())?;
        let gone = || {
            ApiError::new(ProblemCode::BackendUnreachable)
                .with_detail("The game was taken down, or no longer has this backend.")
        };
        let Door { sockets, answers } = self.doors.of(&game.slug, game.environment);
        if backend.removed.load(Ordering::Acquire) {
            return Err(gone());
        }
        let assertion = self.assertions.as_ref();
        let assertion = assertion.and_then(|all| all.of(&backend.assertion, game));
        headers::prepare(&mut parts, game, context, assertion);
        let held = (place, lasting, held);
        let mut step = begin(&mut parts, context);

        let (upload, body) = Upload::watch(body, self.settings.limits);
        let request = Request::from_parts(parts, body);
        let url = &backend.settings.url;
        let asked = forward::send(&self.client, &self.name, url, request, handshake.as_ref());
        let answered = tokio::select! {
            answered = upload.wait_for(asked) => {
                answered.inspect_err(|_| step.fail("no answer"))?
            }
            () = answers.cancelled() => return Err(gone()),
        };
        let mut response = match answered {
            Ok(response) => response,
            Err(cause) => {
                step.fail("unreachable");
                upload.check()?;
                return Err(ApiError::new(ProblemCode::BackendUnreachable).with_cause(cause));
            }
        };
        step.answered(response.status().as_u16());
        drop(step);
        headers::protect_others(response.headers_mut(), game);
        match handshake {
            Some(handshake) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                handshake.tunnel(&mut response, held, sockets);
                Ok(response)
            }
            _ => {
                let idle = self.settings.idle;
                Ok(response.map(|body| response_body::listen(body, idle, answers, held)))
            }
        }
    }

    /// Takes a slot for another request to a backend, and a share for its network.
    fn place(
        &self,
        backend: &Backend,
        context: &Context,
    ) -> Result<(OwnedSemaphorePermit, Vec<Share<Group>>), ApiError> {
        let busy = |detail: &'static str| {
            ApiError::new(ProblemCode::Unavailable)
                .with_detail(detail)
                .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
        };
        let all = self.settings.in_flight;
        let place = Arc::clone(&backend.places).try_acquire_owned();
        let place =
            place.map_err(|_| busy("The game's backend is overloaded. Try again in a moment."))?;
        let taken = all.saturating_sub(backend.places.available_permits());
        let are_scarce = taken * 2 > all;
        let most = |part: usize| if are_scarce { all.div_ceil(part) } else { all };
        let network = Group::Network(Network::of(context.client));
        let groups = if context.client.is_loopback() {
            vec![(network, all)]
        } else {
            let around = Group::around(context.client);
            vec![(network, most(SHARES.0)), (around, most(SHARES.1))]
        };
        let shares = groups.into_iter();
        let shares = shares.map(|(group, most)| backend.networks.take(group, most));
        let shares = shares.collect::<Option<Vec<_>>>().ok_or_else(|| {
            busy(
                "Too many requests from your network to the game's backend. Try again in a moment.",
            )
        })?;
        Ok((place, shares))
    }

    fn check(&self, parts: &Parts) -> Result<(), ApiError> {
        let length = parts
            .headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.parse::<u64>().ok());
        if length.is_some_and(|length| length > self.settings.limits.bytes) {
            return Err(ProblemCode::PayloadTooLarge.into());
        }
        // It would show a page what only the platform sends to a backend (RFC 9110 §9.3.8); some
        // servers treat `TRACK` in the same way. `CONNECT` asks for a tunnel to another server.
        if parts.method == Method::TRACE
            || parts.method == Method::CONNECT
            || parts.method.as_str().eq_ignore_ascii_case("track")
        {
            let allowed = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
            return Err(ApiError::new(ProblemCode::MethodNotAllowed)
                .with_header(header::ALLOW, HeaderValue::from_static(allowed)));
        }
        if paths::leads_out(parts.uri.path()) {
            return Err(ProblemCode::InvalidRequest.into());
        }
        Ok(())
    }
}

/// Begins the span of a request to a backend, which goes on with its trace. What a page of the game has
/// put into its own request stays as it is: that trace is the game's.
fn begin(parts: &mut Parts, context: &Context) -> Step {
    let mut step = Step::outgoing("game backend request");
    step.note("http.request.method", method_name(&parts.method));
    if context.trusted_peer || !parts.headers.contains_key(TRACEPARENT) {
        step.pass_on(&mut parts.headers);
    }
    step
}

/// Counts a connection that will become a WebSocket (RFC 6455 §4.1) as long-lived, before the
/// request is forwarded.
fn upgraded(headers: &HeaderMap, held: Option<&Stay>) -> Result<Option<Lasting>, ApiError> {
    let values = headers.get_all(header::UPGRADE).into_iter();
    let wanted = values.filter_map(|value| value.to_str().ok());
    let mut wanted = wanted.flat_map(|value| value.split(','));
    match held {
        Some(stay) if wanted.any(|to| to.trim().eq_ignore_ascii_case("websocket")) => {
            stay.last().map(Some)
        }
        _ => Ok(None),
    }
}

fn client(reach: AddressPolicy) -> Result<BackendClient, rustls::Error> {
    // If the machine has no certificates, backends over plain http still work.
    let tls = tls::client(true).or_else(|error| {
        tracing::warn!(
            error = chain(&error),
            "no backend can be reached over https; install the machine's CA certificates"
        );
        tls::client(false)
    })?;
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(address_policy::Connector::new(Arc::new(reach)));
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(KEPT)
        .pool_max_idle_per_host(KEPT_CONNECTIONS)
        .build(connector))
}
